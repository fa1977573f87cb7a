"""Statements about what was found and not read, so that a library can say of every file why it is not in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from edgerag.index.store import sql_text
from edgerag.types import LeftOut

# A list that is longer is read by nobody; a folder of caches would fill the library.
MOST_LEFT_OUT = 10_000


def all_left_out(db: sqlite3.Connection) -> list[LeftOut]:
    return [LeftOut(*row) for row in db.execute("SELECT path, reason FROM left_out ORDER BY path")]


def replace_left_out(db: sqlite3.Connection, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Writes what differs between what is there and what is to be, reasons by path."""
    gone = [(sql_text(path),) for path in before if path not in now]
    news = [(sql_text(path), sql_text(reason)) for path, reason in now.items() if before.get(path) != reason]
    db.executemany("DELETE FROM left_out WHERE path = CAST(? AS TEXT)", gone)
    db.executemany("INSERT OR REPLACE INTO left_out (path, reason) VALUES (CAST(? AS TEXT), CAST(? AS TEXT))", news)
