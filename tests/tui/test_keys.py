"""Keys: named, shown, changed, kept; and every one of them does something on every screen."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from driving import Driver, running
from scripted_session import ScriptedSession
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from edgerag.errors import UsageError
from edgerag.settings.effective import all_settings
from edgerag.ui.tui.keymap_file import KeymapFile
from edgerag.ui.tui.keys import Shortcut, all_shortcuts, check_key, key_name, keyed_classes, long_key
from edgerag.ui.tui.screens.help import HelpDialog
from edgerag.ui.tui.screens.keymap import KeyDialog, KeymapScreen
from edgerag.ui.tui.screens.library import LibraryScreen
from edgerag.ui.tui.screens.settings import SettingsScreen

SHORTCUTS = all_shortcuts()


def shortcut(name: str) -> Shortcut:
    return next(one for one in SHORTCUTS if one.id == name)


def test_every_binding_of_ours_has_a_name_of_its_own_and_says_what_it_does() -> None:
    names: list[str] = []
    for cls in keyed_classes():
        for binding in cls.__dict__["BINDINGS"]:
            assert isinstance(binding, Binding) and binding.id, f"{cls.__name__} must derive from Keyed first"
            assert binding.description, binding
        names += {binding.id for binding in cls.__dict__["BINDINGS"]}
    assert len(names) == len(set(names))


def test_no_two_keys_of_a_part_say_the_same() -> None:
    said: dict[tuple[str, str], str] = {}
    for one in SHORTCUTS:
        assert said.setdefault((one.scope, one.description), one.id) == one.id, one.description


def test_every_class_with_keys_is_known() -> None:
    """One that does not derive from Keyed has keys that nobody can change."""
    known = {cls.__name__ for cls in keyed_classes()}
    package = Path(__file__).parent.parent.parent / "edgerag" / "ui" / "tui"
    for file in package.rglob("*.py"):
        name = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("class "):
                name = line[6:].partition("(")[0].rstrip(":")
            if line.startswith("    BINDINGS:"):
                assert name in known, f"{name} in {file.name}"


@pytest.mark.parametrize(
    ("name", "key", "why"),
    [
        ("library.mark", "d", "Library, remove"),
        ("library.mark", "f2", "Everywhere, add documents"),
        ("app.library", "x", "typed into the question"),
        ("ask.new", "ctrl+c", "copies"),
        ("ask.new", "pageup", "Question box"),
        ("conversation.copy", "escape", "Ask"),
    ],
)
def test_a_key_that_is_taken_is_refused_and_says_by_what(name: str, key: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check_key(shortcut(name), key, {}, SHORTCUTS)


def test_keys_of_screens_that_never_meet_may_be_the_same() -> None:
    check_key(shortcut("library.mark"), "n", {}, SHORTCUTS)  # which the passage viewer has
    check_key(shortcut("library.mark"), "d", {"library.remove": "x"}, SHORTCUTS)  # given away before


def test_a_file_with_nonsense_locks_nobody_out(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('[keys]\n"viewer.copy" = "y"\n"viewer.fly" = "f"\n"library.mark" = "d"\n"library.reload" = 3\n')
    keymap = KeymapFile(file).load()
    assert keymap.keys == {"viewer.copy": "y"}
    assert len(keymap.troubles) == 3
    file.write_text("[keys\n")
    assert KeymapFile(file).load().keys == {}
    assert KeymapFile(tmp_path / "absent.toml").load().troubles == ()


def test_a_default_that_another_has_taken_is_not_taken_back(tmp_path: Path) -> None:
    file = KeymapFile(tmp_path / "keys.toml")
    file.change(shortcut("library.mark"), "m", SHORTCUTS)
    file.change(shortcut("library.reload"), "space", SHORTCUTS)
    with pytest.raises(UsageError, match="Space is taken"):
        file.reset(shortcut("library.mark"), SHORTCUTS)
    file.reset(shortcut("library.reload"), SHORTCUTS)
    assert file.reset(shortcut("library.mark"), SHORTCUTS).keys == {}


async def test_a_key_is_changed_in_the_program_works_at_once_and_is_kept() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.press("f9")
        await driver.see("Keys", "Add documents", "Enter changes the key")
        await driver.press("slash", *"list, remove", "enter")
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, KeyDialog))
        await driver.press("f2")
        await driver.see("F2 is taken")
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, KeyDialog))
        await driver.press("ctrl+b")
        await driver.see("List, remove documents: Ctrl+B")
        await driver.press("escape", "escape")
        await driver.press("f3")
        assert not isinstance(driver.app.screen, LibraryScreen)
        await driver.press("ctrl+b")
        await driver.until(lambda: isinstance(driver.app.screen, LibraryScreen))
        await driver.press("f1")
        await driver.see("On this screen", "Ctrl+B")
    file = session.locations.home / "keys.toml"
    assert tomllib.loads(file.read_text()) == {"keys": {"app.library": "ctrl+b"}}
    async with running(session) as driver:
        await driver.press("ctrl+b")
        await driver.until(lambda: isinstance(driver.app.screen, LibraryScreen))
        await driver.press("f9", "R")
        await driver.see("All keys are as they come")
        await driver.press("escape", "f3")
        await driver.until(lambda: isinstance(driver.app.screen, LibraryScreen))


@pytest.mark.parametrize(
    ("key", "words"), [("", "Send"), ("f3", "Mark"), ("f8", "Changed only|Only what is not"), ("f9", "that it comes")]
)
async def test_help_begins_with_the_screen_that_is_open(key: str, words: str) -> None:
    async with running(size=(100, 60)) as driver:
        await driver.press(*([key] if key else []), "f1")
        await driver.until(lambda: isinstance(driver.app.screen, HelpDialog))
        here = str(driver.app.screen.query_one(Static).content).partition("Everywhere")[0]
        assert "On this screen" in here
        assert any(word in here for word in words.split("|"))


SCREENS = {
    "ask": (),
    "library": ("f3",),
    "check": ("f4",),
    "index": ("f5",),
    "machine": ("f6",),
    "models": ("f7",),
    "settings": ("f8",),
    "keys": ("f9",),
}


async def active_keys(driver: Driver) -> list[str]:
    """Those of our own bindings, in the order of their names."""
    bindings = driver.app.screen.active_bindings
    return sorted(key for key, active in bindings.items() if active.binding.id and active.enabled)


async def reopen(driver: Driver, name: str, screen: Screen[Any]) -> None:
    """``screen``, or a new one like it where the last key has left it or opened another over it."""
    while len(driver.app.screen_stack) > 1 and driver.app.screen is not screen:
        driver.app.pop_screen()
    if type(driver.app.screen) is not type(screen):
        await driver.pilot.press(*SCREENS[name])
    await driver.pilot.pause()


@pytest.mark.parametrize("name", SCREENS)
async def test_every_key_of_every_screen_does_no_harm_and_is_in_the_palette(name: str) -> None:
    async with running(size=(100, 40)) as driver:
        await driver.press(*SCREENS[name])
        screen = driver.app.screen
        titles = {command.title for command in driver.app.get_system_commands(screen)}
        for active in screen.active_bindings.values():
            binding = active.binding
            if binding.id and active.enabled and active.node is not driver.app:
                assert (binding.tooltip or binding.description) in titles, binding.id
        for key in await active_keys(driver):
            if key in ("ctrl+q", "ctrl+p"):
                continue
            await reopen(driver, name, screen)
            await driver.press(key)
            assert driver.app.is_running, key
            assert "broke" not in driver.notifications, (key, driver.notifications)
            assert "broke" not in driver.text, key


async def test_the_palette_has_everything_and_each_entry_works() -> None:
    async with running(size=(100, 40)) as driver:
        screen = driver.app.screen
        commands = {command.title: command for command in driver.app.get_system_commands(screen)}
        assert {f"Setting: {setting.name}" for setting in all_settings()} <= set(commands)
        assert {"Settings", "Keys", "Help", "Quit", "Theme: light", "Use model: qwen3-0.6b"} <= set(commands)
        for title, command in commands.items():
            if title in ("Quit", "Picture of the screen") or (title.startswith("Setting: ") and "mode" not in title):
                continue
            await reopen(driver, "ask", screen)
            result = command.callback()
            if result is not None:
                await result
            await driver.pilot.pause()
            assert "broke" not in driver.notifications, (title, driver.notifications)


async def test_the_palette_finds_settings() -> None:
    async with running() as driver:
        await driver.press("ctrl+p", *"answer_tokens")
        await driver.see("Setting: generation.answer_tokens")
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, SettingsScreen))
        await driver.see("longest answer")


def test_keys_are_named_as_people_call_them() -> None:
    names = {"question_mark": "?", "ctrl+j": "Ctrl+J", "f1": "F1", "pageup": "PgUp", "x": "x", "space": "Space"}
    names |= {"left_square_bracket": "[", "plus": "+", "minus": "-", "equals_sign": "=", "ctrl+underscore": "Ctrl+_"}
    assert {key: key_name(key) for key in names} == names


@pytest.mark.parametrize("sign", "[]=-+;'\\`,.ä")
def test_a_sign_that_is_typed_cannot_also_do_something(sign: str) -> None:
    with pytest.raises(UsageError, match="typed into the question"):
        check_key(shortcut("ask.new"), long_key(sign), {}, SHORTCUTS)


async def test_the_keys_screen_can_be_left() -> None:
    async with running() as driver:
        await driver.press("f9", "escape")
        assert not isinstance(driver.app.screen, KeymapScreen)


@pytest.mark.parametrize(
    "key", ["", ",", "a,,b", "ctrl+", "escpae", "nonsense+f", "ctrl+?", "\\u001b", "x" * 9999, "[bold]"]
)
def test_what_no_terminal_sends_is_told_and_takes_no_key_away(tmp_path: Path, key: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(f'[keys]\n"viewer.copy" = "{key}"\n')
    keymap = KeymapFile(file).load()
    assert keymap.keys == {}
    assert len(keymap.troubles) == 1


def test_every_key_that_comes_with_the_program_and_every_sign_can_be_chosen() -> None:
    copy = shortcut("viewer.copy")
    signs = [long_key(chr(code)) for code in range(0x21, 0x7F)] + ["é", "ж", "日", "ctrl+shift+f6", "alt+left"]
    for key in {*signs, *(key for one in SHORTCUTS for key in one.keys)}:
        try:
            check_key(copy, key, {}, SHORTCUTS)
        except UsageError as error:
            assert "No key is called" not in str(error), key


@pytest.mark.parametrize("text", ["keys = 5", 'keys = "viewer.copy"', 'keys = ["viewer.copy"]', "[[keys]]", "[keys"])
def test_no_key_is_written_into_a_damaged_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(text)
    for work in (
        KeymapFile(file).reset_all,
        lambda: KeymapFile(file).change(shortcut("viewer.copy"), "ctrl+b", SHORTCUTS),
        lambda: KeymapFile(file).reset(shortcut("viewer.copy"), SHORTCUTS),
    ):
        with pytest.raises(UsageError, match=r"keys\.toml"):
            work()
    assert file.read_text() == text
