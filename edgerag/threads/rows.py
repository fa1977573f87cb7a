"""The rows of ``threads.sqlite`` as records; every function is given the open connection."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from edgerag.errors import ThreadsError, UsageError
from edgerag.threads import records
from edgerag.threads.excerpt import NO_WORDS
from edgerag.types import Exchange, ThreadHead

HEAD = "SELECT id, library, title, began_ns, changed_ns, question_count FROM threads"
_EXCHANGE = "SELECT id, thread_id, parent_id, asked_ns, state, question, text, problem, filter, answer FROM exchanges"
# What an exchange follows is older and has a smaller id: in a damaged file the line ends where that is not so.
_ANCESTORS = """
WITH RECURSIVE line (id, parent_id, above) AS (
    SELECT id, parent_id, 0 FROM exchanges WHERE id = ?
    UNION ALL
    SELECT e.id, e.parent_id, line.above + 1 FROM exchanges e JOIN line ON e.id = line.parent_id AND e.id < line.id
    LIMIT ?
)
SELECT id FROM line ORDER BY above DESC
"""


def storable(text: str) -> str:
    """SQLite takes no lone surrogates, and a NUL would end the text."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def inserted(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None, "it was an INSERT"
    return cursor.lastrowid


def head(db: sqlite3.Connection, thread_id: int) -> ThreadHead:
    row = db.execute(f"{HEAD} WHERE id = ?", (thread_id,)).fetchone()
    if row is None:
        raise UsageError(f"There is no thread {thread_id}.", remedy="`edgerag threads list` names those there are.")
    return head_of(row)


def head_of(row: Sequence[Any]) -> ThreadHead:
    """What is damaged of it is named so: the thread is still listed, and can be deleted."""
    identity, library, title, *numbers = row
    began_ns, changed_ns, question_count = (number if isinstance(number, int) else 0 for number in numbers)
    title = (title or NO_WORDS) if isinstance(title, str) else "(damaged)"
    return ThreadHead(identity, os.fsdecode(library), title, began_ns, changed_ns, question_count)


def library_value(name: str) -> str | bytes:
    """How the name of a library is kept: a library can be a folder whose name is no UTF-8, which SQLite keeps as
    bytes."""
    raw = os.fsencode(name)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def leaf(db: sqlite3.Connection, thread_id: int) -> int | None:
    row = db.execute("SELECT leaf_id FROM threads WHERE id = ?", (thread_id,)).fetchone()
    return None if row is None else row[0]


def line(db: sqlite3.Connection, exchange_id: int | None, *, limit: int) -> list[Exchange]:
    """The exchange and what it follows, ``limit`` of them at most (-1: all), oldest first."""
    if exchange_id is None:
        return []
    return exchanges(db, line_ids(db, exchange_id, limit=limit))


def line_ids(db: sqlite3.Connection, exchange_id: int, *, limit: int) -> list[int]:
    """The same by their ids."""
    return [row[0] for row in db.execute(_ANCESTORS, (exchange_id, limit))]


def thread_of(db: sqlite3.Connection, exchange_id: int) -> int:
    """Raises UsageError if there is no such exchange."""
    row = db.execute("SELECT thread_id FROM exchanges WHERE id = ?", (exchange_id,)).fetchone()
    if row is None:
        raise no_exchange()
    return int(row[0])


def no_exchange() -> UsageError:
    return UsageError("That question is no longer in its thread.")


def exchanges(db: sqlite3.Connection, ids: Sequence[int]) -> list[Exchange]:
    exchanges = []
    for exchange_id in ids:
        row = db.execute(f"{_EXCHANGE} WHERE id = ?", (exchange_id,)).fetchone()
        if row is None:
            continue
        versions = version_ids(db, exchange_id)
        identity, thread_id, parent_id, asked_ns, state, question, text, problem = row[:8]
        if not isinstance(asked_ns, int) or not all(isinstance(each, str) for each in row[5:]):
            raise ThreadsError(f"Question {identity} of thread {thread_id} is damaged.", remedy="Delete its thread.")
        exchange = Exchange(
            identity,
            thread_id,
            parent_id,
            asked_ns,
            state,
            question,
            text,
            problem,
            where=records.filter_from_json(row[8]),
            version=versions.index(exchange_id) + 1,
            versions=len(versions),
        )
        if row[9]:
            kept = records.from_json(row[9], question=exchange.question, answer=exchange.text)
            exchange = replace(exchange, answer=kept.answer, passage_hashes=kept.passage_hashes)
        exchanges.append(exchange)
    return exchanges


def version_ids(db: sqlite3.Connection, exchange_id: int) -> list[int]:
    rows = db.execute(
        "SELECT o.id FROM exchanges e JOIN exchanges o ON o.thread_id = e.thread_id AND o.parent_id IS e.parent_id"
        " WHERE e.id = ? ORDER BY o.id",
        (exchange_id,),
    )
    return [row[0] for row in rows]


def common(db: sqlite3.Connection, exchange_id: int) -> int:
    row = db.execute("SELECT json_extract(answer, '$.common') FROM exchanges WHERE id = ?", (exchange_id,)).fetchone()
    return int(row[0] or 0) if row is not None else 0
