"""Checksums of rows: what is shown of a document is what was stored, or it is not shown.

SQLite notices a page whose structure is broken, not a flipped bit in the middle of a title, an offset or a vector. Rows
of ``documents`` and ``chunks`` carry a CRC-32 of what an answer is made of, stored vectors one of their numbers; texts
have the Adler-32 that zlib gives them. They are compared each time that a row is read for an answer.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Sequence

import numpy as np

from edgerag.errors import REPAIR_LIBRARY, LibraryDamaged

# Of documents, apart: a hit needs the first, and pages and headings of a long book are long.
FACTS = "path, root, title, media_type, content_sha256, dated_ns"
STRUCTURE = "text_length, pages, headings, warnings, first_line"
# Of chunks: all but where the vector is and the number of the model's state, which change without the text.
PLACE = (
    'document_id, ordinal, start, "end", heading_path, page_first, page_last, line_first, line_last, token_count,'
    " context, embedding_key, hidden"
)
VECTOR_TAIL_BYTES = 4

_BATCH = 500


def row_sum(values: Iterable[object]) -> int:
    """CRC-32 of the values: numbers in decimal, NULL as nothing, texts and blobs as they are, U+001F between them."""
    return zlib.crc32(b"\x1f".join(map(_raw, values)))


def _raw(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if value is None:
        return b""
    return str(value).encode("utf-8", "surrogateescape")


def filling_function(*values: object) -> int:
    """For the step of the schema that gives sums to rows that are there."""
    return row_sum(values)


def sum_document(db: sqlite3.Connection, document_id: int) -> None:
    """Gives the row of a document its sums; to be called after each change of it."""
    facts = db.execute(f"SELECT {FACTS} FROM documents WHERE id = ?", (document_id,)).fetchone()  # noqa: S608
    structure = db.execute(f"SELECT {STRUCTURE} FROM documents WHERE id = ?", (document_id,)).fetchone()  # noqa: S608
    db.execute(
        "UPDATE documents SET facts_sum = ?, structure_sum = ? WHERE id = ?",
        (row_sum(facts), row_sum(structure), document_id),
    )


def check_facts(db: sqlite3.Connection, document_ids: Iterable[int]) -> None:
    """Raises LibraryDamaged for a document whose path, title, type or date is not what was stored."""
    wanted = list(set(document_ids))
    for start in range(0, len(wanted), _BATCH):
        ids = wanted[start : start + _BATCH]
        marks = ",".join("?" * len(ids))
        rows = db.execute(f"SELECT id, facts_sum, {FACTS} FROM documents WHERE id IN ({marks})", ids)  # noqa: S608
        for document_id, stored, *facts in rows:
            if stored != row_sum(facts):
                raise damaged_document(document_id, "path, title, type or date")


def check_structure(db: sqlite3.Connection, document_id: int) -> None:
    """Raises LibraryDamaged for a document whose pages, headings or warnings are not what was stored."""
    row = db.execute(f"SELECT structure_sum, {STRUCTURE} FROM documents WHERE id = ?", (document_id,)).fetchone()  # noqa: S608
    if row is not None and row[0] != row_sum(row[1:]):
        raise damaged_document(document_id, "pages, headings or warnings")


def damaged_document(document_id: int, what: str) -> LibraryDamaged:
    return LibraryDamaged(f"The library's record of document #{document_id} is damaged: {what}.", remedy=REPAIR_LIBRARY)


def damaged_chunk(chunk_id: int) -> LibraryDamaged:
    return LibraryDamaged(f"The library's record of passage #{chunk_id} is damaged.", remedy=REPAIR_LIBRARY)


# ------------------------------------------------------------ vectors


def with_sum(vector: bytes, chunk_id: int) -> bytes:
    """The stored form of a vector: its numbers, and a CRC-32 of the chunk's id and them."""
    return vector + _vector_sum(vector, chunk_id).to_bytes(VECTOR_TAIL_BYTES, "little")


def stored_vectors(rows: Sequence[tuple[int, object]], *, dimension: int) -> np.ndarray:
    """(n, dimension) f32 of rows (chunk id, stored form). Raises LibraryDamaged for one that is not what was stored.

    Those of before version 11 have no sum, and are taken as they are until they are sealed.
    """
    size = 4 * dimension
    parts = []
    for chunk_id, stored in rows:
        if not isinstance(stored, bytes) or len(stored) not in (size, size + VECTOR_TAIL_BYTES):
            raise damaged_vector(chunk_id, "has the wrong length")
        vector = stored[:size]
        if len(stored) > size and int.from_bytes(stored[size:], "little") != _vector_sum(vector, chunk_id):
            raise damaged_vector(chunk_id, "does not match its checksum")
        parts.append(vector)
    return np.frombuffer(b"".join(parts), dtype="<f4").reshape(-1, dimension)


def damaged_vector(chunk_id: int, how: str) -> LibraryDamaged:
    return LibraryDamaged(f"The stored vector of passage #{chunk_id} {how}.", remedy=REPAIR_LIBRARY)


def _vector_sum(vector: bytes, chunk_id: int) -> int:
    return zlib.crc32(vector, zlib.crc32(chunk_id.to_bytes(8, "little")))
