"""The sources of the current answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList

from edgerag.types import Source, SourceState
from edgerag.ui.place import full_place, headings_below, in_library, member_name, place
from edgerag.ui.tui import shown
from edgerag.ui.tui.keys import Keyed
from edgerag.ui.tui.widgets.peek import STATE_WORDS

_QUOTE_ROWS = 3
_INDENT = " " * 5  # as wide as "[1]✓ "


class SourcesPane(Keyed, OptionList):
    """A numbered list; cited sources are marked. Compact (one row each) where there is little room."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Open passage", show=True),
    ]

    class Pointed(Message):
        """The cursor is on another source."""

        def __init__(self, source: Source) -> None:
            super().__init__()
            self.source = source

    class Opened(Message):
        """The user wants to read a source in its place."""

        def __init__(self, source: Source) -> None:
            super().__init__()
            self.source = source

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, **options)
        self._sources: tuple[Source, ...] = ()
        self._states: Mapping[int, SourceState] = {}
        self._drawn_for: tuple[int, bool] = (0, False)
        self._stacked = False

    @property
    def sources(self) -> tuple[Source, ...]:
        return self._sources

    def set_stacked(self, stacked: bool) -> None:
        """Below the conversation instead of beside it."""
        self._stacked = stacked
        self._draw()

    def show(self, sources: tuple[Source, ...], states: Mapping[int, SourceState]) -> None:
        """``states``: what became of those that were kept, by number."""
        if sources != self._sources or states != self._states:
            self._sources = sources
            self._states = states
            self._drawn_for = (0, False)
            self._draw()
        self.border_title = _title(sources)

    def on_resize(self) -> None:
        self._draw()

    def point_at(self, number: int) -> None:
        """Puts the cursor on the source of that number."""
        place = next((place for place, source in enumerate(self._sources) if source.number == number), None)
        if place is not None:
            self.highlighted = place

    def on_option_list_option_highlighted(self, message: OptionList.OptionHighlighted) -> None:
        message.stop()
        if self.has_focus and message.option_index < len(self._sources):
            self.post_message(self.Pointed(self._sources[message.option_index]))

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        self.post_message(self.Opened(self._sources[message.option_index]))

    def _draw(self) -> None:
        width = max(20, self.scrollable_content_region.width - 2)  # the option's own padding
        if self._drawn_for == (width, self._stacked):
            return
        self._drawn_for = (width, self._stacked)
        highlighted = self.highlighted
        self.clear_options()
        draw = _one_row if self._stacked else _several_rows
        states = self._states
        self.add_options([draw(source, width, states.get(source.number, "current")) for source in self._sources])
        if self._sources:
            self.highlighted = min(highlighted or 0, len(self._sources) - 1)


def _title(sources: tuple[Source, ...]) -> str:
    if not sources:
        return "Sources"
    cited = sum(source.cited for source in sources)
    return f"Sources ({len(sources)}, {cited} cited)" if cited else f"Sources ({len(sources)})"


def _mark(source: Source) -> Content:
    number = (f"[{source.number}]", "bold $text-accent")
    return Content.assemble(number, ("✓ ", "bold $text-success") if source.cited else "  ")


def _behind(state: SourceState) -> Content:
    words = STATE_WORDS[state]
    return Content.styled(f" ({words})", "$text-warning") if words else Content()


def _before(state: SourceState) -> Content:
    words = STATE_WORDS[state]
    return Content.styled(f"{words}: ", "$text-warning") if words else Content()


def _one_row(source: Source, width: int, state: SourceState) -> Content:
    hit = source.hit.chunk
    name = shown.line(in_library(hit) + member_name(hit.path), max(12, width // 2))  # leaves room for the place
    quote = shown.line(source.quote, width, "$foreground 70%")
    row = Content.assemble(_mark(source), name, f", {place(hit)}", _behind(state), "  ", quote)
    return row.truncate(width, ellipsis=True)


def _several_rows(source: Source, width: int, state: SourceState) -> Content:
    hit = source.hit.chunk
    where = f"{in_library(hit)}{full_place(hit)}, {member_name(hit.path)}"
    rows = [
        Content.assemble(_mark(source), shown.line(hit.title or member_name(hit.path), width, "bold")),
        Content.assemble(
            _INDENT,
            _before(state),
            shown.line(where, width, "$foreground 75%"),
        ),
    ]
    headings = [
        heading for heading in headings_below(hit) if shown.fitted(heading, width) != shown.fitted(hit.title, width)
    ]
    if headings:
        rows.append(Content.assemble(_INDENT, shown.line(" › ".join(headings), width, "$foreground 70%")))
    quote = shown.rows(source.quote, width - len(_INDENT), _QUOTE_ROWS, "$foreground 70%")
    rows = [row.truncate(width, ellipsis=True) for row in rows]
    rows += [Content.assemble(_INDENT, part) for part in quote]
    return Content("\n").join([*rows, Content()])
