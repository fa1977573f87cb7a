"""Libraries filled with given vectors: one short chunk per vector, many chunks to a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgerag.index.library import Library
from edgerag.types import Chunk, ParsedDocument

if TYPE_CHECKING:
    from edgerag.types import Vectors

_CHUNKS_PER_DOCUMENT = 1_000
_WORD = "row"


def add_rows(library: Library, vectors: Vectors, *, first: int) -> None:
    """Adds rows ``first``, ... of a set as documents, with their vectors; seals nothing.

    ``vectors`` (n, dim) are those rows.
    """
    for start in range(0, len(vectors), _CHUNKS_PER_DOCUMENT):
        part = vectors[start : start + _CHUNKS_PER_DOCUMENT]
        _put_document(library, first + start, len(part))
        pending = library.pending_chunks(len(part))
        rows = [row_of(each.chunk.text) - first - start for each in pending]
        library.put_vectors([each.id for each in pending], np.ascontiguousarray(part[rows]))


def found_rows(library: Library, query: Vectors, *, limit: int, ef_search: int) -> list[int]:
    """The rows of the nearest chunks, best first."""
    hits = library.search_vectors(query, limit=limit, ef_search=ef_search)
    return [row_of(each.chunk.text) for each in library.chunks([hit.chunk_id for hit in hits])]


def row_of(text: str) -> int:
    return int(text.removeprefix(_WORD))


def segment_files(folder: Path) -> dict[str, tuple[int, int, int]]:
    """(inode, size, time of the last write in ns) of every segment file by name."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted((folder / "segments").glob("*.hnsw*"))
    }


def _put_document(library: Library, first: int, count: int) -> None:
    texts = [f"{_WORD}{row}" for row in range(first, first + count)]
    starts = np.concatenate([[0], np.cumsum([len(text) + 1 for text in texts])]).tolist()
    chunks = [
        Chunk(
            ordinal=ordinal,
            start=starts[ordinal],
            end=starts[ordinal] + len(text),
            text=text,
            heading_path=(),
            page_first=None,
            page_last=None,
            line_first=ordinal + 1,
            line_last=ordinal + 1,
            token_count=1,
            context="",
        )
        for ordinal, text in enumerate(texts)
    ]
    whole = "\n".join(texts)
    library.put_document(
        ParsedDocument(text=whole, title="", media_type="text/plain"),
        chunks,
        path=f"/rows/{first}",
        root="/rows",
        content_sha256=f"{first:064x}",
        size_bytes=len(whole),
        mtime_ns=0,
    )
