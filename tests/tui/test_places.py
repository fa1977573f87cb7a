"""First start, small and large terminals, themes, no colour, and what a screenshot says."""

from __future__ import annotations

import re

import pytest
from driving import Driver, running
from scripted_session import ScriptedSession

from edgerag.errors import LibraryEmpty
from edgerag.ui.tui.widgets.question_box import QuestionBox
from edgerag.ui.tui.widgets.sources import SourcesPane

SIZES = [(60, 20), (80, 24), (120, 40), (200, 60)]
QUESTION = "How often is the diaphragm replaced?"


@pytest.mark.parametrize("size", SIZES)
async def test_with_no_model_and_no_library_it_says_what_to_do(size: tuple[int, int]) -> None:
    async with running(ScriptedSession(documents={}, model=""), size=size) as driver:
        await driver.see("First steps")
        await driver.press("escape")
        for words in ("edgerag models pull", "F2", "There are no documents yet.", "no model", "no documents"):
            assert words in driver.text
        await driver.ask("Anything?")
        assert "There is no library 'default' yet." in driver.text
        assert "Press F2 to add documents." in driver.text


async def test_a_library_without_documents_is_filled_by_a_key_here() -> None:
    session = ScriptedSession()
    session.failures["ask"] = LibraryEmpty("The library holds no documents yet.", remedy="Put some in with `edgerag`.")
    async with running(session) as driver:
        await driver.ask("Anything?")
        await driver.see("The library holds no documents yet.", "Press F2 to add documents.")


async def test_a_model_and_documents_that_arrive_later_are_ticked_off() -> None:
    session = ScriptedSession(documents={}, model="")
    async with running(session) as driver:
        await driver.press("escape")  # out of the first steps
        session.model = "smollm2-135m-instruct"
        session.library["/docs/a.md"] = ScriptedSession().library["/docs/kestrel-p40-manual.md"]
        session.numbers["/docs/a.md"] = 1
        driver.app.look_again()
        await driver.see("✓ Chat model: smollm2-135m-instruct", "Type a question below")


async def test_without_a_model_sources_are_shown_and_the_reason_told() -> None:
    session = ScriptedSession(model="")
    session.reply, session.stop_reason = "There is no chat model.", "no_model"
    session.notes = ("No chat model is installed.",)
    async with running(session) as driver:
        await driver.ask(QUESTION)
        assert "No chat model is installed." in driver.text
        assert len(driver.ask_screen.query_one(SourcesPane).sources) == 3


async def test_a_session_that_fails_at_the_start_is_no_traceback() -> None:
    session = ScriptedSession()
    session.failures["warm"] = RuntimeError("no memory left")
    async with running(session) as driver:
        await driver.until(lambda: "RuntimeError: no memory left" in driver.notifications)
        session.failures["library_status"] = RuntimeError("disk gone")
        driver.app.look_again()
        await driver.until(lambda: "disk gone" in driver.notifications)


def assert_whole(driver: Driver, size: tuple[int, int]) -> None:
    """Nothing stands outside of the terminal, nothing needed is covered."""
    assert len(driver.rows) == size[1]
    for selector in (QuestionBox, SourcesPane):
        widget = driver.ask_screen.query_one(selector)
        assert driver.app.screen.region.contains_region(widget.region)
    assert not driver.ask_screen.query_one(QuestionBox).region.overlaps(driver.ask_screen.query_one(SourcesPane).region)


@pytest.mark.parametrize("size", SIZES)
async def test_answer_and_sources_fit_into_every_terminal(size: tuple[int, int]) -> None:
    async with running(size=size) as driver:
        await driver.ask(QUESTION)
        assert_whole(driver, size)
        for words in (
            "data sheet [2].",
            "first token 0.31 s",
            "[1]✓",
            "lines 18-20",
            "3 docs" if size[0] < 120 else "3 documents",
        ):
            assert words in driver.text
        await driver.press("tab", "down", "enter")
        await driver.see("[2] of 3", "page 2", "KP40-117 diaphragm, EPDM")


async def test_resizing_moves_the_sources() -> None:
    async with running(size=(140, 40)) as driver:
        await driver.ask(QUESTION)
        pane, log = driver.ask_screen.query_one(SourcesPane), driver.ask_screen.query_one("#conversation")
        assert pane.region.x > log.region.x
        await driver.pilot.resize_terminal(70, 24)
        await driver.until(lambda: pane.region.y > log.region.y)
        assert pane.region.x == 0
        assert "kestrel-p40-manual.md, lines 18-20" in driver.text


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_a_quote_stands_out_in_every_theme(theme: str) -> None:
    async with running() as driver:
        driver.app.theme = theme
        await driver.ask(QUESTION)
        await driver.press("ctrl+o")
        await driver.see("Every 2,000 hours")
        assert "▌" in next(row for row in driver.rows if "Every 2,000 hours" in row)
        styles = {
            segment.style
            for strip in driver.app.screen._compositor.render_strips()
            for segment in strip
            if "Every 2,000 hours" in segment.text
        }
        assert all(style is not None and style.bold for style in styles)


async def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running() as driver:
        await driver.ask(QUESTION)
        svg = driver.app.export_screenshot()
        colours = {colour.lower() for colour in re.findall(r"fill(?:=\"|: )(#[0-9a-fA-F]{6})", svg)}
        tinted = {c for c in colours if len({c[1:3], c[3:5], c[5:7]}) > 1}
        # The frame of the picture (its title and buttons) has colours of its own.
        assert tinted <= {"#ff5f57", "#febc2e", "#28c840", "#c5c8c6"}


async def test_a_screenshot_of_the_ask_screen_holds_question_answer_and_sources() -> None:
    async with running() as driver:
        await driver.ask(QUESTION)
        text = driver.svg_text()
        for words in (
            QUESTION,
            "every 2,000 hours",
            "Valve ball (two)",
            "Sources (3, 2 cited)",
            "kestrel-p40-datasheet.pdf",
        ):
            assert words in text
        assert "smollm2-135m-instruct" in text


async def test_a_screenshot_of_a_passage_holds_its_place() -> None:
    async with running() as driver:
        await driver.ask(QUESTION)
        await driver.press("ctrl+o")
        await driver.see("Every 2,000 hours")
        text = driver.svg_text()
        for words in ("[1]", "lines 18-20", "Maintenance", "Every week: look for drops"):
            assert words in text


async def test_palette_offers_what_the_keys_do() -> None:
    async with running() as driver:
        await driver.press("ctrl+p")
        await driver.pilot.press(*"library")
        await driver.see("Library")
        await driver.press("enter")
        await driver.see("kestrel-p40-manual.md")
