"""Footer and palette offer an action only where it does something."""

from __future__ import annotations

import threading

import pytest
from driving import Driver, running
from scripted_session import ScriptedSession

from edgerag.ui.tui.screens.library import LibraryScreen
from edgerag.ui.tui.screens.viewer import ViewerScreen
from edgerag.ui.tui.widgets.conversation import Conversation


def offered(driver: Driver) -> set[str]:
    """The names of all bindings that can be pressed now."""
    return {active.binding.id or "" for active in driver.app.screen.active_bindings.values()}


def in_palette(driver: Driver) -> set[str]:
    return {command.title for command in driver.app.get_system_commands(driver.app.screen)}


OF_AN_ANSWER = {
    "conversation.copy",
    "conversation.copy_with_sources",
    "conversation.do_edit",
    "conversation.do_regenerate",
    "conversation.do_why",
    "conversation.choose_minus_1",
    "ask.regenerate",
    "ask.why",
}
OF_SOURCES = {"conversation.peek_1", "conversation.next_mark_1", "conversation.open_peeked", "ask.open_first"}
COMMANDS = {
    "Edit and ask again",
    "Copy answer",
    "Copy with sources",
    "Where the time went",
    "Rename conversation",
    "Delete conversation",
    "Export conversation",
}


@pytest.mark.asyncio
async def test_what_is_done_with_an_answer_is_offered_once_there_is_one() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        driver.ask_screen.query_one(Conversation).focus()
        await driver.pilot.pause()
        assert not offered(driver) & (OF_AN_ANSWER | OF_SOURCES)
        assert not in_palette(driver) & COMMANDS
        assert "Copy" not in driver.rows[-1]
        go_on = threading.Event()
        session.before_delta = lambda index: go_on.wait(60) if index == 3 else None
        await driver.type_question("When?")
        await driver.press("escape", "enter")
        driver.ask_screen.query_one(Conversation).focus()
        await driver.until(lambda: "conversation.copy" in offered(driver))  # it copies what there is
        assert "Copy" in driver.rows[-1]
        assert "conversation.do_why" not in offered(driver)
        go_on.set()
        await driver.until(lambda: not driver.busy)
        assert offered(driver) >= OF_AN_ANSWER | OF_SOURCES
        assert in_palette(driver) >= COMMANDS
        assert "Copy" in driver.rows[-1]
        assert "conversation.peek_9" not in offered(driver)
        assert "conversation.version_1" not in offered(driver)
        assert "conversation.thought" not in offered(driver)
        session.before_delta = lambda _: None
        await driver.press("r")
        await driver.until(lambda: not driver.busy)
        driver.ask_screen.query_one(Conversation).focus()
        await driver.pilot.pause()
        assert "conversation.version_1" in offered(driver)
        await driver.press("ctrl+n")
        driver.ask_screen.query_one(Conversation).focus()
        await driver.pilot.pause()
        assert not offered(driver) & (OF_AN_ANSWER | OF_SOURCES)


@pytest.mark.asyncio
async def test_in_an_empty_library_nothing_can_be_marked_or_removed() -> None:
    of_documents = {"library.mark", "library.remove", "library.search", "document_list.move_1"}
    async with running(ScriptedSession(documents={})) as driver:
        await driver.press("f3")
        await driver.until(lambda: isinstance(driver.app.screen, LibraryScreen))
        assert not offered(driver) & of_documents
    async with running() as driver:
        await driver.press("f3")
        await driver.until(lambda: isinstance(driver.app.screen, LibraryScreen) and driver.app.screen.count)
        assert offered(driver) >= of_documents


@pytest.mark.asyncio
async def test_only_pages_of_a_pdf_are_offered_as_pictures() -> None:
    async with running() as driver:
        await driver.ask("When?")
        await driver.press("ctrl+o")
        await driver.until(lambda: isinstance(driver.app.screen, ViewerScreen))
        screen = driver.app.screen
        assert isinstance(screen, ViewerScreen)
        seen = set()
        for _ in range(3):
            is_pdf = screen.source.hit.chunk.path.endswith(".pdf")
            await driver.until(lambda is_pdf=is_pdf: ("pictured.switch" in offered(driver)) == is_pdf)
            seen.add(is_pdf)
            await driver.press("n")
        assert seen == {True, False}


@pytest.mark.asyncio
async def test_only_what_is_not_at_its_default_can_go_back_to_it() -> None:
    async with running() as driver:
        await driver.press("f9")
        await driver.see("Add documents")
        assert not offered(driver) & {"keymap.reset", "keymap.reset_all"}
        await driver.press("escape", "f8")
        await driver.see("[library]")
        assert "setting_row.reset" not in offered(driver)


@pytest.mark.asyncio
async def test_without_threads_none_is_opened_or_renamed() -> None:
    async with running() as driver:
        await driver.press("ctrl+t")
        await driver.until(lambda: driver.ask_screen._threads.is_in_list)
        of_a_thread = {"thread_list.open", "threads_pane.do_rename", "threads_pane.do_delete", "threads_pane.do_export"}
        assert not offered(driver) & of_a_thread
        await driver.press("escape")
        await driver.ask("When?")
        await driver.press("ctrl+t")
        await driver.until(lambda: offered(driver) >= of_a_thread)
