"""What of a picture is sent, and when."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from edgerag.ui.tui.inline_picture import CellBox
from edgerag.ui.tui.picture_paint import PicturePaint, Placed, boxes_of

CONSOLE = Console(color_system=None, force_terminal=True, width=10)


@dataclass(eq=False)
class Told:
    """A picture that says in words what is asked of it."""

    name: str = "p"
    lifted: str = ""
    is_one: bool = False
    cell: tuple[int, int] = (10, 20)
    length: int = 0
    boxes: list[tuple[int, int, int, int]] = field(default_factory=list)

    def written(self, box: CellBox, x: int, y: int) -> str:
        self.boxes.append((x, y, box.right - box.left, box.bottom - box.top))
        return f"<{self.name} {box.left},{box.top}>" + "~" * self.length


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def cells(*rows: str) -> np.ndarray:
    return np.array([[sign == "#" for sign in row] for row in rows])


def whole(*rows: str) -> LayoutUpdate:
    return LayoutUpdate([[Strip([Segment(row)])] for row in rows], Region(0, 0, len(rows[0]), len(rows)))


def no_text() -> LayoutUpdate:
    raise AssertionError("all of the screen is not painted")


def paint(clock: Clock | None = None) -> tuple[PicturePaint, list[float]]:
    again: list[float] = []
    return PicturePaint(clock or Clock(), paint_again_in=again.append), again


def test_a_picture_is_sent_once_and_its_cells_are_left_out_of_the_text() -> None:
    painter, _ = paint()
    placed = Placed(Told(), 1, 1, cells("....", ".##.", ".##."))
    text = whole("abcd", "efgh", "ijkl")
    first = painter.written(text, placed, CONSOLE, no_text)
    assert first.endswith("<p 0,0>") and "fg" in first, "what was there before is erased by its text"
    second = painter.written(text, placed, CONSOLE, no_text)
    assert "<" not in second and "f" not in second and "k" not in second.replace("\x1b", "")
    assert all(sign in second for sign in "abcdehil")


def test_what_is_uncovered_is_sent_and_what_is_covered_is_not() -> None:
    painter, _ = paint(clock := Clock())
    picture = Told()
    painter.written(
        whole("abcd", "efgh", "ijkl"), Placed(picture, 0, 0, cells("####", "####", "....")), CONSOLE, no_text
    )
    covered = Placed(picture, 0, 0, cells("####", "##..", "...."))
    clock.now += 9
    told = painter.written(whole("abcd", "efgh", "ijkl"), covered, CONSOLE, no_text)
    assert "gh" in told and "<" not in told
    clock.now += 9
    picture.boxes.clear()
    painter.written(
        whole("abcd", "efgh", "ijkl"), Placed(picture, 0, 0, cells("####", "####", "....")), CONSOLE, no_text
    )
    assert picture.boxes == [(2, 1, 2, 1)]


def test_cells_that_are_given_back_are_painted_though_textual_did_not_mean_to() -> None:
    painter, _ = paint()
    painter.written(whole("abcd", "efgh"), Placed(Told(), 0, 0, cells("##..", "....")), CONSOLE, no_text)
    part = ChopsUpdate([{}, {0: Strip([Segment("efgh")])}], [(1, 2, 4)], [[], [4]])
    told = painter.written(part, None, CONSOLE, lambda: whole("abcd", "efgh"))
    assert "ab" in told and not painter.holds


def test_of_a_part_of_the_screen_only_that_part_is_painted() -> None:
    painter, _ = paint()
    placed = Placed(Told(), 0, 0, cells("....", ".##."))
    painter.written(whole("abcd", "efgh"), placed, CONSOLE, no_text)
    part = ChopsUpdate([{}, {0: Strip([Segment("efgh")])}], [(1, 2, 4)], [[], [4]])
    assert painter.written(part, placed, CONSOLE, no_text).replace("\x1b[2;4H", "") == "h"


def test_what_comes_too_soon_waits_and_shows_nothing_wrong_meanwhile() -> None:
    painter, again = paint(clock := Clock())
    first, second = Told("first", length=1_000_000), Told("second")
    text = whole("abcd", "efgh")
    painter.written(text, Placed(first, 0, 0, cells("####", "####")), CONSOLE, no_text)
    wanted = Placed(second, 0, 0, cells("####", "##.."))
    clock.now += 0.1
    told = painter.written(text, wanted, CONSOLE, no_text)
    assert "<" not in told and "gh" in told and "e" not in told, "what covers it is there at once"
    assert again == [pytest.approx(0.4, abs=0.01)], "half a second for a million characters"
    clock.now += again[0]
    assert "<second 0,0>" in painter.written(text, wanted, CONSOLE, no_text)


def test_before_a_terminal_forgets_the_oldest_piece_all_is_sent_anew() -> None:
    painter, _ = paint(clock := Clock())
    picture = Told()
    text = whole("abcd", "efgh")
    full, less = Placed(picture, 0, 0, cells("####", "####")), Placed(picture, 0, 0, cells("####", "##.."))
    sent: list[tuple[int, int, int, int]] = []
    for placed in [full, less] * 20:
        clock.now += 9
        picture.boxes.clear()
        painter.written(text, placed, CONSOLE, no_text)
        sent += picture.boxes
    assert sent.count((0, 0, 4, 2)) >= 3
    runs = "".join("F" if box == (0, 0, 4, 2) else "p" for box in sent)
    assert max(map(len, runs.split("F"))) <= 8


@pytest.mark.parametrize("lifted", ["", "<away>"])
def test_a_picture_that_is_one_is_lifted_and_placed_whole(lifted: str) -> None:
    painter, _ = paint(clock := Clock())
    picture = Told(lifted=lifted, is_one=True)
    text = whole("abcd", "efgh")
    full = Placed(picture, 0, 0, cells("####", "####"))
    painter.written(text, full, CONSOLE, no_text)
    clock.now += 9
    assert "<" not in painter.written(text, full, CONSOLE, no_text)
    told = painter.written(text, Placed(picture, 0, 0, cells("####", "##..")), CONSOLE, no_text)
    assert told.endswith(f"{lifted}<p 0,0><p 0,1>")
    clock.now += 9
    assert painter.written(text, None, CONSOLE, no_text).endswith(lifted)


def test_what_may_be_lost_is_lifted_and_sent_again() -> None:
    painter, _ = paint()
    picture = Told(lifted="<away>", is_one=True)
    placed = Placed(picture, 0, 0, cells("####", "####"))
    painter.written(whole("abcd", "efgh"), placed, CONSOLE, no_text)
    painter.forget()
    assert painter.holds
    told = painter.written(whole("abcd", "efgh"), placed, CONSOLE, no_text)
    assert "abcd" in told and told.endswith("<away><p 0,0>")
    painter.forget()
    painter.written(whole("abcd", "efgh"), None, CONSOLE, no_text)
    assert not painter.holds


def test_on_a_screen_of_another_size_nothing_of_it_is_left() -> None:
    painter, _ = paint()
    picture = Told()
    painter.written(whole("abcd", "efgh"), Placed(picture, 0, 0, cells("####", "####")), CONSOLE, no_text)
    told = painter.written(whole("abc"), Placed(picture, 0, 0, cells("##.")), CONSOLE, no_text)
    assert "abc" in told and "<p 0,0>" in told


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=6))
def test_boxes_are_the_cells_and_do_not_overlap(rows: list[list[bool]]) -> None:
    wanted = np.array(rows)
    count = np.zeros(wanted.shape, int)
    for box in boxes_of(wanted):
        count[box.top : box.bottom, box.left : box.right] += 1
    assert (count == wanted).all()
