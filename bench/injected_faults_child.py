"""The program as injected_faults.py runs it: each job a forked process that sees its home for the first time.

Started with both shims preloaded and everything imported, so that a job costs a fork and not a start of Python. Reads
jobs from standard input, one JSON per line, and answers each with a line.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from fakes import HashingEmbedder, ScriptedGenerator  # type: ignore[import-not-found]
from faults.children import in_child  # type: ignore[import-not-found]

from edgerag.config import GenerationSettings, IngestSettings, RetrievalSettings, Settings, TraceSettings
from edgerag.errors import EdgeragError
from edgerag.index.documents import DAMAGED_FACTS
from edgerag.index.hnsw import build  # noqa: F401 - with hnswlib, so that no child has to
from edgerag.index.segments import SealSettings
from edgerag.locations import Locations
from edgerag.memory_shortage import shortage_told
from edgerag.session import Session
from edgerag.types import AnswerDone, IngestDone

_SHIM = ctypes.CDLL(None)
DIMENSION = 32  # of the golden libraries, too
Tell = Callable[[Any], None]


class Small(Session):
    """Segments of few rows with graphs, so that every path is taken by a small library."""

    def _seal_settings(self) -> SealSettings:
        return SealSettings(block_bytes=4096, graph_rows=20, unsealed_rows=40)


def session(home: Path) -> Session:
    embedder = HashingEmbedder(dimension=DIMENSION)
    generation = GenerationSettings(kv_disk=0)
    settings = Settings(
        ingest=IngestSettings(nice=0),
        generation=generation,
        retrieval=RetrievalSettings(vector_deadline_ms=0),  # what is found must not depend on how busy the machine is
        trace=TraceSettings(keep=0),
    )
    return Small(settings, Locations(home), embedder=lambda: embedder, generator=ScriptedGenerator)


@dataclass(frozen=True, slots=True)
class User:
    """What a user does with the library of one home; what comes of it is told."""

    home: Path
    arguments: dict[str, Any]
    tell: Tell

    def ingest(self) -> None:
        with session(self.home) as one:
            *_, done = one.ingest([Path(self.arguments["docs"])], prune=True)
            assert isinstance(done, IngestDone)
            self.tell(["failed", [report.path for report in done.reports if report.outcome == "failed"]])

    def compact(self) -> None:
        with session(self.home) as one:
            one.compact_library(progress=lambda _: None)

    def backup(self) -> None:
        with session(self.home) as one:
            one.export_library("default", self.home / "out.edgerag", progress=lambda _done, _total: None)

    def arrive(self) -> None:
        with session(self.home) as one:
            one.import_library(self.home / "in.edgerag", "default", progress=lambda _done, _total: None)

    def repair(self) -> None:
        with session(self.home) as one:
            database, segments = one.repair_library()
            self.tell(
                ["repaired", [database.state, [[loss.path, loss.what] for loss in database.losses], len(segments)]]
            )

    def verify(self) -> None:
        with session(self.home) as one:
            self.tell(
                ["findings", [each.message for each in one.verify_library() if each.severity not in ("ok", "info")]]
            )

    def converse(self) -> None:
        """Asks, keeps the question before and the answer after it."""
        with session(self.home) as one:
            for query in self.arguments["queries"]:
                exchange = one.threads.ask(query, library="default")
                self.tell(["asked", query])
                *_, done = one.ask(query)
                assert isinstance(done, AnswerDone)
                answer = done.answer
                self.tell(["answer", [query, [_passage(source.hit) for source in answer.sources], list(answer.notes)]])
                one.threads.finish(exchange.id, answer)
                self.tell(["kept", query])

    def search(self) -> None:
        with session(self.home) as one:
            for query in self.arguments["queries"]:
                result = one.search(query, limit=self.arguments.get("limit", 5))
                self.tell(["answer", [query, [_passage(hit) for hit in result.hits], list(result.notes)]])

    def content(self) -> None:
        """Every document that can be read, with its text; of others the path, and why not."""
        with session(self.home) as one, one._browsing.use() as library:
            for document in library.documents():
                if DAMAGED_FACTS in document.warnings:
                    self.tell(["unreadable", [document.path, DAMAGED_FACTS]])
                    continue
                try:
                    self.tell(["document", [document.path, library.parsed_document(document.id).text]])
                except EdgeragError as error:
                    self.tell(["unreadable", [document.path, str(error)]])
            self.tell(["pending", library.pending_count()])

    def questions(self) -> None:
        """Of the conversations."""
        with session(self.home) as one:
            heads = one.threads.heads(library=None)
            kept = [each for head in heads for each in one.threads.thread(head.id).exchanges]
            self.tell(["questions", sorted([each.question, each.state, each.text] for each in kept)])
            self.tell(["damage", [each.message for each in one.threads.verify() if each.severity == "error"]])


def _passage(hit: Any) -> list[Any]:
    stored = hit.chunk
    return [stored.path, stored.chunk.start, stored.chunk.text, stored.title]


# ------------------------------------------------------------ under a fault


def arm(home: Path, fault: dict[str, Any]) -> None:
    """In the child, before its job."""
    kind, at = fault["kind"], fault.get("at", 0)
    if kind in ("count", "kill-before", "kill-after", "enospc", "full", "eio", "dead"):
        shim_kind = b"none" if kind == "count" else kind.encode()
        _SHIM.faults_arm(os.fsencode(home), ctypes.c_long(at), shim_kind, None, None, 1)
    if kind == "count" or kind.startswith("read-eio"):
        _SHIM.read_faults_arm(os.fsencode(home), ctypes.c_long(at), kind == "read-eio-lasting")
    if kind == "count" or kind.startswith("alloc"):
        _SHIM.allocations_arm(ctypes.c_long(at), kind == "alloc-lasting")
    if kind == "oom":
        used = psutil.Process().memory_info().vms
        resource.setrlimit(resource.RLIMIT_AS, (used + at, resource.RLIM_INFINITY))
    if kind == "kill-timed":
        signal.setitimer(signal.ITIMER_REAL, at / 1e6)  # its default is to end the process at once


def run(job: dict[str, Any]) -> dict[str, Any]:
    home, fault = Path(job["home"]), job.get("fault") or {"kind": "none"}

    def work(tell: Tell) -> None:
        arm(home, fault)
        with shortage_told():  # as the command line does
            getattr(User(home, job, tell), job["job"])()
        if fault["kind"] == "count":
            tell(["counts", [_SHIM.faults_counted(), _SHIM.read_faults_counted(), _SHIM.allocations_counted()]])

    code, said, hung = in_child(work)
    told: dict[str, list[Any]] = {}
    for name, value in said:
        told.setdefault(name, []).append(value)
    return {"code": code, "hung": hung, "told": told}


def main() -> None:
    HashingEmbedder(dimension=DIMENSION).embed_passages(["warm"])
    random.seed(1)
    warm = Path(sys.argv[1])
    shutil.rmtree(warm, ignore_errors=True)
    (warm / "docs").mkdir(parents=True)
    (warm / "docs" / "a.md").write_text("# Warm\n\nWords.\n")
    for name in ("search", "content", "verify", "compact", "questions"):  # imports what they need, here
        with session(warm) as one:
            if name == "search":
                list(one.ingest([warm / "docs"]))
        getattr(User(warm, {"queries": ["words"]}, lambda _: None), name)()
    gc.freeze()  # a child that collects garbage would copy the pages of all that is imported
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
