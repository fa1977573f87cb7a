"""The passage behind a source mark, laid over the foot of the conversation while the mark is pointed at."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from edgerag.types import Source, SourceState
from edgerag.ui.place import full_place, in_library, member_name
from edgerag.ui.tui import shown

_BEFORE = 160  # characters of the passage in front of the quote
_AFTER = 500
STATE_WORDS: dict[SourceState, str] = {"current": "", "moved": "moved", "changed": "changed since", "gone": "gone"}


class Peek(Static):
    """Says nothing until a source is pointed at. Lies at the foot, or at the top where the foot is pointed at: it must
    not cover the mark, or the mouse would be off it."""

    class Chosen(Message):
        """The user wants the passage in its document."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.number: int | None = None
        self._content = Content()
        self.display = False

    def on_click(self, event: events.Click) -> None:
        event.stop()
        if self.number is not None:
            self.post_message(self.Chosen(self.number))

    def show(self, source: Source, state: SourceState, *, at_top: bool) -> None:
        self.set_class(at_top, "-top")
        self.number = source.number
        self.border_title = Content.assemble(f"[{source.number}] ", shown.line(_where(source), 200))
        self.border_subtitle = Content("Enter or a click opens it")
        self._content = peek_content(source, state)
        self.update(self._content)
        self.display = True
        self.call_after_refresh(self._fit)  # only then it has its width

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """What the box is too low for is cut where it can be seen."""
        most = self.styles.max_height
        if most is not None and self.content_size.width:
            count = int(most.value) - self.gutter.height
            self.update(Content("\n").join(shown.in_rows(self._content, self.content_size.width, count)))

    def hide(self) -> None:
        self.number = None
        self.display = False


def peek_content(source: Source, state: SourceState) -> Content:
    """The passage around the quote, which stands out."""
    stored = source.hit.chunk.chunk
    text, quote = stored.text or source.quote, source.quote
    at = source.quote_start - stored.start
    if text[at : at + len(quote)] != quote:
        at = max(0, text.find(quote))
    before, after = text[max(0, at - _BEFORE) : at], text[at + len(quote) : at + len(quote) + _AFTER]
    parts = [
        _joined(f"{'…' if at > _BEFORE else ''}{before}"),
        Content.styled(_joined(quote).plain, "bold $text-accent"),
        _joined(f"{after}{'…' if at + len(quote) + _AFTER < len(text) else ''}"),
    ]
    content = Content.assemble(*parts)
    words = STATE_WORDS[state]
    if words:
        warning = "The document is no longer in the library." if state == "gone" else "The document has changed since."
        content = Content("\n").join([Content.styled(warning, "$text-warning"), content])
    return content


def _joined(text: str) -> Content:
    """On one line, with the spaces at its ends."""
    line = shown.text(" ".join(text.split())).plain
    left = " " if text[:1].isspace() else ""
    right = " " if text[-1:].isspace() and line else ""
    return Content(f"{left}{line}{right}")


def _where(source: Source) -> str:
    stored = source.hit.chunk
    return f"{in_library(stored)}{member_name(stored.path)}, {full_place(stored)}"
