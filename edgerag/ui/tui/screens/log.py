"""What went wrong since the start: notifications go by, this stays."""

from __future__ import annotations

import time
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Static

from edgerag.ui.plain import plain
from edgerag.ui.tui import shown
from edgerag.ui.tui.problem import NotedProblem
from edgerag.ui.tui.screens.base import SideScreen


class LogScreen(SideScreen):
    """The newest first, each with its time."""

    KEYS_TITLE = "Log"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("c", "copy", "Copy", tooltip="Copy all of it"),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self) -> None:
        super().__init__()
        self._noted: tuple[NotedProblem, ...] = ()
        self._lines = Static()

    def compose(self) -> ComposeResult:
        yield Static(Content.styled("What went wrong since the start", "bold"), classes="title")
        with VerticalScroll():
            yield self._lines
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._noted = self.edgerag.problem_log.noted[::-1]
        parts = [_content(noted) for noted in self._noted]
        self._lines.update(Content("\n\n").join(parts) if parts else Content("Nothing."))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        return bool(self._noted) if action == "copy" else True

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(plain("\n\n".join(_text(noted) for noted in self._noted)))
        self.notify("Log copied.", markup=False)


def _content(noted: NotedProblem) -> Content:
    problem = noted.problem
    first = Content.assemble((f"{_time(noted)}  ", "$foreground 70%"), problem.content())
    frames = [shown.line(f"    {frame}", 300, "$foreground 70%") for frame in problem.frames]
    return Content("\n").join([first, *frames])


def _text(noted: NotedProblem) -> str:
    return "\n".join([f"{_time(noted)}  {noted.problem}", *(f"    {frame}" for frame in noted.problem.frames)])


def _time(noted: NotedProblem) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(noted.at_s))
