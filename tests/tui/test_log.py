"""What went wrong can be read again after its notification is gone."""

from __future__ import annotations

import pytest
from driving import Driver, running
from scripted_session import ScriptedSession

from edgerag.errors import StorageFull


async def open_log(driver: Driver) -> None:
    commands = {command.title: command for command in driver.app.get_system_commands(driver.app.screen)}
    commands["Log"].callback()
    await driver.see("What went wrong since the start")


@pytest.mark.asyncio
async def test_the_log_has_what_went_wrong_in_every_kind_of_work() -> None:
    session = ScriptedSession()
    session.failures["warm"] = StorageFull("No room [bold]here[/bold].", remedy="Make some.")
    session.failures["ask"] = RuntimeError("a fault of ours")
    session.failures["ingest"] = StorageFull("The disk is full.", remedy="Make room.")
    async with running(session, size=(120, 50)) as driver:
        await driver.ask("Why?")
        await driver.press("f2")
        await driver.pilot.pause()
        await driver.press("ctrl+u", *"/tmp", "enter")
        await driver.see("The disk is full.")
        await driver.press("escape")
        assert driver.app.ingest_view.problem is not None
        driver.app.show_problem(driver.app.ingest_view.problem)  # as where its end was not seen
        driver.app.clear_notifications()
        await open_log(driver)
        await driver.see("No room [bold]here[/bold].", "a fault of ours", "The disk is full.")
        assert len(driver.app.problem_log.noted) == 3, "each once"
        newest = driver.text.index("The disk is full.")
        assert newest < driver.text.index("a fault of ours") < driver.text.index("No room")
        assert "scripted_session.py:" in driver.text, "where in the program"
        await driver.press("c")
        assert "a fault of ours" in driver.app.clipboard
        await driver.press("escape")
        await driver.ask("And now?")  # the session goes on
        assert len(driver.ask_screen._conversation.exchanges) == 2


@pytest.mark.asyncio
async def test_where_nothing_went_wrong_the_log_says_so() -> None:
    async with running() as driver:
        await open_log(driver)
        await driver.see("Nothing.")
