"""The measured process of ``edgerag bench ingest``: it does one thing, told line by line; see measure/ingest.py.

Requests and answers are JSON lines. A process of its own for each, so that the memory of one is not the memory of the
other.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgerag.config import Settings, load_settings
from edgerag.engine.bulk import BulkEmbedder
from edgerag.engine.catalog import Catalog
from edgerag.engine.gguf import read_header
from edgerag.engine.opening import open_bulk_embedder, open_embedding_model
from edgerag.engine.tuning.embed_trial import PassagePlan, Trials, plans, remembered_trial, run_of
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library
from edgerag.ingest.pipeline import ingest
from edgerag.locations import locate
from edgerag.machine.memory import available_bytes
from edgerag.machine.plan import plan_cores
from edgerag.machine.topology import read_topology
from edgerag.measure.memory import high_water_bytes
from edgerag.measure.talk import serve
from edgerag.types import Embedder, EmbedderIdentity, IngestDone

if TYPE_CHECKING:
    from edgerag.types import Vectors

_KEPT_PASSAGES = 20_000  # of one ingest, for the measurement of embedding to choose from
_SENTENCE = "File number {number} says that the pump of station {number} was serviced in week {week}, without a fault."


class Measured:
    """Every public method is a request; what it gives goes out as JSON."""

    def __init__(self) -> None:
        locations = locate(os.environ)
        self._settings: Settings = load_settings(locations.config_file, os.environ, {})
        self._catalog = Catalog(locations.models, locations.manifest_file)
        self._run: Callable[[Sequence[str]], Any] | None = None
        self._together = 0  # passages in one call

    def ingest(self, docs: str, folder: str) -> dict[str, Any]:
        """Ingests ``docs`` into a new library in ``folder``, as `edgerag ingest` does."""
        model = self._catalog.find("embedder", self._settings.models.embedder)
        made: list[_Timed] = []

        def embedder() -> Embedder:
            if not made:
                began = time.perf_counter()
                base = open_embedding_model(model, machine=self._settings.machine)
                bulk = open_bulk_embedder(
                    base,
                    model,
                    trials=Trials(self._catalog.folder),
                    machine=self._settings.machine,
                    backend=self._settings.ingest.embed_with,
                )
                made.append(_Timed(bulk, seconds=time.perf_counter() - began))
            return made[0]

        identity = EmbedderIdentity(model.name, model.weights_sha256, model.dimension, model.languages)
        began = time.perf_counter()
        done = self._ingested(Path(docs), Path(folder), identity, embedder)
        seconds = time.perf_counter() - began
        timed = made[0] if made else None
        return {
            "seconds": seconds,
            "embed_seconds": timed.seconds if timed else 0.0,
            "passages": timed.passages if timed else [],
            "chunks": done.chunks_embedded,
            "files": len(done.reports),
            "failed": done.count("failed"),
            "peak_rss_bytes": high_water_bytes() or 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "peak_rss_child_bytes": 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,
        }

    def unchanged(self, count: int, folder: str) -> dict[str, Any]:
        """Ingests ``count`` made-up files, then again."""
        docs, library = Path(folder) / "unchanged", Path(folder) / "library of unchanged"
        docs.mkdir()
        for number in range(count):
            text = _SENTENCE.format(number=number, week=number % 52 + 1)
            (docs / f"{number:06}.txt").write_text(text, encoding="utf-8")
        embedder = _Counting()
        self._ingested(docs, library, embedder.identity, lambda: embedder)
        first, embedder.count = embedder.count, 0
        began = time.perf_counter()
        done = self._ingested(docs, library, embedder.identity, lambda: embedder)
        seconds = time.perf_counter() - began
        return {
            "seconds": seconds,
            "unchanged": done.count("unchanged"),
            "embedded": embedder.count,
            "embedded_first": first,
        }

    def load(self, kind: str, *, reference: str = "", passages: Sequence[str] = ()) -> dict[str, Any]:
        """Makes one backend ready: "best", "llama.cpp" or "sentence-transformers" (in the folder ``reference``)."""
        threads = len(plan_cores(read_topology(), threads=self._settings.machine.threads).prefill_cpus)
        if kind == "sentence-transformers":
            self._run, what, self._together = _reference(Path(reference), threads), f"fp32, {threads} threads", 0
        else:
            model = self._catalog.find("embedder", self._settings.models.embedder)
            header = read_header(model.path)
            base = open_embedding_model(model, machine=self._settings.machine)
            plan: PassagePlan = plans(header, threads=threads, torch=False, features=(), free_bytes=0)[0]
            if kind == "best" and self._settings.ingest.embed_with == "auto":
                trials = Trials(self._catalog.folder)
                plan = remembered_trial(model, passages, trials=trials, threads=threads, fallback=plan)
            self._run, what, self._together = run_of(plan, base, header), str(plan), self._settings.ingest.batch_chunks
        self._run(passages[: self._together or 32])  # what the first run makes ready is not measured
        return {"what": what, "free_bytes": available_bytes()}

    def embed(self, passages: Sequence[str]) -> dict[str, Any]:
        """Embeds them; the seconds of the clock and of the processors."""
        assert self._run is not None, "load comes first"
        size = self._together or len(passages)
        clock, processors = time.perf_counter(), time.process_time()
        for start in range(0, len(passages), size):
            self._run(passages[start : start + size])
        return {"seconds": time.perf_counter() - clock, "cpu_seconds": time.process_time() - processors}

    def _ingested(
        self, docs: Path, folder: Path, identity: EmbedderIdentity, embedder: Callable[[], Embedder]
    ) -> IngestDone:
        residency = Residency(self._settings.memory.budget_bytes(available_bytes()))
        done: IngestDone | None = None
        with open_library(folder, mode="write", residency=residency, identity=identity) as library:
            for event in ingest(
                [docs],
                library=library,
                embedder=embedder,
                settings=dataclasses.replace(self._settings.ingest, polite=False, max_cpu=100),
                chunks=self._settings.chunks,
                cancelled=lambda: False,
            ):
                if isinstance(event, IngestDone):
                    done = event
        assert done is not None, "the last event of an ingest says what became of it"
        return done


class _Timed:
    """An embedder that counts its seconds, and keeps what it was given."""

    def __init__(self, embedder: BulkEmbedder, *, seconds: float) -> None:
        self._embedder = embedder
        self.identity, self.max_tokens = embedder.identity, embedder.max_tokens
        self.count_tokens, self.embed_query = embedder.count_tokens, embedder.embed_query
        self.seconds = seconds
        self.passages: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        began = time.perf_counter()
        vectors = self._embedder.embed_passages(texts)
        self.seconds += time.perf_counter() - began
        self.passages += texts[: _KEPT_PASSAGES - len(self.passages)]
        return vectors


class _Counting:
    """Stands in for an embedder where embedding is not what is measured."""

    def __init__(self) -> None:
        self.identity = EmbedderIdentity(name="counting", weights_sha256="0" * 64, dimension=16, languages=("*",))
        self.max_tokens = 254
        self.count = 0
        self._draw = np.random.default_rng(5)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_passages([text])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.count += len(texts)
        vectors = self._draw.standard_normal((len(texts), self.identity.dimension)).astype(np.float32)
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def _reference(folder: Path, threads: int) -> Callable[[Sequence[str]], Any]:
    """Plain sentence-transformers."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as for ours: it decides on a busy machine
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return lambda passages: model.encode(list(passages), show_progress_bar=False)


if __name__ == "__main__":
    serve(Measured(), requests=sys.stdin, answers=sys.stdout)
