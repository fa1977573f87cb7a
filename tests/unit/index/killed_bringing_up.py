"""Kills the bringing up of a library at each of its SQL statements, and looks at what is there then.

    python killed_bringing_up.py LIBRARY SCRATCH EVERY

Each point is a forked child that kills itself before statement k, one of EVERY; the parent, and another child after it,
open what is left. Prints a list of points as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from edgerag.index import bringing_up, migrations, wholeness
from edgerag.index.store import Store


class Killing(sqlite3.Connection):
    """Counts the statements of all connections of this process that write."""

    counted = 0
    at = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.set_trace_callback(Killing.seen)

    @staticmethod
    def seen(_statement: str) -> None:
        Killing.counted += 1
        if Killing.counted == Killing.at:
            os.kill(os.getpid(), signal.SIGKILL)


def brought_up(folder: Path, at: int) -> bool:
    """In a child; False where it was killed."""
    pid = os.fork()
    if pid == 0:
        Killing.at = at
        plain = sqlite3.connect
        sqlite3.connect = lambda *a, **o: plain(*a, **o | {"factory": Killing})  # type: ignore[assignment]
        Store(folder, mode="write").close_at_rest()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), code
    return code == 0


def content(database: Path) -> dict[str, Any]:
    db = sqlite3.connect(database)
    try:
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        return {
            "version": migrations.version_of(db),
            "damage": wholeness.damage(db),
            "documents": db.execute("SELECT path, title, content_sha256 FROM documents ORDER BY id").fetchall(),
            "texts": db.execute("SELECT * FROM document_texts ORDER BY 1, 2").fetchall(),
            "chunks": db.execute("SELECT id, start, state, segment_row FROM chunks ORDER BY id").fetchall(),
            "vectors": db.execute("SELECT chunk_id, vector FROM vectors ORDER BY 1").fetchall(),
            "words": db.execute("SELECT * FROM chunk_words ORDER BY rowid").fetchall(),
            "tags": "document_tags" in tables and db.execute("SELECT * FROM document_tags ORDER BY 1, 2").fetchall(),
            "failures": db.execute("SELECT path, reason FROM failures ORDER BY path").fetchall(),
        }
    finally:
        db.close()


def main() -> None:
    base, scratch = Path(sys.argv[1]), Path(sys.argv[2])
    before = content(base / "library.sqlite")
    same = ("documents", "texts", "chunks", "vectors", "words", "failures", *(["tags"] if before["tags"] else []))
    points = []
    for at in range(1, 10_000, int(sys.argv[3])):
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(base, scratch)
        if brought_up(scratch, at):
            break
        kept = (scratch / bringing_up.FOLDER_NAME / "library.sqlite").exists()
        left = content(scratch / "library.sqlite")
        wrong = [key for key in same if left[key] != before[key]] + left["damage"]
        if not brought_up(scratch, 0):
            wrong.append("the next run was killed")
        done = content(scratch / "library.sqlite")
        wrong += [f"then: {key}" for key in same if done[key] != before[key]] + done["damage"]
        if done["version"] != len(migrations.STEPS):
            wrong.append(f"then of version {done['version']}")
        names = sorted(path.name for path in [*scratch.glob("library.*"), *scratch.glob(".*")])
        if names != ["library.sqlite", "library.sums"]:
            wrong.append(f"left behind: {names}")
        points.append({"at": at, "version": left["version"], "kept": kept, "wrong": wrong})
    json.dump(points, sys.stdout)


if __name__ == "__main__":
    main()
