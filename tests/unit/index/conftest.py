"""Documents and vectors made by rule, and a library with small blocks so that every path is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.index.segments import SealSettings
from edgerag.types import UNKNOWN_LANGUAGE, Chunk, EmbedderIdentity, Heading, Page, ParsedDocument

if TYPE_CHECKING:
    from edgerag.types import Vectors

IDENTITY = EmbedderIdentity(name="by-rule", weights_sha256="ab" * 32, dimension=16, languages=("*",))
SMALL = SealSettings(block_bytes=4096, graph_rows=20, max_rows=10_000)


class Material:
    """What tests make libraries of."""

    identity = IDENTITY
    small = SMALL

    def document(self, paragraphs: Sequence[str], *, title: str = "A title") -> tuple[ParsedDocument, list[Chunk]]:
        """A document whose chunks are its paragraphs."""
        text = "\n\n".join(paragraphs)
        chunks = []
        start = 0
        for ordinal, paragraph in enumerate(paragraphs):
            end = start + len(paragraph)
            line = 1 + text.count("\n", 0, start)
            chunks.append(
                Chunk(
                    ordinal=ordinal,
                    start=start,
                    end=end,
                    text=paragraph,
                    heading_path=("Top",),
                    page_first=1,
                    page_last=1,
                    line_first=line,
                    line_last=line + paragraph.count("\n"),
                    token_count=len(paragraph.split()),
                    context=title,
                )
            )
            start = end + 2
        parsed = ParsedDocument(
            text=text,
            title=title,
            media_type="text/plain",
            pages=(Page(1, 0, len(text)),),
            headings=(Heading(1, "Top", 0),),
            warnings=("one warning",),
        )
        return parsed, chunks

    def put(self, library: Library, path: str, paragraphs: Sequence[str], **facts: Any) -> int:
        parsed, chunks = self.document(paragraphs, title=facts.pop("title", "A title"))
        parsed = replace(parsed, language=facts.pop("language", UNKNOWN_LANGUAGE))
        values = {"root": "/docs", "content_sha256": "0", "size_bytes": 10, "mtime_ns": 20} | facts
        return library.put_document(parsed, chunks, path=path, **values)

    def vector(self, text: str) -> Vectors:
        """(16,) of unit length, the same for the same text."""
        seed = int.from_bytes(text.encode("utf-8", "surrogatepass")[-64:], "little")
        return self.vectors(1, seed=seed)[0]

    def vectors(self, count: int, *, dimension: int = IDENTITY.dimension, seed: int = 0) -> Vectors:
        """(count, dimension) unit rows."""
        rows = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def clustered(self, count: int, *, dimension: int, seed: int = 0, clusters: int = 200) -> Vectors:
        random = np.random.default_rng(seed)
        centres = random.normal(size=(clusters, dimension))
        rows = centres[random.integers(clusters, size=count)] + 0.8 * random.normal(size=(count, dimension))
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def embed_pending(self, library: Library) -> int:
        count = 0
        while pending := library.pending_chunks(64):
            library.put_vectors(
                [chunk.id for chunk in pending],
                np.stack([self.vector(chunk.chunk.embedding_text) for chunk in pending]),
            )
            count += len(pending)
        return count


@pytest.fixture
def material() -> Material:
    return Material()


OpenLibrary = Callable[..., Library]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenLibrary]:
    """Opens the test's library, for writing unless told otherwise; closes what was opened."""
    libraries: list[Library] = []

    def open_it(mode: str = "write", **options: Any) -> Library:
        values = {"residency": Residency(10**9), "seal_settings": SMALL} | options
        if mode == "write":
            values.setdefault("identity", IDENTITY)
        libraries.append(open_library(values.pop("folder", tmp_path / "lib"), mode=mode, **values))
        return libraries[-1]

    yield open_it
    for library in libraries:
        library.close()
