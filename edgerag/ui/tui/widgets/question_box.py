"""Where the question is typed: several lines, with the earlier questions at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from edgerag.ui.tui import shown
from edgerag.ui.tui.keys import Keyed


class QuestionBox(Keyed, TextArea):
    """Enter sends, Ctrl+J (or Shift+Enter) breaks the line, Up and Down at the edge walk through
    the earlier questions; an unsent draft waits behind the newest."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", show=False),
        Binding("ctrl+j,shift+enter,alt+enter", "break_line", "New line", show=False, key_display="^j, ⇧⏎"),
        Binding("up", "cursor_up", "Earlier question", show=False),
        Binding("down", "cursor_down", "Later question", show=False),
        Binding("pageup", "scroll_log(-1)", "Scroll the answers up", show=False),
        Binding("pagedown", "scroll_log(1)", "Scroll the answers down", show=False),
    ]

    class Sent(Message):
        """The user sent a question. The text stays in the box until :meth:`QuestionBox.accept`."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class LogScrolled(Message):
        """The user pages through the conversation without leaving the box."""

        def __init__(self, direction: int) -> None:
            super().__init__()
            self.direction = direction

    def __init__(self, **options: Any) -> None:
        super().__init__(
            placeholder="Ask about your documents",
            highlight_cursor_line=False,
            show_line_numbers=False,
            soft_wrap=True,
            tab_behavior="focus",
            **options,
        )
        self._earlier: list[str] = []
        self._at = 0  # index into the earlier questions; behind the last one stands the draft
        self._draft = ""

    def set_earlier(self, questions: Sequence[str]) -> None:
        """The questions that Up walks through, oldest first."""
        self._earlier = list(questions)
        self._at = len(self._earlier)
        self._draft = ""

    def put(self, text: str) -> None:
        """Another text in place of what is typed."""
        self._at = len(self._earlier)
        self._draft = ""
        self.text = text
        self.move_cursor(self.document.end)

    @property
    def draft(self) -> str:
        """What is typed and not sent; of somebody who walks through the earlier questions, what he typed before."""
        return self.text if self._at == len(self._earlier) else self._draft

    def accept(self, question: str) -> None:
        """``question`` was sent: it moves into the history and out of the box. What was typed behind it since stays."""
        if not self._earlier or self._earlier[-1] != question:
            self._earlier.append(question)
        self._at = len(self._earlier)
        self._draft = ""
        self.text = self.text.lstrip().removeprefix(question) if self.text.strip() != question else ""
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.prevent_default()  # TextArea would type a line end; here the binding sends

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()  # what is pasted may come from anywhere
        await super()._on_paste(events.Paste(shown.typed(event.text, lines=True)))

    def action_send(self) -> None:
        self.post_message(self.Sent(self.text.strip()))

    def action_break_line(self) -> None:
        self.insert("\n")

    def action_scroll_log(self, direction: int) -> None:
        self.post_message(self.LogScrolled(direction))

    def action_cursor_up(self, select: bool = False) -> None:
        if not select and self.navigator.is_first_wrapped_line(self.cursor_location) and self._at > 0:
            self._recall(self._at - 1)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        if not select and self.navigator.is_last_wrapped_line(self.cursor_location) and self._at < len(self._earlier):
            self._recall(self._at + 1)
        else:
            super().action_cursor_down(select)

    def _recall(self, position: int) -> None:
        if self._at == len(self._earlier):
            self._draft = self.text
        self._at = position
        self.text = self._draft if position == len(self._earlier) else self._earlier[position]
        self.move_cursor(self.document.end)
