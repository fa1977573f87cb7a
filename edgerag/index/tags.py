"""Statements about tags: words that a user gives to documents, to search among those alone.

A tag is kept in one spelling (NFC, casefolded, outer spaces gone), so that ``Work`` and ``work`` are one.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Sequence

from edgerag.errors import UsageError

# A tag is a word or two; a longer one is a sentence that went to the wrong place.
_MOST_CHARACTERS = 80


def normal_tag(text: str) -> str:
    """The spelling that is kept. Raises UsageError for what can be no tag."""
    tag = unicodedata.normalize("NFC", text.strip().casefold())
    if not tag:
        raise UsageError("A tag is empty.", remedy="Name it with a word, for example --tag work.")
    if len(tag) > _MOST_CHARACTERS:
        raise UsageError(f"The tag {tag[:20]!r}... has {len(tag)} characters; {_MOST_CHARACTERS} are the most.")
    if not tag.isprintable():  # control characters, line ends, undecodable bytes
        raise UsageError(f"The tag {tag!r} holds characters that cannot be shown.")
    return tag


def add_tags(db: sqlite3.Connection, document_ids: Sequence[int], tags: Sequence[str]) -> int:
    """Gives each document each of the tags; the number that were not there yet. Ids of no document are passed over."""
    cursor = db.executemany(
        "INSERT OR IGNORE INTO document_tags (tag, document_id) SELECT ?, id FROM documents WHERE id = ?",
        ((tag, document_id) for document_id in document_ids for tag in tags),
    )
    return max(0, cursor.rowcount)


def remove_tags(db: sqlite3.Connection, document_ids: Sequence[int], tags: Sequence[str]) -> int:
    """Takes the tags from the documents; the number that were there."""
    cursor = db.executemany(
        "DELETE FROM document_tags WHERE tag = ? AND document_id = ?",
        ((tag, document_id) for document_id in document_ids for tag in tags),
    )
    return max(0, cursor.rowcount)


def known_tags(db: sqlite3.Connection) -> list[str]:
    """Every tag in use, in alphabetical order."""
    return [row[0] for row in db.execute("SELECT DISTINCT tag FROM document_tags ORDER BY tag")]
