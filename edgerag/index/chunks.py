"""Statements about chunks: storing those of a document, and reading them back with their text.

A chunk's text is not stored twice: it is cut out of the document's text by its offsets. Its words
are in the FTS5 table ``chunk_words`` under the same rowid. ``state`` says where its vector is:
0 nowhere yet, 1 in the table ``vectors``, 2 in a segment. Ids are never used again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from edgerag.errors import UsageError
from edgerag.index import analyze, catalogue
from edgerag.index.documents import read_text
from edgerag.index.kv_names import chunk_name, document_hash
from edgerag.index.row_sums import check_facts, damaged_chunk, row_sum
from edgerag.index.store import damaged_row, stored_json
from edgerag.index.unpacked import UnpackedParts
from edgerag.index.word_rules import Rules, rules_of
from edgerag.types import Chunk, ParsedDocument, StoredChunk

# SQLite's default limit is 32,766 parameters; smaller statements are prepared faster.
_BATCH = 500

# Of the files with the same content a chunk names twenty: there may be a hundred thousand.
_SELECT = """
    SELECT c.id, c.document_id, d.path, d.title, d.media_type, c.ordinal, c.start, c."end", c.heading_path,
        c.page_first, c.page_last, c.line_first, c.line_last, c.token_count, c.context,
        c.kv_version, c.hidden, c.embedding_key, c.sum,
        (SELECT json_group_array(path) FROM (SELECT CAST(o.path AS TEXT) AS path FROM documents o
            WHERE o.content_sha256 = d.content_sha256 AND o.id <> d.id ORDER BY o.path LIMIT 20))
    FROM chunks c JOIN documents d ON d.id = c.document_id
"""


def write_chunks(
    db: sqlite3.Connection,
    document_id: int,
    parsed: ParsedDocument,
    chunks: Sequence[Chunk],
    *,
    kv_versions: Sequence[int],
    between: Callable[[], None] = lambda: None,
) -> None:
    """Makes ``chunks`` the chunks of the document. One whose embedding text was there keeps id and vector.
    ``between`` is called before each.

    Raises UsageError if a chunk is not the text at its offsets.
    """
    for chunk in chunks:
        if parsed.text[chunk.start : chunk.end] != chunk.text:
            raise UsageError(
                f"Chunk {chunk.ordinal} of {parsed.title!r} is not the text at characters {chunk.start}-{chunk.end}."
            )
    known: dict[bytes, list[int]] = defaultdict(list)
    rows = db.execute(
        "SELECT id, embedding_key FROM chunks WHERE document_id = ? ORDER BY ordinal DESC, id DESC", (document_id,)
    )
    for chunk_id, key in rows:
        known[key].append(chunk_id)
    keys = [embedding_key(chunk) for chunk in chunks]
    kept = [known[key].pop() if known[key] else None for key in keys]
    remove_chunks(db, [chunk_id for ids in known.values() for chunk_id in ids])
    rules = rules_of(parsed.language)
    for chunk, key, old_id, kv_version in zip(chunks, keys, kept, kv_versions, strict=True):
        between()
        heading_path = json.dumps(chunk.heading_path)
        context = json.dumps(chunk.context)  # JSON because a title may hold what is not valid UTF-8
        values = (
            chunk.ordinal,
            chunk.start,
            chunk.end,
            heading_path,
            chunk.page_first,
            chunk.page_last,
            chunk.line_first,
            chunk.line_last,
            chunk.token_count,
            context,
            int(chunk.hidden),
        )
        place = row_sum((document_id, *values[:-1], key, values[-1]))
        if old_id is None:
            cursor = db.execute(
                'INSERT INTO chunks (ordinal, start, "end", heading_path, page_first, page_last, line_first,'
                " line_last, token_count, context, hidden, kv_version, sum, document_id, embedding_key, state)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
                (*values, kv_version, place, document_id, key),
            )
            chunk_id = int(cursor.lastrowid or 0)
        else:
            chunk_id = old_id
            db.execute(
                'UPDATE chunks SET ordinal = ?, start = ?, "end" = ?, heading_path = ?, page_first = ?, page_last = ?,'
                " line_first = ?, line_last = ?, token_count = ?, context = ?, hidden = ?, kv_version = ?, sum = ?"
                " WHERE id = ?",
                (*values, kv_version, place, chunk_id),
            )
            db.execute("DELETE FROM chunk_words WHERE rowid = ?", (chunk_id,))
        _write_words(db, chunk_id, parsed.title, chunk.heading_path, chunk.text, rules=rules)


def _write_words(
    db: sqlite3.Connection, chunk_id: int, title: str, heading_path: Sequence[str], text: str, *, rules: Rules
) -> None:
    """The words of a chunk that has none."""
    db.execute(
        "INSERT INTO chunk_words (rowid, title, headings, body) VALUES (?, ?, ?, ?)",
        (
            chunk_id,
            analyze.index_text(title, rules=rules),
            analyze.index_text("\n".join(heading_path), rules=rules),
            analyze.index_text(text, rules=rules),
        ),
    )


def analyse_again(db: sqlite3.Connection, document_id: int, parsed: ParsedDocument) -> None:
    """Makes the words of all chunks of a stored document anew, in the language of ``parsed``."""
    rules = rules_of(parsed.language)
    rows = db.execute(
        'SELECT id, heading_path, start, "end" FROM chunks WHERE document_id = ? ORDER BY id', (document_id,)
    ).fetchall()
    for chunk_id, heading_path, start, end in rows:
        headings = stored_json(heading_path, list)
        db.execute("DELETE FROM chunk_words WHERE rowid = ?", (chunk_id,))
        _write_words(db, chunk_id, parsed.title, headings, parsed.text[start:end], rules=rules)


def embedding_key(chunk: Chunk) -> bytes:
    """Agrees where the text that is embedded does."""
    return hashlib.sha256(chunk.embedding_text.encode("utf-8", "surrogatepass")).digest()[:16]


def remove_chunks(db: sqlite3.Connection, chunk_ids: Iterable[int]) -> None:
    """Removes chunks with their words and vectors; rows in segments are marked dead."""
    ids = [(chunk_id,) for chunk_id in chunk_ids]
    catalogue.bury(db, [chunk_id for (chunk_id,) in ids])
    db.executemany("DELETE FROM chunk_words WHERE rowid = ?", ids)
    db.executemany("DELETE FROM vectors WHERE chunk_id = ?", ids)
    db.executemany("DELETE FROM chunks WHERE id = ?", ids)


def chunk_ids_of(db: sqlite3.Connection, document_id: int) -> list[int]:
    return [row[0] for row in db.execute("SELECT id FROM chunks WHERE document_id = ?", (document_id,))]


def pending_ids(db: sqlite3.Connection, document_id: int) -> list[int]:
    """Those of a document without a vector, in order."""
    rows = db.execute("SELECT id FROM chunks WHERE document_id = ? AND state = 0 ORDER BY id", (document_id,))
    return [row[0] for row in rows]


def ids_of(db: sqlite3.Connection, document_id: int) -> list[int]:
    """Those of a document, in its order."""
    rows = db.execute("SELECT id FROM chunks WHERE document_id = ? ORDER BY ordinal", (document_id,))
    return [row[0] for row in rows]


def read_chunks(
    db: sqlite3.Connection, chunk_ids: Sequence[int], *, unpacked: UnpackedParts | None = None
) -> list[StoredChunk]:
    """In the order asked for; ids that no longer exist are left out."""
    if unpacked is not None:
        unpacked.look_at(db)
    found: dict[int, StoredChunk] = {}
    for start in range(0, len(chunk_ids), _BATCH):
        ids = [int(chunk_id) for chunk_id in chunk_ids[start : start + _BATCH]]
        marks = ",".join("?" * len(ids))
        # The text put into the statement is question marks only.
        rows = db.execute(f"{_SELECT} WHERE c.id IN ({marks})", ids).fetchall()
        check_facts(db, (row[1] for row in rows))
        for row in rows:
            found[row[0]] = _stored_chunk(db, row, unpacked)
    return [found[chunk_id] for chunk_id in chunk_ids if chunk_id in found]


def text_around(db: sqlite3.Connection, chunk_id: int, characters: int, *, unpacked: UnpackedParts) -> tuple[str, str]:
    """So many characters of the document before a chunk and behind it, as far as there are and as what stands there
    can be seen in the file: they end where a chunk with hidden text does. "" for a chunk that is not there."""
    unpacked.look_at(db)
    row = db.execute(
        # A chunk has a character at least: no more of them can be as near as that.
        """SELECT c.document_id, c.start, c."end", d.text_length,
            coalesce((SELECT max(o."end") FROM chunks o WHERE o.document_id = c.document_id AND o.hidden
                AND o.ordinal BETWEEN c.ordinal - ?2 AND c.ordinal - 1), 0),
            coalesce((SELECT min(o.start) FROM chunks o WHERE o.document_id = c.document_id AND o.hidden
                AND o.ordinal BETWEEN c.ordinal + 1 AND c.ordinal + ?2), d.text_length)
        FROM chunks c JOIN documents d ON d.id = c.document_id WHERE c.id = ?1""",
        (chunk_id, characters),
    ).fetchone()
    if row is None:
        return "", ""
    if not all(isinstance(each, int) for each in row):  # SQLite keeps any value in any column
        raise damaged_row(f"the places around chunk #{chunk_id}")
    document_id, start, end, length, hidden_end, hidden_start = row
    first, last = max(0, start - characters, hidden_end), min(length, end + characters, hidden_start)
    before = read_text(db, document_id, start=first, end=start, unpacked=unpacked) if first < start else ""
    behind = read_text(db, document_id, start=end, end=last, unpacked=unpacked) if end < last else ""
    return before, behind


def pending_chunks(db: sqlite3.Connection, limit: int) -> list[StoredChunk]:
    """The first ``limit`` chunks without a vector, in id order."""
    rows = db.execute(_SELECT + " WHERE c.state = 0 ORDER BY c.id LIMIT ?", (max(0, limit),)).fetchall()
    check_facts(db, (row[1] for row in rows))
    return [_stored_chunk(db, row) for row in rows]


def _stored_chunk(db: sqlite3.Connection, row: tuple[Any, ...], unpacked: UnpackedParts | None = None) -> StoredChunk:
    document_id, start, end = row[1], row[6], row[7]
    page_first, page_last, line_first, line_last, token_count, context, kv_version, hidden, key, stored, also_in = row[
        9:
    ]
    if stored != row_sum((document_id, *row[5:15], key, hidden)):
        raise damaged_chunk(row[0])
    chunk = Chunk(
        ordinal=row[5],
        start=start,
        end=end,
        text=read_text(db, document_id, start=start, end=end, unpacked=unpacked),
        heading_path=tuple(stored_json(row[8], list)),
        page_first=page_first,
        page_last=page_last,
        line_first=line_first,
        line_last=line_last,
        token_count=token_count,
        context=stored_json(context, str),
        hidden=bool(hidden),
    )
    return StoredChunk(
        row[0],
        document_id,
        path=row[2],
        title=row[3],
        media_type=row[4],
        chunk=chunk,
        kv_key=chunk_name(document_hash(row[2]), chunk.ordinal, kv_version),
        also_in=tuple(stored_json(also_in, list)),
    )


def sample_ids(db: sqlite3.Connection, limit: int) -> list[int]:
    """Ids of chunks that lie evenly through the library, ascending; the same each time for the same library."""
    first, last = db.execute("SELECT min(id), max(id) FROM chunks").fetchone()
    if first is None:
        return []
    found = set()
    for number in range(limit):
        at = first + (last - first) * number // max(1, limit - 1)
        found.add(db.execute("SELECT id FROM chunks WHERE id >= ? ORDER BY id LIMIT 1", (at,)).fetchone()[0])
    return sorted(found)


def all_ids(db: sqlite3.Connection) -> list[int]:
    """Of all chunks, ascending."""
    return [chunk_id for (chunk_id,) in db.execute("SELECT id FROM chunks ORDER BY id")]


def chunk_count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM chunks").fetchone()[0])


def is_empty(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM chunks LIMIT 1").fetchone() is None


def pending_count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM chunks WHERE state = 0").fetchone()[0])


def word_rows(db: sqlite3.Connection) -> int:
    """Rows of the keyword index; equals chunk_count in a whole library."""
    return int(db.execute("SELECT count(*) FROM chunk_words_docsize").fetchone()[0])
