"""Asking: what is typed, what streams, what can be stopped, and what goes wrong."""

from __future__ import annotations

import os
import sys
import threading
from typing import cast

import pytest
from driving import Driver, running
from scripted_session import REPLY, ScriptedSession

from edgerag.errors import EmbedderMismatch
from edgerag.ui.tui.keys_first import KeysFirst
from edgerag.ui.tui.widgets.answer_markdown import AnswerMarkdown
from edgerag.ui.tui.widgets.conversation import Conversation
from edgerag.ui.tui.widgets.exchange import ExchangeView
from edgerag.ui.tui.widgets.question_box import QuestionBox
from edgerag.ui.tui.widgets.sources import SourcesPane

QUESTION = "How often is the diaphragm replaced?"


class Gate:
    """Holds the scripted session before one of its deltas or files, until it is opened."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, index: int) -> None:
        if index == self.at:
            self.reached.set()
            self.opened.wait(60)


def exchange(driver: Driver) -> ExchangeView:
    return list(driver.ask_screen.query(ExchangeView))[-1]


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux alone")
async def test_what_answers_steps_back_behind_the_screen() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask(QUESTION)
        assert session.niceness >= 9 > os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


async def test_the_answer_is_the_deltas_joined_with_its_sources_beside() -> None:
    async with running() as driver:
        await driver.ask(QUESTION)
        assert exchange(driver).text == REPLY
        for words in (QUESTION, "every 2,000 hours", "KP40-121", "first token 0.31 s", "74 tok/s"):
            assert words in driver.text
        pane = driver.ask_screen.query_one(SourcesPane)
        assert [source.cited for source in pane.sources] == [True, True, False]
        assert pane.border_title == "Sources (3, 2 cited)"
        assert "page 2, kestrel-p40-datasheet.pdf" in driver.text
        assert "lines 18-20, kestrel-p40-manual.md" in driver.text


async def test_words_are_on_the_screen_before_the_answer_is_done() -> None:
    session = ScriptedSession()
    gate = session.before_delta = Gate(at=7)
    async with running(session) as driver:
        await driver.type_question(QUESTION)
        await driver.press("enter")
        await driver.see("The diaphragm is replaced every 2,000")
        assert "[2]" in driver.text, "the sources are there before the answer ends"
        assert "KP40-121 valve" not in exchange(driver).text
        gate.opened.set()
        await driver.until(lambda: not driver.busy)
        assert exchange(driver).text == REPLY


async def test_a_long_answer_arrives_whole_and_follows_its_end() -> None:
    session = ScriptedSession()
    session.reply = "\n\n".join(f"Paragraph {number} says that part {number} fits [1]." for number in range(400))
    async with running(session) as driver:
        await driver.ask("Tell me everything.")
        assert exchange(driver).text == session.reply
        await driver.see("Paragraph 399 says")


async def test_a_user_who_scrolled_up_is_left_there_while_the_answer_goes_on() -> None:
    session = ScriptedSession()
    session.reply = "\n\n".join(f"Paragraph {number} of the answer." for number in range(120))
    gate = session.before_delta = Gate(at=400)
    async with running(session, size=(80, 24)) as driver:
        await driver.type_question("Long?")
        await driver.press("enter")
        await driver.until(gate.reached.is_set)
        await driver.until(lambda: "Paragraph 79" in exchange(driver).text)
        await driver.press("pageup", "pageup")
        log = driver.ask_screen.query_one(Conversation)
        place = log.scroll_offset.y
        assert 0 < place < log.max_scroll_y
        gate.opened.set()
        await driver.until(lambda: not driver.busy)
        assert log.scroll_offset.y == place


async def test_text_can_be_selected_and_copied_while_the_answer_streams() -> None:
    session = ScriptedSession()
    gate = session.before_delta = Gate(at=20)
    async with running(session) as driver:
        await driver.type_question(QUESTION)
        await driver.press("enter")
        await driver.see("valve balls [1]")
        await driver.press("tab", "tab", "c")
        assert "The diaphragm is replaced" in driver.app.clipboard
        driver.app.screen.text_select_all()
        await driver.pilot.pause()
        assert "every 2,000 hours" in (driver.app.screen.get_selected_text() or "")
        gate.opened.set()
        await driver.until(lambda: not driver.busy)


async def test_escape_stops_the_answer_and_keeps_what_came() -> None:
    session = ScriptedSession()
    gate = session.before_delta = Gate(at=5)
    async with running(session) as driver:
        await driver.type_question(QUESTION)
        await driver.press("enter")
        await driver.until(gate.reached.is_set)
        await driver.press("escape")
        gate.opened.set()
        await driver.until(lambda: not driver.busy)
        assert exchange(driver).text == "The diaphragm is replaced **every"
        assert "Stopped." in driver.text
        await driver.ask("And now?")
        assert exchange(driver).text == REPLY, "the next question is answered"


async def test_a_question_sent_meanwhile_stays_in_the_box() -> None:
    session = ScriptedSession()
    gate = session.before_delta = Gate(at=3)
    async with running(session) as driver:
        await driver.type_question(QUESTION)
        await driver.press("enter")
        await driver.until(gate.reached.is_set)
        await driver.type_question("Which part number?")
        await driver.press("enter")
        assert "Esc stops it" in driver.notifications
        assert driver.ask_screen.query_one(QuestionBox).text == "Which part number?"
        gate.opened.set()
        await driver.until(lambda: not driver.busy)
        await driver.press("enter")
        await driver.until(lambda: len(session.histories) == 2 and not driver.busy)


async def test_leaving_while_an_answer_streams_stops_it() -> None:
    session = ScriptedSession()
    session.reply = "word " * 100_000
    gate = session.before_delta = Gate(at=10)
    async with running(session) as driver:
        await driver.type_question(QUESTION)
        await driver.press("enter")
        await driver.until(gate.reached.is_set)
        await driver.press("ctrl+q")
        gate.opened.set()
    assert not driver.app.is_running


async def test_follow_ups_carry_the_answers_before_but_not_the_stopped_ones() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask(QUESTION)
        session.stop_reason = "cancelled"
        await driver.ask("A stopped one?")
        session.stop_reason = "end"
        await driver.ask("And the strainer?")
        assert [len(history) for history in session.histories] == [0, 1, 1]
        assert session.histories[-1][0].question == QUESTION
        assert session.histories[-1][0].answer == REPLY
        await driver.press("ctrl+n")
        await driver.ask("From the start?")
        assert session.histories[-1] == ()


async def test_up_and_down_bring_back_questions_and_the_draft() -> None:
    async with running() as driver:
        box = driver.ask_screen.query_one(QuestionBox)
        await driver.ask("First?")
        await driver.ask("Second?")
        await driver.type_question("a draft")
        await driver.press("up")
        assert box.text == "Second?"
        await driver.press("up", "up")
        assert box.text == "First?"
        await driver.press("down", "down")
        assert box.text == "a draft"


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter"])
async def test_a_question_may_have_several_lines(key: str) -> None:
    async with running() as driver:
        await driver.press("a", key, "b")
        assert driver.ask_screen.query_one(QuestionBox).text == "a\nb"
        await driver.press("up", "x")
        assert driver.ask_screen.query_one(QuestionBox).text == "ax\nb", "Up moves inside the text first"
        await driver.press("enter")
        await driver.until(lambda: not driver.busy)
        assert exchange(driver).question == "ax\nb"


async def test_an_empty_question_is_not_sent() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.press("space", "enter")
        assert "Type a question first." in driver.notifications
        assert session.histories == []


async def test_a_failure_is_told_where_the_answer_would_stand() -> None:
    session = ScriptedSession()
    session.failures["ask"] = EmbedderMismatch(
        "Library 'default' was made with 'a', but 'b' is in use.", remedy="Use 'a'."
    )
    async with running(session) as driver:
        await driver.ask(QUESTION)
        assert "was made with 'a', but 'b' is in use." in driver.text
        assert "Use 'a'." in driver.text
        del session.failures["ask"]
        await driver.ask(QUESTION)
        assert exchange(driver).text == REPLY


async def test_a_fault_of_the_program_is_told_and_the_session_goes_on() -> None:
    session = ScriptedSession()
    session.failures["ask_midway"] = ZeroDivisionError("[bold]division[/bold] by zero")
    async with running(session, size=(90, 40)) as driver:
        await driver.ask(QUESTION)
        assert "ZeroDivisionError: [bold]division[/bold] by zero" in " ".join(driver.text.split())
        assert "scripted_session.py" in driver.text
        assert exchange(driver).text == REPLY, "what had come stays"
        del session.failures["ask_midway"]
        await driver.ask("Again?")
        assert exchange(driver).answer is not None


async def test_notes_and_a_cut_answer_are_told() -> None:
    session = ScriptedSession()
    session.notes = ("Two passages did not fit.",)
    session.stop_reason = "length"
    session.pending = 12
    async with running(session) as driver:
        await driver.ask(QUESTION)
        for words in ("Two passages did not fit.", "answer was cut", "12 chunks not yet searchable"):
            assert words in driver.text


async def test_that_an_answer_was_cut_is_told_once() -> None:
    session = ScriptedSession()
    session.notes = ("The answer was cut at 256 tokens (generation.answer_tokens).",)
    session.stop_reason = "length"
    async with running(session) as driver:
        await driver.ask(QUESTION)
        await driver.see("The answer was cut at 256 tokens")
        assert driver.text.count("The answer was cut") == 1


async def test_nothing_found_shows_no_sources() -> None:
    session = ScriptedSession()
    session.sources, session.reply, session.stop_reason = (), "Not in these documents.", "no_sources"
    async with running(session) as driver:
        await driver.ask("Who won?")
        assert "Not in these documents." in driver.text
        assert not driver.ask_screen.query_one(SourcesPane).display


async def test_an_earlier_answer_brings_its_sources_back() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask(QUESTION)
        session.sources = ()
        await driver.ask("Who won?")
        pane = driver.ask_screen.query_one(SourcesPane)
        assert not pane.display
        driver.ask_screen.query_one(Conversation).focus()
        await driver.press("left")
        assert pane.display and len(pane.sources) == 3


async def test_the_session_works_in_threads_only() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask(QUESTION)
        await driver.press("ctrl+o")
        await driver.see("replace the diaphragm")
        await driver.press("escape", "f3")
        await driver.see("kestrel-p40-manual.md")
        await driver.press("f4")
        await driver.see("AVX2")
    assert session.warmed
    assert threading.main_thread().name not in session.worker_names


async def test_a_question_of_which_nothing_can_be_seen_is_not_asked() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.type_question("\x01\u200b ")
        await driver.press("enter")
        assert "Type a question first" in driver.notifications
        assert session.kept.heads(library="default") == []


async def test_a_key_goes_before_the_answer_and_a_key_that_is_held_does_not_hold_it_up() -> None:
    async with running() as driver:
        await driver.ask("How often is the diaphragm replaced?")
        answer = driver.ask_screen.query_one(AnswerMarkdown)
        shown = answer.source

        class Held:
            """A key that is pressed all the time."""

            asked = 0

            def wait_s(self) -> float:
                self.asked += 1
                return 0.001

        held = Held()
        driver.app.keys_first = cast("KeysFirst", held)
        answer.add(" It is so.")
        answer.add(" And so.")
        await driver.until(lambda: answer.source != shown)
        assert answer.source == f"{shown} It is so. And so."
        assert held.asked >= 1, "it let one go before"
