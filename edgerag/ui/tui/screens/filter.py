"""Keeps questions to some documents: folder or file, tag, language, type, date."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Horizontal, VerticalScroll
from textual.content import Content
from textual.suggester import SuggestFromList
from textual.widgets import Button, Static

from edgerag.errors import EdgeragError
from edgerag.types import Document, FilterText
from edgerag.ui.filtering import read_filter
from edgerag.ui.tui import shown
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SessionDialog
from edgerag.ui.tui.widgets.line_input import LineInput

# The field, what it is called, and what may stand in it.
_FIELDS = (
    ("inside", "In", "file, folder or #number"),
    ("tags", "Tags", ""),
    ("languages", "Languages", "en, de, zh …"),
    ("types", "Types", "pdf, word, slides, mail, code, .log …"),
    ("since", "Since", "2024, 2024-05, 30d, 6m …"),
    ("until", "Until", "2024, yesterday …"),
)
_NAMED = 12  # tags, languages: those there are, as far as a line has room


class FilterDialog(SessionDialog[FilterText]):
    """The filter as it was typed, or None if it is to stay as it is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel"),
        Binding("up", "app.focus_previous", "Field above", show=False, priority=True),
        Binding("down", "app.focus_next", "Field below", show=False, priority=True),
        Binding("ctrl+d", "clear", "All documents", show=False, priority=True),
    ]
    AUTO_FOCUS = "Input"

    def __init__(self, typed: FilterText) -> None:
        super().__init__()
        self._typed = typed
        self._inputs = {
            name: LineInput(
                getattr(typed, name), placeholder=hint, id=f"filter-{name}", compact=True, select_on_focus=False
            )
            for name, _, hint in _FIELDS
        }
        self._notice = Static(classes="notice")

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Static(Content.styled("Ask only of the documents that fit all of this", "bold"))
            with Grid(classes="fields"):
                for name, label, _ in _FIELDS:
                    yield Static(Content(label))
                    yield self._inputs[name]
            yield self._notice
            yield Static(
                Content.styled("Commas between entries. Enter takes it, Esc leaves it.", "$foreground 70%"),
                classes="keys",
            )
            with Horizontal(classes="buttons"):
                yield Button(Content("All documents (Ctrl+D)"), id="clear", compact=True)
                yield Button(Content("Take it (Enter)"), id="take", variant="primary", compact=True)

    def on_mount(self) -> None:
        self._notice.display = False
        self.run_worker(self._suggest())

    async def _suggest(self) -> None:
        """Names what there is in the library, and completes it."""
        try:
            documents = await asyncio.to_thread(self.edgerag.session.documents)
        except EdgeragError as error:
            self._say(Problem.of(error).content())
            return
        known = {
            "tags": _most_frequent(tag for document in documents for tag in document.tags),
            "languages": _most_frequent(document.language for document in documents),
            "inside": _roots(documents),
        }
        for name, values in known.items():
            self._inputs[name].suggester = SuggestFromList(values)
            if values and name != "inside":
                self._inputs[name].placeholder = shown.line(", ".join(values[:_NAMED]), 60).plain

    def action_clear(self) -> None:
        self.dismiss(FilterText())

    def on_button_pressed(self, message: Button.Pressed) -> None:
        if message.button.id == "clear":
            self.action_clear()
        else:
            self.run_worker(self._take())

    def on_input_submitted(self) -> None:
        self.run_worker(self._take())

    async def _take(self) -> None:
        typed = FilterText(**{each.name: self._inputs[each.name].value.strip() for each in fields(FilterText)})
        try:
            where = read_filter(typed)
            if where is not None:
                await asyncio.to_thread(self.edgerag.session.check_filter, where)
        except EdgeragError as error:
            self._say(Problem.of(error).content())
        else:
            self.dismiss(typed)

    def _say(self, content: Content) -> None:
        self._notice.update(content)
        self._notice.display = bool(content.plain)


def _most_frequent(values: Iterable[str]) -> list[str]:
    counts = Counter(value for value in values if value and shown.is_typable(value))
    return sorted(counts, key=lambda value: (-counts[value], value))


def _roots(documents: Sequence[Document]) -> list[str]:
    return [root for root in dict.fromkeys(document.root for document in documents) if shown.is_typable(root)]
