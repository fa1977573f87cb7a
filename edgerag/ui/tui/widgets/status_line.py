"""The line at the foot: model, library, memory, last timings; what does not fit is left out."""

from __future__ import annotations

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from edgerag.ui.report import upgrade_line
from edgerag.ui.tui import facts as said
from edgerag.ui.tui import shown
from edgerag.ui.tui.facts import Facts

_SEPARATOR = " │ "


class StatusLine(Widget):
    """One row. The least important figures go first when the terminal is narrow."""

    def __init__(self) -> None:
        super().__init__()
        self._facts = Facts()

    def show(self, facts: Facts) -> None:
        self._facts = facts
        self.refresh()

    def render(self) -> Content:
        facts = self._facts
        if facts.upgrade is not None:
            return Content(shown.fitted(upgrade_line(facts.upgrade), max(1, self.content_size.width)))
        if not facts.known:
            return Content("starting …")
        fitting = compose_line(facts, self.content_size.width)
        return Content(_SEPARATOR).join(Content(part) for part in fitting)


def compose_line(facts: Facts, width: int) -> list[str]:
    """The figures that fit into ``width`` cells, in their order on the line."""
    model = shown.fitted(said.model_figure(facts), 40)
    memory = said.memory_figure(facts)
    timing = said.timing_figure(facts.last_answer)
    short_timing = timing.removeprefix("first token ")
    choices = [
        [model, shown.fitted(said.library_figure(facts), 80), memory, said.index_figure(facts), timing],
        [model, shown.fitted(said.library_figure(facts), 80), memory, timing],
        [model, said.short_library_figure(facts), memory, timing],
        [shown.fitted(model, 20), said.short_library_figure(facts), memory, short_timing],
        [shown.fitted(model, 14), said.short_library_figure(facts), memory],
        [said.short_library_figure(facts), memory],
    ]
    for parts in choices:
        parts = [part for part in parts if part]
        if cell_len(_SEPARATOR.join(parts)) <= width:
            return parts
    return [shown.fitted(said.short_library_figure(facts), max(1, width))]
