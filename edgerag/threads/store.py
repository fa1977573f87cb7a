"""The threads of all libraries: written as a conversation goes on, read as it is looked at again.

A question is on the disk before anything is done about it. Any thread may call; every method is one transaction.
All raise ThreadsError and StorageFull; UsageError for a thread that is not there.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from edgerag.encryption.keys import LibraryKey
from edgerag.errors import ThreadsError, UsageError
from edgerag.index.analyze import fold, index_text, query_terms
from edgerag.threads import records, rows, sums
from edgerag.threads.damage import damage_of
from edgerag.threads.database import Belonging, Database
from edgerag.threads.excerpt import NO_WORDS, excerpt, title_of
from edgerag.types import (
    Answer,
    Exchange,
    ExchangeState,
    FilterText,
    Finding,
    Message,
    Thread,
    ThreadHead,
    ThreadMatch,
    Turn,
)

# Turns before these say nothing about a question: follow-ups look at the last ones, the prompt at what fits.
_HISTORY_TURNS = 30
_MOST_MATCHES = 200


class ThreadStore:
    """The file of the conversations. ``path`` None keeps them in memory, for as long as the program runs."""

    def __init__(
        self,
        path: Path | None,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
        key: LibraryKey | None = None,
        belongs: Callable[[], Belonging] | None = None,
    ) -> None:
        """``key``: of the encrypted library that they belong to. ``belongs``: where they belong as of now; then every
        method raises LibraryLocked, too."""
        self._database = Database(path, key=key, belongs=belongs)
        self._clock_ns = clock_ns

    @property
    def path(self) -> Path | None:
        """None: in memory."""
        return self._database.path

    def close(self) -> None:
        self._database.close()

    # ------------------------------------------------------------ as a conversation goes on

    def ask(
        self,
        question: str,
        *,
        library: str,
        thread_id: int | None = None,
        parent_id: int | None = None,
        where: FilterText | None = None,
    ) -> Exchange:
        """A question behind ``parent_id``, or at the beginning; in a new thread without ``thread_id``."""
        question = rows.storable(question)
        now = self._clock_ns()
        with self._database.writing() as db:
            is_whole = True
            if thread_id is None:
                thread_id = rows.inserted(
                    db.execute(
                        "INSERT INTO threads (library, title, began_ns, changed_ns) VALUES (?, ?, ?, ?)",
                        (rows.library_value(library), title_of(question) or NO_WORDS, now, now),
                    )
                )
            else:
                rows.head(db, thread_id)
                is_whole = sums.thread_is_whole(db, thread_id)
            exchange_id = rows.inserted(
                db.execute(
                    "INSERT INTO exchanges (thread_id, parent_id, asked_ns, state, question, filter)"
                    " VALUES (?, ?, ?, 'asked', ?, ?)",
                    (thread_id, parent_id, now, question, records.filter_to_json(where or FilterText())),
                )
            )
            db.execute(
                "INSERT INTO exchange_words (rowid, question, answer) VALUES (?, ?, '')",
                (exchange_id, index_text(question)),
            )
            db.execute(
                "UPDATE threads SET changed_ns = ?, leaf_id = ?, question_count = question_count + 1 WHERE id = ?",
                (now, exchange_id, thread_id),
            )
            sums.sum_exchange(db, exchange_id)
            if is_whole:
                sums.sum_thread(db, thread_id)
            return rows.exchanges(db, [exchange_id])[0]

    def resume(self, exchange_id: int) -> None:
        """Its answer is being written on."""
        with self._changing(exchange_id) as db:
            db.execute("UPDATE exchanges SET state = 'asked' WHERE id = ?", (exchange_id,))

    def keep_text(self, exchange_id: int, text: str, *, begun: Answer | None = None) -> None:
        """The answer as far as it has come, with ``begun`` its sources."""
        with self._changing(exchange_id) as db:
            db.execute("UPDATE exchanges SET text = ? WHERE id = ?", (rows.storable(text), exchange_id))
            if begun is not None:
                # Not in place of an answer that goes on: that one could go on again.
                db.execute(
                    "UPDATE exchanges SET answer = ?"
                    " WHERE id = ? AND (answer = '' OR json_array_length(answer, '$.answer.messages') = 0)",
                    (records.to_json(begun), exchange_id),
                )

    def finish(self, exchange_id: int, answer: Answer) -> None:
        """The answer is done, or stopped."""
        with self._changing(exchange_id) as db:
            known = rows.exchanges(db, [exchange_id])
            if not known:
                return  # its thread was deleted while it was written
            before = rows.line(db, known[0].parent_id, limit=1) if known[0].parent_id is not None else []
            kept = records.to_json(
                answer,
                passage_hashes=known[0].passage_hashes,
                before=self._messages(db, before[0]) if before else (),
            )
            state: ExchangeState = "stopped" if answer.stop_reason == "cancelled" else "done"
            self._settle(db, exchange_id, state, answer.text)
            db.execute("UPDATE exchanges SET answer = ? WHERE id = ?", (kept, exchange_id))

    def fail(self, exchange_id: int, *, text: str, problem: str) -> None:
        """It ended with a problem, or nobody waited for its end; the text that came before stays, and so does what
        there was of an answer that was to go on."""
        with self._changing(exchange_id) as db:
            known = rows.exchanges(db, [exchange_id])
            if known:
                goes_on = known[0].answer is not None and known[0].answer.can_go_on
                state: ExchangeState = "failed" if problem and not goes_on else "stopped"
                self._settle(db, exchange_id, state, max(text, known[0].text, key=len), problem=problem)

    def _settle(
        self, db: sqlite3.Connection, exchange_id: int, state: ExchangeState, text: str, *, problem: str = ""
    ) -> None:
        text = rows.storable(text)
        db.execute(
            "UPDATE exchanges SET state = ?, text = ?, problem = ? WHERE id = ?",
            (state, text, rows.storable(problem), exchange_id),
        )
        db.execute("UPDATE exchange_words SET answer = ? WHERE rowid = ?", (index_text(text), exchange_id))
        self._change_thread(db, rows.thread_of(db, exchange_id), "changed_ns", self._clock_ns())

    @contextlib.contextmanager
    def _changing(self, exchange_id: int) -> Iterator[sqlite3.Connection]:
        """A transaction that changes an exchange. Raises ThreadsError for a damaged one, which would get a checksum."""
        with self._database.writing() as db:
            sums.refuse_damaged_exchange(db, exchange_id)
            yield db
            sums.sum_exchange(db, exchange_id)

    def _change_thread(
        self, db: sqlite3.Connection, thread_id: int, column: Literal["changed_ns", "leaf_id", "title"], value: object
    ) -> None:
        """One that is damaged stays so."""
        is_whole = sums.thread_is_whole(db, thread_id)
        db.execute(f"UPDATE threads SET {column} = ? WHERE id = ?", (value, thread_id))  # noqa: S608 - our own names
        if is_whole:
            sums.sum_thread(db, thread_id)

    def choose(self, exchange_id: int) -> None:
        """Makes this version, and the newest of what follows it, the branch of its thread that is in use. Raises
        UsageError if it is not there."""
        with self._database.writing() as db:
            thread_id = rows.thread_of(db, exchange_id)
            in_use = rows.leaf(db, thread_id)
            if in_use is not None and exchange_id in rows.line_ids(db, in_use, limit=-1):
                return  # it is in that branch already
            leaf = exchange_id
            while (
                row := db.execute(
                    "SELECT max(id) FROM exchanges WHERE parent_id = ?1 AND id > ?1"
                    " AND thread_id = (SELECT thread_id FROM exchanges WHERE id = ?1)",
                    (leaf,),
                ).fetchone()
            )[0] is not None:
                leaf = row[0]
            self._change_thread(db, thread_id, "leaf_id", leaf)

    # ------------------------------------------------------------ as they are looked at

    def heads(self, *, library: str | None) -> list[ThreadHead]:
        """Of one library, or of all; what changed last first."""
        with self._database.reading() as db:
            where, values = ("", ()) if library is None else (" WHERE library = ?", (rows.library_value(library),))
            found = db.execute(f"{rows.HEAD}{where} ORDER BY changed_ns DESC, id DESC", values)
            return [rows.head_of(row) for row in found]

    def head(self, thread_id: int) -> ThreadHead:
        with self._database.reading() as db:
            return rows.head(db, thread_id)

    def thread(self, thread_id: int) -> Thread:
        """Whole, in the branch that is in use."""
        with self._database.reading() as db:
            head = rows.head(db, thread_id)
            return Thread(head, tuple(rows.line(db, rows.leaf(db, thread_id), limit=-1)))

    def last(self, thread_id: int, *, count: int, before: int | None = None) -> list[Exchange]:
        """The last ``count`` exchanges of the branch in use, or of those before exchange ``before``; oldest first."""
        with self._database.reading() as db:
            rows.head(db, thread_id)
            if before is None:
                return rows.line(db, rows.leaf(db, thread_id), limit=count)
            row = db.execute("SELECT parent_id FROM exchanges WHERE id = ?", (before,)).fetchone()
            return rows.line(db, row[0], limit=count) if row is not None else []

    def exchange(self, exchange_id: int) -> Exchange:
        with self._database.reading() as db:
            found = rows.exchanges(db, [exchange_id])
            if not found:
                raise rows.no_exchange()
            return found[0]

    def version_of(self, exchange_id: int, *, step: int) -> int:
        """The id of the version before (-1) or after (1) it; its own at the ends."""
        with self._database.reading() as db:
            versions = rows.version_ids(db, exchange_id)
            place = versions.index(exchange_id) + step if exchange_id in versions else -1
            return versions[place] if 0 <= place < len(versions) else exchange_id

    def history(self, exchange_id: int | None) -> tuple[Turn, ...]:
        """The conversation up to and with this exchange, as what is asked next goes on from it."""
        if exchange_id is None:
            return ()
        with self._database.reading() as db:
            turns: list[Turn] = []
            messages: tuple[Message, ...] = ()
            for exchange in rows.line(db, exchange_id, limit=_HISTORY_TURNS):
                answer = exchange.answer
                messages = self._own_messages(db, exchange, messages)
                if answer is None or not answer.found or exchange.state != "done":
                    continue
                cited = tuple(source.hit.chunk.id for source in answer.sources if source.cited)
                turns.append(Turn(exchange.question, answer.text, messages=messages, cited_chunks=cited))
            return tuple(turns)

    def unfinished(self, exchange_id: int) -> Answer:
        """The answer with all messages that the model had, so that it can go on. Raises UsageError if it cannot."""
        with self._database.reading() as db:
            line = rows.line(db, exchange_id, limit=_HISTORY_TURNS)
            answer = line[-1].answer if line else None
            if answer is not None:
                messages: tuple[Message, ...] = ()
                for exchange in line:
                    messages = self._own_messages(db, exchange, messages)
                answer = replace(answer, messages=messages)
            if answer is None or not answer.can_go_on:
                raise UsageError("This answer cannot go on where it ended.", remedy="Ask again for a new one.")
            return answer

    def questions(self, *, library: str, limit: int) -> list[str]:
        """The last questions asked of a library, each once, oldest first."""
        with self._database.reading() as db:
            found = db.execute(
                "SELECT CAST(question AS TEXT), max(id) AS last FROM exchanges"  # noqa: S608 - our own names
                f" WHERE thread_id IN (SELECT id FROM threads WHERE library = ?) AND {sums.EXCHANGE_IS_WHOLE}"
                " GROUP BY question ORDER BY last DESC LIMIT ?",
                (rows.library_value(library), limit),
            )
            return [row[0] for row in found][::-1]

    def search(self, query: str, *, library: str | None, limit: int = _MOST_MATCHES) -> list[ThreadMatch]:
        """The threads in which all the words stand in one question and its answer, or in the title; the last word may
        be the beginning of one. What changed last comes first."""
        terms = query_terms(query)
        wanted = fold(query).split()
        if not terms or not wanted:
            return []
        found: dict[int, ThreadMatch] = {}
        with self._database.reading() as db:
            for head in map(rows.head_of, db.execute(rows.HEAD)):
                title = fold(head.title)
                if all(word in title for word in wanted):
                    found[head.id] = ThreadMatch(head, None, "")
            expressions = [f"({term.expression})" for term in terms[:-1]]
            # A word that is still being typed.
            expressions.append("(" + " OR ".join(f"{each} *" for each in terms[-1].expressions) + ")")
            matched = db.execute(
                "SELECT e.thread_id, max(e.id) FROM exchange_words w JOIN exchanges e ON e.id = w.rowid"
                " JOIN threads t ON t.id = e.thread_id WHERE exchange_words MATCH ? AND (?2 IS NULL OR t.library = ?2)"
                " GROUP BY e.thread_id ORDER BY t.changed_ns DESC LIMIT ?",
                (" AND ".join(expressions), None if library is None else rows.library_value(library), limit),
            )
            for thread_id, exchange_id in matched.fetchall():
                question, text, is_whole = db.execute(
                    f"SELECT CAST(question AS TEXT), CAST(text AS TEXT), {sums.EXCHANGE_IS_WHOLE}"  # noqa: S608
                    " FROM exchanges WHERE id = ?",
                    (exchange_id,),
                ).fetchone()
                words = excerpt(question, text, wanted) if is_whole else sums.DAMAGED
                found[thread_id] = ThreadMatch(rows.head(db, thread_id), exchange_id, words)
        matches = [match for match in found.values() if library in (None, match.head.library)]
        return sorted(matches, key=lambda match: match.head.changed_ns, reverse=True)[:limit]

    # ------------------------------------------------------------ what is done to them

    def rename(self, thread_id: int, title: str) -> ThreadHead:
        """Raises UsageError for a title without words, ThreadsError for a damaged record, which stays as it is."""
        name = title_of(rows.storable(title))
        if not name:
            raise UsageError("A title needs at least one word.")
        with self._database.writing() as db:
            rows.head(db, thread_id)
            sums.refuse_damaged_thread(db, thread_id)
            self._change_thread(db, thread_id, "title", name)
            return rows.head(db, thread_id)

    def delete(self, thread_ids: Sequence[int]) -> list[ThreadHead]:
        """For good: nothing of them is left in the file, whatever ends the program. All or none."""
        with self._database.writing() as db:
            gone = [rows.head(db, thread_id) for thread_id in dict.fromkeys(thread_ids)]
            for head in gone:
                db.execute(
                    "DELETE FROM exchange_words WHERE rowid IN (SELECT id FROM exchanges WHERE thread_id = ?)",
                    (head.id,),
                )
                db.execute("DELETE FROM threads WHERE id = ?", (head.id,))
            db.execute("DELETE FROM drafts WHERE thread_id <> 0 AND thread_id NOT IN (SELECT id FROM threads)")
            # FTS5 keeps the words of deleted rows until its parts are joined.
            db.execute("INSERT INTO exchange_words (exchange_words) VALUES ('optimize')")
        self._database.fold_log()
        return gone

    # ------------------------------------------------------------ drafts

    def keep_draft(self, thread_id: int | None, text: str, where: FilterText, *, library: str) -> None:
        """What is typed and not sent, of a thread or of none yet, and the filter in force. Of a thread that has been
        deleted meanwhile nothing is kept."""
        with self._database.writing() as db:
            if thread_id is not None and not db.execute("SELECT 1 FROM threads WHERE id = ?", (thread_id,)).fetchone():
                return
            if text or where != FilterText():
                db.execute(
                    "INSERT OR REPLACE INTO drafts (library, thread_id, text, filter) VALUES (?, ?, ?, ?)",
                    (rows.library_value(library), thread_id or 0, rows.storable(text), records.filter_to_json(where)),
                )
                sums.sum_draft(db, rows.library_value(library), thread_id or 0)
            else:
                db.execute(
                    "DELETE FROM drafts WHERE library = ? AND thread_id = ?",
                    (rows.library_value(library), thread_id or 0),
                )

    def draft(self, thread_id: int | None, *, library: str) -> tuple[str, FilterText]:
        """What was typed and not sent. Raises ThreadsError where it is damaged: it would stand where a person types."""
        with self._database.reading() as db:
            row = db.execute(
                f"SELECT text, filter, {sums.DRAFT_IS_WHOLE} FROM drafts WHERE library = ? AND thread_id = ?",  # noqa: S608
                (rows.library_value(library), thread_id or 0),
            ).fetchone()
            if row is None:
                return "", FilterText()
            if not row[2]:
                raise ThreadsError("What was typed here and not sent is damaged.", remedy="Type it anew.")
            return row[0], records.filter_from_json(row[1])

    # ------------------------------------------------------------ whether they are whole

    def verify(self) -> list[Finding]:
        """One finding for the file, and one for each title, question with its answer, and draft that is not what was
        kept. Raises nothing that a damaged file causes."""
        try:
            with self._database.reading() as db:
                findings = damage_of(db)
        except ThreadsError as error:
            findings = [Finding("conversations", "error", error.message, error.remedy)]
        return findings or [Finding("conversations", "ok", "The conversations are whole.")]

    # ------------------------------------------------------------ messages

    def _messages(self, db: sqlite3.Connection, exchange: Exchange) -> tuple[Message, ...]:
        messages: tuple[Message, ...] = ()
        for each in rows.line(db, exchange.id, limit=_HISTORY_TURNS):
            messages = self._own_messages(db, each, messages)
        return messages

    def _own_messages(
        self, db: sqlite3.Connection, exchange: Exchange, before: tuple[Message, ...]
    ) -> tuple[Message, ...]:
        """Those of the conversation up to this exchange, given those up to the one before it."""
        if exchange.answer is None or not exchange.answer.messages:
            return ()
        common = rows.common(db, exchange.id)
        if common and len(before) != common:
            return ()  # what it goes on from lies further back than is looked at
        return (*before[:common], *exchange.answer.messages)
