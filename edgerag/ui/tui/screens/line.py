"""Asks for one line of text: a title, the name of a file."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from edgerag.ui.tui.screens.base import SessionDialog
from edgerag.ui.tui.widgets.line_input import LineInput


class LineDialog(SessionDialog[str]):
    """The line, or None if the user wants nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Cancel")]
    AUTO_FOCUS = "Input"

    def __init__(self, question: Content, *, value: str, hint: str) -> None:
        super().__init__()
        self._question = question
        self._value = value
        self._hint = hint

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._question)
            yield LineInput(self._value, select_on_focus=False)
            yield Static(Content.styled(self._hint, "$foreground 70%"), classes="keys")

    def on_input_submitted(self, message: Input.Submitted) -> None:
        self.dismiss(message.value.strip() or None)
