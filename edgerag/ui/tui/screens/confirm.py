"""Asks before something is done that cannot be undone."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from edgerag.ui.tui.keys import Keyed


class ConfirmDialog(Keyed, ModalScreen[bool]):
    """True if the user agrees. Enter on the first button keeps things as they are."""

    KEYS_TITLE = "A question before something is done"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", show=False),
        Binding("n,escape", "answer(False)", "No", show=False),
        Binding("left,up", "app.focus_previous", "Button before", show=False),
        Binding("right,down", "app.focus_next", "Button after", show=False),
    ]

    def __init__(self, question: Content, *, agree: str) -> None:
        super().__init__()
        self._question = question
        self._agree = agree

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._question)
            with Horizontal(classes="buttons"):
                yield Button(Content("No, keep (n)"), id="no")
                yield Button(Content(f"{self._agree} (y)"), id="yes", variant="error")

    def on_button_pressed(self, message: Button.Pressed) -> None:
        self.dismiss(message.button.id == "yes")

    def action_answer(self, agreed: bool) -> None:
        self.dismiss(agreed)
