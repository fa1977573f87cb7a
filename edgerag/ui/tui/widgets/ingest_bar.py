"""One row that tells how a running ingest is getting on, while the user does something else."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget

from edgerag.ui.tui.ingest_view import IngestView, bar


class IngestBar(Widget):
    """Shown only while documents are being read."""

    def __init__(self) -> None:
        super().__init__()
        self._view = IngestView()
        self.display = False

    def show(self, view: IngestView) -> None:
        self._view = view
        self.display = view.running
        self.refresh()

    def render(self) -> Content:
        view = self._view
        width = self.content_size.width
        label = f"{view.state} "
        full, empty = bar(view.fraction, max(8, min(24, width // 5)))
        row = Content.assemble(
            label,
            (full, "$primary"),
            (empty, "$foreground 25%"),
            f" {view.figures()}",
            (" · F2 shows it", "$foreground 70%"),
        )
        return row.truncate(width, ellipsis=True)
