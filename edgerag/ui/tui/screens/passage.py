"""One hit of a search, whole: its passage, its scores in words, and from here its document."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from edgerag.types import Source, TracedHit
from edgerag.ui.place import full_place, headings_below, in_library, short_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.screens.base import SessionDialog
from edgerag.ui.tui.screens.viewer import ViewerScreen
from edgerag.ui.why import said

_LONGEST = 300


class PassageDialog(SessionDialog[None]):
    """What a row of the table of hits stands for."""

    KEYS_TITLE = "Passage of a hit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close"),
        Binding("enter,o", "open", "Open", tooltip="Open the document at this passage"),
        Binding("c", "copy", "Copy", tooltip="Copy the passage"),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self, traced: TracedHit, rank: int) -> None:
        super().__init__()
        self._traced = traced
        self._rank = rank

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog"):
            yield Static(hit_content(self._traced, self._rank))
            yield Static(
                Content.styled("Enter opens the document here, c copies, Esc closes.", "$foreground 70%"),
                classes="keys",
            )

    def action_open(self) -> None:
        chunk = self._traced.hit.chunk.chunk
        source = Source(self._rank, self._traced.hit, chunk.text, chunk.start, cited=False)
        self.dismiss()
        self.edgerag.push_screen(ViewerScreen([source], self._rank))

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._traced.hit.chunk.chunk.text)
        self.notify("Passage copied.", markup=False)


def hit_content(traced: TracedHit, rank: int) -> Content:
    stored, scores = traced.hit.chunk, traced.hit.scores
    where = " › ".join([full_place(stored), *headings_below(stored)])
    lines = [
        Content.assemble(f"{rank}. ", shown.line(stored.title, _LONGEST, "bold")),
        shown.line(f"{in_library(stored)}{short_path(stored.path)}", _LONGEST),
        shown.line(where, _LONGEST, "$foreground 75%"),
        Content(),
        Content.styled(said.OUTCOME_SENTENCES[traced.outcome], "bold $text-accent"),
        *(Content(line) for line in said.score_lines(traced)),
    ]
    if scores.nearness is not None or scores.covered:
        nearness = "not told" if scores.nearness is None else f"{scores.nearness:.2f}"
        words = f"{scores.covered:.0%} of the question's words in it, {scores.together:.0%} in one run"
        lines.append(Content(f"{words}; nearness {nearness} (0 any passage, 1 the question itself)"))
    lines += [Content(), shown.text(stored.chunk.text)]
    return Content("\n").join(lines)
