"""A path being typed, with what could come next below it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList

from edgerag.ui.tui import shown
from edgerag.ui.tui.keys import Keyed
from edgerag.ui.tui.paths import Completion, common_continuation, complete, parse


class _PathInput(Input):
    """An input that takes pasted and dropped paths as one line of plain text."""

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        super()._on_paste(events.Paste(shown.typed(event.text, lines=False)))


class PathBox(Keyed, Vertical):
    """Tab completes, Up and Down choose a completion, Enter sends the paths."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "Complete", show=True, priority=True),
        Binding("down", "move(1)", "Next completion", show=False, priority=True),
        Binding("up", "move(-1)", "Previous completion", show=False, priority=True),
    ]

    class Sent(Message):
        """The user is done; ``paths`` may be empty or name nothing that is there."""

        def __init__(self, paths: list[Path]) -> None:
            super().__init__()
            self.paths = paths

    def __init__(self, value: str, **options: Any) -> None:
        super().__init__(**options)
        self._input = _PathInput(value, placeholder="~/Documents", select_on_focus=False)
        self._list = OptionList(markup=False)
        self._list.can_focus = False
        self._completions: list[Completion] = []

    def compose(self) -> ComposeResult:
        yield self._input
        yield self._list

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        return bool(self._completions) if action in ("complete", "move") else True

    def on_mount(self) -> None:
        self._input.focus()
        self._offer(self._input.value)

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        self._offer(message.value)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self.post_message(self.Sent(parse(message.value)))

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        self._take(self._completions[message.option_index].typed)

    def action_move(self, step: int) -> None:
        count = len(self._completions)
        if count:
            at = self._list.highlighted
            self._list.highlighted = (0 if step > 0 else count - 1) if at is None else (at + step) % count

    def action_complete(self) -> None:
        """The chosen completion, else what all of them share, else the only or first one."""
        if not self._completions:
            return
        value = self._input.value
        at = self._list.highlighted
        if at is not None:
            self._take(self._completions[at].typed)
        elif (shared := common_continuation(value, self._completions)) != value:
            self._take(shared)
        else:
            self._take(self._completions[0].typed)

    def _take(self, value: str) -> None:
        self._input.value = value
        self._input.cursor_position = len(value)

    def _offer(self, value: str) -> None:
        self._completions = complete(value)
        self._list.clear_options()
        self._list.add_options(
            [Content.styled(c.label + "/", "bold") if c.is_folder else Content(c.label) for c in self._completions]
        )
        self._list.highlighted = None
