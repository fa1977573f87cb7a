"""The settings screen: found, changed in place, refused beside the field, kept in the file."""

from __future__ import annotations

import pytest
from driving import Driver, running
from scripted_session import ScriptedSession

from edgerag.errors import StorageFull
from edgerag.ui.tui.screens.settings import SettingsScreen
from edgerag.ui.tui.widgets.setting_row import SettingRow


async def open_settings(driver: Driver, search: str = "") -> None:
    driver.app.action_settings(search)
    await driver.until(lambda: isinstance(driver.app.screen, SettingsScreen))
    await driver.until(lambda: isinstance(driver.app.focused, SettingRow))


def row(driver: Driver) -> SettingRow:
    focused = driver.app.focused
    assert isinstance(focused, SettingRow)
    return focused


async def replace_value(driver: Driver, text: str) -> None:
    await driver.press("enter", "home", "shift+end", "delete", *text)


async def test_every_setting_is_there_in_its_group_with_value_and_origin() -> None:
    async with running(size=(140, 80)) as driver:
        await driver.press("f8")
        await driver.see("[library]", "[memory]", "[generation]", "budget", "256 MB", "default")
        names = [each.effective.setting.name for each in driver.app.screen.query(SettingRow)]
        assert names == [each.setting.name for each in driver.app.preferences.sources.effective()]


async def test_a_value_is_typed_kept_and_felt() -> None:
    session = ScriptedSession()
    session.locations.home.mkdir()
    session.locations.config_file.write_text("# mine\n[retrieval]\nsource_count = 5  # few\n")
    async with running(session) as driver:
        await open_settings(driver, "source_count")
        await driver.see("5", "file")
        await replace_value(driver, "7")
        await driver.press("enter")
        await driver.until(lambda: session.settings.retrieval.source_count == 7)
        assert session.locations.config_file.read_text() == "# mine\n[retrieval]\nsource_count = 7  # few\n"
        assert not row(driver).is_editing
        await driver.press("delete")
        await driver.until(lambda: session.settings.retrieval.source_count == 9)
        await driver.see("9", "default")


async def test_what_cannot_be_is_said_beside_the_field_and_changes_nothing() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await open_settings(driver, "source_count")
        await replace_value(driver, "99")
        await driver.see("not between 1 and 50")
        await driver.press("enter")
        await driver.see("not between 1 and 50")
        await driver.press("escape")
        await driver.until(lambda: "not between" not in driver.text)
        assert not row(driver).is_editing
        assert session.settings.retrieval.source_count == 9
        assert not session.locations.config_file.exists()


async def test_a_name_that_no_library_can_have_is_refused_beside_the_field() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await open_settings(driver, "library.name")
        await replace_value(driver, "")
        await driver.press("enter")
        await driver.see("'' is not a library name")
        assert not session.locations.config_file.exists()


async def test_choices_are_chosen_and_switches_turned() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await open_settings(driver, "generation.mode")
        await driver.press("enter", "down", "enter")
        await driver.until(lambda: session.settings.generation.mode == "instant")
        await driver.until(lambda: driver.app.facts.answers == "instant")
        await driver.press("escape")
        await open_settings(driver, "ingest.hidden")
        await driver.press("space")
        await driver.until(lambda: session.settings.ingest.hidden)


async def test_search_goes_over_names_meanings_and_origins() -> None:
    async with running() as driver:
        await open_settings(driver)
        await driver.press("slash", *"greedy", "enter")
        visible = [each.effective.setting.name for each in driver.app.screen.query(SettingRow) if each.display]
        assert visible == ["generation.temperature"]
        assert "[retrieval]" not in driver.text
        await driver.press("escape")
        await driver.see("[library]")
        assert isinstance(driver.app.screen, SettingsScreen)
        await driver.press("escape")
        await driver.until(lambda: not isinstance(driver.app.screen, SettingsScreen))


async def test_the_mouse_edits_too() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await open_settings(driver, "ingest.polite")
        await driver.pilot.click(row(driver))
        await driver.until(lambda: session.settings.ingest.polite)


async def test_what_a_variable_overrides_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGERAG_GENERATION_ANSWER_TOKENS", "99")
    session = ScriptedSession()
    async with running(session) as driver:
        await open_settings(driver, "answer_tokens")
        await driver.see("99", "environment", "EDGERAG_GENERATION_ANSWER_TOKENS")
        await replace_value(driver, "300")
        await driver.press("enter")
        await driver.see("the variable EDGERAG_GENERATION_ANSWER_TOKENS says '99'")
        assert "answer_tokens = 300" in session.locations.config_file.read_text()


async def test_a_restart_is_said_where_one_is_needed() -> None:
    async with running() as driver:
        await open_settings(driver, "memory.budget")
        await driver.see("holds after a restart")
        await replace_value(driver, "512 MB")
        await driver.press("enter")
        await driver.until(lambda: "memory.budget: after a restart" in driver.notifications)


async def test_a_file_that_cannot_be_written_is_said_beside_the_field() -> None:
    session = ScriptedSession()
    session.failures["adopt"] = StorageFull("The disk is full.")
    async with running(session) as driver:
        await open_settings(driver, "ingest.hidden")
        await driver.press("enter")
        await driver.see("The disk is full.")


async def test_it_fits_80_columns() -> None:
    async with running(size=(80, 24)) as driver:
        await open_settings(driver)
        await driver.see("[library]", "library in use", "Change", "Search", "Back")
        assert all(len(line) <= 80 for line in driver.rows)
