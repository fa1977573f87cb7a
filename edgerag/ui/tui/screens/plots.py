"""The figures of a result file as charts, one at a time; written as pictures from here."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Static
from textual_plotext import PlotextPlot

from edgerag.measure.charts import Chart, read_charts, write_charts
from edgerag.ui.chart_text import bar_rows, draw_curves
from edgerag.ui.place import short_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen
from edgerag.ui.tui.screens.ingest import AddDocumentsDialog


class PlotsScreen(SideScreen):
    """Walks through the charts of one file. Bars are text and scroll; curves fill the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("n,right", "step(1)", "Next chart"),
        Binding("p,left", "step(-1)", "Prev chart", tooltip="Previous chart"),
        Binding("w", "write", "Write pictures", tooltip="Write all charts as SVG and PNG beside the file"),
        Binding("o", "open", "Open", tooltip="Another result file"),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self, file: Path | None = None) -> None:
        """``file``: a result; without one it is asked for."""
        super().__init__()
        self._file = file
        self._charts: list[Chart] = []
        self._at = 0
        self._title = Static(classes="title")
        self._notice = Static(classes="notice")
        self._bars = Static()
        self._curves = PlotextPlot()

    def compose(self) -> ComposeResult:
        yield self._title
        with VerticalScroll():
            yield self._bars
        yield self._curves
        yield self._notice
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._draw()
        if self._file is None:
            self.action_open()
        else:
            self.start(self._load(self._file), failed=self._fail)

    def on_resize(self) -> None:
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        match action:
            case "step":
                return len(self._charts) > 1
            case "write":
                return bool(self._charts)
            case _:
                return True

    def action_open(self) -> None:
        title = "A result: result.json of `edgerag eval --out`, or of a bench"
        self.app.push_screen(AddDocumentsDialog("", title=title), self._opened)

    def _opened(self, paths: list[Path] | None) -> None:
        if paths:
            self.start(self._load(paths[0]), failed=self._fail)

    async def _load(self, file: Path) -> None:
        self._charts = await asyncio.to_thread(read_charts, file)
        self._file, self._at = file, 0
        self._say(Content())
        self._draw()
        self.refresh_bindings()

    def action_step(self, step: int) -> None:
        if self._charts:
            self._at = (self._at + step) % len(self._charts)
            self._draw()

    def action_write(self) -> None:
        if self._file is not None and self._charts:
            self.start(self._write(self._file), failed=self._fail)

    async def _write(self, file: Path) -> None:
        folder = file.with_name(f"{file.stem}-charts")
        written = await asyncio.to_thread(write_charts, self._charts, folder, png=True)
        self._say(shown.line(f"{len(written)} pictures written to {short_path(str(folder))}", 300))

    def _draw(self) -> None:
        scroll = self._bars.parent
        assert isinstance(scroll, VerticalScroll)
        chart = self._charts[self._at] if self._charts else None
        scroll.display = chart is None or chart.kind != "curves"
        self._curves.display = not scroll.display
        if chart is None:
            self._title.update(Content.styled("Plots", "bold"))
            self._bars.update(Content("o opens a result file: of `edgerag eval SET --out FOLDER`, or of a bench."))
            return
        place = f"{self._at + 1} of {len(self._charts)}  {short_path(str(self._file))}"
        unit = f" ({chart.up})" if chart.up else ""
        self._title.update(
            Content.assemble(
                shown.line(chart.title + unit, 200, "bold"), "  ", shown.line(place, 200, "$foreground 70%")
            )
        )
        if chart.kind == "curves":
            self._curves.plt.clear_figure()
            draw_curves(self._curves.plt, chart)
            self._curves.refresh()
        else:
            self._bars.update(_bars(chart, max(20, scroll.size.width - 4)))
            scroll.scroll_home(animate=False)

    def _fail(self, problem: Problem) -> None:
        self._say(problem.content())

    def _say(self, content: Content) -> None:
        self._notice.update(content)
        self._notice.display = bool(content.plain)


def _bars(chart: Chart, columns: int) -> Content:
    lines = []
    for row in bar_rows(chart, columns=columns):
        if row.bar or row.value:
            lines.append(Content.assemble(f"{row.label} ", (row.bar, "$text-primary"), f" {row.value}"))
        else:
            lines.append(Content.styled(row.label, "bold $text-accent"))
    return Content("\n").join(lines)
