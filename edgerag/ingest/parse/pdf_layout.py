"""The reading order of the lines of a page. Pure.

PDFium gives lines in the order in which the page draws them, which in most files is the order in which they are
read; it is kept. Two things are mended, each only where it is plain to see: rows that run across the columns of
running text, and blocks drawn before others that stand above them in the same column.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from edgerag.ingest.parse.pdf_lines import Box, Direction, Line, around

_FEWEST_LINES = 4  # fewer are left as they are drawn
_MOST_BLOCKS = 400  # pairs of them are compared, and one may stand above the other to that depth
_MOST_COLUMNS = 6
_MOST_LINES = 2_000  # of a page that is looked through for columns
_PLACE = 2.0  # points from one place where a gutter may be to the next
_MOST_GUTTERS = 20  # are looked at, those that most rows show
# Rows that must show the gutter, and words to a line, before two columns are taken for running text, not a table.
_GUTTER_ROWS = 5
_GUTTER_SHARE = 0.7
_PROSE_WORDS = 3.0
_PROSE_WIDE_CHARACTERS = 8.0  # where words are not parted by spaces
_PROSE_FILL = 0.6  # of the width of the column, in the middle of its lines
_LINE_GAP = 2.0  # in heights of the type: lines farther apart are no block
_OVERLAP = 0.5  # of the narrower one


def reading_order(lines: Sequence[Line]) -> list[Line]:
    """The lines of a page as they are read."""
    if len(lines) < _FEWEST_LINES:
        return list(lines)
    main = _main_direction(lines)
    parted = _columns([line for line in lines if line.direction == main and line.size])
    if parted is not None:
        others = [line for line in lines if line.direction != main or not line.size]
        return [*_blocks_in_order(parted, main), *others]
    return _blocks_in_order(lines, main)


def _main_direction(lines: Sequence[Line]) -> Direction:
    characters: Counter[Direction] = Counter()
    for line in lines:
        characters[line.direction] += len(line.text)
    return characters.most_common(1)[0][0]


# ---------------------------------------------------------------- rows across columns


@dataclass(frozen=True, slots=True)
class _Gutter:
    """White from top to bottom between two columns, and the rows that show it, as places in a list of lines."""

    middle: float
    first: int
    last: int


def _columns(lines: list[Line], depth: int = 0) -> list[Line] | None:
    """The lines with rows that run across a gutter taken apart, columns one after the other; None without any."""
    gutter = _gutter(lines) if len(lines) <= _MOST_LINES else None
    if gutter is None or depth >= _MOST_COLUMNS:
        return None
    left: list[Line] = []
    right: list[Line] = []
    for line in lines[gutter.first : gutter.last + 1]:
        before, after = _parted(line, gutter.middle)
        left.extend(before)
        right.extend(after)
    return [
        *lines[: gutter.first],
        *(_columns(left, depth + 1) or left),
        *(_columns(right, depth + 1) or right),
        *lines[gutter.last + 1 :],
    ]


def _gutter(lines: Sequence[Line]) -> _Gutter | None:
    shown: dict[int, set[int]] = defaultdict(set)  # rows by the place of a gap
    for row, line in enumerate(lines):
        for before, after in _gaps(line):
            for place in range(math.ceil(before.box.right / _PLACE), math.floor(after.box.left / _PLACE) + 1):
                shown[place].add(row)
    candidates = sorted(shown.items(), key=lambda item: (-len(item[1]), item[0]))
    for place, rows in candidates[:_MOST_GUTTERS]:
        if len(rows) < _GUTTER_ROWS:
            break
        gutter = _Gutter(place * _PLACE, min(rows), max(rows))
        if _parts_prose(lines, gutter, len(rows)):
            return gutter
    return None


def _gaps(line: Line) -> Iterator[tuple[Line, Line]]:
    return ((a, b) for a, b in pairwise(line.pieces) if a.box.right < b.box.left)


def _parts_prose(lines: Sequence[Line], gutter: _Gutter, rows: int) -> bool:
    """Whether on both sides of a gutter stands running text that fills its column, and little runs across it."""
    region = lines[gutter.first : gutter.last + 1]
    across = sum(1 for line in region if _crosses(line, gutter.middle))
    if rows < _GUTTER_SHARE * (rows + across):
        return False
    sides: tuple[list[Line], list[Line]] = ([], [])
    for line in region:
        for side, parts in zip(sides, _parted(line, gutter.middle), strict=True):
            if parts and not _crosses(line, gutter.middle):
                side.append(_joined(parts))
    return all(_is_prose(side) for side in sides)


def _joined(parts: Sequence[Line]) -> Line:
    text, box = " ".join(part.text for part in parts), around(part.box for part in parts)
    return replace(parts[0], text=text, box=box)


def _is_prose(column: Sequence[Line]) -> bool:
    if len(column) < _GUTTER_ROWS:
        return False
    width = max(line.box.right for line in column) - min(line.box.left for line in column)
    words = statistics.median(len(line.text.split()) for line in column)
    characters = statistics.median(len(line.text) for line in column)
    dense = (
        sum(not character.isascii() for line in column for character in line.text)
        > sum(len(line.text) for line in column) / 2
    )
    filled = statistics.median(line.width for line in column) >= _PROSE_FILL * width
    return filled and (words >= _PROSE_WORDS or (dense and characters >= _PROSE_WIDE_CHARACTERS))


def _crosses(line: Line, middle: float) -> bool:
    parts = line.pieces or (line,)
    return any(part.box.left < middle < part.box.right for part in parts)


def _parted(line: Line, middle: float) -> tuple[list[Line], list[Line]]:
    """What of a line stands left and right of the gutter; one that runs across it counts to the left."""
    if _crosses(line, middle) or not any(a.box.right < middle < b.box.left for a, b in _gaps(line)):
        return ([line], []) if line.box.left < middle else ([], [line])
    left = [piece for piece in line.pieces if piece.box.right <= middle]
    right = [piece for piece in line.pieces if piece.box.left >= middle]
    return left, right


# ---------------------------------------------------------------- blocks drawn in another order


@dataclass(slots=True)
class _Block:
    lines: list[Line]
    box: Box
    bound: bool  # it stands in the frame of the page: its place says something


def _blocks_in_order(lines: Sequence[Line], main: Direction) -> list[Line]:
    """Each block after those that stand above it in its column, which are fetched where it stands; otherwise the
    order stays."""
    blocks = _blocks(lines, main)
    if not 1 < len(blocks) <= _MOST_BLOCKS:
        return list(lines)
    above: list[list[int]] = [[] for _ in blocks]
    for one in range(len(blocks)):
        for two in range(one + 1, len(blocks)):
            order = _above(blocks[one], blocks[two])
            if order:
                high, low = (one, two) if order > 0 else (two, one)
                above[low].append(high)
    ordered: list[Line] = []
    visited: set[int] = set()

    def visit(number: int) -> None:
        if number not in visited:
            visited.add(number)
            for high in above[number]:
                visit(high)
            ordered.extend(blocks[number].lines)

    for number in range(len(blocks)):
        visit(number)
    return ordered


def _blocks(lines: Sequence[Line], main: Direction) -> list[_Block]:
    blocks: list[_Block] = []
    for line in lines:
        bound = line.direction == main and bool(line.size)
        block = blocks[-1] if blocks else None
        if block is not None and (not bound or (block.bound and _continues(block.lines[-1], line))):
            block.lines.append(line)
            if bound:
                block.box = block.box.around(line.box)
        else:
            blocks.append(_Block([line], line.box, bound))
    return blocks


def _continues(before: Line, line: Line) -> bool:
    """Whether a line stands below the one before it, or beside it on the same row."""
    drop = before.first - line.first
    size = max(before.size, line.size)
    if abs(drop) < size / 2:
        return True
    return 0 < drop < _LINE_GAP * size and _shared(before.box, line.box) > 0


def _above(one: _Block, two: _Block) -> int:
    """1 when the first stands above the second in the same column, -1 when below, 0 when neither can be said."""
    if not one.bound or not two.bound:
        return 0
    narrower = min(one.box.right - one.box.left, two.box.right - two.box.left)
    if _shared(one.box, two.box) <= _OVERLAP * narrower:
        return 0
    slack = min(one.lines[0].size, two.lines[0].size) / 2
    if one.box.bottom >= two.box.top - slack:
        return 1
    return -1 if two.box.bottom >= one.box.top - slack else 0


def _shared(one: Box, two: Box) -> float:
    return min(one.right, two.right) - max(one.left, two.left)
