from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from conversations import PASSAGE, answer, messages
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgerag.errors import StorageFull, ThreadsError, UsageError
from edgerag.threads import sums
from edgerag.threads.database import Database
from edgerag.threads.store import ThreadStore
from edgerag.types import FilterText, Message, Passage


def asked(store: ThreadStore, question: str, text: str = "", **options: int | None) -> int:
    """A question with its finished answer; the id of the exchange."""
    exchange = store.ask(question, library="default", **options)
    if text:
        store.finish(exchange.id, answer(question, text))
    return exchange.id


def test_what_was_asked_and_answered_is_there_when_the_program_starts_again(store: ThreadStore, file: Path) -> None:
    where = FilterText(types="pdf", since="2024")
    exchange = store.ask("Which torque?", library="default", where=where)
    store.finish(exchange.id, answer("Which torque?"))
    store.close()
    again = ThreadStore(file)
    (head,) = again.heads(library="default")
    assert (head.title, head.question_count) == ("Which torque?", 1)
    (kept,) = again.thread(head.id).exchanges
    assert (kept.state, kept.where, kept.question) == ("done", where, "Which torque?")
    assert kept.answer is not None
    made = answer("Which torque?")
    for name in ("text", "question", "found", "instant", "sentences", "notes", "timings", "tokens", "prefill", "marks"):
        assert getattr(kept.answer, name) == getattr(made, name), name
    (source,) = kept.answer.sources
    assert (source.quote, source.cited, source.hit.chunk.path) == (made.sources[0].quote, True, "/docs/pump.md")
    again.close()


def test_passages_stay_in_the_library(store: ThreadStore, file: Path) -> None:
    asked(store, "Which torque?", "An answer.")
    store.close()
    assert PASSAGE.encode() not in b"".join(part.read_bytes() for part in file.parent.iterdir())


def test_of_how_an_answer_came_about_the_times_and_counts_are_kept_and_no_hit(store: ThreadStore) -> None:
    exchange = store.ask("Which torque?", library="default")
    made = answer("Which torque?")
    store.finish(exchange.id, made)
    (kept,) = store.last(exchange.thread_id, count=1)
    assert made.trace is not None
    assert kept.answer is not None
    assert kept.answer.trace == replace(made.trace, hits=(), messages=())


def test_answers_of_before_anything_was_traced_are_read(store: ThreadStore, file: Path) -> None:
    asked(store, "Which torque?", "An answer.")
    store.close()
    connection = sqlite3.connect(file)
    (record,) = connection.execute("SELECT answer FROM exchanges").fetchone()
    value = json.loads(record)
    del value["answer"]["trace"], value["answer"]["prefill"]["approximate_spans"]
    with connection:
        connection.execute("UPDATE exchanges SET answer = ?", (json.dumps(value),))
        sums.prepare(connection)
        sums.sum_exchange(connection, 1)
    connection.close()
    again = ThreadStore(file)
    (head,) = again.heads(library="default")
    (kept,) = again.thread(head.id).exchanges
    assert kept.answer is not None
    assert kept.answer.trace is None
    assert kept.answer.prefill is not None
    assert kept.answer.prefill.approximate_spans == ()
    again.close()


def test_the_files_are_their_owners_alone(file: Path) -> None:
    ThreadStore(file).close()
    file.chmod(0o644)
    store = ThreadStore(file)
    store.ask("Which?", library="default")
    modes = {part.name: part.stat().st_mode & 0o777 for part in file.parent.iterdir()}
    assert len(modes) > 1, "a log lies beside it"
    assert set(modes.values()) == {0o600}
    store.close()


def test_a_deleted_thread_leaves_nothing_in_the_files(store: ThreadStore, file: Path) -> None:
    kept = asked(store, "Something else about gaskets?", "Gaskets stay.")
    gone = asked(store, "Is Zanzibarian cardamom poisonous?", "Zanzibarian cardamom is xylophonic.")
    store.keep_text(gone, "Zanzibarian partial")
    for number in range(30):  # so that its words are in an older part of the index than their deletion
        asked(store, f"Number {number}?", f"The answer {number}.")
    store.rename(store.exchange(gone).thread_id, "Zanzibarian title")
    store.keep_draft(store.exchange(gone).thread_id, "Zanzibarian draft", FilterText(), library="default")
    store.delete([store.exchange(gone).thread_id])
    held = b"".join(part.read_bytes() for part in file.parent.iterdir()).lower()
    for word in (b"zanziba", b"cardamo", b"xylopho"):  # words are cut in the index
        assert word not in held
    assert store.search("cardamom", library=None) == []
    assert store.exchange(kept).text == "Gaskets stay."


def test_deleting_what_is_not_there_deletes_nothing(store: ThreadStore) -> None:
    thread = store.exchange(asked(store, "Which?")).thread_id
    with pytest.raises(UsageError, match="no thread 999"):
        store.delete([thread, 999])
    assert store.head(thread)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("torque lid", True),
        ("LID", True),
        ("torq", True),  # as it is typed
        ("newton", True),  # from the answer
        ("torque gasket", False),
        ("蓄电池", True),
        ("电池更换", False),
        ("naive", True),  # naïve
        ('"lid" AND (', True),
        ("", False),
        ("*", False),
    ],
)
def test_words_are_found_in_questions_and_answers_of_any_language(store: ThreadStore, query: str, found: bool) -> None:
    asked(
        store, "Which torque do the lid screws need?", "12 newton metres, says the naïve manual. 蓄电池每三年更换一次。"
    )
    asked(store, "Something about gaskets")
    titles = [match.head.title for match in store.search(query, library="default")]
    assert titles == (["Which torque do the lid screws need?"] if found else [])


def test_a_match_says_where_it_is_and_a_title_is_found_too(store: ThreadStore) -> None:
    asked(store, "Which torque?", "word " * 60 + "the needle " + "word " * 60)
    (match,) = store.search("needle", library=None)
    assert "needle" in match.excerpt and match.excerpt.startswith("…") and match.excerpt.endswith("…")
    store.rename(match.head.id, "About  the\npump")
    (renamed,) = store.search("about pump", library=None)
    assert renamed.head.title == "About the pump"
    with pytest.raises(UsageError):
        store.rename(match.head.id, " \n ")


def test_threads_belong_to_a_library(store: ThreadStore) -> None:
    asked(store, "Here?")
    store.ask("There?", library="other")
    assert [head.title for head in store.heads(library="default")] == ["Here?"]
    assert {head.title for head in store.heads(library=None)} == {"Here?", "There?"}
    assert store.search("there", library="default") == []
    assert store.questions(library="other", limit=10) == ["There?"]


def test_asking_again_makes_a_version_and_keeps_what_followed(store: ThreadStore) -> None:
    first = asked(store, "One?", "1")
    thread = store.exchange(first).thread_id
    second = asked(store, "Two?", "2", thread_id=thread, parent_id=first)
    third = asked(store, "Three?", "3", thread_id=thread, parent_id=second)
    other = asked(store, "Two, otherwise?", "2b", thread_id=thread, parent_id=first)
    line = store.thread(thread).exchanges
    assert [(e.question, e.version, e.versions) for e in line] == [("One?", 1, 1), ("Two, otherwise?", 2, 2)]
    assert store.version_of(other, step=-1) == second
    assert store.version_of(other, step=1) == other
    store.choose(first)
    assert store.thread(thread).exchanges[-1].id == other, "it is in the branch that is in use"
    store.choose(second)
    assert [e.id for e in store.thread(thread).exchanges] == [first, second, third]
    assert [turn.question for turn in store.history(second)] == ["One?", "Two?"]


def test_a_long_thread_is_read_from_its_end(store: ThreadStore) -> None:
    last = asked(store, "Question 0?", "0")
    thread = store.exchange(last).thread_id
    ids = [last]
    for number in range(1, 30):
        ids.append(asked(store, f"Question {number}?", "x", thread_id=thread, parent_id=ids[-1]))
    assert [e.id for e in store.last(thread, count=5)] == ids[-5:]
    assert [e.id for e in store.last(thread, count=5, before=ids[-5])] == ids[-10:-5]
    assert store.last(thread, count=5, before=ids[0]) == []


def test_the_model_goes_on_from_all_that_it_had(store: ThreadStore) -> None:
    first = store.ask("One?", library="default")
    had = messages("One?", "First.")
    store.finish(first.id, answer("One?", "First.", before=()))
    second = store.ask("Two?", library="default", thread_id=first.thread_id, parent_id=first.id)
    store.finish(second.id, answer("Two?", "Second.", before=had))
    turns = store.history(second.id)
    assert [(turn.question, turn.answer, turn.cited_chunks) for turn in turns] == [
        ("One?", "First.", (7,)),
        ("Two?", "Second.", (7,)),
    ]

    def shape(said: tuple[Message, ...]) -> list[tuple[str, list[str]]]:
        return [(m.role, ["" if isinstance(p, Passage) else p for p in m.parts]) for m in said]

    assert shape(turns[-1].messages) == shape(messages("Two?", "Second.", before=had))


def test_stopped_and_failed_answers_are_no_history(store: ThreadStore) -> None:
    first = store.ask("One?", library="default")
    store.finish(first.id, answer("One?", "First", stop_reason="cancelled"))
    second = store.ask("Two?", library="default", thread_id=first.thread_id, parent_id=first.id)
    store.fail(second.id, text="Half", problem="It broke.")
    kept = store.exchange(second.id)
    assert (kept.state, kept.text, kept.problem) == ("failed", "Half", "It broke.")
    assert store.history(second.id) == ()


def test_an_answer_that_cannot_go_on_is_refused(store: ThreadStore) -> None:
    done = asked(store, "One?", "All of it.")
    with pytest.raises(UsageError, match="cannot go on"):
        store.unfinished(done)
    stopped = store.ask("Two?", library="default")
    store.finish(stopped.id, answer("Two?", "Half of", stop_reason="cancelled"))
    assert store.unfinished(stopped.id).unfinished.messages[-1] == Message("assistant", ("Half of",))


def test_going_on_that_fails_loses_nothing_of_what_there_was(store: ThreadStore) -> None:
    stopped = store.ask("Two?", library="default")
    store.finish(stopped.id, answer("Two?", "Half of it", stop_reason="cancelled"))
    store.resume(stopped.id)
    store.fail(stopped.id, text="", problem="No room.")
    kept = store.exchange(stopped.id)
    assert (kept.state, kept.text, kept.problem) == ("stopped", "Half of it", "No room.")
    assert store.unfinished(stopped.id)


def test_drafts_are_kept_by_thread(store: ThreadStore, file: Path) -> None:
    thread = store.exchange(asked(store, "One?")).thread_id
    store.keep_draft(None, "new one", FilterText(), library="default")
    store.keep_draft(thread, "follow-up", FilterText(tags="a"), library="default")
    store.close()
    again = ThreadStore(file)
    assert again.draft(None, library="default") == ("new one", FilterText())
    assert again.draft(thread, library="default") == ("follow-up", FilterText(tags="a"))
    again.keep_draft(thread, "", FilterText(), library="default")
    assert again.draft(thread, library="default") == ("", FilterText())
    assert again.draft(None, library="other") == ("", FilterText())
    again.close()


def test_two_windows_write_to_one_file(store: ThreadStore, file: Path) -> None:
    other = ThreadStore(file)
    started = threading.Barrier(2)

    def fill(mine: ThreadStore) -> None:
        started.wait(10)
        for number in range(20):
            mine.ask(f"Question {number}?", library="default")

    threads = [threading.Thread(target=fill, args=(each,)) for each in (store, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.heads(library="default")) == 40
    other.close()


KILLED = """
import sys
from pathlib import Path
from edgerag.threads.database import Database
from edgerag.threads.store import ThreadStore
store = ThreadStore(Path(sys.argv[1]))
exchange = store.ask("What is asked?", library="default")
print("asked", flush=True)
for number in range(10**9):
    store.keep_text(exchange.id, "word " * (number % 300 + 1))
    print(number, flush=True)
"""


def test_a_kill_at_any_moment_loses_neither_question_nor_kept_words(file: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(file)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(12)]
    process.send_signal(signal.SIGKILL)
    rest = process.communicate()[0].split()
    last = int((rest or [lines[-1]])[-1])
    store = ThreadStore(file)
    (head,) = store.heads(library="default")
    (exchange,) = store.thread(head.id).exchanges
    assert (exchange.question, exchange.state) == ("What is asked?", "asked")
    assert exchange.text.count("word") >= last % 300
    store.close()


def test_files_that_are_none_are_refused_with_what_to_do(tmp_path: Path) -> None:
    noise = tmp_path / "noise.sqlite"
    noise.write_bytes(b"not a database at all " * 400)
    with pytest.raises(ThreadsError, match="cannot be read"):
        ThreadStore(noise)
    assert noise.read_bytes().startswith(b"not a database"), "it is left as it is"
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as db:
        db.executescript("PRAGMA application_id = 5; PRAGMA user_version = 1; CREATE TABLE t (a);")
    with pytest.raises(ThreadsError, match="another program"):
        ThreadStore(foreign)
    newer = tmp_path / "newer.sqlite"
    ThreadStore(newer).close()
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(ThreadsError, match="version 99"):
        ThreadStore(newer)


def test_a_file_that_was_cut_off_is_no_new_one(store: ThreadStore, file: Path) -> None:
    asked(store, "Which torque?", "Twelve.")
    store.close()
    os.truncate(file, 0)
    with pytest.raises(ThreadsError, match="the file is empty"):
        ThreadStore(file)
    file.unlink()
    assert ThreadStore(file).heads(library=None) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageFull):
        ThreadStore(tmp_path / "threads.sqlite")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=st.text(max_size=60), text=st.text(max_size=60), query=st.text(max_size=20))
def test_any_text_is_kept_and_any_query_is_answered(question: str, text: str, query: str) -> None:
    store = ThreadStore(None)
    exchange = store.ask(question, library="default")
    store.finish(exchange.id, answer(question, text))
    kept = store.exchange(exchange.id)
    assert kept.question == question.encode("utf-8", "replace").decode().replace("\0", "")
    store.search(query, library="default")
    store.close()


def test_a_kill_behind_a_deletion_leaves_no_word_in_the_file(file: Path) -> None:
    store = ThreadStore(file)
    gone = asked(store, "Is Zanzibarian cardamom poisonous?", "It is xylophonic.")
    for number in range(30):  # so that its words are in an older part of the index than their deletion
        asked(store, f"Number {number}?", f"The answer {number}.")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Database, "fold_log", lambda _: os._exit(0))  # the program ends where the rows are gone
        child = os.fork()
        if not child:
            store.delete([store.exchange(gone).thread_id])
        os.waitpid(child, 0)
    store.close()
    ThreadStore(file).close()
    held = b"".join(part.read_bytes() for part in file.parent.iterdir()).lower()
    assert [word for word in (b"zanziba", b"cardamo", b"xylopho") if word in held] == []


DAMAGE = (
    "UPDATE exchanges SET parent_id = id",
    "UPDATE exchanges SET parent_id = (SELECT max(id) FROM exchanges)",
    "UPDATE exchanges SET question = x'ff00'",
    "UPDATE exchanges SET question = CAST(x'ff41' AS TEXT)",
    "UPDATE exchanges SET asked_ns = 'never'",
    "UPDATE exchanges SET answer = '{}'",
    "UPDATE exchanges SET answer = json_replace(answer, '$.answer.marks', json('[[1e999, 1]]'))",
    "UPDATE exchanges SET filter = '{\"inside\": 5}'",
    "UPDATE exchanges SET filter = '[1]'",
    "UPDATE exchanges SET filter = replace(hex(zeroblob(100000)), '0', '[')",
    "UPDATE threads SET title = x'ff00', changed_ns = 'x', began_ns = 1.5",
    "UPDATE threads SET title = CAST(x'ff41' AS TEXT)",
    "UPDATE threads SET leaf_id = 999",
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_thread_is_told_listed_and_can_be_deleted(store: ThreadStore, file: Path, damage: str) -> None:
    first = asked(store, "Which torque?", "Two newton metres.")
    thread = store.exchange(first).thread_id
    last = asked(store, "And the gasket?", "Dry.", thread_id=thread, parent_id=first)
    with sqlite3.connect(file) as db:
        db.execute(damage)
    db.close()
    assert [head.id for head in store.heads(library="default")] == [thread]
    for look in (
        lambda: store.thread(thread),
        lambda: store.history(last),
        lambda: store.unfinished(last),
        lambda: store.choose(first),
        lambda: store.search("torque", library=None),
    ):
        with contextlib.suppress(ThreadsError, UsageError):
            look()
    store.delete([thread])
    assert store.heads(library=None) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), min_size=1, max_size=20))
def test_any_damage_to_the_file_is_told(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    whole = tmp_path / "whole.sqlite"
    if not whole.exists():
        made = ThreadStore(whole)
        asked(made, "Which torque?", "Two newton metres.")
        made.close()
    raw = bytearray(whole.read_bytes())
    for place, value in changes:
        raw[place % len(raw)] = value
    file = tmp_path / "damaged.sqlite"
    for beside in tmp_path.glob("damaged.sqlite*"):
        beside.unlink()
    file.write_bytes(raw)
    with contextlib.suppress(ThreadsError, StorageFull, UsageError):
        store = ThreadStore(file)
        try:
            for head in store.heads(library=None):
                store.thread(head.id)
            store.search("torque", library=None)
            store.ask("And now?", library="default")
        finally:
            store.close()


def test_a_library_may_be_a_folder_whose_name_is_no_text(store: ThreadStore) -> None:
    library = os.fsdecode(b"/disk/b\xff/library")
    exchange = store.ask("Which torque?", library=library)
    store.keep_draft(None, "And the", FilterText(), library=library)
    (head,) = store.heads(library=library)
    assert head.library == library
    assert store.heads(library="/disk/b\ufffd/library") == []
    assert [match.head.id for match in store.search("torque", library=library)] == [exchange.thread_id]
    assert store.questions(library=library, limit=5) == ["Which torque?"]
    assert store.draft(None, library=library)[0] == "And the"
    store.keep_draft(None, "", FilterText(), library=library)
    assert store.draft(None, library=library)[0] == ""


def test_conversations_on_a_disk_that_cannot_be_written_are_read(
    store: ThreadStore, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = asked(store, "Which torque?", "Two newton metres.")
    store.close()
    before = {part.name: part.read_bytes() for part in file.parent.iterdir()}

    def refused(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refused)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and Path(path).exists())
    reader = ThreadStore(file)
    assert reader.exchange(first).text == "Two newton metres."
    assert len(reader.search("torque", library=None)) == 1
    with pytest.raises(StorageFull, match="cannot be written"):
        reader.ask("And now?", library="default")
    with pytest.raises(StorageFull):
        reader.delete([reader.heads(library=None)[0].id])
    reader.close()
    with pytest.raises(StorageFull):
        ThreadStore(file.with_name("absent.sqlite"))
    assert {part.name: part.read_bytes() for part in file.parent.iterdir()} == before


def test_reading_waits_for_nobody_who_writes(store: ThreadStore, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(store, "Which torque?", "Two newton metres.")
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waited: list[int] = []
        fold = Database._fold_log

        def folded(self: Database) -> None:
            waited.append(int(self._connection.execute("PRAGMA busy_timeout").fetchone()[0]))
            fold(self)

        monkeypatch.setattr(Database, "_fold_log", folded)
        again = ThreadStore(file)
        assert len(again.heads(library=None)) == 1
        again.close()
        assert waited == [0]


@pytest.mark.parametrize("question", ["\x01\x02", "\x1b[31m", "\u200b\u200b", "\u202e"])
def test_a_question_of_which_nothing_can_be_seen_has_a_title_all_the_same(store: ThreadStore, question: str) -> None:
    exchange = store.ask(question, library="default")
    assert store.head(exchange.thread_id).title == "(no words)"
    with pytest.raises(UsageError, match="at least one word"):
        store.rename(exchange.thread_id, question)


def test_a_draft_that_comes_late_does_not_bring_a_deleted_thread_back(store: ThreadStore) -> None:
    exchange = store.ask("Which torque?", library="default")
    store.keep_draft(exchange.thread_id, "and which", FilterText(), library="default")
    store.delete([exchange.thread_id])
    store.keep_draft(exchange.thread_id, "and which key?", FilterText(), library="default")
    assert store.draft(exchange.thread_id, library="default") == ("", FilterText())
    store.keep_draft(None, "of none yet", FilterText(), library="default")
    assert store.draft(None, library="default")[0] == "of none yet"
