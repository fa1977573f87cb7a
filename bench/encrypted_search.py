"""What encryption costs a search: the same library plain and encrypted, asked in turns by the same questions.

    python bench/encrypted_search.py [--data DIR] [--passages 100000] [--questions 200] [--json FILE]

The passages and their vectors are the set "text100k" of bench/vector_sets.py (EDGERAG_BENCH_CACHE), the questions those
of data sets whose texts are among them. Both libraries are warm: every question is asked once before. For each question
the two libraries take turns at being first, so that neither is warmed by the other. Given are the whole search
("search", the question embedded each time), the search without embedding ("lookup"), and its two legs; of each the
median and the 95th percentile in milliseconds, and the ratios of both. "short" is the vector leg under a budget in
which not even the narrowest walk fits. Both must find the same.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from instant_latency import build, cached_set, questions_of
from libraries import RememberingEmbedder
from record import record
from retrieval import default_embedder

from edgerag.ask.pipeline import search
from edgerag.config import RetrievalSettings
from edgerag.encryption.key_record import wrap
from edgerag.encryption.keys import KeyFile, LibraryKey, new_library_key
from edgerag.index.encrypting import NewKey, encrypt_anew
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.machine.memory import resident_bytes
from edgerag.ui.cli import ONE_BLAS_THREAD

_BUDGET_BYTES = 256_000_000  # the default of memory.budget
_SHORT_BYTES = 4_000_000
_LIMIT = 10
_EF_SEARCH = 96
_SHORT_QUESTIONS = 40


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the cost of encryption.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    cache = cached_set()
    texts = json.loads((cache / "text100k.texts.json").read_text(encoding="utf-8"))[: arguments.passages]
    vectors = np.load(cache / "text100k.base.npy", mmap_mode="r")[: arguments.passages]
    questions = questions_of(datasets.data_folder(arguments.data))[: arguments.questions]
    embedder = default_embedder()
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as scratch:
        plain, encrypted = Path(scratch) / "plain", Path(scratch) / "encrypted"
        build(plain, texts, vectors, embedder)
        shutil.copytree(plain, encrypted)
        key = new_library_key()
        began = time.perf_counter()
        done = encrypt_anew(
            encrypted, key=None, to=NewKey(key, wrap(key, KeyFile(b"k" * 64))), progress=lambda _done, _total: None
        )
        encrypt_s = time.perf_counter() - began
        figures: dict[str, Any] = {
            "passages": len(texts),
            "questions": len(questions),
            "bytes": {"plain": size_of(plain), "encrypted": done.size_bytes},
            "encrypt_s": round(encrypt_s, 1),
            "first_search_ms": {
                name: first_search(folder, own, embedder, questions[0])
                for name, folder, own in (("plain", plain, None), ("encrypted", encrypted, key))
            },
        }
        figures |= compare(plain, encrypted, key, embedder, questions)
    for name, value in figures.items():
        print(f"{name:16} {value}")
    print(
        record(
            "encrypted_search",
            figures,
            parameters={"budget_bytes": _BUDGET_BYTES, "short_budget_bytes": _SHORT_BYTES},
            file=arguments.json,
        )
    )


def opened(folder: Path, key: LibraryKey | None, budget_bytes: int) -> Library:
    return open_library(folder, mode="read", residency=Residency(budget_bytes), key=key)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def whole(library: Library, embedder: Any, question: str) -> list[str]:
    result = search(
        question,
        library=library,
        embedder=lambda: embedder,
        settings=RetrievalSettings(vector_deadline_ms=0, second_look="off"),
        limit=_LIMIT,
        where=None,
        second_look=None,
    )
    return [hit.chunk.chunk.text for hit in result.hits]


def first_search(folder: Path, key: LibraryKey | None, embedder: Any, question: str) -> float:
    """From the open library to its first hits; the file's pages are in the page cache."""
    with opened(folder, key, _BUDGET_BYTES) as library:
        began = time.perf_counter()
        whole(library, embedder, question)
        return round((time.perf_counter() - began) * 1e3, 1)


def compare(plain: Path, encrypted: Path, key: LibraryKey, embedder: Any, questions: list[str]) -> dict[str, Any]:
    remembering = RememberingEmbedder(embedder, "encrypted-search")
    rows = {question: embedder.embed_query(question) for question in questions}
    kinds: dict[str, Callable[[Library, str], Any]] = {
        "search": lambda library, question: whole(library, embedder, question),
        "lookup": lambda library, question: whole(library, remembering, question),
        "vectors": lambda library, question: library.search_vectors(rows[question], limit=_LIMIT, ef_search=_EF_SEARCH),
        "words": lambda library, question: library.search_keywords(question, limit=_LIMIT),
    }
    figures: dict[str, Any] = {}
    memory: dict[str, int] = {}
    with opened(plain, None, _BUDGET_BYTES) as first, opened(encrypted, key, _BUDGET_BYTES) as second:
        for name, library in (("plain", first), ("encrypted", second)):
            before = resident_bytes()
            for question in questions:
                kinds["lookup"](library, question)
            memory[name] = resident_bytes() - before
        for kind, ask in kinds.items():
            figures[kind] = paired(first, second, questions, ask)
        figures["walk"] = [segment.walk for segment in second.status().segments]
        figures["index_resident_bytes"] = {
            "plain": first.residency.resident_bytes(),
            "encrypted": second.residency.resident_bytes(),
        }
    with opened(plain, None, _SHORT_BYTES) as first, opened(encrypted, key, _SHORT_BYTES) as second:
        figures["short"] = paired(first, second, questions[:_SHORT_QUESTIONS], kinds["vectors"])
    return {**figures, "process_grew_bytes": memory}


def paired(
    plain: Library, encrypted: Library, questions: list[str], ask: Callable[[Library, str], Any]
) -> dict[str, float]:
    times: dict[str, list[float]] = {"plain": [], "encrypted": []}
    gc.collect()
    gc.disable()
    for number, question in enumerate(questions):
        order = [("plain", plain), ("encrypted", encrypted)]
        found = []
        for name, library in order if number % 2 else reversed(order):
            began = time.perf_counter()
            found.append(ask(library, question))
            times[name].append((time.perf_counter() - began) * 1e3)
        assert found[0] == found[1], "both find the same"
    gc.enable()
    figures: dict[str, float] = {}
    for name, measured in times.items():
        figures[f"{name}_p50_ms"] = round(statistics.median(measured), 3)
        figures[f"{name}_p95_ms"] = round(statistics.quantiles(measured, n=20)[-1], 3)
    for part in ("p50", "p95"):
        figures[f"ratio_{part}"] = round(figures[f"encrypted_{part}_ms"] / figures[f"plain_{part}_ms"], 3)
    return figures


if __name__ == "__main__":
    if ONE_BLAS_THREAD[0] not in os.environ:  # as the program has it; read when numpy is loaded, so: once more
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | dict([ONE_BLAS_THREAD]))
    main()
