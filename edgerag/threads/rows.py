"""The rows of ``threads.sqlite`` as records; every function is given the open connection."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from edgerag.errors import UsageError
from edgerag.threads import records, sums
from edgerag.threads.excerpt import NO_WORDS
from edgerag.types import Exchange, ThreadHead

HEAD = f"SELECT id, library, title, began_ns, changed_ns, question_count, {sums.THREAD_IS_WHOLE} FROM threads"  # noqa: S608
_EXCHANGE = (
    f"SELECT {sums.EXCHANGE_IS_WHOLE} AND {sums.ANSWER_IS_WHOLE},"  # noqa: S608
    " id, thread_id, parent_id, asked_ns, state, question, text, problem, filter, answer FROM exchanges"
)
_NOT_SHOWN = "What was kept of this question and its answer is damaged, and is not shown."
# What an exchange follows is older, has a smaller id and is of the same thread: in a damaged file the line ends where
# that is not so.
_ANCESTORS = """
WITH RECURSIVE line (id, parent_id, thread_id, above) AS (
    SELECT id, parent_id, thread_id, 0 FROM exchanges WHERE id = ?
    UNION ALL
    SELECT e.id, e.parent_id, e.thread_id, line.above + 1
    FROM exchanges e JOIN line ON e.id = line.parent_id AND e.id < line.id AND e.thread_id = line.thread_id
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
    identity, library, title, *numbers, is_whole = row
    began_ns, changed_ns, question_count = (number if isinstance(number, int) else 0 for number in numbers)
    title = (title or NO_WORDS) if is_whole else sums.DAMAGED
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
    row = db.execute(
        "SELECT t.leaf_id FROM threads t JOIN exchanges e ON e.id = t.leaf_id AND e.thread_id = t.id WHERE t.id = ?",
        (thread_id,),
    ).fetchone()
    if row is None:  # none yet; of a damaged thread the last one that there is
        row = db.execute("SELECT max(id) FROM exchanges WHERE thread_id = ?", (thread_id,)).fetchone()
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
    """Those that there are; in the place of one that is damaged stands that it is."""
    exchanges = []
    for exchange_id in ids:
        row = db.execute(f"{_EXCHANGE} WHERE id = ?", (exchange_id,)).fetchone()
        if row is None:
            continue
        versions = version_ids(db, exchange_id)
        is_whole, identity, thread_id, parent_id, asked_ns, state, question, text, problem, where, answer = row
        if not is_whole:
            exchanges.append(_damaged(identity, thread_id, parent_id, asked_ns, versions))
            continue
        exchange = Exchange(
            identity,
            thread_id,
            parent_id,
            asked_ns,
            state,
            question,
            text,
            problem,
            where=records.filter_from_json(where),
            version=versions.index(exchange_id) + 1,
            versions=len(versions),
        )
        if answer:
            kept = records.from_json(answer, question=exchange.question, answer=exchange.text)
            exchange = replace(exchange, answer=kept.answer, passage_hashes=kept.passage_hashes)
        exchanges.append(exchange)
    return exchanges


def _damaged(identity: int, thread_id: int, parent_id: Any, asked_ns: Any, versions: Sequence[int]) -> Exchange:
    return Exchange(
        identity,
        thread_id,
        parent_id if isinstance(parent_id, int) else None,
        asked_ns if isinstance(asked_ns, int) else 0,
        "failed",
        sums.DAMAGED,
        "",
        _NOT_SHOWN,
        version=versions.index(identity) + 1,
        versions=len(versions),
    )


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
