"""Which documents are asked, while it is not all of them."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from edgerag.types import FilterText
from edgerag.ui.export.said import filter_words
from edgerag.ui.tui import shown
from edgerag.ui.tui.keys import key_name


class FilterLine(Static):
    """One row above the question; nothing without a filter."""

    class Chosen(Message):
        """The user clicked it: he wants to change it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.display = False

    def show(self, typed: FilterText) -> None:
        words = filter_words(typed)
        self.display = bool(words)
        active = self.screen.active_bindings.values()
        keys = [key_name(each.binding.key) for each in active if each.binding.action == "filter"]
        hint = Content.styled(f"  {' or '.join(keys)} changes it" if keys else "", "$foreground 70%")
        self.update(Content.assemble(("Only ", "bold"), shown.line(words, 300), hint))

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Chosen())
