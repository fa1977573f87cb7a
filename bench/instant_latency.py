"""How long from Enter to the documents' own sentences, in a library of 100,000 passages.

    python bench/instant_latency.py [--data DIR] [--questions 240] [--json FILE]

The passages and their vectors are the set "text100k" of bench/vector_sets.py (EDGERAG_BENCH_CACHE); the questions are
those of four data sets whose texts are among them, in turns. Beside the whole, each stage is given, and "selected":
what passes until the sources are chosen. The question is embedded by the default embedder, which is loaded before: that
of the set is a static distillation of it, so a found passage may be another one, at the same cost. No chat model is
involved.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import datasets
import numpy as np
from record import CHECKOUT, record
from retrieval import default_embedder

from edgerag.ask.pipeline import ask
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.errors import ModelMissing
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.types import AnswerDone, Chunk, Embedder, Generator, InstantAnswer, ParsedDocument
from edgerag.ui.cli import ONE_BLAS_THREAD

_BUDGET_BYTES = 256_000_000  # the default of memory.budget
_PER_DOCUMENT = 500
_BATCH = 2_000
_WARMING = 10  # questions
_SETS = ("xquad-en", "scifact", "cranfield", "pubmedqa")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures Enter to instant answer.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--questions", type=int, default=240)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    folder = cached_set()
    texts = json.loads((folder / "text100k.texts.json").read_text(encoding="utf-8"))
    questions = questions_of(datasets.data_folder(arguments.data))
    vectors = np.load(folder / "text100k.base.npy", mmap_mode="r")
    embedder = default_embedder()
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as scratch:
        library = Path(scratch) / "library"
        began = time.perf_counter()
        build(library, texts, vectors, embedder)
        build_s = time.perf_counter() - began
        with open_library(library, mode="read", residency=Residency(_BUDGET_BYTES)) as reader:
            asked = measure(reader, embedder, questions[: arguments.questions + _WARMING])[_WARMING:]
            status = reader.status()
    figures = {
        "chunks": status.chunk_count,
        "segments": [segment.walk for segment in status.segments],
        "questions": len(asked),
        **{
            stage: percentiles([times[stage] for times in asked if stage in times])
            for stage in dict.fromkeys(stage for times in asked for stage in times)
        },
        "build_s": round(build_s, 1),
    }
    for name, value in figures.items():
        print(f"{name:16} {value}")
    print(record("instant_latency", figures, parameters={"budget_bytes": _BUDGET_BYTES}, file=arguments.json))


def cached_set() -> Path:
    cache = [Path(folder) for folder in os.environ.get("EDGERAG_BENCH_CACHE", "").split(":") if folder]
    return next(one for one in [CHECKOUT / "bench" / ".cache", *cache] if (one / "text100k.texts.json").exists())


def questions_of(data: Path) -> list[str]:
    each = [[query.text for query in datasets.load(name, data).queries] for name in _SETS]
    return [question for row in zip(*each, strict=False) for question in row]


def build(folder: Path, texts: Sequence[str], vectors: np.ndarray, embedder: Embedder) -> None:
    with open_library(folder, mode="write", residency=Residency(_BUDGET_BYTES), identity=embedder.identity) as writer:
        for start in range(0, len(texts), _PER_DOCUMENT):
            put(writer, start // _PER_DOCUMENT, texts[start : start + _PER_DOCUMENT])
        row = 0
        while pending := writer.pending_chunks(_BATCH):
            writer.put_vectors([chunk.id for chunk in pending], np.asarray(vectors[row : row + len(pending)]))
            row += len(pending)
        writer.seal()
        writer.keep_latent_space()


def put(writer: Library, number: int, texts: Sequence[str]) -> None:
    chunks, start = [], 0
    for ordinal, text in enumerate(texts):
        line = ordinal + 1
        chunks.append(Chunk(ordinal, start, start + len(text), text, (), None, None, line, line, len(text) // 4))
        start += len(text) + 1
    writer.put_document(
        path=f"/bench/{number}.txt",
        root="/bench",
        content_sha256=f"{number:064x}",
        size_bytes=start,
        mtime_ns=0,
        parsed=ParsedDocument("\n".join(texts), f"Text {number}", "text/plain"),
        chunks=chunks,
    )


def measure(library: Library, embedder: Embedder, questions: Sequence[str]) -> list[dict[str, float]]:
    """Of each question: the seconds of its stages, to the instant answer (or that there is none), and to the sources.
    Questions that are answered by counting are left out."""

    def no_model() -> Generator:
        raise ModelMissing("No chat model is wanted here.")

    asked = []
    for question in questions:
        began = time.perf_counter()
        instant = 0.0
        for event in ask(
            question,
            library=library,
            embedder=lambda: embedder,
            generator=no_model,
            retrieval=RetrievalSettings(),
            generation=GenerationSettings(mode="instant"),
            cancelled=lambda: False,
        ):
            if isinstance(event, InstantAnswer):
                instant = time.perf_counter() - began
            if isinstance(event, AnswerDone) and event.answer.stop_reason != "counted":
                stages = {each.stage: each.seconds for each in event.answer.timings}
                whole = instant or stages["total"]
                asked.append({**stages, "instant_answer": whole, "selected": whole - stages["instant"]})
    return asked


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50_ms": round(1e3 * statistics.median(ordered), 1),
        "p95_ms": round(1e3 * ordered[int(0.95 * len(ordered))], 1),
        "p99_ms": round(1e3 * ordered[int(0.99 * len(ordered))], 1),
    }


if __name__ == "__main__":
    if ONE_BLAS_THREAD[0] not in os.environ:  # as the program has it; read when numpy is loaded, so: once more
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | dict([ONE_BLAS_THREAD]))
    main()
