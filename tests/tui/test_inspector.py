"""Why an answer is as it is, and where its time went, as a user sees it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from driving import Driver, running
from scripted_session import ScriptedSession
from test_hostile import MARKUP, assert_safe, hostile_session
from test_themes import least_contrast
from textual.widgets import TabbedContent

from edgerag.types import (
    AnswerDone,
    AskEvent,
    HitOutcome,
    Message,
    Passage,
    Prefill,
    PromptBudget,
    PromptPart,
    SecondLookReport,
    Source,
    StageSpan,
    Trace,
    TracedHit,
)
from edgerag.ui.tui.screens.ask import AskScreen
from edgerag.ui.tui.screens.inspector import InspectorScreen
from edgerag.ui.tui.screens.passage import PassageDialog
from edgerag.ui.tui.screens.viewer import ViewerScreen
from edgerag.ui.tui.widgets.conversation import Conversation
from edgerag.ui.tui.widgets.folded_text import FoldedText
from edgerag.ui.tui.widgets.hits_table import HitsTable

SECTIONS = {
    "1": "vector leg",
    "2": "Became",
    "3": "Context of",
    "4": "What is approximate",
    "5": "Stages of this answer",
}
_OUTCOMES: tuple[HitOutcome, ...] = ("copy", "no_room", "irrelevant", "too_low")


def trace_of(sources: tuple[Source, ...]) -> Trace:
    """The hits are the sources and, behind them, copies of the first that met another fate each."""
    hits = [TracedHit(each.hit, place, place, 0.9, "source", each.number) for place, each in enumerate(sources, 1)]
    first = sources[0].hit
    for place, outcome in enumerate(_OUTCOMES, len(sources) + 1):
        stored = replace(first.chunk, id=100 + place)
        scores = replace(first.scores, vector=None, vector_rank=None, keyword_rank=20 - place, reranked=0.01)
        hits.append(TracedHit(replace(first, chunk=stored, scores=scores), place, place, 0.1, outcome))
    passages = tuple(Passage(f"[{s.number}] x\n", "", s.hit.chunk.chunk.text, "", s.hit.chunk.id) for s in sources)
    return Trace(
        spans=(
            StageSpan("plan", 0.0, 0.1),
            StageSpan("question_vector", 0.1, 0.2),
            StageSpan("keyword", 0.1, 0.1),
            StageSpan("first_token", 0.3, 0.3),
            StageSpan("prefill", 0.3, 0.25),
            StageSpan("generate", 0.6, 0.9),
        ),
        token_ns=tuple(600_000_000 + 10_000_000 * n + (300_000_000 if n > 20 else 0) for n in range(89)),
        hits=tuple(hits),
        vector_leg="searched",
        second_look=SecondLookReport("judge", 8, 20, 0.25, 300),
        budget=PromptBudget(
            (
                PromptPart("instruction", 10),
                *(PromptPart("source", 200, each.number, 50 if each.number == 2 else 0) for each in sources),
                PromptPart("question", 20),
                PromptPart("format", 12),
            ),
            2048,
            256,
        ),
        messages=(Message("system", ("Answer briefly.",)), Message("user", (*passages, "Question: why?"))),
    )


class TracingSession(ScriptedSession):
    """Its answers tell how they came about."""

    def ask(self, question: str, **options: Any) -> Iterator[AskEvent]:
        for event in super().ask(question, **options):
            if isinstance(event, AnswerDone) and event.answer.sources:
                answer = replace(
                    event.answer,
                    trace=trace_of(event.answer.sources),
                    prefill=Prefill(100, 50, 50, 312, 0.25, approximate_spans=((210, 260),)),
                )
                yield AnswerDone(answer)
            else:
                yield event


async def inspected(driver: Driver, key: str = "f12") -> InspectorScreen:
    await driver.press(key)
    await driver.until(lambda: isinstance(driver.app.screen, InspectorScreen))
    screen = driver.app.screen
    assert isinstance(screen, InspectorScreen)
    return screen


@pytest.mark.parametrize("size", [(80, 24), (240, 60)])
async def test_every_section_can_be_seen_at_any_width(size: tuple[int, int]) -> None:
    async with running(TracingSession(), size=size) as driver:
        await driver.ask("When is the diaphragm replaced?")
        await inspected(driver)
        await driver.see("When is the diaphragm replaced?", "vector leg", "8 of 20 passages by judge")
        for key, words in list(SECTIONS.items())[1:]:
            await driver.press(key)
            await driver.see(words)
        await driver.press("escape")
        assert isinstance(driver.app.screen, AskScreen)


async def test_w_in_the_conversation_and_the_palette_open_it() -> None:
    async with running(TracingSession()) as driver:
        await driver.ask("When?")
        driver.ask_screen.query_one(Conversation).focus()
        await inspected(driver, "w")
        await driver.press("escape")
        commands = {command.title: command for command in driver.app.get_system_commands(driver.app.screen)}
        commands["Where the time went"].callback()
        await driver.see("Stages of this answer")
        assert driver.app.screen.query_one(TabbedContent).active == "time"


async def test_without_an_answer_it_does_not_open() -> None:
    session = TracingSession()
    async with running(session) as driver:
        await driver.press("f12")
        assert isinstance(driver.app.screen, AskScreen)

        def midway(index: int) -> None:
            if index == 2:
                driver.app.call_from_thread(driver.ask_screen.action_why)

        session.before_delta = midway
        await driver.ask("When?")
        assert isinstance(driver.app.screen, AskScreen)


async def test_hits_are_sorted_by_any_column_and_show_their_passage() -> None:
    async with running(TracingSession(), size=(120, 36)) as driver:
        await driver.ask("When?")
        screen = await inspected(driver)
        await driver.press("2")
        table = screen.query_one(HitsTable)
        await driver.until(lambda: table.has_focus)
        assert "cited [1]" in driver.text
        assert "no room" in driver.text
        assert table.at_cursor is not None
        first = table.at_cursor
        await driver.press("end")
        await driver.see("too far down to be looked at")
        await driver.press("home", *"ss")  # became, then keyword
        assert table.at_cursor == first
        await driver.see("Keyword▾")
        await driver.press("end")
        at_end = table.at_cursor
        assert at_end is not None
        assert at_end.hit.scores.keyword_rank == max(hit.hit.scores.keyword_rank or 0 for hit in table._hits)
        await driver.press("home", "enter")
        await driver.until(lambda: isinstance(driver.app.screen, PassageDialog))
        await driver.see("It is a source of the answer.", "keywords: rank 1 (BM25 7.50)")
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, ViewerScreen))
        await driver.press("escape")
        assert isinstance(driver.app.screen, InspectorScreen)


async def test_a_click_on_a_heading_sorts() -> None:
    async with running(TracingSession(), size=(120, 36)) as driver:
        await driver.ask("When?")
        await inspected(driver)
        await driver.press("2")
        await driver.see("Vector")
        row = next(y for y, row in enumerate(driver.rows) if "Vector" in row)
        await driver.pilot.click(offset=(driver.rows[row].index("Vector") + 1, row))
        await driver.see("Vector▾")


async def test_the_prompt_folds_and_is_copied_word_for_word() -> None:
    async with running(TracingSession(), size=(120, 50)) as driver:
        await driver.ask("When?")
        screen = await inspected(driver)
        await driver.press("3")
        await driver.see("source [1]", "200", "room for answer", "free", "▸ system", "Answer briefly.")
        parts = list(screen.query(FoldedText))
        assert not any(part.is_unfolded for part in parts)
        parts[1].focus()
        await driver.press("enter")
        assert parts[1].is_unfolded
        await driver.see("▾ user, passage")
        await driver.press("f")
        assert all(part.is_unfolded for part in parts)
        await driver.press("f")
        assert not any(part.is_unfolded for part in parts)
        await driver.press("c")
        assert "Question: why?" in driver.app.clipboard


async def test_the_cache_says_exactly_what_is_approximate() -> None:
    async with running(TracingSession(), size=(100, 30)) as driver:
        await driver.ask("When?")
        await inspected(driver)
        await driver.press("4")
        await driver.see("source [2]: 50 of 200 tokens approximate", "312 tokens computed in 250 ms at 1,248 tokens/s")


async def test_the_time_has_what_runs_beside_and_the_flame_of_the_last_answers() -> None:
    async with running(TracingSession(), size=(100, 60)) as driver:
        await driver.ask("When?")
        await driver.ask("And the valve balls?")
        await inspected(driver)
        await driver.press("5")
        await driver.see("embed question *", "first token", "600 ms after", "longest 310.0 ms", "Flame of the last 2")
        rows = {row.strip().split("  ")[0]: row for row in driver.rows if "█" in row or "▒" in row}
        beside, keyword = rows["embed question *"], rows["keyword search"]
        assert beside.index("▒") == keyword.index("█")  # they began together
        assert "decode" in next(row for row in driver.rows if "▏" in row and "read" in row)


async def test_of_a_kept_answer_there_are_times_and_counts_and_what_is_gone_is_said() -> None:
    session = TracingSession()
    async with running(session) as driver:
        await driver.ask("When?")
    async with running(session) as driver:
        await driver.press("ctrl+t")
        await driver.press("enter")
        await driver.until(lambda: driver.ask_screen.query_one(Conversation).exchanges)
        screen = await inspected(driver)
        await driver.see("Ask again to see them.")
        await driver.press("2")
        await driver.see("belong to the library")
        assert not screen.query_one(HitsTable).display
        assert " Sort" not in driver.rows[-1], "there is nothing to be sorted"
        await driver.press("3")
        await driver.see("Context of 2,048")
        await driver.press("5")
        await driver.see("embed question *")


@pytest.mark.parametrize("size", [(120, 40), (60, 20)])
async def test_hostile_text_is_text_in_every_section(size: tuple[int, int]) -> None:
    hostile = hostile_session()
    session = TracingSession(documents=hostile.library)
    session.sources, session.reply, session.notes = hostile.sources, hostile.reply, hostile.notes
    async with running(session, size=size) as driver:
        await driver.ask(f"What is {MARKUP}?")
        await inspected(driver)
        for key in "123":
            await driver.press(key)
            await driver.see("[bold]B[/bold]" if key != "3" else "Context of")
            assert_safe(driver)
        await driver.press("f")
        await driver.press("end")
        assert_safe(driver)
        await driver.press("2", "enter")
        await driver.until(lambda: isinstance(driver.app.screen, PassageDialog))
        await driver.see("[@click=app.quit]")
        assert_safe(driver)
        assert driver.app.is_running


async def test_without_colour_the_pieces_of_the_bar_have_their_keys() -> None:
    async with running(TracingSession(), size=(100, 40), flags={"ui": {"theme": "no-colour"}}) as driver:
        await driver.ask("When?")
        await inspected(driver)
        await driver.press("3")
        await driver.see("Context of")
        bar = next(row for row in driver.rows if "····" in row)
        assert [sign for sign in bar if sign.isalnum()] == ["i", "1", "2", "3", "q", "f", "a"]


@pytest.mark.parametrize("section", "23")
async def test_every_key_does_no_harm_and_is_in_the_palette(section: str) -> None:
    async with running(TracingSession(), size=(100, 40)) as driver:
        await driver.ask("When?")
        screen = await inspected(driver)
        await driver.press(section)
        await driver.pilot.pause()
        titles = {command.title for command in driver.app.get_system_commands(screen)}
        bindings = dict(screen.active_bindings)
        for key, active in bindings.items():
            binding = active.binding
            if not (binding.id and active.enabled) or active.node is driver.app:
                continue
            assert (binding.tooltip or binding.description) in titles, binding.id
            while driver.app.screen is not screen:
                if len(driver.app.screen_stack) == 1:
                    screen = await inspected(driver)
                else:
                    driver.app.pop_screen()
            await driver.press(section, key)
            assert "broke" not in driver.notifications, key
            assert driver.app.is_running, key


@pytest.mark.parametrize(
    ("theme", "wanted"), [("dark", 4.5), ("light", 4.5), ("high-contrast", 7.0), ("no-colour", 0.0)]
)
async def test_every_section_is_whole_and_readable_in_every_theme(theme: str, wanted: float) -> None:
    async with running(TracingSession(), size=(80, 24), flags={"ui": {"theme": theme}}) as driver:
        await driver.ask("When?")
        await inspected(driver)
        for size in ((80, 24), (200, 60)):
            await driver.pilot.resize_terminal(*size)
            for key, words in SECTIONS.items():
                await driver.press(key)
                await driver.see(words)
                assert "Back" in driver.rows[-1]
                assert all(len(row) <= size[0] for row in driver.rows)
                contrast, text = least_contrast(driver)
                assert contrast >= wanted or not wanted, (key, size, text, contrast)
