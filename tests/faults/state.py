"""What a library holds, read as a user would, and whether it is whole and searches rightly."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from faults.writer import IDENTITY, embed, open_small

from edgerag.errors import EdgeragError, LibraryMissing, LibraryOutdated
from edgerag.index.library import Library

# Sealed vectors are kept in half precision: 11 bits, so that no number of a unit vector is off by more than this.
TOLERANCE = 2**-11
_ALL = 10**6
_QUERIES = [f"query {i}" for i in range(4)]
_WORDS = ("word3", "changed", "a", "d word4", "title")


@dataclass(frozen=True, slots=True)
class State:
    """``content`` is None where there is no library yet."""

    content: str | None  # JSON of documents, chunks, vectors and answers
    layout: str  # JSON of rows and removed rows per segment, and of what is not sealed
    wrong: list[str]


def read_state(folder: Path) -> State:
    """Opens it for reading; whatever is not as it must be is a sentence in ``wrong``."""
    try:
        library = open_small(folder, "read")
    except (LibraryMissing, LibraryOutdated):  # the second: stopped between two steps of the schema
        return State(None, "", [])
    except EdgeragError as error:
        return State(None, "", [f"cannot be opened: {error}"])
    with library:
        try:
            return _read(library)
        except EdgeragError as error:
            return State(None, "", [f"cannot be read: {error}"])


def _read(library: Library) -> State:
    wrong = [f"verify: {finding.message}" for finding in library.verify() if finding.severity != "ok"]
    columns = [
        {hit.chunk_id: hit.score for hit in library.search_vectors(axis, limit=_ALL, ef_search=10)}
        for axis in np.eye(IDENTITY.dimension, dtype=np.float32)
    ]
    ids = sorted(columns[0])
    found = np.array([[column.get(chunk_id, np.nan) for column in columns] for chunk_id in ids]).reshape(-1, 16)
    stored = library.chunks(ids)
    pending = library.pending_chunks(_ALL)
    if [chunk.id for chunk in stored] != ids:
        wrong.append("search finds vectors of chunks that are not there")
    if library.chunk_count() != len(ids) + len(pending):
        wrong.append(f"{library.chunk_count()} chunks, of which {len(ids)} have a vector and {len(pending)} have none")
    expected = embed([chunk.chunk.embedding_text for chunk in stored])
    if found.shape != expected.shape or not (np.abs(found - expected) <= TOLERANCE).all():
        wrong.append("a vector is not what was put")
    else:
        wrong += _compare_with_exact(library, np.array(ids), expected)
    documents = [
        [d.path, d.id, d.title, d.content_sha256, d.size_bytes, d.mtime_ns, d.chunk_count, d.pending_count,
         library.parsed_document(d.id).text]
        for d in library.documents()
    ]  # fmt: skip
    content: dict[str, Any] = {
        "documents": documents,
        "tags": library.tags(),
        "failures": [failure.path for failure in library.failures()],
        "chunks": [[c.id, c.path, c.chunk.ordinal, c.chunk.text, c.kv_key] for c in stored],
        "pending": [[c.id, c.path, c.chunk.ordinal, c.chunk.text, c.kv_key] for c in pending],
        "keywords": [
            [[hit.chunk_id, round(hit.score, 5)] for hit in library.search_keywords(word, limit=_ALL)]
            for word in _WORDS
        ],
    }
    segments = [[segment.vector_count, segment.dead_count] for segment in library.status().segments]
    sealed = sum(rows - dead for rows, dead in segments)
    return State(json.dumps(content), json.dumps([segments, len(ids) - sealed]), wrong)


def _compare_with_exact(library: Library, ids: Any, vectors: Any) -> list[str]:
    for text in _QUERIES:
        query = embed([text])[0]
        exact = dict(zip(ids.tolist(), (vectors @ query).tolist(), strict=True))
        hits = library.search_vectors(query, limit=10, ef_search=200)
        found = {hit.chunk_id for hit in hits}
        if len(found) != min(10, len(exact)) or any(abs(hit.score - exact[hit.chunk_id]) > TOLERANCE for hit in hits):
            return [f"{text!r} finds {hits}, exact search {exact}"]
        worst = min((exact[chunk_id] for chunk_id in found), default=0.0)
        if any(score > worst + 2 * TOLERANCE for chunk_id, score in exact.items() if chunk_id not in found):
            return [f"{text!r} finds {hits}, exact search {exact}"]
    return []
