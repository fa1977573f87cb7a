"""Ingests that are killed at a commit, and what is in the library then.

Started with everything imported, so that an ingest costs a fork and the start of its parser. Reads jobs from standard
input, one JSON per line, and answers each with a line: how the ingest ended, how many commits it made, what it left.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakes import HashingEmbedder

from edgerag.config import ChunkSettings, IngestSettings
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.index.segments import SealSettings
from edgerag.index.store import Store
from edgerag.ingest.pipeline import ingest
from edgerag.types import IngestDone, LegHit

if TYPE_CHECKING:
    import sqlite3

    from edgerag.types import Vectors

BATCH = 4
QUERIES = ("badger", "otter chapter 2", "passage number 3 of the lynx", "heron water report")


class CountingEmbedder(HashingEmbedder):
    """Writes down how many passages it was given, before anything is done with them."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        with self._log.open("a") as file:
            file.write(f"{len(texts)}\n")
        return super().embed_passages(texts)


def run(library: str, docs: str, log: str, *, kill_at: int, when: str, answer: int) -> None:
    """One ingest; it kills itself before or after its commit number ``kill_at`` (0: never)."""
    commits = 0
    real = Store.writing

    @contextlib.contextmanager
    def counted(store: Store) -> Iterator[sqlite3.Connection]:
        nonlocal commits
        with real(store) as db:
            yield db
            commits += 1
            if commits == kill_at and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
        if commits == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    Store.writing = counted  # type: ignore[method-assign]
    embedder = CountingEmbedder(Path(log))
    with open_small(Path(library)) as opened:
        *_, done = ingest(
            [Path(docs)],
            library=opened,
            embedder=lambda: embedder,
            settings=IngestSettings(batch_chunks=BATCH),
            chunks=ChunkSettings(),
            cancelled=lambda: False,
        )
        assert isinstance(done, IngestDone)
        assert not done.interrupted
        state = state_of(opened, embedder)
    os.write(answer, json.dumps({"commits": commits, "state": state}).encode())


def open_small(folder: Path) -> Library:
    return open_library(
        folder,
        mode="write",
        residency=Residency(64_000_000),
        identity=HashingEmbedder().identity,
        seal_settings=SealSettings(block_bytes=4096, unsealed_rows=12),
    )


def state_of(library: Library, embedder: HashingEmbedder) -> dict[str, Any]:
    """All that a user could see of a library, without what differs from one ingest to the next (ids)."""
    assert library.pending_count() == 0
    findings = [finding.message for finding in library.verify() if finding.severity not in ("ok", "info")]
    documents = []
    for document in library.documents():
        text = library.parsed_document(document.id).text
        facts = (document.path, document.title, document.content_sha256, document.size_bytes, document.mtime_ns)
        documents.append((*facts, document.chunk_count, hashlib.sha256(text.encode()).hexdigest()))
    found = {}
    for query in QUERIES:
        vector = embedder.embed_query(query)
        found[query] = {
            "words": resolved(library, library.search_keywords(query, limit=200)),
            "vectors": resolved(library, library.search_vectors(vector, limit=200, ef_search=400)),
        }
    return {
        "findings": findings,
        "documents": documents,
        "containers": sorted((path, *dataclasses.astuple(read)) for path, read in library.containers().items()),
        "failures": sorted((failure.path, failure.reason) for failure in library.failures()),
        "chunks": library.chunk_count(),
        "found": found,
    }


def resolved(library: Library, hits: Sequence[LegHit]) -> list[tuple[float, str, int, int, str]]:
    scores = {hit.chunk_id: round(hit.score, 4) for hit in hits}
    chunks = library.chunks(list(scores))
    assert len(chunks) == len(hits), "every hit is a chunk that is there"
    places = [(scores[each.id], each.path, each.chunk.start, each.chunk.end, each.chunk.text) for each in chunks]
    return sorted(places, key=lambda place: (-place[0], *place[1:]))


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            try:
                run(**job, answer=writing)
            except BaseException as error:
                os.write(writing, json.dumps({"error": repr(error)}).encode())
                raise
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            answer = pipe.read()
        _, status = os.waitpid(pid, 0)
        result = json.loads(answer) if answer else {}
        sys.stdout.write(json.dumps(result | {"ended": os.waitstatus_to_exitcode(status)}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
