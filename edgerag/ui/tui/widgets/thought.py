"""What a reasoning model thinks before it answers: one line, folded; a click or a key unfolds it."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.widgets import Static

from edgerag.ui.tui import shown

_STYLE = "italic $foreground 70%"


class Thought(Static):
    """Grows while the model thinks."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self._text = ""
        self._thinking = True
        self._unfolded = False

    @property
    def text(self) -> str:
        return self._text

    def add(self, piece: str) -> None:
        self._text += piece
        self._draw()

    def end(self) -> None:
        """The model has begun to answer, or stopped."""
        if self._thinking:
            self._thinking = False
            self._draw()

    def toggle(self) -> None:
        """Unfolds the thought, or folds it again."""
        self._unfolded = not self._unfolded
        self._draw()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.toggle()

    def _draw(self) -> None:
        words = len(self._text.split())
        count = f"{words:,} word" if words == 1 else f"{words:,} words"
        sign = "▾" if self._unfolded else "▸"
        line = Content.styled(f"{sign} {'Thinking … ' if self._thinking else 'Thought: '}{count}", _STYLE)
        if self._unfolded:
            line = Content("\n").join([line, shown.text(self._text.strip(), _STYLE)])
        self.update(line)
