"""The documents of a set as a library: made once, kept in a cache by content, gone on with where it was stopped.

A document is chunked and embedded as `edgerag ingest` does it, or kept whole as one passage, of which the embedder
reads the beginning: that is how published figures are made. The path of a document is its id.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import numpy as np

from edgerag.config import ChunkSettings
from edgerag.errors import Cancelled
from edgerag.index import analyze, latent_rows, latent_space, stopwords, word_rules
from edgerag.index import chunks as chunk_rows
from edgerag.ingest import blocks, language, split
from edgerag.ingest import chunk as chunking
from edgerag.ingest.language import language_of
from edgerag.machine.disk import storage_error
from edgerag.measure.eval.sets import QuestionSet, Text
from edgerag.types import CancelCheck, Chunk, Embedder, EmbedderIdentity, IngestProgress, ParsedDocument

if TYPE_CHECKING:
    from types import ModuleType

    from edgerag.index.library import Library

Passages = Literal["chunked", "whole"]
_BATCH = 64
_MEDIA_TYPE = "text/plain"
_MADE = "made.json"
# What decides where passages begin and end, and what the keyword index knows of them. When it changes the documents are
# stored again; a passage that comes out the same keeps its vector.
_STORING: tuple[ModuleType, ...] = (
    *(chunking, blocks, split, language, analyze, word_rules, stopwords, chunk_rows),
    *(latent_space, latent_rows),
)


def corpus_folder(
    cache: Path, questions: QuestionSet, identity: EmbedderIdentity, *, passages: Passages, chunks: ChunkSettings
) -> Path:
    """Where the library of these documents lies in ``cache``."""
    parts = [questions.texts_fingerprint, identity.weights_sha256, passages]
    parts += [json.dumps(dataclasses.asdict(chunks))] if passages == "chunked" else []
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in questions.name)
    return cache / f"{readable[:40]}-{passages}-{key}"


def is_made(folder: Path) -> bool:
    """Whether the library in ``folder`` is complete, and stored as it would be now."""
    try:
        made = json.loads((folder / _MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # not finished
        return False
    return bool(made == _made())


def fill(
    library: Library,
    texts: Sequence[Text],
    *,
    passages: Passages,
    chunks: ChunkSettings,
    embedder: Callable[[], Embedder],
    progress: Callable[[IngestProgress], None],
    cancelled: CancelCheck,
) -> None:
    """Puts the documents into ``library`` and marks it as made.

    Raises Cancelled, StorageFull, LibraryError; then what is done stays.
    """
    model = embedder()
    began = time.monotonic()
    embedded, total = 0, len(texts)

    def show(done: int, current: str) -> None:
        seconds = time.monotonic() - began
        left = library.pending_count() if done == total else 0
        rate = embedded / seconds if seconds else 0.0
        remaining = left / rate if rate and done == total else None
        progress(IngestProgress(done, total, embedded, embedded + left, rate, remaining, current))
        if cancelled():
            raise Cancelled("The evaluation was cancelled; the passages embedded so far are kept.")

    for number, text in enumerate(texts):
        _put(library, text, passages=passages, chunks=chunks, model=model)
        if number % _BATCH == 0:
            show(number, text.id)
    began = time.monotonic()
    while pending := library.pending_chunks(_BATCH):
        known = library.known_vectors([item.id for item in pending])
        new = [item for item in pending if item.id not in known]
        if new:
            vectors = model.embed_passages([item.chunk.embedding_text for item in new])
            known |= dict(zip([item.id for item in new], vectors, strict=True))
        library.put_vectors([item.id for item in pending], np.stack([known[item.id] for item in pending]))
        embedded += len(pending)
        show(total, pending[-1].title or pending[-1].path)
    library.seal()
    library.make_latent_space()
    try:
        (library.folder / _MADE).write_text(json.dumps(_made()), encoding="utf-8")
    except OSError as error:
        raise storage_error(error, library.folder) from error


def path_of(document: str) -> str:
    """The path in the library of the document with that id."""
    return "/" + quote(document, safe=" ")


def _put(library: Library, text: Text, *, passages: Passages, chunks: ChunkSettings, model: Embedder) -> None:
    parsed = ParsedDocument(text=text.text, title=text.title, media_type=_MEDIA_TYPE)
    parsed = dataclasses.replace(parsed, language=language_of(parsed))
    if passages == "whole":
        made = [_whole(text)]
    else:
        made = chunking.chunk(parsed, count_tokens=model.count_tokens, settings=chunks, max_tokens=model.max_tokens)
    library.put_document(
        parsed,
        made,
        path=path_of(text.id),
        root="/",
        content_sha256=hashlib.sha256(f"{text.title}\n{text.text}".encode("utf-8", "surrogatepass")).hexdigest(),
        size_bytes=len(text.text.encode("utf-8", "surrogatepass")),
        mtime_ns=0,
    )


def _whole(text: Text) -> Chunk:
    return Chunk(
        ordinal=0,
        start=0,
        end=len(text.text),
        text=text.text,
        heading_path=(),
        page_first=None,
        page_last=None,
        line_first=1,
        line_last=text.text.count("\n") + 1,
        token_count=1,  # nothing looks at it: the embedder cuts what is too long for it
        context=text.title,
    )


def _made() -> dict[str, str]:
    code = hashlib.sha256()
    for module in _STORING:
        assert module.__file__ is not None, "the package lies in files"
        code.update(Path(module.__file__).read_bytes())
    return {"code": code.hexdigest()}
