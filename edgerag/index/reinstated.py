"""Documents whose record is gone and whose text is not: they get a record of what is still known, so that their
passages are found and shown until their files are read again."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import PurePath

from edgerag.index import word_rules
from edgerag.index.documents import PART_CHARACTERS, UNREAD_NS
from edgerag.index.row_sums import sum_document
from edgerag.index.store import sql_text
from edgerag.types import UNKNOWN_LANGUAGE

_MEDIA_TYPE = "text/plain"  # what its text is, whatever its file was
_WARNING = (
    "The record of this document was damaged: its title, pages and headings come back when its file is read again."
)


def reinstate(db: sqlite3.Connection, document_id: int, path: str) -> bool:
    """False, and nothing is changed, where its text is not whole either. ``path`` is no other document's."""
    length = _text_length(db, document_id)
    if length is None:
        return False
    # Title, pages and headings stood in the record alone.
    db.execute(
        "INSERT INTO documents (id, path, root, title, media_type, content_sha256, size_bytes, mtime_ns, text_length,"
        " pages, headings, warnings, language, analysis)"
        " VALUES (?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?, '', 0, ?, ?, '[]', '[]', json_array(?), ?,"
        " ?)",
        (
            document_id,
            sql_text(path),
            sql_text(str(PurePath(path).parent)),
            sql_text(PurePath(path).name),
            _MEDIA_TYPE,
            UNREAD_NS,
            length,
            _WARNING,
            UNKNOWN_LANGUAGE,
            word_rules.VERSION,
        ),
    )
    sum_document(db, document_id)
    return True


def _text_length(db: sqlite3.Connection, document_id: int) -> int | None:
    """In characters; None where a part is missing, damaged or too short to be followed by another, or where a passage
    lies behind the end."""
    lengths = []
    parts = db.execute("SELECT part, body FROM document_texts WHERE document_id = ? ORDER BY part", (document_id,))
    for place, (part, body) in enumerate(parts.fetchall()):
        try:
            lengths.append(len(zlib.decompress(body).decode("utf-8", "surrogatepass")))
        except (zlib.error, TypeError, ValueError):
            return None
        if part != place:
            return None
    if not lengths or any(length != PART_CHARACTERS for length in lengths[:-1]):
        return None
    (last_end,) = db.execute('SELECT max("end") FROM chunks WHERE document_id = ?', (document_id,)).fetchone()
    length = sum(lengths)
    return None if isinstance(last_end, int) and last_end > length else length
