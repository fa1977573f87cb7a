"""The keys, read from the bindings themselves, so that this page cannot lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from edgerag.ui.tui.screens.ask import AskScreen
from edgerag.ui.tui.screens.blocks import BlocksScreen
from edgerag.ui.tui.screens.doctor import DoctorScreen
from edgerag.ui.tui.screens.ingest import IngestDialog
from edgerag.ui.tui.screens.library import LibraryScreen
from edgerag.ui.tui.screens.viewer import ViewerScreen
from edgerag.ui.tui.widgets.conversation import Conversation
from edgerag.ui.tui.widgets.path_box import PathBox
from edgerag.ui.tui.widgets.question_box import QuestionBox
from edgerag.ui.tui.widgets.sources import SourcesPane
from edgerag.ui.tui.widgets.thread_list import ThreadList
from edgerag.ui.tui.widgets.threads_pane import ThreadsPane

_KEY_COLUMN = 14


class HelpDialog(ModalScreen[None]):
    """Scrolls; any of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,question_mark,enter", "dismiss", "Close"),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog tall"):
            yield Static(_content(self.app.BINDINGS))


def _content(app_bindings: Iterable[BindingType]) -> Content:
    sections = [
        ("Everywhere", app_bindings),
        ("Question", QuestionBox.BINDINGS),
        ("Answers", [*AskScreen.BINDINGS, *Conversation.BINDINGS]),
        ("Sources", SourcesPane.BINDINGS),
        ("Threads", [*ThreadsPane.BINDINGS, *ThreadList.BINDINGS]),
        ("Passage", ViewerScreen.BINDINGS),
        ("Add documents", [*PathBox.BINDINGS, *IngestDialog.BINDINGS]),
        ("Library", LibraryScreen.BINDINGS),
        ("Check", DoctorScreen.BINDINGS),
        ("Index", BlocksScreen.BINDINGS),
    ]
    blocks = [Content("\n").join([Content.styled(title, "bold $text-accent"), *_lines(b)]) for title, b in sections]
    closing = Content.styled(
        "Text is selected with the mouse and copied with Ctrl+C. Esc closes this page.", "$foreground 60%"
    )
    return Content("\n\n").join([*blocks, closing])


def _lines(bindings: Iterable[BindingType]) -> list[Content]:
    lines = []
    for binding in bindings:
        if isinstance(binding, Binding) and binding.description:
            keys = " ".join(_key_name(key) for key in binding.key.split(","))
            gap = " " * (_KEY_COLUMN - len(keys)) if len(keys) < _KEY_COLUMN else "\n" + " " * (_KEY_COLUMN + 2)
            lines.append(Content.assemble((f"  {keys}{gap}", "bold"), binding.tooltip or binding.description))
    return lines


def _key_name(key: str) -> str:
    names = {"question_mark": "?", "escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn", "delete": "Del"}
    names |= {"left_square_bracket": "[", "right_square_bracket": "]", "slash": "/"}
    return names.get(key) or "+".join(part.capitalize() if len(part) > 1 else part for part in key.split("+"))
