"""That some of a chunk cannot be seen in its file is stored with it, and taken back when the file is mended."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from edgerag.index.library import Library


def marks(library: Library) -> list[bool]:
    chunks = library.chunks([stored.id for stored in library.pending_chunks(100)])
    return [stored.chunk.hidden for stored in sorted(chunks, key=lambda stored: stored.chunk.ordinal)]


def test_hidden_words_next_to_a_chunk_are_not_given_as_what_stands_around_it(
    opened: Callable[..., Library], material: Any
) -> None:
    library = opened()
    parsed, chunks = material.document(["All of it", "is seen here,", "and this is not."])
    facts = {"path": "/docs/a.pdf", "root": "/docs", "content_sha256": "0", "size_bytes": 1, "mtime_ns": 1}
    library.put_document(parsed, [*chunks[:2], dataclasses.replace(chunks[2], hidden=True)], **facts)
    middle = next(stored.id for stored in library.pending_chunks(9) if stored.chunk.ordinal == 1)
    before, behind = library.text_around(middle, 400)
    assert before.startswith("All of it") and behind.strip() == ""


def test_hidden_words_behind_a_short_chunk_are_not_given_either(opened: Callable[..., Library], material: Any) -> None:
    library = opened()
    parsed, chunks = material.document(["not seen so", "short", "in the middle", "short too", "and not seen"])
    facts = {"path": "/docs/a.pdf", "root": "/docs", "content_sha256": "0", "size_bytes": 1, "mtime_ns": 1}
    hidden = [dataclasses.replace(chunk, hidden=chunk.ordinal in (0, 4)) for chunk in chunks]
    library.put_document(parsed, hidden, **facts)
    middle = next(stored.id for stored in library.pending_chunks(9) if stored.chunk.ordinal == 2)
    before, behind = library.text_around(middle, 400)
    assert (before.strip(), behind.strip()) == ("short", "short too")


def test_the_mark_is_kept_and_taken_back(opened: Callable[..., Library], material: Any) -> None:
    library = opened()
    parsed, chunks = material.document(["All of it is seen.", "Some of it is not."])
    facts = {"path": "/docs/a.pdf", "root": "/docs", "content_sha256": "0", "size_bytes": 1, "mtime_ns": 1}
    library.put_document(parsed, [chunks[0], dataclasses.replace(chunks[1], hidden=True)], **facts)
    assert marks(library) == [False, True]
    library.put_document(parsed, chunks, **facts)
    assert marks(library) == [False, False]
