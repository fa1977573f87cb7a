"""Keys that come in one burst take effect in the order in which they were pressed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from driving import Driver, running
from scripted_session import ScriptedSession
from textual._xterm_parser import XTermParser
from textual.screen import Screen
from textual.widgets import Input

from edgerag.types import ThreadHead
from edgerag.ui.tui.app import EdgeragApp
from edgerag.ui.tui.screens.library import LibraryScreen

_CTRL_A, _CTRL_E, _CTRL_U, _F2, _F3, _LEFT, _DELETE = "\x01", "\x05", "\x15", "\x1bOQ", "\x1bOR", "\x1b[D", "\x1b[3~"


def _type(app: EdgeragApp, typed: str) -> None:
    for event in XTermParser().feed(typed):
        app.post_message(event)


async def burst(driver: Driver, typed: str) -> None:
    """All that a terminal sends, before any of it is handled."""
    _type(driver.app, typed)
    await driver.pilot.pause()


def _path(driver: Driver) -> str:
    return driver.app.screen.query_one(Input).value


@pytest.mark.asyncio
async def test_what_is_typed_behind_a_key_that_deletes_stays(tmp_path: Path) -> None:
    async with running() as driver:
        await driver.press("f2")
        await burst(driver, f"{_CTRL_U}{tmp_path}")
        assert _path(driver) == str(tmp_path)


@pytest.mark.asyncio
async def test_what_is_pasted_behind_a_key_that_deletes_stays(tmp_path: Path) -> None:
    async with running() as driver:
        await driver.press("f2")
        await burst(driver, f"{_CTRL_U}\x1b[200~{tmp_path}\x1b[201~")
        assert _path(driver) == str(tmp_path)


@pytest.mark.asyncio
async def test_keys_for_a_dialog_are_not_typed_below_it(tmp_path: Path) -> None:
    async with running() as driver:
        await burst(driver, f"before{_F2}{_CTRL_U}{tmp_path}")
        assert _path(driver) == str(tmp_path)
        assert driver.ask_screen._question.text == "before"


@pytest.mark.asyncio
async def test_keys_behind_the_end_of_a_dialog_belong_to_the_screen_below() -> None:
    async with running() as driver:
        await burst(driver, f"one{_F2}\r")  # no folder of that name: the dialog says so and stays
        await burst(driver, "\x1b[27u two")
        assert driver.ask_screen._question.text == "one two"


@pytest.mark.asyncio
async def test_keys_for_a_screen_wait_for_it() -> None:
    async with running() as driver:
        await burst(driver, f"{_F3}/words of it")
        assert isinstance(driver.app.screen, LibraryScreen)
        assert driver.app.screen.query_one(Input).value == "words of it"


@pytest.mark.asyncio
async def test_keys_for_a_dialog_that_needs_a_look_at_the_disk_first_wait_for_it() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask("When?")
        head = session.kept.head

        def slow_head(thread_id: int) -> ThreadHead:
            time.sleep(0.3)
            return head(thread_id)

        session.kept.head = slow_head  # type: ignore[method-assign]
        await driver.press("ctrl+t")
        await driver.until(lambda: driver.ask_screen._threads.is_in_list)
        await burst(driver, f"r{_CTRL_U}xdr\r")  # in the list, x would export and d delete
        await driver.until(lambda: session.kept.heads(library="default")[0].title == "xdr")
        assert driver.app.screen is driver.ask_screen


@pytest.mark.asyncio
async def test_keys_that_move_and_letters_in_turn() -> None:
    async with running() as driver:
        await burst(driver, f"ab{_CTRL_A}cd{_CTRL_E}ef{_LEFT}{_DELETE}g\nh")
        assert driver.ask_screen._question.text == "cdabeg\nh"


@pytest.mark.asyncio
async def test_a_question_and_the_next_one_in_one_burst() -> None:
    async with running() as driver:
        await burst(driver, "First?\rSecond?")
        await driver.until(lambda: not driver.busy)
        assert [each.question for each in driver.ask_screen._conversation.exchanges] == ["First?"]
        assert driver.ask_screen._question.text == "Second?"


@pytest.mark.asyncio
async def test_keys_typed_before_the_first_screen_is_ready_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    first_screen = EdgeragApp.get_default_screen

    def typed_meanwhile(app: EdgeragApp) -> Screen[None]:
        _type(app, "early words")
        return first_screen(app)

    monkeypatch.setattr(EdgeragApp, "get_default_screen", typed_meanwhile)
    async with running() as driver:
        assert driver.ask_screen._question.text == "early words"
