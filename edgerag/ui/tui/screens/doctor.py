"""What helps and what hinders on this machine, each with its remedy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Static

from edgerag.types import Finding, Suggestion
from edgerag.ui.tui import shown
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen

_MARKS = {
    "ok": ("✓ ok     ", "$text-success"),
    "info": ("· info   ", "$foreground 75%"),
    "warning": ("! warning", "bold $text-warning"),
    "error": ("✗ error  ", "bold $text-error"),
}


class DoctorScreen(SideScreen):
    """The findings of ``session.diagnose()``, and what the tuning guide suggests."""

    KEYS_TITLE = "Check"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("r", "check", "Check again"),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self) -> None:
        super().__init__()
        self._findings = VerticalScroll()

    def compose(self) -> ComposeResult:
        yield Static(Content.styled("Machine, engine, models, library", "bold"), classes="title")
        yield self._findings
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.action_check()

    def action_check(self) -> None:
        self.start(self._check(), failed=self._fail)

    async def _check(self) -> None:
        await self._show([Static(Content("Checking …"))])
        findings = await asyncio.to_thread(self.session.diagnose)
        suggestions = await asyncio.to_thread(self.session.suggestions)
        parts = [part for finding in findings for part in _parts(finding)]
        await self._show([*parts, *(part for suggestion in suggestions for part in _suggested(suggestion))])

    def _fail(self, problem: Problem) -> None:
        self.start(self._show([Static(problem.content())]))

    async def _show(self, parts: Sequence[Static]) -> None:
        await self._findings.remove_children()
        await self._findings.mount_all(parts)


def _parts(finding: Finding) -> list[Static]:
    head = Content.assemble(_MARKS[finding.severity], "  ", shown.line(finding.name, 100, "bold"))
    says = [shown.line(part, 1000) for part in (finding.message, finding.remedy) if part]
    return [Static(head), Static(Content("\n").join(says), classes="says")]


def _suggested(suggestion: Suggestion) -> list[Static]:
    """A row of the tuning guide that fits this machine."""
    head = Content.assemble(_MARKS["info"], "  ", shown.line(suggestion.symptom, 100, "bold"))
    says = [shown.line(part, 1000) for part in (suggestion.why, suggestion.command, suggestion.effect)]
    return [Static(head), Static(Content("\n").join(says), classes="says")]
