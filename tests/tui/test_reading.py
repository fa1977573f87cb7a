"""A document of the library, chunk by chunk."""

from __future__ import annotations

import pytest
from driving import running
from scripted_session import ScriptedSession

from edgerag.ui.tui.screens.chunks import ChunksScreen
from edgerag.ui.tui.screens.library import LibraryScreen


@pytest.mark.asyncio
async def test_enter_shows_the_chunks_of_a_document_and_escape_goes_back_to_the_list() -> None:
    async with running() as driver:
        await driver.press("f3")
        await driver.see("kestrel-p40-manual.md")
        place = next(y for y, row in enumerate(driver.rows) if "kestrel-p40-datasheet.pdf" in row)
        await driver.pilot.click(offset=(30, place))
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, ChunksScreen))
        await driver.see("chunk 1 of 4", "kestrel-p40-datasheet.pdf", "tokens", "page 1")
        await driver.press("n")
        await driver.press("n")
        await driver.see("chunk 3 of 4", "page 2", "KP40-117 diaphragm, EPDM")
        await driver.press("v")
        await driver.see("Page 2 of 3")
        await driver.press("p", "p", "p")
        await driver.see("chunk 4 of 4")
        await driver.press("escape")
        assert isinstance(driver.app.screen, LibraryScreen)


@pytest.mark.asyncio
async def test_a_double_click_on_a_document_shows_its_chunks() -> None:
    async with running() as driver:
        await driver.press("f3")
        await driver.see("kestrel-p40-manual.md")
        y = next(y for y, row in enumerate(driver.rows) if "kestrel-p40-manual.md" in row)
        await driver.pilot.click(offset=(driver.rows[y].index("kestrel"), y), times=2)
        await driver.until(lambda: isinstance(driver.app.screen, ChunksScreen))
        await driver.see("kestrel-p40-manual.md")


@pytest.mark.asyncio
async def test_a_document_that_another_program_removed_meanwhile_is_a_sentence() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.press("f3")
        await driver.see("kestrel-p40-manual.md")
        session.library.clear()
        await driver.press("enter")
        await driver.until(lambda: "no text to read" in driver.notifications)
        assert isinstance(driver.app.screen, LibraryScreen)
