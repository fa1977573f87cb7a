"""What the documents say before the model does, what the model thinks, and what stands in no source."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from driving import Driver, running
from scripted_session import ScriptedSession

from edgerag.config import GenerationSettings, LibrarySettings, Settings
from edgerag.types import InstantSentence
from edgerag.ui.tui.screens.viewer import ViewerScreen
from edgerag.ui.tui.widgets.evidence import Evidence
from edgerag.ui.tui.widgets.exchange import ExchangeView
from edgerag.ui.tui.widgets.thought import Thought

QUESTION = "How often is the diaphragm replaced?"
INSTANT = (
    InstantSentence("Every 2,000 hours: replace the diaphragm.", 1, 0, 41),
    InstantSentence("KP40-117 [bold]diaphragm[/bold] [@click=app.quit]x[/] \x1b[31m", 2, 0, 9),
)


def held() -> tuple[threading.Event, threading.Event, Callable[[], None]]:
    """Reached, opened, and the function that waits in between."""
    reached, opened = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        opened.wait(60)

    return reached, opened, hold


def exchange(driver: Driver) -> ExchangeView:
    return list(driver.ask_screen.query(ExchangeView))[-1]


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (60, 20)])
async def test_the_documents_speak_while_the_model_is_not_there_yet(size: tuple[int, int]) -> None:
    session = ScriptedSession()
    session.instant = INSTANT[:1]
    reached, opened, session.before_model = held()
    async with running(session, size=size) as driver:
        await driver.type_question(QUESTION)
        await driver.press("enter")
        await driver.until(reached.is_set)
        await driver.see("From the documents", "Every 2,000 hours")
        assert "Loading the model" in driver.text
        assert len(exchange(driver).sources) == 3, "the sources are there too"
        opened.set()
        await driver.until(lambda: not driver.busy)
        assert exchange(driver).query_one(Evidence).display, "what one reads is not taken away"


async def test_evidence_is_data_and_its_numbers_open_their_source() -> None:
    session = ScriptedSession()
    session.instant = INSTANT
    async with running(session) as driver:
        await driver.ask(QUESTION)
        await driver.see("[bold]diaphragm[/bold] [@click=app.quit]x[/]")
        assert "\x1b" not in driver.text
        exchange(driver).query_one(Evidence).action_cite(2)
        await driver.until(lambda: isinstance(driver.app.screen, ViewerScreen))
        await driver.see("kestrel-p40-datasheet.pdf")


@pytest.mark.parametrize("stop_reason", ["instant", "no_model"])
async def test_where_the_documents_are_the_answer_they_stand_there_once(stop_reason: str) -> None:
    session = ScriptedSession(model="")
    session.instant, session.stop_reason = INSTANT[:1], stop_reason  # type: ignore[assignment]
    session.reply = "“Every 2,000 hours: replace the diaphragm.” [1]"
    async with running(session) as driver:
        await driver.ask(QUESTION)
        assert not exchange(driver).query_one(Evidence).display
        assert exchange(driver).text == session.reply


async def test_without_a_chat_model_by_choice_nothing_is_missing() -> None:
    session = ScriptedSession(model="")
    session.settings = Settings(library=LibrarySettings(name="default"), generation=GenerationSettings(mode="instant"))
    async with running(session) as driver:
        await driver.see("the documents' own sentences are the answers", "Type a question below", "without a model")
        assert "models pull" not in driver.text


async def test_thoughts_are_folded_and_unfold() -> None:
    session = ScriptedSession()
    session.thought = "The maintenance list says something about [bold]hours[/bold]."
    reached, opened, session.before_answer = held()
    async with running(session) as driver:
        await driver.type_question(QUESTION)
        await driver.press("enter")
        await driver.until(reached.is_set)
        await driver.see("▸ Thinking …")
        opened.set()
        await driver.until(lambda: not driver.busy)
        await driver.see("▸ Thought: 7 words")
        assert "maintenance list says" not in driver.text
        assert "The maintenance list" not in exchange(driver).text
        await driver.press("tab", "tab", "t")
        await driver.see("▾ Thought: 7 words", "something about [bold]hours[/bold]")
        await driver.press("t")
        assert "something about" not in driver.text
        await driver.pilot.click(Thought)
        await driver.see("something about [bold]hours[/bold]")


async def test_sentences_that_stand_in_no_source_have_a_sign_and_a_reason() -> None:
    session = ScriptedSession()
    session.reply = (
        "It is **old** [1]. It *weighs* 77 kg [2]. It is blue.\n\n"
        "- One thing\n- Another thing\n\n"
        "| Part | Number |\n|---|---|\n| Diaphragm | KP40-117 |\n| Valve | KP40-999 |"
    )
    session.unsupported = ("It *weighs* 77 kg [2].", "Another thing", "Valve | KP40-999 |")
    async with running(session, size=(120, 50)) as driver:
        await driver.ask(QUESTION)
        await driver.see("It is old [1]. It weighs 77 kg [2]. [?] It is blue.", "Another thing [?]", "KP40-999 [?]")
        assert "KP40-117 [?]" not in driver.text
        assert "One thing [?]" not in driver.text
        assert "[?] not in the sources: “It *weighs* 77 kg [2].”" in driver.text and "No source has it." in driver.text
        await driver.press("tab", "tab", "c")
        assert driver.app.clipboard == session.reply, "what is copied is the answer"
