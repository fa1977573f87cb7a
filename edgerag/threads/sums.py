"""Checksums of conversations: what is shown of one is what was kept, or it is said to be damaged.

As of libraries (docs/decisions/102): a CRC-32 over the values of a row, compared whenever the row is shown, given to it
by whoever writes it and never by a trigger. The number of a row is in its sum, so that one in the place of another is
noticed, too. A row that is damaged already is given none by a later change: it stays named. Of an answer's record there
is a sum of its own: it is far longer than what a list needs.
"""

from __future__ import annotations

import sqlite3

from edgerag.errors import ThreadsError
from edgerag.index.migrations import as_blobs
from edgerag.index.row_sums import filling_function

DAMAGED = "(damaged)"  # what stands in the place of a title or a question that is

_THREAD = "id, library, title, began_ns, changed_ns, leaf_id, question_count"
_EXCHANGE = "id, thread_id, parent_id, asked_ns, state, question, text, problem, filter"
_ANSWER = "id, answer"
_DRAFT = "library, thread_id, text, filter"

# To be selected: 1 where the row is what was written.
THREAD_IS_WHOLE = f"sum IS row_sum({as_blobs(_THREAD)})"
EXCHANGE_IS_WHOLE = f"sum IS row_sum({as_blobs(_EXCHANGE)})"
ANSWER_IS_WHOLE = f"answer_sum IS row_sum({as_blobs(_ANSWER)})"
DRAFT_IS_WHOLE = f"sum IS row_sum({as_blobs(_DRAFT)})"

# Gives rows of before what they are to match from now on, but for those that nobody wrote.
FILL = f"""
UPDATE threads SET sum = row_sum({as_blobs(_THREAD)})
    WHERE typeof(title) = 'text' AND typeof(began_ns) = 'integer' AND typeof(changed_ns) = 'integer';
UPDATE exchanges SET sum = row_sum({as_blobs(_EXCHANGE)}) WHERE typeof(asked_ns) = 'integer'
    AND typeof(question) = 'text' AND typeof(text) = 'text' AND typeof(problem) = 'text' AND json_valid(filter);
UPDATE exchanges SET answer_sum = row_sum({as_blobs(_ANSWER)})
    WHERE typeof(answer) = 'text' AND (answer = '' OR json_valid(answer));
UPDATE drafts SET sum = row_sum({as_blobs(_DRAFT)}) WHERE typeof(text) = 'text' AND json_valid(filter);
"""  # noqa: S608 - our own names


def prepare(db: sqlite3.Connection) -> None:
    """Makes the function that the statements here use known to a connection."""
    db.create_function("row_sum", -1, filling_function, deterministic=True)


def thread_is_whole(db: sqlite3.Connection, thread_id: int) -> bool:
    row = db.execute(f"SELECT {THREAD_IS_WHOLE} FROM threads WHERE id = ?", (thread_id,)).fetchone()  # noqa: S608
    return row is not None and bool(row[0])


def sum_thread(db: sqlite3.Connection, thread_id: int) -> None:
    """After a change of a row that was whole before it."""
    db.execute(f"UPDATE threads SET sum = row_sum({as_blobs(_THREAD)}) WHERE id = ?", (thread_id,))  # noqa: S608


def refuse_damaged_exchange(db: sqlite3.Connection, exchange_id: int) -> None:
    """To be called before a change of it. Raises ThreadsError; nothing where there is none."""
    row = db.execute(
        f"SELECT thread_id, {EXCHANGE_IS_WHOLE}, {ANSWER_IS_WHOLE} FROM exchanges WHERE id = ?",  # noqa: S608
        (exchange_id,),
    ).fetchone()
    if row is not None and not (row[1] and row[2]):
        raise damaged_exchange(exchange_id, row[0])


def refuse_damaged_thread(db: sqlite3.Connection, thread_id: int) -> None:
    """To be called before a change of what it is called. Raises ThreadsError."""
    if not thread_is_whole(db, thread_id):
        raise ThreadsError(
            f"The record of thread {thread_id} is damaged: it keeps what is left of its name.",
            remedy="The rest of the thread can be read and exported. Delete the thread, or leave it.",
        )


def damaged_exchange(exchange_id: int, thread_id: object) -> ThreadsError:
    return ThreadsError(
        f"Question {exchange_id} of thread {thread_id} is damaged.",
        remedy="The rest of the thread can be read and exported. Delete the thread, or ask anew.",
    )


def sum_exchange(db: sqlite3.Connection, exchange_id: int) -> None:
    """After a change of a row that was whole before it."""
    db.execute(
        f"UPDATE exchanges SET sum = row_sum({as_blobs(_EXCHANGE)}), answer_sum = row_sum({as_blobs(_ANSWER)})"  # noqa: S608
        " WHERE id = ?",
        (exchange_id,),
    )


def sum_draft(db: sqlite3.Connection, library: str | bytes, thread_id: int) -> None:
    db.execute(
        f"UPDATE drafts SET sum = row_sum({as_blobs(_DRAFT)}) WHERE library = ? AND thread_id = ?",  # noqa: S608
        (library, thread_id),
    )
