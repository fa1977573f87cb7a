"""What of the kept conversations is not what was kept, each part named."""

from __future__ import annotations

import sqlite3

from edgerag.threads import sums
from edgerag.types import Finding

_REMEDY = "Put a copy of the file back, or delete the thread: edgerag threads delete {thread}"
_REMEDY_OF_FILE = "Export what can be read (edgerag threads export), then put a copy of the file back or move it away."
_REMEDY_OF_DRAFT = "It is not shown, and goes when something else is typed."


def damage_of(db: sqlite3.Connection) -> list[Finding]:
    """Empty for a whole file. Raises sqlite3.Error where it cannot be read at all."""
    findings = []
    said = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)").fetchall()]
    if said != ["ok"]:
        findings.append(Finding("conversations", "error", f"{'; '.join(said)}.", _REMEDY_OF_FILE))
    for (thread,) in db.execute(f"SELECT id FROM threads WHERE NOT {sums.THREAD_IS_WHOLE}"):  # noqa: S608
        findings.append(_finding(thread, f"Title or place of thread {thread} is damaged."))
    damaged = db.execute(
        f"SELECT thread_id, id FROM exchanges WHERE NOT ({sums.EXCHANGE_IS_WHOLE} AND {sums.ANSWER_IS_WHOLE})"  # noqa: S608
    )
    for thread, exchange in damaged:
        findings.append(_finding(thread, f"Question {exchange} of thread {thread}, or its answer, is damaged."))
    drafts = db.execute(f"SELECT thread_id FROM drafts WHERE NOT {sums.DRAFT_IS_WHOLE}")  # noqa: S608
    for (thread,) in drafts:
        findings.append(
            Finding(f"draft of thread {thread}", "error", "What was typed and not sent is damaged.", _REMEDY_OF_DRAFT)
        )
    return findings


def _finding(thread: object, message: str) -> Finding:
    return Finding(f"thread {thread}", "error", message, _REMEDY.format(thread=thread))
