"""Libraries made of data sets, one chunk per document, with their vectors kept between runs."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from datasets import DataSet, Text
from record import CHECKOUT

from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.ingest.language import language_of
from edgerag.types import Chunk, Embedder, EmbedderIdentity, ParsedDocument

if TYPE_CHECKING:
    from edgerag.types import Vectors

CACHE = CHECKOUT / ".cache" / "bench"
_BUDGET_BYTES = 1_000_000_000
_BATCH = 64


class RememberingEmbedder:
    """An embedder that keeps its vectors in a file, so that a second run embeds nothing."""

    def __init__(self, embedder: Embedder, name: str) -> None:
        self._embedder = embedder
        self.identity: EmbedderIdentity = embedder.identity
        self.max_tokens = embedder.max_tokens
        self._file = CACHE / f"{name}-{embedder.identity.weights_sha256[:12]}.npz"
        self._vectors: dict[str, Vectors] = {}
        self._new = 0
        if self._file.exists():
            with np.load(self._file) as stored:
                self._vectors = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def count_tokens(self, text: str) -> int:
        return self._embedder.count_tokens(text)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._remembered("q", [text], lambda texts: self._embedder.embed_query(texts[0])[None])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._remembered("p", texts, self._embedder.embed_passages)

    def save(self) -> None:
        if self._new:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self._file, keys=np.array(list(self._vectors)), vectors=np.stack(list(self._vectors.values())))
            self._new = 0

    def _remembered(self, kind: str, texts: Sequence[str], embed: Callable[[Sequence[str]], Vectors]) -> Vectors:
        keys = [hashlib.sha256(f"{kind}\0{text}".encode()).hexdigest() for text in texts]
        missing = [i for i, key in enumerate(keys) if key not in self._vectors]
        if missing:
            for i, vector in zip(missing, embed([texts[i] for i in missing]), strict=True):
                self._vectors[keys[i]] = vector
            self._new += len(missing)
        return np.stack([self._vectors[key] for key in keys])


@contextmanager
def library_of(data_set: DataSet, embedder: RememberingEmbedder) -> Iterator[Library]:
    """A fresh library of the documents of a set; the path of each is its id behind a slash."""
    folder = CACHE / "libraries" / data_set.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open_library(folder, mode="write", residency=Residency(_BUDGET_BYTES), identity=embedder.identity) as writer:
        for text in data_set.texts:
            _put(writer, text)
        while pending := writer.pending_chunks(_BATCH):
            writer.put_vectors(
                [chunk.id for chunk in pending], embedder.embed_passages([c.chunk.embedding_text for c in pending])
            )
        writer.seal()
    embedder.save()
    with open_library(folder, mode="read", residency=Residency(_BUDGET_BYTES)) as reader:
        yield reader


def document_id(path: str) -> str:
    """The id in the data set of a document by its path."""
    return Path(path).name


def _put(writer: Library, text: Text) -> None:
    chunk = Chunk(
        ordinal=0,
        start=0,
        end=len(text.text),
        text=text.text,
        heading_path=(),
        page_first=None,
        page_last=None,
        line_first=1,
        line_last=text.text.count("\n") + 1,
        token_count=1,
        context=text.title,
    )
    parsed = ParsedDocument(text=text.text, title=text.title, media_type="text/plain")
    writer.put_document(
        dataclasses.replace(parsed, language=language_of(parsed)),
        [chunk],
        path=f"/{text.id}",
        root="/",
        content_sha256=hashlib.sha256(text.text.encode()).hexdigest(),
        size_bytes=len(text.text),
        mtime_ns=0,
    )
