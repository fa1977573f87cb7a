"""What can be read of the tables of a damaged database, copied into a new one that has it attached, as ``damaged``.

A tree is walked forwards; where that stops, backwards, and in ranges of row numbers that are halved where one cannot
be read, so that a bad page costs its own rows. Each statement is a transaction of its own: within one that has met a
bad page, SQLite reads no good one either. What can be read may be wrong. Rows with checksums are taken where these
hold. The number of a row is in no checksum: for that an index is heard as a second witness, which knows by number which
document, passage or part of a text a row is.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from edgerag.index.migrations import as_blobs
from edgerag.index.row_sums import FACTS, PLACE, STRUCTURE, filling_function

_MOST_UNREADABLE = 20_000  # ids of a table tried one by one; more than that is a file that is mostly gone
_LAST_ID = 1 << 20  # where nothing tells the last row: more rows than a library of usual size has
_HIGHEST_ID = 1 << 48  # no library counts so far; beyond it a number is damaged

_WITH_NUMBERS = ("segments", "kv_retired", "kv_outbox", "vectors")
_BY_KEY = ("meta", "containers", "failures", "mounts", "left_out")
# Those whose rows an index tells apart: its name, and what it holds beside the number of the row.
_TOLD = {
    "chunks": ("chunks_of_document", "document_id, ordinal"),
    "document_texts": ("sqlite_autoindex_document_texts_1", "document_id, part"),
    "documents": ("sqlite_autoindex_documents_1", "path"),
}
# What a row is that is of the same number and place, or of neither: nothing speaks against it.
_AGREES = (
    "EXISTS (SELECT 1 FROM temp.told t WHERE {same} AND t.number = r.number) OR NOT EXISTS"
    " (SELECT 1 FROM temp.told t WHERE {same}) AND NOT EXISTS (SELECT 1 FROM temp.told t WHERE t.number = r.number)"
)


@dataclass(frozen=True, slots=True)
class Copied:
    """How far the copy went."""

    unreadable: frozenset[str]  # tables of which rows may be missing and nothing tells which
    documents: dict[int, str]  # what the index says that there were: path by id


@dataclass(frozen=True, slots=True)
class _Way:
    """Rows of a table that can be read: ``limit`` of them, -1 for all."""

    clause: str
    values: tuple[int, ...]
    limit: int


def copy_rows(db: sqlite3.Connection, *, only: frozenset[str] | None = None) -> Copied:
    """``db``: of the same version, empty, foreign keys off. ``only``: of no other table is anything taken. Raises
    sqlite3.Error for what is no damage."""
    db.create_function("row_sum", -1, filling_function, deterministic=True)
    unreadable = set()
    known: dict[int, str] = {}
    # Documents last: what refers to them tells which number was theirs.
    for table in _TOLD:
        is_told = _listen(db, table)
        if not _copy_told(db, table) and not is_told:
            unreadable.add(table)
        if table == "documents":
            known = dict(db.execute("SELECT number, path FROM temp.told").fetchall())
            if not is_told:
                unreadable.add(table)
        db.execute("DROP TABLE temp.told")
    for table in (*_WITH_NUMBERS, *_BY_KEY, "document_tags"):
        # Of a later version there are more tables.
        if columns_of(db, table) and not ((only is None or table in only) and _copy_others(db, table)):
            unreadable.add(table)
    return Copied(frozenset(unreadable), known)


def _copy_others(db: sqlite3.Connection, table: str) -> bool:
    """Whether every row could be read."""
    if table == "document_tags":
        return _copy_tags(db)
    if table in _BY_KEY:
        return _copy_keyed(db, table)
    ways, is_all = _ways(db, table)
    for way in ways:
        _insert(db, table, way)
    return is_all and _looks_whole(db, table)


# ------------------------------------------------------------ rows that are told apart


def _listen(db: sqlite3.Connection, table: str) -> bool:
    """Makes ``temp.told`` of what the index says: place and number of each row. Whether all of it could be read."""
    index, place = _TOLD[table]
    db.execute(f"CREATE TEMP TABLE told ({place}, number INTEGER, PRIMARY KEY ({place}))")
    db.execute("CREATE INDEX temp.told_numbers ON told (number)")
    backwards = ", ".join(f"{name} DESC" for name in place.split(", "))
    for order in ("", f" ORDER BY {backwards}"):
        source = f"SELECT {place}, rowid AS number FROM damaged.{table} INDEXED BY {index}{order}"  # noqa: S608 - our own names
        rows, is_all = _readable(db, source)
        if rows:
            db.execute(
                f"INSERT OR IGNORE INTO temp.told SELECT * FROM ({source} LIMIT ?)"  # noqa: S608
                f" WHERE number BETWEEN 1 AND {_HIGHEST_ID}",
                (rows,),
            )
        if is_all:
            return True
    return False


def _copy_told(db: sqlite3.Connection, table: str) -> bool:
    """Whether the whole table could be walked through."""
    ways, is_all = _ways(db, table)
    place = _TOLD[table][1].split(", ")
    same = " AND ".join(f"t.{name} IS r.{name}" for name in place)
    holds = _holds(db, table)
    columns = columns_of(db, table)
    number = "number, " if "id" in columns.split(", ") else ""
    wanted = columns.replace("id, ", "", 1) if number else columns
    target = f"id, {wanted}" if number else f"rowid, {wanted}"
    for way in ways:
        _run(
            db,
            f"INSERT OR IGNORE INTO main.{table} ({target})"  # noqa: S608 - our own names
            f" SELECT number, {wanted} FROM ({{source}}) r WHERE {holds} AND ({_AGREES.format(same=same)})",
            table,
            way,
        )
    _go_on_counting(db, table)
    # What is left either has a wrong number, or the index is what is wrong.
    there = " AND ".join(f"m.{name} IS r.{name}" for name in place)
    if table == "chunks":
        # The vector is made anew: which one is its own is not known for certain.
        named = {"state": "0", "segment_id": "NULL", "segment_row": "NULL"}
        taken = ", ".join(named.get(name, name) for name in wanted.split(", "))
        chosen = (
            f"SELECT (SELECT t.number FROM temp.told t WHERE {same}"  # noqa: S608
            f" AND t.number NOT IN (SELECT id FROM main.chunks)), {taken} FROM ({{source}}) r"
            f" WHERE {holds} AND NOT EXISTS (SELECT 1 FROM main.chunks m WHERE {there})"
        )
    elif table == "documents":
        chosen = (
            f"SELECT coalesce((SELECT t.number FROM temp.told t WHERE {same}"  # noqa: S608
            " AND t.number NOT IN (SELECT id FROM main.documents)"
            " AND (EXISTS (SELECT 1 FROM main.chunks c WHERE c.document_id = t.number)"
            " OR EXISTS (SELECT 1 FROM main.document_texts x WHERE x.document_id = t.number))), r.number), "
            f"{wanted} FROM ({{source}}) r WHERE {holds} AND NOT EXISTS (SELECT 1 FROM main.documents m WHERE {there})"
        )
    else:
        free = (
            "NOT EXISTS (SELECT 1 FROM main.document_texts m WHERE m.document_id = t.document_id AND m.part = t.part)"
        )
        told = (
            f"(SELECT t.{{name}} FROM temp.told t WHERE t.number = r.number AND {free} AND EXISTS"  # noqa: S608
            " (SELECT 1 FROM main.chunks c WHERE c.document_id = t.document_id))"
        )
        taken = ", ".join(
            f"coalesce({told.format(name=name)}, r.{name})" if name in place else name for name in wanted.split(", ")
        )
        # A row that is there agrees in its number; one of another number that claims the same place is ignored.
        chosen = (
            f"SELECT NULL, {taken} FROM ({{source}}) r"  # noqa: S608
            f" WHERE {holds} AND NOT ({_AGREES.format(same=same)})"
        )
    for way in ways:
        _run(db, f"INSERT OR IGNORE INTO main.{table} ({target}) {chosen}", table, way)
    return is_all


def _holds(db: sqlite3.Connection, table: str) -> str:
    """Whether a row ``r`` is what was stored, as far as its version can tell."""
    columns = columns_of(db, table).split(", ")
    if table == "chunks" and "sum" in columns:
        return f"sum = row_sum({as_blobs(PLACE)})"
    if table == "documents" and "facts_sum" in columns:
        return f"facts_sum = row_sum({as_blobs(FACTS)}) AND structure_sum = row_sum({as_blobs(STRUCTURE)})"
    return "TRUE"


def _go_on_counting(db: sqlite3.Connection, table: str) -> None:
    """Behind every number that is known to have been in use."""
    if "id" not in columns_of(db, table).split(", "):
        return
    last = max([0, *_last_ids(db, table)])
    db.execute("DELETE FROM main.sqlite_sequence WHERE name = ?", (table,))
    db.execute("INSERT INTO main.sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))


# ------------------------------------------------------------ ways through a table


def _ways(db: sqlite3.Connection, table: str) -> tuple[list[_Way], bool]:
    """(what can be read of a table with numbers, whether it could be walked through from end to end)"""
    select = f"SELECT rowid, {columns_of(db, table)} FROM damaged.{table} NOT INDEXED"  # noqa: S608 - our own names
    rows, is_all = _readable(db, select)
    if is_all:
        return [_Way("", (), -1)], True
    ways = [_Way("", (), rows)]
    backwards = " ORDER BY rowid DESC"
    rows, _ = _readable(db, select + backwards)
    ways.append(_Way(backwards, (), rows))
    between = " WHERE rowid BETWEEN ? AND ?"
    last = max(_last_ids(db, table), default=_LAST_ID)
    ranges = [(1, last)] if last > 0 else []
    unreadable = 0
    # From the first on: ids behind the last row may look like lost ones.
    while ranges and unreadable <= _MOST_UNREADABLE:
        first, last = ranges.pop()
        rows, is_all = _readable(db, select + between, (first, last))
        if is_all:
            if rows:
                ways.append(_Way(between, (first, last), -1))
        elif first == last:
            unreadable += 1
        else:
            middle = (first + last) // 2
            ranges += [(middle + 1, last), (first, middle)]
    return ways, False


def _last_ids(db: sqlite3.Connection, table: str) -> list[int]:
    """Numbers that rows had, by every witness: any of them may be wrong, and the highest is behind all rows."""
    found = []
    for query, values in (
        (f"SELECT max(rowid) FROM damaged.{table}", ()),  # noqa: S608 - our own names
        (f"SELECT max(rowid) FROM main.{table}", ()),  # noqa: S608
        ("SELECT seq FROM damaged.sqlite_sequence WHERE name = ?", (table,)),
        *((("SELECT max(number) FROM temp.told", ()),) if table in _TOLD else ()),
        *((("SELECT max(id) FROM damaged.chunk_words_docsize", ()),) if table in ("chunks", "vectors") else ()),
    ):
        try:
            row = db.execute(query, values).fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            continue
        if row is not None and isinstance(row[0], int) and 0 <= row[0] < _HIGHEST_ID:
            found.append(row[0])
    return found


def _insert(db: sqlite3.Connection, table: str, way: _Way) -> None:
    columns = columns_of(db, table)
    _run(db, f"INSERT OR IGNORE INTO main.{table} ({columns}) SELECT {columns} FROM ({{source}})", table, way)  # noqa: S608


def _run(db: sqlite3.Connection, statement: str, table: str, way: _Way) -> None:
    """``statement`` over the rows of a way, in place of ``{source}``. Rows behind the last readable one are not asked
    for: the limit stands inside."""
    source = f"SELECT rowid AS number, {columns_of(db, table)} FROM damaged.{table} NOT INDEXED{way.clause} LIMIT ?"  # noqa: S608
    if way.limit:
        db.execute(statement.replace("{source}", source), (*way.values, way.limit))


def _readable(db: sqlite3.Connection, query: str, values: tuple[int, ...] = ()) -> tuple[int, bool]:
    """(rows that it gives, whether these are all)"""
    rows = 0
    try:
        for _ in db.execute(query, values):
            rows += 1
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return rows, False
    return rows, True


# ------------------------------------------------------------ tables with keys of their own


def _copy_keyed(db: sqlite3.Connection, table: str) -> bool:
    """Whether every row could be read: from the beginning up to what cannot be, and from the end back to it."""
    columns = columns_of(db, table)
    source = f"SELECT {columns} FROM damaged.{table}"  # noqa: S608 - our own names
    for order in ("", _backwards(db, table)):
        rows, is_all = _readable(db, source + order)
        _insert_keyed(db, table, source + order, rows)
        if is_all:
            return _looks_whole(db, table)
    return False


def _copy_tags(db: sqlite3.Connection) -> bool:
    """The table and its index both have all of them: what either has. Whether one of them has what both have."""
    source = "SELECT tag, document_id FROM damaged.document_tags"
    whole = []
    for way in ("", _backwards(db, "document_tags"), " INDEXED BY tags_of_document ORDER BY document_id, tag"):
        rows, is_all = _readable(db, source + way)
        _insert_keyed(db, "document_tags", source + way, rows)
        if is_all:
            whole.append(rows)
    return db.execute("SELECT count(*) FROM main.document_tags").fetchone()[0] in whole


def _insert_keyed(db: sqlite3.Connection, table: str, source: str, rows: int) -> None:
    if rows:
        columns = columns_of(db, table)
        db.execute(f"INSERT OR IGNORE INTO main.{table} ({columns}) {source} LIMIT ?", (rows,))


def _looks_whole(db: sqlite3.Connection, table: str) -> bool:
    """Whether SQLite's own check finds nothing: a page may have lost rows and still be read without an error."""
    try:
        said = db.execute(f"PRAGMA damaged.integrity_check({table})").fetchmany(1)
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return False
    return said == [("ok",)]


def _backwards(db: sqlite3.Connection, table: str) -> str:
    parts = sorted((row[5], row[1]) for row in db.execute(f"PRAGMA main.table_info({table})") if row[5])
    return " ORDER BY " + ", ".join(f"{name} DESC" for _, name in parts)


def columns_of(db: sqlite3.Connection, table: str, *, of: str = "main") -> str:
    """As they stand in a statement; "" where there is no such table."""
    names = (row[1] for row in db.execute(f"PRAGMA {of}.table_info({table})"))
    return ", ".join('"end"' if name == "end" else name for name in names)
