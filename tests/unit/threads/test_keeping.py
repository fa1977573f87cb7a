from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator

import pytest
from conversations import PASSAGE, answer, source

from edgerag.errors import StorageFull, UsageError
from edgerag.threads.keeping import kept
from edgerag.threads.records import passage_hash
from edgerag.threads.store import ThreadStore
from edgerag.types import Answer, AnswerDelta, AnswerDone, AskEvent, InstantAnswer, NotKept


def exchange_of(store: ThreadStore) -> int:
    return store.ask("Which torque?", library="default").id


def test_the_words_are_kept_while_the_model_pauses(store: ThreadStore) -> None:
    number = exchange_of(store)
    saved = threading.Event()
    keep_text = store.keep_text

    def noted(exchange_id: int, text: str, *, begun: Answer | None = None) -> None:
        keep_text(exchange_id, text, begun=begun)
        if text == "They need 12":
            saved.set()

    store.keep_text = noted  # type: ignore[method-assign]

    def events() -> Iterator[AskEvent]:
        yield InstantAnswer(answer().instant, (source(),))
        yield AnswerDelta("They need ")
        yield AnswerDelta("12")
        assert saved.wait(30)
        partial = store.exchange(number)
        assert (partial.state, partial.text) == ("asked", "They need 12")
        assert partial.answer is not None and partial.answer.sources[0].quote == source().quote
        assert partial.passage_hashes == (passage_hash(PASSAGE),)
        yield AnswerDone(answer())

    assert len(list(kept(events(), store, number, every_s=0.01))) == 4
    assert store.exchange(number).text == answer().text
    assert store.exchange(number).state == "done"


def test_what_is_raised_is_kept_as_the_problem(store: ThreadStore) -> None:
    number = exchange_of(store)

    def events() -> Iterator[AskEvent]:
        yield AnswerDelta("They ")
        raise UsageError("It broke.", remedy="Mend it.")

    with pytest.raises(UsageError):
        list(kept(events(), store, number))
    exchange = store.exchange(number)
    assert (exchange.state, exchange.text, exchange.problem) == ("failed", "They ", "It broke. Mend it.")


def test_an_answer_whose_end_nobody_wants_is_kept_as_stopped(store: ThreadStore) -> None:
    number = exchange_of(store)
    events = kept(iter([AnswerDelta("They "), AnswerDelta("need")]), store, number)
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert (store.exchange(number).state, store.exchange(number).text) == ("stopped", "They ")


def test_an_answer_that_goes_on_and_is_killed_can_go_on_again(store: ThreadStore) -> None:
    number = exchange_of(store)
    store.finish(number, answer(text="Half", stop_reason="cancelled"))
    store.resume(number)
    begun = dataclasses.replace(answer(text=""), messages=())
    store.keep_text(number, "Half of it", begun=begun)
    assert store.unfinished(number).text == "Half of it"


def test_a_full_disk_stops_no_answer_and_is_told_once(store: ThreadStore) -> None:
    number = exchange_of(store)

    def full(*_: object) -> None:
        raise StorageFull("The disk is full.", remedy="Free some space.")

    store.finish = full  # type: ignore[method-assign]
    events = list(kept(iter([AnswerDelta("Yes"), AnswerDone(answer())]), store, number))
    assert [type(event) for event in events] == [AnswerDelta, AnswerDone, NotKept]
    assert events[-1] == NotKept("The disk is full. Free some space.")


def test_a_thread_deleted_meanwhile_stays_deleted(store: ThreadStore) -> None:
    number = exchange_of(store)

    def events() -> Iterator[AskEvent]:
        yield AnswerDelta("They ")
        store.delete([store.exchange(number).thread_id])
        yield AnswerDone(answer())

    assert len(list(kept(events(), store, number))) == 2
    assert store.heads(library=None) == []
