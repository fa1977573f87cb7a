"""What was found, with its places and scores leg by leg: sorted by any column, a passage at Enter."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from edgerag.types import TracedHit
from edgerag.ui.tui import shown
from edgerag.ui.tui.keys import Keyed
from edgerag.ui.why import said
from edgerag.ui.why.text import hit_place

_LAST = float("inf")
_LEAST_PASSAGE_CELLS = 10


@dataclass(frozen=True, slots=True)
class _Column:
    key: str
    label: str
    width: int | None  # at least; None: what the others leave


_COLUMNS = (
    _Column("rank", "#", 3),
    _Column("became", "Became", 13),
    _Column("keyword", "Keyword", 9),
    _Column("vector", "Vector", 8),
    _Column("fused", "Fused", 6),
    _Column("reranked", "Rerank", 8),
    _Column("look", "2nd look", 9),
    _Column("about", "About", 6),
    _Column("passage", "Passage", None),
)


class HitsTable(Keyed, DataTable[Text]):
    """Best first, until another order is asked for."""

    KEYS_TITLE = "Table of hits"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort_by(1)", "Sort", tooltip="Sort by the next column"),
        Binding("S", "sort_by(-1)", "Sort back", show=False, tooltip="Sort by the column before"),
        Binding("home", "scroll_top", "First hit", show=False),
        Binding("end", "scroll_bottom", "Last hit", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(cursor_type="row", zebra_stripes=True)
        self._hits: tuple[TracedHit, ...] = ()
        self._cited: Set[int] = frozenset()
        self._shown: list[_Column] = []
        self._widths: dict[str, int] = {}
        self._by = 0

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        return action != "sort_by" or bool(self._hits)

    @property
    def at_cursor(self) -> TracedHit | None:
        if not self.is_valid_row_index(self.cursor_row):
            return None
        key = self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value
        return self._hits[int(key)] if key is not None else None

    def show(self, hits: Sequence[TracedHit], cited: Set[int]) -> None:
        self._hits = tuple(hits)
        self._cited = cited
        looked = any(hit.hit.scores.second_look is not None for hit in hits)
        self._shown = [column for column in _COLUMNS if looked or column.key != "look"]
        rows = [_cells(place + 1, hit, cited=False) for place, hit in enumerate(self._hits)]
        self._widths = {
            column.key: max([column.width, *(row[column.key].cell_len for row in rows)])
            for column in self._shown
            if column.width is not None
        }
        self._fill()

    def _fill(self) -> None:
        """By the column that is asked for; its heading has a sign."""
        before = self.at_cursor
        self.clear(columns=True)
        for place, column in enumerate(self._shown):
            label = f"{column.label}{'▾' if place == self._by else ''}"
            self.add_column(Text(label), key=column.key, width=self._widths.get(column.key) or self._passage_cells())
        key = self._shown[self._by].key
        for place in sorted(range(len(self._hits)), key=lambda n: _order(key, n, self._hits[n])):
            cells = _cells(place + 1, self._hits[place], cited=self._hits[place].source in self._cited)
            self.add_row(*(cells[column.key] for column in self._shown), key=str(place))
        if before is not None:
            self.move_cursor(row=self.get_row_index(str(self._hits.index(before))), animate=False)

    def _passage_cells(self) -> int:
        """What the other columns leave."""
        others = sum(self._widths.values()) + len(self._shown) * 2 * self.cell_padding
        return max(_LEAST_PASSAGE_CELLS, self.size.width - others - self.scrollbar_size_vertical)

    def on_resize(self) -> None:
        if self._shown:
            self._fill()

    def action_sort_by(self, step: int) -> None:
        if self._shown:
            self._sort((self._by + step) % len(self._shown))

    def on_data_table_header_selected(self, message: DataTable.HeaderSelected) -> None:
        message.stop()
        self._sort(message.column_index)

    def _sort(self, by: int) -> None:
        self._by = by
        self._fill()


def _order(key: str, rank: int, traced: TracedHit) -> tuple[float | str, ...]:
    """What sorts a column, best first; equal ones keep their order."""
    scores, stored = traced.hit.scores, traced.hit.chunk
    match key:
        case "became":
            return (traced.source or _LAST, traced.outcome)
        case "keyword":
            return (scores.keyword_rank or _LAST,)
        case "vector":
            return (scores.vector_rank or _LAST,)
        case "fused":
            return (traced.fused_rank,)
        case "reranked":
            return (traced.reranked_rank or _LAST,)
        case "look":
            return (_LAST if scores.second_look is None else -scores.second_look,)
        case "about":
            return (_LAST if traced.probability is None else -traced.probability,)
        case "passage":
            return (stored.path, stored.chunk.start)
        case _:
            return (rank,)


def _cells(rank: int, traced: TracedHit, *, cited: bool) -> dict[str, Text]:
    scores = traced.hit.scores
    return {
        "rank": _figure(str(rank)),
        "became": shown.cell(said.outcome(traced, cited=cited), style="bold" if traced.source is not None else ""),
        "keyword": _ranked(scores.keyword_rank, "" if scores.keyword is None else f"{scores.keyword:6.2f}"),
        "vector": _ranked(scores.vector_rank, "" if scores.vector is None else f"{scores.vector:5.2f}"),
        "fused": _figure(str(traced.fused_rank)),
        "reranked": _ranked(traced.reranked_rank, "" if scores.reranked is None else f"{scores.reranked:5.0%}"),
        "look": _figure("-" if scores.second_look is None else f"{scores.second_look:.0%}"),
        "about": _figure("-" if traced.probability is None else f"{traced.probability:.0%}"),
        "passage": shown.cell(hit_place(traced)),
    }


def _figure(text: str) -> Text:
    return shown.cell(text, justify="right")


def _ranked(rank: int | None, score: str) -> Text:
    """Its rank, then its score; - where the leg did not find it."""
    return _figure("-") if rank is None else Text(f"{rank:>2} {score}", justify="right", no_wrap=True)
