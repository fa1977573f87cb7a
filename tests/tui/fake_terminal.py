"""A terminal that knows pictures: what is written to it, as text in cells and as pixels over them."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

Pixels = NDArray[np.int16]  # (height, width, 3); -1 where there is no picture

_TOKEN = re.compile(
    r"\x1bP(?P<sixel>[0-9;]*q[^\x1b]*)\x1b\\"
    r"|\x1b\]1337;File=(?P<iterm>[^:]*:[^\x07]*)\x07"
    r"|\x1b_G(?P<kitty>[^\x1b]*)\x1b\\"
    r"|\x1b\[(?P<row>\d+);(?P<column>\d+)H"
    r"|\x1b\[[?>=<]?[0-9;:]*\$?[a-zA-Z]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|(?P<newline>\n)|(?P<text>[^\x1b\n]+)|(?P<strange>.)",
    re.S,
)


@dataclass
class _Place:
    identity: int
    x: int
    y: int
    pixels: tuple[int, int, int, int]
    cells: tuple[int, int]


class FakeTerminal:
    """Of so many cells; its pictures are as exact as their protocol is."""

    def __init__(self, columns: int, rows: int, cell: tuple[int, int]) -> None:
        self.cell = cell
        self.written: list[str] = []
        self.resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        """Nothing that it showed is left."""
        self.columns, self.rows = columns, rows
        self.text = [[" "] * columns for _ in range(rows)]
        self._over: Pixels = np.full((rows * self.cell[1], columns * self.cell[0], 3), -1, np.int16)
        self._kept: dict[int, Pixels] = {}
        self._places: list[_Place] = []
        self._coming: tuple[dict[str, str], str] | None = None
        self._x = self._y = 0
        self.scrolls = 0

    @property
    def pictures_sent(self) -> int:
        return sum(len(re.findall(r"\x1bP0;1q|\x1b\]1337;File=|\x1b_Ga=p", each)) for each in self.written)

    def write(self, data: str) -> None:
        self.written.append(data)
        for token in _TOKEN.finditer(data):
            if (found := token["sixel"]) is not None:
                self._paint(decoded_sixel(found))
            elif (found := token["iterm"]) is not None:
                keys, _, content = found.partition(":")
                told = dict(each.split("=") for each in keys.split(";"))
                assert told["inline"] == "1" and told["doNotMoveCursor"] == "1"
                across, down = self.cell
                size = int(told["height"]) * down, int(told["width"]) * across
                self._paint(_fitted(decoded_png(base64.b64decode(content)), size))
            elif (found := token["kitty"]) is not None:
                self._kitty(*found.split(";"))
            elif token["row"] is not None:
                self._y, self._x = int(token["row"]) - 1, int(token["column"]) - 1
            elif token["newline"] is not None:
                self._x, self._y = 0, min(self._y + 1, self.rows - 1)
            elif (found := token["text"]) is not None:
                for character in found:
                    self._put(character)
            else:
                assert token["strange"] is None, f"{data[token.start() :][:60]!r} is not known"

    def _put(self, character: str) -> None:
        width = cell_len(character)
        across, down = self.cell
        for _ in range(width):
            if self._x < self.columns and self._y < self.rows:
                self.text[self._y][self._x] = character
                top, left = self._y * down, self._x * across
                self._over[top : top + down, left : left + across] = -1
            self._x += 1

    def _paint(self, pixels: Pixels) -> None:
        across, down = self.cell
        height, width = pixels.shape[:2]
        top, left = self._y * down, self._x * across
        if top + height >= self.rows * down:  # a terminal makes room for the cursor below it
            self.scrolls += 1
        space = self._over[top : top + height, left : left + width]
        space[:] = pixels[: space.shape[0], : space.shape[1]]

    def _kitty(self, keys: str, data: str) -> None:
        told = dict(each.split("=") for each in keys.split(",") if each)
        if self._coming is not None:
            told, data = {**self._coming[0], "m": told["m"]}, self._coming[1] + data
        self._coming = None
        match told["a"]:
            case "t" if told["m"] == "1":
                self._coming = told, data
            case "t":
                shape = (int(told["v"]), int(told["s"]), 3)
                rgb = zlib.decompress(base64.b64decode(data))
                self._kept[int(told["i"])] = np.frombuffer(rgb, np.uint8).reshape(shape).astype(np.int16)
            case "p":
                assert told["C"] == "1", "the cursor stays"
                box = (int(told["x"]), int(told["y"]), int(told["w"]), int(told["h"]))
                self._places.append(_Place(int(told["i"]), self._x, self._y, box, (int(told["c"]), int(told["r"]))))
            case "d":
                self._places = [place for place in self._places if place.identity != int(told["i"])]
                if told["d"] == "I":
                    self._kept.pop(int(told["i"]), None)
            case other:
                raise AssertionError(f"a={other}")

    @property
    def kept(self) -> int:
        """How many pictures are in its memory."""
        return len(self._kept)

    def pixels(self) -> Pixels:
        """What is seen over the cells."""
        seen = self._over.copy()
        across, down = self.cell
        for place in self._places:
            left, top, width, height = place.pixels
            columns, rows = place.cells
            cut = self._kept[place.identity][top : top + height, left : left + width]
            cut = _fitted(cut, (rows * down, columns * across))
            y, x = place.y * down, place.x * across
            space = seen[y : y + cut.shape[0], x : x + cut.shape[1]]
            space[:] = cut[: space.shape[0], : space.shape[1]]
        return seen


def _fitted(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    height, width = pixels.shape[:2]
    return pixels[np.arange(size[0]) * height // size[0]][:, np.arange(size[1]) * width // size[1]]


def decoded_sixel(data: str) -> Pixels:
    """The pixels of a Sixel control string, between its introducer and its end."""
    head = re.match(r'0;1q"1;1;(\d+);(\d+)', data)
    assert head is not None
    width, height = int(head[1]), int(head[2])
    pixels: Pixels = np.full((-(-height // 6) * 6, width, 3), -1, np.int16)
    registers: dict[int, list[int]] = {}
    colour = [0, 0, 0]
    x = y = 0
    for token in re.finditer(r"#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)(.)|(.)", data[head.end() :]):
        if token[1]:
            registers[int(token[1])] = [round(int(part) * 255 / 100) for part in token.group(2, 3, 4)]
        elif token[5]:
            colour = registers[int(token[5])]
        elif token[8] == "$":
            x = 0
        elif token[8] == "-":
            x, y = 0, y + 6
        else:
            count, sign = (int(token[6]), token[7]) if token[6] else (1, token[8])
            bits = ord(sign) - ord("?")
            assert 0 <= bits < 64 and x + count <= width
            for line in range(6):
                if bits >> line & 1:
                    pixels[y + line, x : x + count] = colour
            x += count
    assert (pixels[height:] == -1).all(), "nothing below the last line of the picture"
    return pixels[:height]


def decoded_png(data: bytes) -> Pixels:
    """The pixels of a PNG with a palette and no filters, its checksums compared."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + length
    width, height, bits, colour_type = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (bits, colour_type) == (8, 3) and list(chunks)[-1] == b"IEND"
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any(), "unfiltered"
    return np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)[lines[:, 1:]].astype(np.int16)
