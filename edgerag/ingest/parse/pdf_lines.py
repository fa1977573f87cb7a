"""The lines of a PDF page with their places, from the characters that PDFium finds.

Places are given as they are read: whatever way a line runs over the page (turned by a quarter, downwards as in
Chinese and Japanese books), its box is turned so that the line runs to the right and the next one stands below it.
What has no meaning as text is left out and counted: characters of fonts that do not say what they stand for, and
lines that stand beside the page.
"""

from __future__ import annotations

import bisect
import ctypes
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import pypdfium2.raw as pdfium

from edgerag.ingest.parse.pdf_symbols import composed, symbol
from edgerag.ingest.parse.pdf_text_page import character_size

# How a line runs over the page as its coordinates have it. "down" is upright CJK writing or text turned clockwise.
Direction = Literal["right", "down", "up", "left"]

HYPHEN = "\x02"  # PDFium's mark of a hyphen that only divides a word
_BULLETS = str.maketrans({"\uf0b7": "•", "\uf0a7": "▪", "\uf0d8": "➢", "\uf0fc": "✓", "\u00ad": ""})
# Control characters stand for spaces in badly mapped fonts; private and undefined ones mean nothing.
_TO_BLANK = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_TO_NOTHING = re.compile("[\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff\U000f0000-\U0010ffff]")
_PRESENTATION_FORM = re.compile("[\ufb00-\ufdff\ufe70-\ufefc]")  # ligatures and positional shapes of letters
_RIGHT_TO_LEFT = frozenset({"R", "AL", "NSM"})
_LAST_CODE = 0x10FFFF
_LONGEST_FONT_NAME = 256
_FIRST_UPRIGHT = 0x1100  # code: letters that are as wide as they are high begin here
_SQUARE = 1.5  # the one side against the other: what is longer is no such letter
_NO_INK = 0.1  # points
_ACTUAL_TEXT = 5  # characters at one place; ligatures have up to four
# White space in a line that is this many times as wide as the type is high may part two columns.
_WIDE_GAP = 0.9
# Points. Boxes that are less high may be those of a font that does not say how high its letters are.
_LEAST_HEIGHT = 1.0
_UPRIGHT = 0.35  # of the type's height: how far the characters of a vertical line may stand from one another sideways


class Box(NamedTuple):
    """A rectangle; ``bottom`` is the smaller height, also when the box was turned. A tuple: a book has a million."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def known(self) -> bool:
        return self.right > self.left or self.top > self.bottom

    @property
    def is_square(self) -> bool:
        width, height = self.right - self.left, self.top - self.bottom
        return width < _SQUARE * height and height < _SQUARE * width

    def around(self, other: Box) -> Box:
        return around((self, other))


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box that holds all of them, of which there is at least one."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return Box(min(lefts), min(bottoms), max(rights), max(tops))


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line, in the frame of its direction."""

    text: str
    box: Box
    first: float  # height at which its first visible character stands
    last: float  # and its last one
    size: float  # of its type as drawn, in points; 0 when nothing of it has an extent
    direction: Direction
    divided: bool = False  # it ends within a word
    numbers: tuple[int, int] = (0, 0)  # of its characters in the text page, half open
    unseen: str = ""  # what of it cannot be seen on the page: see pdf_hidden.py
    pieces: tuple[Line, ...] = ()  # what wide gaps part, when there are any

    @property
    def width(self) -> float:
        return self.box.right - self.box.left


@dataclass(frozen=True, slots=True)
class PageLines:
    """The lines of a page in the order in which its content draws them."""

    lines: tuple[Line, ...]
    characters: int  # printed ones, the unmapped among them
    unmapped: int  # characters that were left out because their font does not say what they stand for
    beside: tuple[str, ...]  # lines that stand beside the page


class _Character(NamedTuple):
    text: str
    box: Box
    number: int  # in the text page
    visible: bool


def read_lines(text_page: Any, bounds: tuple[float, float, float, float]) -> PageLines:
    """``bounds`` are left, bottom, right and top of what is seen of the page."""
    lines: list[Line] = []
    beside: list[str] = []
    characters, unmapped = _characters(text_page)
    printed = unmapped
    for group, divided in _printed_lines(characters):
        visible = [character for character in group if character.visible]
        printed += len(visible)
        text = _clean(_logical(group))
        if not text.strip():
            continue
        ends = (visible[0].box, visible[-1].box) if visible else ()
        if ends and all(_outside(box, bounds) for box in ends):
            beside.append(text.strip())
            continue
        lines.append(_line(text, group, visible, divided, text_page))
    return PageLines(tuple(lines), printed, unmapped, tuple(beside))


def _characters(text_page: Any) -> tuple[list[_Character], int]:
    """All characters of the page that have a meaning, and how many have none."""
    raw, box = text_page.raw, pdfium.FS_RECTF()
    box_at, code_at, place = pdfium.FPDFText_GetLooseCharBox, pdfium.FPDFText_GetUnicode, ctypes.byref(box)
    has_no_mapping = pdfium.FPDFText_HasUnicodeMapError
    found: list[_Character] = []
    unmapped: list[_Character] = []
    for number in range(text_page.count_chars()):
        code = code_at(raw, number)
        text = chr(code) if code <= _LAST_CODE else "\ufffd"
        where = Box(box.left, box.bottom, box.right, box.top) if box_at(raw, number, place) else _NOWHERE
        if code >= _FIRST_UPRIGHT and where.known and not where.is_square:
            where = _without_ink_made_up(raw, number, where)
        visible = where.known and text != HYPHEN and not text.isspace()
        if code == 0 or has_no_mapping(raw, number) == 1:
            sign = symbol(_font_name(raw, number), code)
            if sign is None:
                unmapped.append(_Character(text, where, number, visible))
                continue
            text = sign
        found.append(_Character(text, where, number, visible))
    if not _reads_like_words("".join(character.text for character in unmapped)):
        return found, sum(character.visible for character in unmapped)
    return sorted([*found, *unmapped], key=lambda character: character.number), 0


def _without_ink_made_up(text_page: Any, number: int, room: Box) -> Box:
    """The room of a character without the ink that PDFium makes up beside it where it knows no shape of it: in a
    vertical line it is a stroke as long as the letter is high, to the left."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    if not pdfium.FPDFText_GetCharBox(text_page, number, left, right, bottom, top):
        return room
    if top.value - bottom.value < _NO_INK and room.left < right.value < room.right:
        return room._replace(left=right.value)
    if right.value - left.value < _NO_INK and room.bottom < top.value < room.top:
        return room._replace(bottom=top.value)
    if right.value - left.value < _NO_INK and room.bottom < bottom.value < room.top:
        return room._replace(top=bottom.value)
    return room


def _font_name(text_page: Any, number: int) -> str:
    drawn = pdfium.FPDFText_GetTextObject(text_page, number)
    font = pdfium.FPDFTextObj_GetFont(drawn) if drawn else None
    if not font:
        return ""
    name = ctypes.create_string_buffer(_LONGEST_FONT_NAME)
    pdfium.FPDFFont_GetBaseFontName(font, name, _LONGEST_FONT_NAME)
    return name.value.decode("latin-1")


def _reads_like_words(text: str) -> bool:
    """Whether codes without a mapping happen to be letters, as in old TeX fonts made of bitmaps.

    Codes that are the numbers of glyphs give few small letters, or letters without the vowels of words.
    """
    letters = [character for character in text if character.isalpha()]
    if len(letters) < 20 or len(letters) < 0.6 * len(text):
        return False
    small = sum(character.isascii() and character.islower() for character in letters) / len(letters)
    vowels = sum(character in "aeiouyAEIOUY" for character in letters) / len(letters)
    return small > 0.7 and 0.25 < vowels < 0.6


def _printed_lines(characters: Sequence[_Character]) -> Iterator[tuple[list[_Character], bool]]:
    """The characters line by line; True where the line ends within a word."""
    group: list[_Character] = []
    for character in characters:
        if character.text == "\n":
            yield group, False
            group = []
        elif character.text == HYPHEN:
            yield group, True
            group = []
        elif character.text != "\r":
            group.append(character)
    yield group, False


def _logical(group: Sequence[_Character]) -> str:
    """The text of a line. An /ActualText from right to left is given back in its own order: PDFium turns it round
    as if it had been painted; all its characters stand at one place."""
    text = [character.text for character in group]
    start = 0
    for end in range(1, len(group) + 1):
        if end < len(group) and group[end].box == group[start].box and _turned(group[end].text):
            continue
        if end - start >= _ACTUAL_TEXT and _turned(text[start]):
            text[start:end] = reversed(text[start:end])
        start = end
    return "".join(text)


def _turned(character: str) -> bool:
    return unicodedata.bidirectional(character) in _RIGHT_TO_LEFT


def _line(text: str, group: Sequence[_Character], visible: Sequence[_Character], divided: bool, text_page: Any) -> Line:
    if not visible:
        return Line(text, _NOWHERE, 0.0, 0.0, 0.0, "right", divided)
    direction = _direction(visible, text_page)
    turn = _TURNS[direction]
    boxes = [turn(character.box) for character in visible]
    size = abs(boxes[0].top - boxes[0].bottom)
    if size < _LEAST_HEIGHT:
        size = character_size(text_page, visible[0].number)
    line = Line(
        text,
        around(boxes),
        boxes[0].bottom,
        boxes[-1].bottom,
        size,
        direction,
        divided,
        (group[0].number, group[-1].number + 1),
    )
    return replace(line, pieces=_pieces(line, group, visible, boxes))


def _pieces(
    line: Line, group: Sequence[_Character], visible: Sequence[_Character], boxes: Sequence[Box]
) -> tuple[Line, ...]:
    """The parts of a line between its wide gaps; none when it has no such gap."""
    cuts = [
        n
        for n in range(1, len(boxes))
        if boxes[n].left - boxes[n - 1].right > _WIDE_GAP * line.size
        or boxes[n].right < boxes[n - 1].left - _WIDE_GAP * line.size
    ]
    if not cuts or not line.size:
        return ()
    pieces: list[Line] = []
    numbers = [character.number for character in group]
    for begin, end in zip([0, *cuts], [*cuts, len(boxes)], strict=True):
        low = visible[begin].number
        high = visible[end].number if end < len(boxes) else group[-1].number + 1
        pieces.append(
            Line(
                _clean(_logical(group[bisect.bisect_left(numbers, low) : bisect.bisect_left(numbers, high)])),
                around(boxes[begin:end]),
                boxes[begin].bottom,
                boxes[end - 1].bottom,
                line.size,
                line.direction,
                divided=line.divided and end == len(boxes),
                numbers=(low, high),
            )
        )
    return tuple(pieces)


def _direction(visible: Sequence[_Character], text_page: Any) -> Direction:
    angle = pdfium.FPDFText_GetCharAngle(text_page.raw, visible[0].number)
    quarter = round(math.degrees(angle) / 90) % 4 if angle > 0 else 0
    if quarter:
        return _QUARTERS[quarter]
    return "down" if _is_stacked([character.box for character in visible]) else "right"


def _is_stacked(boxes: Sequence[Box]) -> bool:
    """Whether upright characters stand one below the other."""
    if len(boxes) < 2:
        return False
    middles = [(box.left + box.right) / 2 for box in boxes]
    height = max(box.top - box.bottom for box in boxes)
    falls = all(later.top < earlier.top for earlier, later in pairwise(boxes))
    return falls and max(middles) - min(middles) < 2 * _UPRIGHT * height + (boxes[0].right - boxes[0].left) / 2


_QUARTERS: tuple[Direction, ...] = ("right", "down", "left", "up")  # by PDFium's angle
_NOWHERE = Box(0.0, 0.0, 0.0, 0.0)
_TURNS: dict[Direction, Callable[[Box], Box]] = {
    "right": lambda box: box,
    "down": lambda box: Box(-box.top, box.left, -box.bottom, box.right),
    "up": lambda box: Box(box.bottom, -box.right, box.top, -box.left),
    "left": lambda box: Box(-box.right, -box.top, -box.left, -box.bottom),
}


def _outside(box: Box, bounds: tuple[float, float, float, float]) -> bool:
    left, bottom, right, top = bounds
    return box.right < left or box.left > right or box.top < bottom or box.bottom > top


def _clean(line: str) -> str:
    line = line.translate(_BULLETS)
    line = _TO_NOTHING.sub("", _TO_BLANK.sub(" ", line))
    line = _PRESENTATION_FORM.sub(lambda match: unicodedata.normalize("NFKC", match[0]), line)
    return composed(line).rstrip()
