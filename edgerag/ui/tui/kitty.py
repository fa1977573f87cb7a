"""Pictures in terminals that know Kitty's graphics protocol (https://sw.kovidgoyal.net/kitty/graphics-protocol/).

The terminal is given a picture once, and told then where to show what of it (inline_picture.py). Within tmux, which
knows no places of a picture, it is shown by text: each cell is a placeholder character with its row and column, which
Kitty knows since 0.28. The terminal is asked nothing: an answer that comes late, as over a slow line, would be taken
for keys (docs/decisions/118).
"""

from __future__ import annotations

import base64
import itertools
import secrets
import zlib
from collections.abc import Iterator

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

PLACEHOLDER = "\U0010eeee"
_CHUNK = 4096  # characters of one escape sequence at most, says the protocol
# The marks that stand for numbers from 0 on, as ranges: those of rowcolumn-diacritics.txt of the protocol.
_NUMBER_MARKS = (
    "305 30D-30E 310 312 33D-33F 346 34A-34C 350-352 357 35B 363-36F 483-487 592-595 597-599 59C-5A1 5A8-5A9 5AB-5AC "
    "5AF 5C4 610-617 657-65B 65D-65E 6D6-6DC 6DF-6E2 6E4 6E7-6E8 6EB-6EC 730 732-733 735-736 73A 73D 73F-741 743 745 "
    "747 749-74A 7EB-7F1 7F3 816-819 81B-823 825-827 829-82D 951 953-954 F82-F83 F86-F87 135D-135F 17DD 193A 1A17 "
    "1A75-1A7C 1B6B 1B6D-1B73 1CD0-1CD2 1CDA-1CDB 1CE0 1DC0-1DC1 1DC3-1DC9 1DCB-1DCC 1DD1-1DE6 1DFE 20D0-20D1 "
    "20D4-20D7 20DB-20DC 20E1 20E7 20E9 20F0 2CEF-2CF1 2DE0-2DFF A66F A67C-A67D A6F0-A6F1 A8E0-A8F1 AAB0 AAB2-AAB3 "
    "AAB7-AAB8 AABE-AABF AAC1 FE20-FE26 10A0F 10A38 1D185-1D189 1D1AA-1D1AD 1D242-1D244"
)


def _numbers() -> Iterator[str]:
    for part in _NUMBER_MARKS.split():
        first, _, last = part.partition("-")
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))


NUMBER_MARKS = tuple(_numbers())
MOST_CELLS = len(NUMBER_MARKS)  # rows, and columns, of a picture


def new_id() -> int:
    """Of a picture: 24 bits, as a colour has, and unlikely to be that of another program in this terminal."""
    return secrets.randbelow(0xFFFF00) + 0x100


def transmitted(
    rgb: bytes, size: tuple[int, int], *, identity: int, cells: tuple[int, int] | None = None, in_tmux: bool = False
) -> str:
    """What gives the terminal a picture of ``size`` pixels, to be placed later, or to be shown by placeholders on so
    many ``cells`` across and down. It is to answer nothing."""
    data = base64.b64encode(zlib.compress(rgb, 1)).decode("ascii")
    action = "a=t" if cells is None else f"a=T,U=1,c={cells[0]},r={cells[1]}"
    keys = f"{action},q=2,f=24,o=z,i={identity},s={size[0]},v={size[1]},"
    written: list[str] = []
    for at in range(0, len(data), _CHUNK):
        more = int(at + _CHUNK < len(data))
        written.append(_command(f"{keys}m={more}", data[at : at + _CHUNK], in_tmux))
        keys = "q=2,"
    return "".join(written)


def placed(identity: int, pixels: tuple[int, int, int, int], columns: int, rows: int) -> str:
    """What shows ``pixels`` (left, top, width, height) of a picture on so many cells, from the cursor on."""
    left, top, width, height = pixels
    return _command(f"a=p,q=2,C=1,i={identity},x={left},y={top},w={width},h={height},c={columns},r={rows}", "", False)


def lifted(identity: int) -> str:
    """What takes a picture from the screen, and leaves it in the terminal's memory."""
    return _command(f"a=d,d=i,q=2,i={identity}", "", False)


def forgotten(identity: int, *, in_tmux: bool = False) -> str:
    """What takes a picture out of the terminal's memory."""
    return _command(f"a=d,d=I,q=2,i={identity}", "", in_tmux)


def _command(keys: str, data: str, in_tmux: bool) -> str:
    command = f"\x1b_G{keys};{data}\x1b\\"
    return "\x1bPtmux;" + command.replace("\x1b", "\x1b\x1b") + "\x1b\\" if in_tmux else command


def row_of_cells(identity: int, row: int, columns: range) -> Segment:
    """A piece of a row of a picture. Each cell says its row and column, so that any of them may be missing."""
    number = NUMBER_MARKS[row]
    text = "".join(itertools.chain.from_iterable((PLACEHOLDER, number, NUMBER_MARKS[column]) for column in columns))
    return Segment(text, Style(color=Color.from_rgb(identity >> 16, identity >> 8 & 0xFF, identity & 0xFF)))
