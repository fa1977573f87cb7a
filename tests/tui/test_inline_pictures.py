"""Pictures over cells, from the application to a terminal: it shows the page where nothing covers it, and text
everywhere else."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from driving import Driver, running
from fake_terminal import FakeTerminal
from scripted_session import ScriptedSession
from textual.drivers.headless_driver import HeadlessDriver

from edgerag.ui.tui import page_look, terminal
from edgerag.ui.tui.page_look import Look, Sizing
from edgerag.ui.tui.page_pixels import PagePixels
from edgerag.ui.tui.screens.viewer import ViewerScreen
from edgerag.ui.tui.widgets.page_view import PageView

CELL = (6, 13)  # a height that is no multiple of six, which the bands of Sixel have
SIZE = (80, 24)
# A shade of 32, and a colour in percent.
_NEAR = 8
QUESTION = "How often is the diaphragm replaced?"
LOOKS: list[Look] = ["sixel", "iterm", "kitty"]


@asynccontextmanager
async def page_on(
    screen: FakeTerminal, look: Look, monkeypatch: pytest.MonkeyPatch, session: ScriptedSession | None = None
) -> AsyncIterator[tuple[Driver, PageView]]:
    monkeypatch.setattr(HeadlessDriver, "is_headless", False)
    monkeypatch.setattr(HeadlessDriver, "write", lambda _, data: screen.write(data))
    monkeypatch.setattr(page_look, "sizing", lambda *_, **__: Sizing(look, screen.cell))
    async with running(session, size=(screen.columns, screen.rows)) as driver:
        await driver.ask(QUESTION)
        await driver.press("tab", "enter")
        await driver.until(lambda: isinstance(driver.app.screen, ViewerScreen))
        await driver.press("n")
        await driver.see("[2] of 3", "KP40-117 diaphragm, EPDM")
        await driver.press("v")
        await driver.see("Page 2 of 3 · as wide as the window")
        yield driver, driver.app.screen.query_one(PageView)


def differences(driver: Driver, screen: FakeTerminal) -> str:
    """What is on the terminal that is not to be there, or is not."""
    across, down = screen.cell
    seen = screen.pixels()
    strips = driver.app.screen._compositor.render_strips()
    wanted = np.full_like(seen, -1)
    over = np.zeros((screen.rows, screen.columns), np.bool_)
    views = [view for view in driver.app.screen.query(PageView) if view.display]
    placed = views[0].placed() if views else None
    if placed is not None:
        over = placed.cells
        drawn = views[0]._drawn
        assert drawn is not None and over.any()
        colours = PagePixels(drawn.picture).colours
        for y, x in np.argwhere(over):
            top, left = (y - placed.y) * down, (x - placed.x) * across
            cut = colours[top : top + down, left : left + across]
            wanted[y * down : (y + 1) * down, x * across : (x + 1) * across] = cut
    if (seen[(wanted == -1)] != -1).any():
        return "a picture stands where none is to be"
    if (np.abs(seen - wanted) > _NEAR).any():
        return "the picture is another, or elsewhere"
    for y, strip in enumerate(strips):
        row = "".join(segment.text for segment in strip)
        told = "".join(screen.text[y])
        if any(one != other and not over[y, x] for x, (one, other) in enumerate(zip(row, told, strict=False))):
            return f"row {y} is {told!r}, not {row!r}"
    return ""


async def shows_it(driver: Driver, screen: FakeTerminal) -> None:
    try:
        await driver.until(lambda: not differences(driver, screen))
    except TimeoutError:
        raise AssertionError(differences(driver, screen)) from None
    assert not screen.scrolls, "no picture reaches into the last row"


@pytest.mark.parametrize("look", LOOKS)
async def test_the_picture_of_the_screen_has_the_page_in_characters(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = FakeTerminal(*SIZE, CELL)
    async with page_on(screen, look, monkeypatch) as (driver, view):
        before = driver.rows
        paper = r"fill=\"#[ef][0-9a-f][ef][0-9a-f][ef][0-9a-f]\""
        svg = driver.app.export_screenshot()
        rows = min(view.size.height, view.virtual_size.height)
        assert svg.count("▀") > rows, "the words of the page"
        assert len(re.findall(paper, svg)) > rows, "its paper"
        assert driver.rows == before
        await shows_it(driver, screen)


@pytest.mark.parametrize("look", LOOKS)
async def test_the_page_is_where_nothing_covers_it_and_text_is_everywhere_else(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = FakeTerminal(*SIZE, CELL)
    async with page_on(screen, look, monkeypatch) as (driver, view):
        await shows_it(driver, screen)
        for key in ("end", "up", "up", "home", "down", "plus", "right", "right", "minus", "minus", "0"):
            await driver.press(key)
            await shows_it(driver, screen)
        await driver.press("right_square_bracket")
        await driver.see("Page 3 of 3")
        await shows_it(driver, screen)
        await driver.press("h", "c")  # back, and a notification over the page
        await driver.see("Passage copied.")
        placed = view.placed()
        assert placed is not None and not placed.cells[: view.region.bottom, view.region.x + 4 :].all()
        await shows_it(driver, screen)
        driver.app.clear_notifications()
        await driver.until(lambda: "Passage copied." not in driver.text)
        await shows_it(driver, screen)
        await driver.press("v")
        await driver.see("KP40-117 diaphragm, EPDM")
        await shows_it(driver, screen)
        await driver.press("v")
        await driver.see("Page 2 of 3 ·")
        await shows_it(driver, screen)
        await driver.press("escape")
        await driver.until(lambda: not isinstance(driver.app.screen, ViewerScreen))
        await shows_it(driver, screen)
        assert (screen.pixels() == -1).all() and not screen.kept


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("key", ["f1", "ctrl+p"])
async def test_under_a_dialog_the_page_is_half_blocks(look: Look, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = FakeTerminal(*SIZE, CELL)
    async with page_on(screen, look, monkeypatch) as (driver, view):
        await shows_it(driver, screen)
        await driver.press(key)
        await driver.until(lambda: not view.screen.is_active)
        await driver.until(lambda: (screen.pixels() == -1).all())
        rows = ["".join(segment.text for segment in view.render_line(y)) for y in range(view.size.height)]
        assert any("▀" in row for row in rows)
        await driver.press("escape")
        await driver.until(lambda: view.screen.is_active)
        await shows_it(driver, screen)


@pytest.mark.parametrize("look", LOOKS)
async def test_another_size_of_window_and_of_cells(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = FakeTerminal(*SIZE, CELL)
    session = ScriptedSession()
    async with page_on(screen, look, monkeypatch, session) as (driver, _):
        for columns, rows in ((100, 30), (40, 12), (80, 24)):
            screen.resize(columns, rows)
            await driver.pilot.resize_terminal(columns, rows)
            await driver.until(lambda width=columns: session.opened_pages[-1].drawn[-1].width == (width - 3) * CELL[0])
            screen.scrolls = 0  # what was under way when the window became smaller
            await shows_it(driver, screen)
        screen.cell = (8, 16)  # another font, as many cells
        screen.resize(80, 24)
        await driver.pilot.resize_terminal(80, 24)
        driver.app.on_resize()
        await driver.until(lambda: session.opened_pages[-1].drawn[-1].width == 77 * 8)
        await shows_it(driver, screen)


@pytest.mark.parametrize("look", LOOKS)
async def test_what_stays_is_not_sent_again(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = FakeTerminal(*SIZE, CELL)
    async with page_on(screen, look, monkeypatch) as (driver, view):
        await shows_it(driver, screen)
        sent = screen.pictures_sent
        driver.app.screen.refresh()  # all of the screen
        view.refresh()
        await driver.pilot.pause(0.1)
        await shows_it(driver, screen)
        assert screen.pictures_sent == sent, "nor is what is under it painted: that would erase it"


@pytest.mark.parametrize("look", LOOKS)
async def test_a_terminal_that_was_lent_to_another_program_gets_the_picture_again(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = FakeTerminal(*SIZE, CELL)
    async with page_on(screen, look, monkeypatch) as (driver, _):
        await shows_it(driver, screen)
        screen._over[:] = -1
        driver.app.app_resume_signal.publish(driver.app)
        await shows_it(driver, screen)


async def test_a_terminal_that_does_not_tell_its_cells_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "cell_pixels", lambda: None)
    async with running(flags={"ui": {"page_graphics": "sixel"}}) as driver:
        await driver.ask(QUESTION)
        await driver.press("tab", "enter")
        await driver.until(lambda: isinstance(driver.app.screen, ViewerScreen))
        await driver.press("n", "v")
        await driver.see("Page 2 of 3", "half blocks: the terminal does not say how large its cells are")
        assert "▀" in driver.text
