"""Every key of the program, and changing it: press Enter on a line, then the key that it is to be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from edgerag.ui.place import short_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.keymap_file import Keymap, key_names
from edgerag.ui.tui.keys import Shortcut, all_shortcuts
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SessionDialog, SideScreen

_KEYS_CELLS = 22
_NARROW_CELLS = 48  # below, what a key does stands under it
_NARROW_INDENT = 4
_LEAST_WORDS = 10  # cells
_OPTION_EDGES = 2  # cells of padding


class KeyDialog(SessionDialog[str | None]):
    """Waits for one key; Esc leaves things as they are, and can therefore not be chosen here."""

    def __init__(self, shortcut: Shortcut) -> None:
        super().__init__()
        self._shortcut = shortcut

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content.styled(f"{self._shortcut.title}: {self._shortcut.description}", "bold"))
            yield Static(Content("Press the key that does this from now on. Esc leaves it as it is."))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        self.dismiss(None if event.key == "escape" else event.key)


class KeymapScreen(SideScreen):
    """Grouped by the screens; what is not as it comes is marked."""

    KEYS_TITLE = "Keys"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back"),
        Binding("delete,r", "reset", "Default", key_display="Del", tooltip="The key that it comes with"),
        Binding("R", "reset_all", "All defaults", tooltip="All keys as they come"),
        Binding("slash", "search", "Search"),
    ]
    AUTO_FOCUS = "OptionList"

    def __init__(self) -> None:
        super().__init__()
        self._title = Static(classes="title")
        self._search = Input(placeholder="Search keys and what they do", id="search", compact=True)
        self._list = OptionList(markup=False)
        self._notice = Static(classes="notice")
        self._shortcuts: list[Shortcut] = []
        self._shown: dict[str, Shortcut] = {}

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._search
        yield self._list
        yield self._notice
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        file = self.edgerag.preferences.keymap_file.file
        self._title.update(Content.assemble(("Keys", "bold"), "  ", shown.line(short_path(str(file)), 200)))
        self._say(Content("Enter changes the key of a line."))
        self._shortcuts = [shortcut for shortcut in all_shortcuts() if shortcut.description]
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        at = self._list.highlighted
        width = max(1, self._list.scrollable_content_region.width - _OPTION_EDGES)
        keymap = self.edgerag.keymap
        words = self._search.value.casefold().split()
        self._list.clear_options()
        self._shown = {}
        title = ""
        for shortcut in self._shortcuts:
            keys = key_names(shortcut.keys_in(keymap))
            text = f"{shortcut.title} {shortcut.description} {keys} {shortcut.id}".casefold()
            if not all(word in text for word in words):
                continue
            if shortcut.title != title:
                title = shortcut.title
                self._list.add_option(Option(Content.styled(title, "bold $text-primary"), disabled=True))
            self._shown[shortcut.id] = shortcut
            self._list.add_option(Option(_row(shortcut, keys, width, changed=shortcut.id in keymap), id=shortcut.id))
        if self._shown:
            self._list.highlighted = min(at or 1, self._list.option_count - 1)

    @property
    def _at_cursor(self) -> Shortcut | None:
        option = self._list.highlighted_option
        return self._shown.get(option.id or "") if option else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        match action:
            case "reset":
                return self._at_cursor is not None and self._at_cursor.id in self.edgerag.keymap
            case "reset_all":
                return bool(self.edgerag.keymap)
            case _:
                return True

    def on_option_list_option_highlighted(self) -> None:
        self.refresh_bindings()

    def on_option_list_option_selected(self) -> None:
        shortcut = self._at_cursor
        if shortcut is not None:
            self.start(self._ask_key(shortcut), failed=self._fail, opens=True)

    async def _ask_key(self, shortcut: Shortcut) -> None:
        key = await self.app.push_screen_wait(KeyDialog(shortcut))
        if key is not None:
            file = self.edgerag.preferences.keymap_file
            self._take(await asyncio.to_thread(file.change, shortcut, key, self._shortcuts))
            self._say(Content(f"{shortcut.title}, {shortcut.description}: {key_names([key])}"))

    def action_reset(self) -> None:
        shortcut = self._at_cursor
        if shortcut is not None:
            self.start(self._reset(shortcut), failed=self._fail)

    async def _reset(self, shortcut: Shortcut) -> None:
        file = self.edgerag.preferences.keymap_file
        self._take(await asyncio.to_thread(file.reset, shortcut, self._shortcuts))
        self._say(Content(f"{shortcut.title}, {shortcut.description}: {key_names(shortcut.keys)} again"))

    def action_reset_all(self) -> None:
        self.start(self._reset_all(), failed=self._fail)

    async def _reset_all(self) -> None:
        self._take(await asyncio.to_thread(self.edgerag.preferences.keymap_file.reset_all))
        self._say(Content("All keys are as they come."))

    def _take(self, keymap: Keymap) -> None:
        self.edgerag.take_keymap(keymap)
        self._draw()
        self.refresh_bindings()

    def action_search(self) -> None:
        self._search.focus()

    def on_input_changed(self) -> None:
        self._draw()

    def on_input_submitted(self) -> None:
        self._list.focus()

    def action_back(self) -> None:
        if self._search.value:
            self._search.value = ""
            self._list.focus()
        else:
            self.app.pop_screen()

    def _fail(self, problem: Problem) -> None:
        self._say(problem.content())

    def _say(self, content: Content) -> None:
        self._notice.update(content)


def _row(shortcut: Shortcut, keys: str, width: int, *, changed: bool) -> Content:
    begun = Content.assemble(("● " if changed else "  ", "bold"), (keys, "bold underline" if changed else "bold"))
    indent = _KEYS_CELLS + 3 if width >= _NARROW_CELLS else _NARROW_INDENT
    first, *rest = Content(shortcut.description).wrap(max(_LEAST_WORDS, width - indent))
    if begun.cell_length < indent:
        lines = [Content.assemble(begun, " " * (indent - begun.cell_length), first), *_indented(rest, indent)]
    else:
        lines = [begun, *_indented([first, *rest], indent)]
    return Content("\n").join(lines)


def _indented(lines: Iterable[Content], cells: int) -> list[Content]:
    return [Content.assemble(" " * cells, line) for line in lines]
