"""Of a conversation that is damaged nothing wrong is shown, whoever looks; what is damaged is named."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest
from unit.index import golden_libraries as golden
from unit.threads.conversations import answer

from edgerag.errors import ThreadsError, UsageError
from edgerag.threads import database
from edgerag.threads.database import STEPS
from edgerag.threads.store import ThreadStore
from edgerag.types import FilterText

DAMAGED = "(damaged)"
WORDS = {
    "torque": "Which torque do the lid screws need?",
    "gasket": "Is the gasket greased?",
    "valve": "And the valve?",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two threads, one with versions, and a draft."""
    path = tmp_path / "threads.sqlite"
    store = ThreadStore(path)
    first = store.ask(WORDS["torque"], library="default")
    store.finish(first.id, answer(WORDS["torque"], "Twelve newton metres [1]."))
    for number in range(2):
        again = store.ask(WORDS["gasket"], library="default", thread_id=first.thread_id, parent_id=first.id)
        store.finish(again.id, answer(WORDS["gasket"], f"Dry, number {number}."))
    other = store.ask(WORDS["valve"], library="default")
    store.fail(other.id, text="Half of", problem="The model went away.")
    store.keep_draft(None, "not sent yet", FilterText(tags="pumps"), library="default")
    store.close()
    return path


def change(file: Path, statement: str) -> None:
    db = sqlite3.connect(file)
    with db:
        assert db.execute(statement).rowcount > 0
    db.close()


def shown(file: Path) -> list[tuple[str, ...]]:
    """Every text that a person would see, by what it is."""
    store = ThreadStore(file)
    try:
        found: list[tuple[str, ...]] = []
        for head in store.heads(library="default"):
            found.append(("title", str(head.id), head.title))
            for each in store.thread(head.id).exchanges:
                problem = each.problem if each.question != DAMAGED else ""
                found.append(("exchange", str(each.id), each.question, each.text, problem, str(each.answer)))
            found += [("turn", turn.question, turn.answer) for turn in store.history(_last(store, head.id))]
        found += [("asked", question) for question in store.questions(library="default", limit=9)]
        for word in WORDS:
            found += [("found", str(match.head.id), match.excerpt) for match in store.search(word, library="default")]
        try:
            draft, where = store.draft(None, library="default")
        except ThreadsError as error:
            assert "damaged" in error.message
            draft, where = "", FilterText()
        return [*found, *([("draft", draft, str(where))] if draft else [])]
    finally:
        store.close()


def kept(file: Path) -> list[tuple[str, ...]]:
    """The same of a whole file, whichever branch is in use."""
    found = shown(file)
    store = ThreadStore(file)
    for number in range(1, 5):
        each = store.exchange(number)
        found.append(("exchange", str(each.id), each.question, each.text, each.problem, str(each.answer)))
        found += [("turn", turn.question, turn.answer) for turn in store.history(number)]
    store.close()
    return found


def _last(store: ThreadStore, thread_id: int) -> int | None:
    exchanges = store.thread(thread_id).exchanges
    return exchanges[-1].id if exchanges else None


def findings(file: Path) -> list[str]:
    store = ThreadStore(file)
    try:
        return [f"{each.name}: {each.message}" for each in store.verify() if each.severity == "error"]
    finally:
        store.close()


STATEMENTS = {
    "UPDATE exchanges SET question = 'Which torque do the lid nails need?' WHERE id = 1": "thread 1",
    "UPDATE exchanges SET text = replace(text, 'Twelve', 'Twenty') WHERE id = 1": "thread 1",
    "UPDATE exchanges SET answer = replace(answer, '/docs/', '/dogs/') WHERE id = 1": "thread 1",
    "UPDATE exchanges SET problem = 'none' WHERE id = 4": "thread 2",
    "UPDATE exchanges SET state = 'done' WHERE id = 4": "thread 2",
    'UPDATE exchanges SET filter = \'{"tags": "x"}\' WHERE id = 2': "thread 1",
    "UPDATE exchanges SET asked_ns = asked_ns + 1 WHERE id = 1": "thread 1",
    "UPDATE exchanges SET thread_id = 2 WHERE id = 3": "thread 2",
    "UPDATE exchanges SET id = 9 WHERE id = 3": "thread 1",
    "UPDATE threads SET title = 'Which torque do the lid nails need?' WHERE id = 1": "thread 1",
    "UPDATE threads SET leaf_id = 1 WHERE id = 1": "thread 1",
    "UPDATE drafts SET text = 'not bent yet'": "draft of thread 0",
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_was_changed_is_named_and_not_shown(file: Path, statement: str) -> None:
    whole = kept(file)
    assert findings(file) == []
    change(file, statement)
    assert [name for name in findings(file) if name.startswith(f"{STATEMENTS[statement]}: ")]
    wrong = [each for each in shown(file) if each not in whole and DAMAGED not in each]
    assert wrong == []


def test_no_flipped_bit_shows_anything_wrong(file: Path) -> None:
    whole, raw = kept(file), file.read_bytes()
    where = random.Random(4)
    seen_damaged = 0
    written = [at for at, byte in enumerate(raw) if byte]
    for place in where.sample(written, 200):
        flipped = bytearray(raw)
        flipped[place] ^= 1 << where.randrange(8)
        file.write_bytes(flipped)
        for beside in file.parent.glob("threads.sqlite-*"):
            beside.unlink()
        try:
            found = shown(file)
        except (ThreadsError, UsageError):
            continue
        wrong = [each for each in found if each not in whole and DAMAGED not in each]
        assert wrong == [], place
        if any(DAMAGED in each for each in found):
            seen_damaged += 1
            assert findings(file), place
    assert seen_damaged > 5


def test_the_others_of_its_thread_are_shown_and_a_damaged_one_is_never_given_a_checksum(file: Path) -> None:
    change(file, "UPDATE exchanges SET question = 'Which torque do the lid nails need?' WHERE id = 1")
    store = ThreadStore(file)
    first, last = store.thread(1).exchanges
    assert (first.question, first.text, first.state) == (DAMAGED, "", "failed")
    assert "is damaged, and is not shown" in first.problem
    assert last.text == "Dry, number 1."
    for write in (
        lambda: store.resume(1),
        lambda: store.keep_text(1, "more"),
        lambda: store.finish(1, answer("x", "more")),
        lambda: store.fail(1, text="more", problem="none"),
    ):
        with pytest.raises(ThreadsError, match="Question 1 of thread 1 is damaged"):
            write()
    next_one = store.ask("And then?", library="default", thread_id=1, parent_id=last.id)
    assert [each.question for each in store.thread(1).exchanges] == [DAMAGED, WORDS["gasket"], "And then?"]
    assert next_one.question == "And then?"
    assert store.history(last.id)[-1].answer == "Dry, number 1."
    store.close()
    assert len(findings(file)) == 1


def test_a_damaged_title_stays_named_and_its_thread_can_be_used_and_deleted(file: Path) -> None:
    change(file, "UPDATE threads SET title = 'Lid nails' WHERE id = 1")
    store = ThreadStore(file)
    store.ask("And then?", library="default", thread_id=1)
    store.choose(2)
    assert store.head(1).title == DAMAGED
    assert len(findings(file)) == 1
    store.delete([1])
    store.close()
    assert findings(file) == []


def test_one_of_the_first_version_gets_checksums_and_what_is_no_conversation_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = golden.unpack_private(tmp_path, "threads", 1)
    change(file, "UPDATE exchanges SET filter = 'no json' WHERE id = 2")
    with monkeypatch.context() as patch:  # a disk that cannot be written
        patch.setattr(database, "make_private", lambda path: False)
        before = file.read_bytes()
        assert len(findings(file)) == 1
        assert file.read_bytes() == before
    assert len(findings(file)) == 1
    db = sqlite3.connect(file)
    assert db.execute("PRAGMA user_version").fetchone() == (len(STEPS),)
    assert db.execute("SELECT count(*) FROM exchanges WHERE sum IS NULL").fetchone() == (1,)
    db.close()


def test_a_damaged_name_is_not_written_over(file: Path) -> None:
    change(file, "UPDATE threads SET title = 'Which torque do the lid nails need?' WHERE id = 1")
    store = ThreadStore(file)
    with pytest.raises(ThreadsError, match="thread 1 is damaged"):
        store.rename(1, "New")
    store.close()
    with sqlite3.connect(file) as db:
        assert db.execute("SELECT title FROM threads WHERE id = 1").fetchone() == (
            "Which torque do the lid nails need?",
        )
    db.close()
