"""A piece of foreign text under a heading of ours: folded to one line, unfolded word for word."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from edgerag.ui.tui import shown
from edgerag.ui.tui.keys import Keyed


class FoldedText(Keyed, Static, can_focus=True):
    """Enter, Space or a click unfolds it and folds it again."""

    KEYS_TITLE = "Folded text"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "turn", "Fold", tooltip="Unfold, or fold again"),
        Binding("up", "app.focus_previous", "Part before", show=False),
        Binding("down", "app.focus_next", "Part after", show=False),
    ]

    def __init__(self, heading: str, text: str, *, unfolded: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._heading = heading
        self._text = text
        self._unfolded = unfolded

    def on_mount(self) -> None:
        self._draw()

    @property
    def is_unfolded(self) -> bool:
        return self._unfolded

    def fold(self, folded: bool) -> None:
        self._unfolded = not folded
        self._draw()

    def action_turn(self) -> None:
        self.fold(self._unfolded)

    def on_click(self) -> None:
        self.action_turn()

    def _draw(self) -> None:
        self.set_class(self._unfolded, "-unfolded")
        heading = Content.styled(f"{'▾' if self._unfolded else '▸'} {self._heading}", "bold")
        if self._unfolded:
            self.update(Content("\n").join([heading, shown.text(self._text.rstrip("\n"))]))
        else:
            self.update(Content.assemble(heading, "  ", shown.line(self._text, 160, "$foreground 70%")))
