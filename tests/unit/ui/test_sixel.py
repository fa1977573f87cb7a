"""Pictures as Sixel and as PNG: what a terminal makes of them is what was meant, of any size."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.types import PagePicture
from edgerag.ui.tui import iterm, sixel
from edgerag.ui.tui.few_colours import FewColours, in_few_colours
from edgerag.ui.tui.inline_picture import CellBox, KeptPicture, SentPicture
from edgerag.ui.tui.picture_size import lengthened, reduced

sys.path.insert(0, str(Path(__file__).parents[2] / "tui"))

from fake_terminal import FakeTerminal, decoded_png, decoded_sixel

_PERCENT = 2  # of 255: what a colour in percent may be off


def noise(height: int, width: int, shades: int, seed: int = 0) -> np.ndarray:
    levels = np.random.default_rng(seed).integers(0, shades, (height, width, 3))
    return (levels * 255 // max(1, shades - 1)).astype(np.uint8)


def meant(picture: FewColours) -> np.ndarray:
    return picture.colours[picture.numbers].astype(np.int16)


def body(string: str) -> str:
    assert string.startswith("\x1bP") and string.endswith("\x1b\\")
    return string[2:-2]


@settings(max_examples=40, deadline=None)
@given(
    height=st.integers(1, 40),
    width=st.one_of(st.integers(1, 12), st.just(1_200)),
    shades=st.sampled_from([1, 2, 6, 256]),
    most=st.sampled_from([2, 16, 256]),
    seed=st.integers(0, 99),
)
def test_what_is_painted_is_the_picture(height: int, width: int, shades: int, most: int, seed: int) -> None:
    picture = in_few_colours(noise(height, width, shades, seed), most)
    assert len(picture.colours) <= most
    pixels = decoded_sixel(body(sixel.encoded(picture)))
    assert pixels.shape == (height, width, 3)
    assert np.abs(pixels - meant(picture)).max() <= _PERCENT
    assert (decoded_png(iterm.png(picture)) == meant(picture)).all()


def test_many_colours_are_worked_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = in_few_colours(noise(100, 50, 256), 256)
    whole = sixel.encoded(picture)
    monkeypatch.setattr(sixel, "_MOST_SIGNS", 1)
    assert sixel.encoded(picture) == whole


def test_equal_signs_are_counted_and_an_empty_end_is_left_out() -> None:
    picture = in_few_colours(np.zeros((6, 1_000, 3), np.uint8), 256)
    assert sixel.encoded(picture) == '\x1bP0;1q"1;1;1000;6#0;2;0;0;0#000!1000~\x1b\\'
    rgb = np.full((6, 8, 3), 255, np.uint8)
    rgb[:, 0] = 0
    assert sixel.encoded(in_few_colours(rgb, 2)).endswith("#000~$#001?!7~\x1b\\")


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 100_000)])
def test_what_cannot_be_a_picture_is_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="cannot be written as Sixel"):
        sixel.encoded(FewColours(np.zeros(shape, np.uint8), np.zeros((1, 3), np.uint8)))


def test_a_palette_has_what_there_is_most_of() -> None:
    rgb = noise(64, 64, 256)
    rgb[:32] = (255, 255, 255)
    rgb[32:40] = (255, 241, 163)  # the marker
    picture = in_few_colours(rgb, 16)
    shown = picture.colours[picture.numbers].astype(np.int16)
    assert (shown[:32] == 255).all(), "paper is white"
    assert np.abs(shown[32:40] - (255, 241, 163)).max() <= 24
    assert (in_few_colours(np.zeros((1, 1, 3), np.uint8), 2).colours == 0).all(), "and black is black"


@pytest.mark.parametrize("cell", [(9, 19), (6, 13), (200, 400), (2, 4)])
@pytest.mark.parametrize("size", [(90, 190), (37, 101)])
def test_any_box_of_cells_is_cut_to_the_pixel(cell: tuple[int, int], size: tuple[int, int]) -> None:
    columns, rows = 10, 10
    rgb = noise(size[1], size[0], 3)
    for protocol in ("sixel", "iterm"):
        picture = SentPicture.of(rgb, protocol, cell, columns, rows)  # type: ignore[arg-type]
        whole = meant(picture.cut(CellBox(0, 0, columns, rows)))
        assert whole.shape == (rows * cell[1], columns * cell[0], 3)
        terminal = FakeTerminal(20, 20, cell)
        terminal.write(picture.written(CellBox(2, 3, 9, 8), 4, 5))
        seen = terminal.pixels()
        top, left = 5 * cell[1], 4 * cell[0]
        cut = seen[top : top + 5 * cell[1], left : left + 7 * cell[0]]
        assert np.abs(cut - whole[3 * cell[1] : 8 * cell[1], 2 * cell[0] : 9 * cell[0]]).max() <= _PERCENT
        assert (seen != -1).all(axis=2).sum() == cut.shape[0] * cut.shape[1], "and nothing beside it"


def test_no_piece_is_larger_than_xterm_shows() -> None:
    picture = SentPicture.of(noise(60, 60, 2), "sixel", (30, 60), 60, 40)
    heads = [head.split("#")[0].split(";") for head in picture.written(CellBox(0, 0, 60, 40), 0, 0).split('"1;1;')[1:]]
    assert sum(int(width) * int(height) for width, height in heads) == 60 * 30 * 40 * 60
    assert max(max(int(width), int(height)) for width, height in heads) <= 1_000


def test_kitty_is_told_the_pixels_of_the_cells() -> None:
    picture = KeptPicture(7, (100, 200), (10, 20), 10, 10)
    assert picture.written(CellBox(1, 2, 4, 5), 6, 7) == (
        "\x1b[8;7H\x1b_Ga=p,q=2,C=1,i=7,x=10,y=40,w=30,h=60,c=3,r=3;\x1b\\"
    )
    assert "w=1,h=1," in KeptPicture(7, (3, 3), (10, 20), 100, 100).written(CellBox(0, 0, 1, 1), 0, 0)


def test_png_is_sent_with_its_cells() -> None:
    picture = in_few_colours(noise(5, 4, 2), 4)
    string = iterm.encoded(picture, 3, 2)
    keys, _, content = string.removeprefix("\x1b]1337;File=").removesuffix("\x07").partition(":")
    assert "width=3;height=2;preserveAspectRatio=0;doNotMoveCursor=1" in keys
    assert f"size={len(base64.b64decode(content))};" in keys


def test_a_picture_is_made_longer_and_smaller_with_its_boxes() -> None:
    rgb = bytes([10, 20, 30] * 4 + [50, 60, 70] * 4)
    picture = PagePicture(1, 1, 4, 2, rgb, ((0, 0, 3, 1),), ((2, 1, 4, 2),))
    longer = lengthened(picture, 4)
    assert (longer.height, longer.rgb[-24:]) == (4, bytes([50, 60, 70] * 8))
    assert lengthened(picture, 1) == picture
    smaller = reduced(picture, 2, 1)
    assert smaller.rgb == bytes([30, 40, 50] * 2), "the mean"
    assert smaller.passage == ((0, 0, 2, 1),) and smaller.quote == ((1, 0, 2, 1),)
    larger = reduced(picture, 8, 4)
    assert len(larger.rgb) == 3 * 8 * 4 and set(larger.rgb) == set(rgb)
