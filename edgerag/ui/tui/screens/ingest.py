"""Adding documents: the dialog that asks which, and the screen that shows how it goes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from edgerag.locations import is_there
from edgerag.types import FileReport, IngestDone
from edgerag.ui.place import short_path
from edgerag.ui.tui import shown
from edgerag.ui.tui.ingest_view import IngestView, bar, summary
from edgerag.ui.tui.screens.base import SessionDialog
from edgerag.ui.tui.widgets.path_box import PathBox

_ROWS_AROUND_TROUBLES = 13
_TROUBLES_SHOWN = 500  # as many as a person scrolls through; `edgerag ingest --json` lists all


class AddDocumentsDialog(SessionDialog[list[Path] | None]):
    """Asks for a file or a folder; gives None if the user thinks better of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel"),
    ]

    def __init__(self, folder: str, *, title: str = "Add documents") -> None:
        super().__init__()
        self._heading = title
        self._box = PathBox(folder)
        self._notice = Static(classes="notice")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield Static(Content.styled(self._heading, "bold"))
            yield Static(
                Content.assemble(
                    "A file or a folder. ", ("Tab", "$text-accent"), " completes, ", ("Enter", "$text-accent"),
                    " reads it, ", ("Esc", "$text-accent"), " leaves.",
                )
            )  # fmt: skip
            yield self._box
            yield self._notice

    def on_mount(self) -> None:
        self._notice.display = False

    def on_path_box_sent(self, message: PathBox.Sent) -> None:
        missing = [path for path in message.paths if not is_there(path)]
        if not message.paths:
            self._say("Type the path of a file or a folder.")
        elif missing:
            self._say(f"There is no file or folder {str(missing[0])!r}.")
        else:
            self.dismiss(message.paths)

    def _say(self, sentence: str) -> None:
        self._notice.update(shown.text(sentence, "$text-error"))
        self._notice.display = True


class IngestDialog(SessionDialog[None]):
    """The ingest that runs, or how the last one ended. Leaving it open or not changes nothing."""

    KEYS_TITLE = "Reading documents"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop_or_close", "Stop / close"),
        Binding("enter,b", "close", "Go on asking meanwhile"),
        Binding("p", "pause", "Pause / go on"),
        Binding("r", "again", "Read again what failed or was left"),
        Binding("up", "scroll_troubles(-1)", "Scroll up", show=False),
        Binding("down", "scroll_troubles(1)", "Scroll down", show=False),
        Binding("pageup", "page_troubles(-1)", "Page up", show=False),
        Binding("pagedown", "page_troubles(1)", "Page down", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._heading = Static(classes="heading")
        self._bar = Static(classes="bar")
        self._figures = Static(classes="figures")
        self._troubles = Static()
        self._scroll = VerticalScroll(self._troubles, classes="troubles")
        self._shown_troubles: tuple[FileReport, ...] | None = None
        self._keys = Static(classes="keys")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield self._heading
            yield self._bar
            yield self._figures
            yield self._scroll
            yield self._keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        match action:
            case "scroll_troubles" | "page_troubles":
                return bool(self.edgerag.ingest_view.troubles)
            case "again":
                return self.edgerag.ingest_view.is_unfinished
            case "pause":
                return self.edgerag.ingest_view.can_be_paused
            case _:
                return True

    def on_mount(self) -> None:
        self.edgerag.ingest_changed.subscribe(self, self._show)
        self._show(self.edgerag.ingest_view)

    def on_resize(self) -> None:
        # What the rest of the dialog leaves of its 90 % of the screen.
        self._scroll.styles.max_height = max(3, self.size.height * 9 // 10 - _ROWS_AROUND_TROUBLES)
        self._show(self.edgerag.ingest_view)

    def _show(self, view: IngestView) -> None:
        self._heading.update(Content.styled(_heading(view), "bold"))
        full, empty = bar(view.fraction, max(10, self._heading.content_size.width - 6))
        self._bar.update(Content.assemble((full, "$primary"), (empty, "$foreground 25%"), f" {view.fraction:4.0%}"))
        self._bar.display = view.problem is None
        self._figures.update(_figures(view))
        if view.troubles != self._shown_troubles:
            self._shown_troubles = view.troubles
            self._troubles.update(_troubles(view.troubles))
            self._scroll.display = bool(view.troubles)
        self._keys.update(_keys(view))

    def action_stop_or_close(self) -> None:
        if self.edgerag.ingest_view.running:
            self.edgerag.stop_ingest()
        else:
            self.dismiss()

    def action_pause(self) -> None:
        self.edgerag.action_pause_ingest()

    def action_again(self) -> None:
        self.edgerag.ingest_again()

    def action_close(self) -> None:
        self.dismiss()

    def action_scroll_troubles(self, direction: int) -> None:
        self._scroll.scroll_relative(y=direction, animate=False)

    def action_page_troubles(self, direction: int) -> None:
        self._scroll.scroll_relative(y=direction * max(1, self._scroll.size.height - 1), animate=False)


def _heading(view: IngestView) -> str:
    if view.running:
        if view.stopping:
            return "Stopping: what is read so far is kept …"
        return "Paused: p goes on from here." if view.paused else "Reading documents"
    if view.problem is not None:
        return "Documents could not be read"
    done = view.done
    if done is not None and done.interrupted:
        return "Stopped. What was read is kept; r goes on from there, now or later."
    if done is not None and done.count("failed"):
        return "Done, but some files failed"
    return "Done" if done is None or done.reports else "Nothing to read there: no files."


def _figures(view: IngestView) -> Content:
    if view.problem is not None:
        return view.problem.content()
    if view.done is not None:
        notes = [shown.line(note, 500, "$text-warning") for note in view.done.notes]
        return Content("\n").join([Content(summary(view.done)), *notes])
    current = view.progress.current if view.progress else ""
    return Content.assemble(view.figures(), "\n", shown.line(short_path(current), 200, "$foreground 70%"))


def _troubles(reports: tuple[FileReport, ...]) -> Content:
    lines = []
    for report in reports[:_TROUBLES_SHOWN]:
        style = "$text-error" if report.outcome == "failed" else "$text-warning"
        path, reason = shown.line(short_path(report.path), 300, "bold"), shown.line(report.reason, 500)
        lines.append(Content.assemble((f"{report.outcome} ", style), path, ": ", reason))
    if len(reports) > _TROUBLES_SHOWN:
        lines.append(Content(f"and {len(reports) - _TROUBLES_SHOWN:,} more"))
    return Content("\n").join(lines)


def _keys(view: IngestView) -> Content:
    keys = [("Enter", "go on asking meanwhile"), ("Esc", "stop")] if view.running else [("Esc", "close")]
    if view.can_be_paused:
        keys.append(("p", "go on" if view.paused else "pause"))
    if view.is_unfinished:
        stopped = view.done is not None and view.done.interrupted
        keys.append(("r", "go on" if stopped else "try again"))
    if view.troubles:
        keys.append(("↑↓", "scroll"))
    parts = [Content.assemble((key, "$text-accent"), f" {what}") for key, what in keys]
    return Content("   ").join(parts)


def ended_sentence(done: IngestDone) -> str:
    """The notification for an ingest that ended while the user was elsewhere."""
    start = "Reading stopped" if done.interrupted else "Documents read"
    return f"{start}: {summary(done)}. F2 shows more."
