"""Hits and sources made of plain sentences, and a library of a few documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from fakes import HashingEmbedder

from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.types import Chunk, Hit, ParsedDocument, Scores, Source, StoredChunk


def _chunk(text: str, *, start: int, title: str) -> Chunk:
    return Chunk(
        ordinal=0,
        start=start,
        end=start + len(text),
        text=text,
        heading_path=(),
        page_first=None,
        page_last=None,
        line_first=1,
        line_last=1 + text.count("\n"),
        token_count=len(text.split()),
        context=title,
    )


@pytest.fixture
def hit() -> Callable[..., Hit]:
    def make(text: str, *, chunk_id: int = 1, start: int = 0, title: str = "Notes", fused: float = 0.1) -> Hit:
        stored = StoredChunk(
            id=chunk_id,
            document_id=chunk_id,
            path=f"/notes/{chunk_id}.md",
            title=title,
            media_type="text/markdown",
            chunk=_chunk(text, start=start, title=title),
        )
        return Hit(stored, Scores(keyword=1.0, keyword_rank=1, vector=0.5, vector_rank=1, fused=fused))

    return make


@pytest.fixture
def sources(hit: Callable[..., Hit]) -> Callable[..., tuple[Source, ...]]:
    def make(*texts: str) -> tuple[Source, ...]:
        return tuple(
            Source(number=n, hit=hit(text, chunk_id=n), quote=text[:60], quote_start=0, cited=False)
            for n, text in enumerate(texts, start=1)
        )

    return make


@pytest.fixture
def library_of(tmp_path: Path) -> Iterator[Callable[..., Library]]:
    """Makes a library with one chunk for each text, by path; ``embedded`` leaves the rest pending."""
    opened: list[Library] = []

    def make(texts: Mapping[str, str], *, embedder: HashingEmbedder | None = None, embedded: int = 1_000) -> Library:
        embedder = embedder or HashingEmbedder(dimension=256)
        library = open_library(
            tmp_path / "library", mode="write", residency=Residency(10_000_000), identity=embedder.identity
        )
        opened.append(library)
        for path, text in texts.items():
            library.put_document(
                ParsedDocument(text=text, title=Path(path).stem, media_type="text/plain"),
                [_chunk(text, start=0, title=Path(path).stem)],
                path=path,
                root="/",
                content_sha256=f"{hash(text) & (2**256 - 1):064x}",
                size_bytes=len(text),
                mtime_ns=0,
            )
        pending = library.pending_chunks(embedded)
        if pending:
            library.put_vectors(
                [chunk.id for chunk in pending],
                embedder.embed_passages([chunk.chunk.embedding_text for chunk in pending]),
            )
        return library

    yield make
    for library in opened:
        library.close()
