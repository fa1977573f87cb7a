"""A line that is typed into: what is pasted may come from anywhere."""

from __future__ import annotations

from textual import events
from textual.widgets import Input

from edgerag.ui.tui import shown


class LineInput(Input):
    """An Input that takes printable text on one line only."""

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        super()._on_paste(events.Paste(shown.typed(event.text, lines=False)))
