"""Every setting with its value and where that comes from; searched, and changed in place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Input, Static

from edgerag.settings.effective import Effective, value_text
from edgerag.settings.keep import overridden_note
from edgerag.ui.place import short_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen
from edgerag.ui.tui.widgets.setting_row import NOT_SET, SettingRow


class SettingsScreen(SideScreen):
    """Grouped as in the settings file. What a setting means stands below, for the row that is looked at."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back"),
        Binding("slash,ctrl+f", "search", "Search", key_display="/"),
        Binding("c", "only_changed", "Changed only", tooltip="Only what is not at its default"),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "move(-10)", "Ten up", show=False),
        Binding("pagedown", "move(10)", "Ten down", show=False),
        Binding("home", "move(-1000)", "First", show=False),
        Binding("end", "move(1000)", "Last", show=False),
    ]
    AUTO_FOCUS = ""

    def __init__(self, search: str = "") -> None:
        """``search``: what is looked for at the start."""
        super().__init__()
        self._start_search = search
        self._title = Static(classes="title")
        self._search = Input(placeholder="Search names, meanings, values", id="search", compact=True)
        self._list = VerticalScroll(can_focus=False)
        self._detail = Static(classes="detail")
        self._rows: list[SettingRow] = []
        self._headings: dict[str, Static] = {}
        self._only_changed = False

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._search
        yield self._list
        yield self._detail
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._title.update(_title(str(self.edgerag.preferences.sources.config_file)))
        self.start(self._load(), failed=self._fail)

    async def _load(self) -> None:
        found = await asyncio.to_thread(self.edgerag.preferences.sources.effective)
        models = await asyncio.to_thread(self.session.models)
        for effective in found:
            section = effective.setting.section
            if section not in self._headings:
                self._headings[section] = Static(Content.styled(f"[{section}]", "bold $text-primary"), classes="group")
            kind = {"models.chat": "chat", "models.embedder": "embedder"}.get(effective.setting.name)
            names = tuple(entry.name for entry in models if entry.kind == kind and entry.state == "ready")
            self._rows.append(SettingRow(effective, suggestions=names))
        parts: list[Static | SettingRow] = []
        for section, heading in self._headings.items():
            parts += [heading, *(row for row in self._rows if row.effective.setting.section == section)]
        await self._list.mount_all(parts)
        self.look_for(self._start_search)

    def look_for(self, search: str) -> None:
        """Shows the settings that match, and goes to the first."""
        self._search.value = search
        self._filter()
        self._focus_first()

    def _fail(self, problem: Problem) -> None:
        self._detail.update(problem.content())

    # ------------------------------------------------------------ finding

    @property
    def _visible(self) -> Sequence[SettingRow]:
        return [row for row in self._rows if row.display]

    def on_input_changed(self, message: Input.Changed) -> None:
        if message.input is self._search:
            self._filter()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        if message.input is self._search:
            self._focus_first()

    def _filter(self) -> None:
        words = self._search.value.casefold().split()
        for row in self._rows:
            changed = not self._only_changed or row.effective.origin != "default"
            row.display = row.is_editing or (changed and row.matches(words))
        for section, heading in self._headings.items():
            heading.display = any(row.effective.setting.section == section for row in self._visible)
        if not self._visible:
            self._detail.update(Content("No setting is like that. Esc shows all."))

    def _focus_first(self) -> None:
        if self._visible:
            self._visible[0].focus(scroll_visible=False)
            self._list.scroll_home(animate=False)  # with its heading

    def action_search(self) -> None:
        self._search.focus()

    def action_only_changed(self) -> None:
        self._only_changed = not self._only_changed
        self._filter()
        self._focus_first()

    def action_back(self) -> None:
        """Out of the search first, then out of the screen."""
        if self._search.value or self._only_changed:
            self._only_changed = False
            self._search.value = ""
            self._filter()
            self._focus_first()
        elif self._search.has_focus and self._visible:
            self._focus_first()
        else:
            self.app.pop_screen()

    def action_move(self, step: int) -> None:
        rows = self._visible
        if not rows:
            return
        here = next((at for at, row in enumerate(rows) if row.has_focus), 0 if step < 0 else -1)
        to = min(len(rows) - 1, max(0, here + step))
        if to == 0:
            self._focus_first()
        else:
            rows[to].focus()

    # ------------------------------------------------------------ changing

    def on_setting_row_highlighted(self, message: SettingRow.Highlighted) -> None:
        self._detail.update(_detail(message.row.effective))

    def on_setting_row_changed(self, message: SettingRow.Changed) -> None:
        def refuse(problem: Problem) -> None:
            self.start(message.row.say(str(problem)))

        self.start(self._change(message.row, message.text), failed=refuse)

    async def _change(self, row: SettingRow, text: str | None) -> None:
        setting = row.effective.setting
        after = await self.edgerag.change_setting(setting, text)
        await row.close_editor()
        row.show(after)
        self._detail.update(_detail(after))
        if after.is_overridden and text is not None:
            await row.say(overridden_note(setting, after.origin, after.where, after.value))
        elif setting.holds != "at once":
            self.notify(f"{setting.name}: {setting.holds}.", markup=False)


def _title(config_file: str) -> Content:
    return Content.assemble(("Settings", "bold"), "  ", shown.line(short_path(config_file), 200, "$foreground 70%"))


def _detail(effective: Effective) -> Content:
    setting = effective.setting
    default = NOT_SET if setting.default is None else value_text(setting, setting.default) or '""'
    origin = f"{effective.origin}: {effective.where}" if effective.origin == "environment" else effective.origin
    facts = f"default: {default} · {setting.allowed} · from: {origin} · holds {_when(setting.holds)}"
    head = Content.assemble(shown.text(setting.name, "bold"), "  ", shown.line(facts, 300, "$foreground 70%"))
    return Content("\n").join([head, _meaning(setting.meaning)])


def _meaning(text: str) -> Content:
    """What stands between backticks is set off."""
    parts = text.split("`")
    return Content.assemble(*(shown.text(part, "bold" if at % 2 else "") for at, part in enumerate(parts)))


def _when(holds: str) -> str:
    return "once " + holds if holds.startswith("the ") else holds
