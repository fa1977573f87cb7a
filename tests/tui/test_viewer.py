"""Opening a source: the right document, the right row, the passage highlighted."""

from __future__ import annotations

from driving import Driver, running
from scripted_session import MANUAL, ScriptedSession, plain_document, source

from edgerag.ui.tui.screens.viewer import ViewerScreen
from edgerag.ui.tui.widgets.document_text import DocumentText

QUESTION = "How often is the diaphragm replaced?"


def quoted(driver: Driver) -> str:
    """The text that stands on the screen in the colours of a quote."""
    widget = driver.app.screen.query_one(DocumentText)
    background = widget.get_component_rich_style("document--quote").bgcolor
    strips = driver.app.screen._compositor.render_strips()
    return "".join(
        segment.text
        for strip in strips
        for segment in strip
        if segment.style is not None and segment.style.bgcolor == background and segment.style.bold
    )


def row_with(driver: Driver, words: str) -> str:
    return next(row for row in driver.rows if words in row)


async def open_first(driver: Driver) -> None:
    await driver.ask(QUESTION)
    await driver.press("tab", "enter")
    await driver.until(lambda: isinstance(driver.app.screen, ViewerScreen))
    await driver.see("Every 2,000 hours")


async def test_enter_on_a_source_opens_its_passage_highlighted_at_its_line() -> None:
    async with running(size=(120, 20)) as driver:
        await open_first(driver)
        assert quoted(driver).strip().startswith("- Every 2,000 hours: replace the diaphragm (part KP40-117)")
        number, mark, *_ = row_with(driver, "Every 2,000 hours").split()
        assert number == str(MANUAL[: MANUAL.index("- Every 2,000")].count("\n") + 1)
        assert mark == "▌"
        assert row_with(driver, "Every week").split()[1] == "▌", "the rest of the passage is marked too"
        assert "▌" not in row_with(driver, "## Storage")
        assert "lines 18-20 › Maintenance" in driver.text
        assert "[1] of 3" in driver.text


async def test_a_paged_document_says_the_page() -> None:
    async with running() as driver:
        await open_first(driver)
        await driver.press("n")
        await driver.see("[2] of 3", "page 2", "KP40-117 diaphragm, EPDM")
        rows = driver.rows
        page = next(at for at, row in enumerate(rows) if "─ page 2 ─" in row)
        quote = next(at for at, row in enumerate(rows) if "KP40-117 diaphragm, EPDM" in row)
        next_page = next(at for at, row in enumerate(rows) if "─ page 3 ─" in row)
        assert page < quote < next_page
        assert quoted(driver).strip() == "KP40-117 diaphragm, EPDM"


async def test_next_and_previous_walk_round_and_escape_goes_back() -> None:
    async with running() as driver:
        await open_first(driver)
        await driver.press("p")
        await driver.see("[3] of 3", "lines 24-25")
        await driver.press("n")
        await driver.see("[1] of 3")
        await driver.press("c")
        assert driver.app.clipboard.startswith("- Every week")
        await driver.press("escape")
        assert driver.app.screen is driver.ask_screen


async def test_a_source_far_down_a_long_document_is_scrolled_to() -> None:
    lines = [f"Line {number} of the log, nothing happened." for number in range(1, 20_001)]
    lines[15_000] = "The pump stopped with E-1042."
    document = plain_document("log", "\n".join(lines), "text/plain")
    session = ScriptedSession(documents={"/docs/log.txt": document})
    quote = lines[15_000]
    session.sources = (source("/docs/log.txt", document, quote, quote, number=1, document_id=1),)
    async with running(session, size=(80, 24)) as driver:
        await driver.ask("Why did it stop?")
        await driver.press("ctrl+o")
        await driver.see(quote)
        assert row_with(driver, quote).split()[0] == "15001"
        assert quoted(driver).strip() == quote
        await driver.pilot.resize_terminal(60, 20)
        await driver.see(quote)


async def test_a_click_on_a_mark_in_the_answer_opens_that_source() -> None:
    async with running() as driver:
        await driver.ask(QUESTION)
        row = next(at for at, text in enumerate(driver.rows) if "data sheet [2]" in text)
        await driver.pilot.click(offset=(driver.rows[row].index("[2]") + 1, row))
        await driver.until(lambda: isinstance(driver.app.screen, ViewerScreen))
        await driver.see("[2] of 3")


async def test_a_document_that_was_removed_since_is_a_sentence() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask(QUESTION)
        session.library.clear()
        await driver.press("ctrl+o")
        await driver.see("no longer in the library", "Every 2,000 hours")


async def test_a_document_that_changed_since_is_told_and_the_passage_found_again() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask(QUESTION)
        session.library["/docs/kestrel-p40-manual.md"] = plain_document("manual", "A new beginning.\n\n" + MANUAL)
        await driver.press("ctrl+o")
        await driver.see("the passage stands elsewhere now")
        assert row_with(driver, "Every 2,000 hours").split()[0] == "22"
        await driver.press("escape")
        session.library["/docs/kestrel-p40-manual.md"] = plain_document("manual", "All is new.\n")
        await driver.press("ctrl+o")
        await driver.see("these words are no longer in it")


async def test_document_text_can_be_selected() -> None:
    async with running(size=(60, 20)) as driver:
        await open_first(driver)
        driver.app.screen.text_select_all()
        await driver.pilot.pause()
        assert MANUAL.strip() in (driver.app.screen.get_selected_text() or "")
