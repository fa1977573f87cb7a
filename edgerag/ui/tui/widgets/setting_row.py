"""One setting: name, value, origin and what it means on a row; edited in its place, with what is wrong below it."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input, OptionList, Static

from edgerag.errors import UsageError
from edgerag.settings.effective import Effective
from edgerag.settings.keep import parsed_value
from edgerag.ui.tui import shown
from edgerag.ui.tui.keys import Keyed

_NAME_CELLS = 20
_VALUE_CELLS = 22
_ORIGIN_CELLS = 13
_LEAST_MEANING_CELLS = 16  # in less room it says nothing
NOT_SET = "the model's"


class _ValueInput(Input):
    """Takes what is pasted as one line of plain text."""

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        super()._on_paste(events.Paste(shown.typed(event.text, lines=False)))


class SettingEditor(Vertical):
    """Stands below its row while the value is changed: a field, or a list of what there is, and what is wrong.

    It outlives the change where something has to be said about it.
    """

    def __init__(self, row: SettingRow, *, suggestions: tuple[str, ...]) -> None:
        super().__init__()
        self.row = row
        self._suggestions = suggestions
        self._problem = Static(classes="problem")
        self.field: Input | OptionList | None = None

    def compose(self) -> ComposeResult:
        yield self._problem

    def on_mount(self) -> None:
        self._problem.display = False

    async def open(self) -> None:
        setting, text = self.row.effective.setting, self.row.effective.text
        if setting.choices:
            field: Input | OptionList = OptionList(*setting.choices, markup=False, compact=True)
        else:
            suggester = SuggestFromList(self._suggestions, case_sensitive=False) if self._suggestions else None
            field = _ValueInput(text, placeholder=setting.allowed, suggester=suggester, compact=True)
        self.field = field
        await self.mount(field, before=self._problem)
        if isinstance(field, OptionList):
            field.highlighted = setting.choices.index(text)
        field.focus()

    def say(self, problem: str) -> None:
        self._problem.update(shown.text(problem, "$text-error"))
        self._problem.display = bool(problem)

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        self._is_possible(message.value)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        if self._is_possible(message.value):
            self.row.post_message(SettingRow.Changed(self.row, message.value))

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        choice = self.row.effective.setting.choices[message.option_index]
        self.row.post_message(SettingRow.Changed(self.row, choice))

    def _is_possible(self, text: str) -> bool:
        """What is wrong with it is said at once."""
        try:
            parsed_value(self.row.effective.setting, text)
        except UsageError as error:
            self.say(str(error))
            return False
        self.say("")
        return True

    async def key_escape(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        await self.row.close_editor()


class SettingRow(Keyed, Static, can_focus=True):
    """Enter edits, Esc leaves it as it was. Switches turn at once; a few words are chosen from a list.

    One widget as long as nothing is changed: there are many of these.
    """

    KEYS_TITLE = "A setting"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "edit", "Change"),
        Binding("delete,r", "reset", "Default", tooltip="Back to the default", key_display="Del"),
    ]

    class Changed(Message):
        """The user wants another value; ``text`` is None for the default."""

        def __init__(self, row: SettingRow, text: str | None) -> None:
            super().__init__()
            self.row = row
            self.text = text

    class Highlighted(Message):
        """The user looks at this setting."""

        def __init__(self, row: SettingRow) -> None:
            super().__init__()
            self.row = row

    def __init__(self, effective: Effective, *, suggestions: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.effective = effective
        self._suggestions = suggestions
        self._editor: SettingEditor | None = None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        return self.effective.origin != "default" if action == "reset" else True

    @property
    def is_editing(self) -> bool:
        return self._editor is not None and self._editor.field is not None

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def on_focus(self) -> None:
        self.post_message(self.Highlighted(self))

    async def on_click(self) -> None:
        self.focus()
        await self.action_edit()

    def matches(self, words: list[str]) -> bool:
        """Whether all words stand in the name, the value, the origin or the meaning."""
        setting = self.effective.setting
        text = f"{setting.name} {setting.meaning} {self.effective.text} {self.effective.origin}".casefold()
        return all(word in text for word in words)

    def show(self, effective: Effective) -> None:
        self.effective = effective
        self._draw()
        self.refresh_bindings()

    async def say(self, problem: str) -> None:
        """Below the value: why it cannot be, or what keeps it from being felt."""
        if problem:
            (await self._below()).say(problem)
        elif self._editor is not None:
            await self.close_editor()

    async def _below(self) -> SettingEditor:
        if self._editor is None:
            self._editor = SettingEditor(self, suggestions=self._suggestions)
            assert self.parent is not None
            await self.parent.mount(self._editor, after=self)  # type: ignore[attr-defined] # a widget: rows lie in one
        return self._editor

    # ------------------------------------------------------------ editing

    async def action_edit(self) -> None:
        if self.is_editing:
            return
        await self.close_editor()
        if self.effective.setting.is_switch:
            self.post_message(self.Changed(self, "false" if self.effective.value else "true"))
        else:
            await (await self._below()).open()

    async def close_editor(self) -> None:
        editor, self._editor = self._editor, None
        if editor is not None:
            had_focus = editor.has_focus_within
            await editor.remove()
            if had_focus:
                self.focus()

    def action_reset(self) -> None:
        self.post_message(self.Changed(self, None))

    # ------------------------------------------------------------ the row

    def _draw(self) -> None:
        width = max(1, self.content_size.width)
        effective, setting = self.effective, self.effective.setting
        is_default = effective.origin == "default"
        value = NOT_SET if effective.value is None else effective.text or '""'
        room = width - _NAME_CELLS - _VALUE_CELLS - _ORIGIN_CELLS - 3
        parts = [
            Content(f"{shown.fitted(setting.key, _NAME_CELLS):<{_NAME_CELLS}} "),
            shown.line(value, _VALUE_CELLS, "$foreground 75%" if is_default else "bold $text-accent").pad_right(
                max(0, _VALUE_CELLS - cell_len(shown.fitted(value, _VALUE_CELLS)))
            ),
            Content.styled(
                f" {effective.origin:<{_ORIGIN_CELLS}}", "$foreground 75%" if is_default else "$text-accent"
            ),
        ]
        if room >= _LEAST_MEANING_CELLS:
            parts.append(shown.line(f" {setting.meaning.replace('`', '')}", room, "$foreground 75%"))
        self.update(Content.assemble(*parts))
