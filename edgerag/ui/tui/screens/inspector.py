"""Why an answer is as it is, and where its time went: plan, hits, prompt, cache, time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Footer, Static, TabbedContent, TabPane

from edgerag.telemetry.frames import TimedAnswer
from edgerag.types import Answer, Message, Passage
from edgerag.ui.tui import shown
from edgerag.ui.tui.screens.base import SideScreen
from edgerag.ui.tui.screens.passage import PassageDialog
from edgerag.ui.tui.why_content import budget_content, cache_content, plan_content, time_content
from edgerag.ui.tui.widgets.folded_text import FoldedText
from edgerag.ui.tui.widgets.hits_table import HitsTable
from edgerag.ui.why import said
from edgerag.ui.why.text import hit_place, prompt_text

Section = Literal["plan", "found", "prompt", "cache", "time"]
SECTIONS: tuple[Section, ...] = ("plan", "found", "prompt", "cache", "time")
_TITLES = {"plan": "Plan", "found": "Found", "prompt": "Prompt", "cache": "Cache", "time": "Time"}
_EDGE_CELLS = 3  # padding, and the bar that scrolls


class InspectorScreen(SideScreen):
    """One finished answer. ``answers``: the last ones, this one among them, for the flame."""

    KEYS_TITLE = "Why this answer"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("1", "section('plan')", "Plan", show=False, tooltip="How the question was read"),
        Binding("2", "section('found')", "Found", show=False, tooltip="What was found"),
        Binding("3", "section('prompt')", "Prompt", show=False, tooltip="What the model was given"),
        Binding("4", "section('cache')", "Cache", show=False, tooltip="What of the prompt was not computed"),
        Binding("5", "section('time')", "Time", show=False, tooltip="Where the time went"),
        Binding("n", "step(1)", "Next section", tooltip="Next section (also 1 to 5)"),
        Binding("p", "step(-1)", "Prev section", tooltip="Previous section"),
        Binding("f", "fold_all", "Fold all", tooltip="Fold or unfold the whole prompt"),
        Binding("c", "copy", "Copy prompt", show=False, tooltip="Copy the prompt, word for word"),
    ]
    AUTO_FOCUS = None

    def __init__(self, answer: Answer, answers: Sequence[TimedAnswer] = (), *, section: Section = "plan") -> None:
        super().__init__()
        self._answer = answer
        self._answers = answers
        self._section: Section = section
        self._plan, self._budget, self._cache, self._time = (Static() for _ in range(4))
        self._hits = HitsTable()
        self._nothing = Static()
        self._detail = Static(classes="detail")
        self._parts = [FoldedText(heading, text) for heading, text in _prompt_parts(answer)]

    def compose(self) -> ComposeResult:
        question = shown.line(self._answer.question, 300)
        yield Static(Content.assemble(("Why this answer  ", "bold"), question), classes="title")
        with TabbedContent(initial=self._section):
            with TabPane(Content(f"1 {_TITLES['plan']}"), id="plan"):
                yield VerticalScroll(self._plan)
            with TabPane(Content(f"2 {_TITLES['found']}"), id="found"), Vertical():
                yield self._nothing
                yield self._hits
                yield self._detail
            with TabPane(Content(f"3 {_TITLES['prompt']}"), id="prompt"):
                yield VerticalScroll(self._budget, *self._parts)
            with TabPane(Content(f"4 {_TITLES['cache']}"), id="cache"):
                yield VerticalScroll(self._cache)
            with TabPane(Content(f"5 {_TITLES['time']}"), id="time"):
                yield VerticalScroll(self._time)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        trace = self._answer.trace
        cited = {source.number for source in self._answer.sources if source.cited}
        hits = trace.hits if trace is not None else ()
        self._hits.show(hits, cited)
        self._hits.display = self._detail.display = bool(hits)
        self._nothing.display = not hits
        missing = said.not_kept(self._answer) or "Nothing was searched for this answer."
        self._nothing.update(shown.text(missing, "$text-warning"))
        self.call_after_refresh(self._focus_section)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        return self._active == "prompt" and bool(self._parts) if action in ("fold_all", "copy") else True

    def on_resize(self) -> None:
        width = max(20, self.size.width - _EDGE_CELLS)
        trace = self._answer.trace
        self._plan.update(plan_content(self._answer, width))
        if trace is not None and trace.budget is not None:
            self._budget.update(budget_content(trace.budget, width))
        else:
            self._budget.update(Content("No model was given a prompt for this answer."))
        self._cache.update(cache_content(self._answer, width))
        self._time.update(time_content(self._answer, self._answers, width))

    # ------------------------------------------------------------ sections

    def action_section(self, section: Section) -> None:
        self.query_one(TabbedContent).active = section
        self.call_after_refresh(self._focus_section)

    def action_step(self, step: int) -> None:
        here = SECTIONS.index(self._active)
        self.action_section(SECTIONS[(here + step) % len(SECTIONS)])

    @property
    def _active(self) -> Section:
        tabs = self.query(TabbedContent)
        active = tabs.first().active if tabs else ""
        return next((section for section in SECTIONS if section == active), self._section)

    def on_tabbed_content_tab_activated(self) -> None:
        self.refresh_bindings()

    def _focus_section(self) -> None:
        """The keys go to what scrolls in the open section."""
        pane = self.query_one(f"#{self._active}", TabPane)
        wanted: Widget = self._hits if self._active == "found" else pane.query_one(VerticalScroll)
        wanted.focus(scroll_visible=False)

    def action_fold_all(self) -> None:
        """In the section of the prompt: all parts of it."""
        some_folded = any(not part.is_unfolded for part in self._parts)
        for part in self._parts:
            part.fold(not some_folded)

    def action_copy(self) -> None:
        trace = self._answer.trace
        if trace is None or not trace.messages:
            self.notify("There is no prompt to copy.", markup=False)
            return
        self.app.copy_to_clipboard(prompt_text(trace.messages))
        self.notify("Prompt copied.", markup=False)

    # ------------------------------------------------------------ hits

    def on_data_table_row_highlighted(self) -> None:
        traced = self._hits.at_cursor
        if traced is None:
            self._detail.update()
            return
        sentence = said.OUTCOME_SENTENCES[traced.outcome]
        place = shown.line(hit_place(traced), 300, "$foreground 75%")
        text = shown.line(traced.hit.chunk.chunk.text, 400, "$foreground 75%")
        self._detail.update(Content("\n").join([Content.styled(sentence, "bold"), place, text]))

    def on_data_table_row_selected(self) -> None:
        traced = self._hits.at_cursor
        trace = self._answer.trace
        if traced is not None and trace is not None:
            self.edgerag.push_screen(PassageDialog(traced, trace.hits.index(traced) + 1))


def _prompt_parts(answer: Answer) -> list[tuple[str, str]]:
    """Heading and text of every part of the prompt, in its order."""
    trace = answer.trace
    if trace is None:
        return []
    return [(_heading(message, part), str(part)) for message in trace.messages for part in message.parts]


def _heading(message: Message, part: str | Passage) -> str:
    return f"{message.role}, passage" if isinstance(part, Passage) else message.role
