"""Documents whose path was lost to damage: they are called by their number until their file is read again.

The record that held path and checksum is gone, and the text is not (reinstated.py). So it is the text that tells which
file it was: the first new file that says exactly the same takes the document's place, and its passages keep their
numbers and vectors. What no file says any more stays until it is removed; each ingest names it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from edgerag.errors import LibraryDamaged
from edgerag.index import documents, kv_keys
from edgerag.types import Document, ParsedDocument

_NAME = "document #"  # a path is absolute, and never this
_BEHIND = "document $"  # in the order of bytes


def path_of(document_id: object) -> str:
    """What stands in place of its path."""
    return f"{_NAME}{document_id}"


def without_path(known: Iterable[Document]) -> list[Document]:
    """Those of ``known`` whose path was lost."""
    return [document for document in known if document.path == path_of(document.id)]


def find_again(db: sqlite3.Connection, parsed: ParsedDocument, *, path: str, root: str) -> None:
    """To be called before a document is stored under ``path``: one without a path that has its text gets it, where no
    other document has. To be called in a transaction."""
    lost = db.execute(
        "SELECT id, path FROM documents WHERE path > ? AND path < ? AND text_length = ? ORDER BY id",
        (_NAME, _BEHIND, len(parsed.text)),
    ).fetchall()
    if not lost or documents.document_by_path(db, path) is not None:
        return
    for document_id, named in lost:
        if named == path_of(document_id) and _says(db, document_id, parsed.text):
            kv_keys.remove(db, document_id)  # states are named by the path
            documents.move_document(db, document_id, path=path, root=root, unread=True)
            kv_keys.restart(db, document_id, path)
            return


def _says(db: sqlite3.Connection, document_id: int, text: str) -> bool:
    try:
        return documents.read_text(db, document_id, start=0, end=len(text)) == text
    except LibraryDamaged:
        return False  # it was damaged again since, which is no matter of the document that is stored
