"""The picture of a page: to it and back, its passage marked, zoomed, turned; and what has none says so."""

from __future__ import annotations

import base64
import os
import re
import struct
import threading
import tomllib
import zlib
from pathlib import Path
from typing import Any

import pytest
from driving import Driver, running
from painted_pages import PaintedPages
from scripted_session import ScriptedSession
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Offset

from edgerag.errors import DocumentEncrypted, DocumentGone
from edgerag.types import PagePicture, Source
from edgerag.ui.tui import kitty, page_look, terminal
from edgerag.ui.tui.page_look import Look, Sizing
from edgerag.ui.tui.page_pixels import PASSAGE_INK, QUOTE_INK, PagePixels
from edgerag.ui.tui.screens.viewer import ViewerScreen
from edgerag.ui.tui.widgets.page_view import PageView

QUESTION = "How often is the diaphragm replaced?"


async def open_sheet(driver: Driver) -> None:
    """The data sheet, a PDF, which is the second source."""
    await driver.ask(QUESTION)
    await driver.press("tab", "enter")
    await driver.until(lambda: isinstance(driver.app.screen, ViewerScreen))
    await driver.press("n")
    await driver.see("[2] of 3", "KP40-117 diaphragm, EPDM")


async def open_picture(driver: Driver) -> PageView:
    await open_sheet(driver)
    await driver.press("v")
    await driver.see("Page 2 of 3 · as wide as the window")
    return driver.app.screen.query_one(PageView)


def painted_rows(driver: Driver) -> list[int]:
    """The rows of the screen that hold pixels."""
    return [y for y, row in enumerate(driver.rows) if "▀" in row]


def grounds(driver: Driver) -> set[tuple[int, int, int]]:
    found = set()
    for strip in driver.app.screen._compositor.render_strips():
        for segment in strip:
            for colour in (segment.style.color, segment.style.bgcolor) if segment.style is not None else ():
                if colour is not None and colour.triplet is not None:
                    found.add(tuple(colour.triplet))
    return found


def near(one: tuple[int, int, int], others: set[tuple[int, int, int]]) -> bool:
    return any(max(abs(a - b) for a, b in zip(one, other, strict=True)) < 8 for other in others)


async def test_a_key_shows_the_page_with_the_passage_marked_and_the_text_again() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await open_picture(driver)
        assert painted_rows(driver), "the page is on the screen"
        assert "KP40-117 diaphragm" not in driver.text, "in place of its text"
        assert near(QUOTE_INK, grounds(driver)) and near(PASSAGE_INK, grounds(driver))
        assert any(row.startswith("▌") for row in driver.rows), "and a mark stands beside it, which needs no colour"
        await driver.press("v")
        await driver.see("KP40-117 diaphragm, EPDM")
        assert not painted_rows(driver)
        await driver.press("v", "escape")
        await driver.until(lambda: all(pages.is_closed for pages in session.opened_pages))


async def test_pages_are_turned_and_the_way_back_is_one_key() -> None:
    async with running() as driver:
        view = await open_picture(driver)
        await driver.press("right_square_bracket")
        await driver.see("Page 3 of 3", "the passage is on page 2")
        assert not near(QUOTE_INK, grounds(driver))
        await driver.press("right_square_bracket")
        await driver.see("Page 3 of 3")
        await driver.press("h")
        await driver.see("Page 2 of 3")
        assert near(QUOTE_INK, grounds(driver))
        await driver.press("end")
        await driver.until(lambda: view.scroll_offset.y == view.max_scroll_y)
        await driver.press("pagedown")
        await driver.see("Page 3 of 3")
        assert view.scroll_offset.y == 0
        await driver.press("pageup")
        await driver.see("Page 2 of 3")


async def test_a_page_is_zoomed_by_keys_and_wheel_and_moved_by_the_mouse() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        view = await open_picture(driver)
        width = view.virtual_size.width
        await driver.press("plus", "plus")
        await driver.see("2 times the window's width")
        assert view.virtual_size.width > 1.9 * (width - 2)
        assert session.opened_pages[-1].drawn[-1].width == view.virtual_size.width - 2, "drawn anew, not made larger"
        assert near(QUOTE_INK, grounds(driver)), "the passage stays in sight"
        before = view.scroll_offset
        await driver.pilot.mouse_down(PageView, offset=(40, 10))
        await driver.pilot.hover(PageView, offset=(30, 6))
        await driver.pilot.mouse_up(PageView, offset=(30, 6))
        assert view.scroll_offset == Offset(before.x + 10, before.y + 4)
        await driver.press("right")
        assert view.scroll_offset.x == before.x + 11
        await driver.press("minus")
        await driver.see("1.5 times the window's width")
        for kind, words in ((events.MouseScrollUp, "2 times"), (events.MouseScrollDown, "1.5 times")):
            wheel = {"x": 5, "y": 5, "delta_x": 0, "delta_y": 1, "button": 0, "shift": False, "meta": False}
            view.post_message(kind(view, **wheel, ctrl=True))
            await driver.see(f"{words} the window's width")
        await driver.press("minus", "minus")
        await driver.see("whole page")
        assert view.virtual_size.height <= view.size.height
        await driver.press("0")
        await driver.see("as wide as the window")
        assert view.virtual_size.width == width


async def test_another_width_of_the_terminal_draws_the_page_anew() -> None:
    session = ScriptedSession()
    async with running(session, size=(100, 30)) as driver:
        await open_picture(driver)
        await driver.pilot.resize_terminal(70, 30)
        await driver.until(lambda: session.opened_pages[-1].drawn[-1].width == 70 - 3)  # mark, gap and scroll bar
        await driver.until(lambda: painted_rows(driver) and all(len(row) <= 70 for row in driver.rows))


async def test_how_documents_are_read_is_remembered_for_the_next_source_and_the_next_start() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await open_picture(driver)
        await driver.press("n")
        await driver.see("[3] of 3", "Only pages of a PDF can be shown as pictures", "Drain the pump before frost")
        await driver.press("p")
        await driver.see("[2] of 3", "Page 2 of 3")
        assert painted_rows(driver)
    assert tomllib.loads(session.locations.config_file.read_text())["ui"]["document_view"] == "picture"
    async with running(session) as driver:
        await driver.ask(QUESTION)
        await driver.press("tab", "enter", "n")
        await driver.see("Page 2 of 3 · as wide as the window")


@pytest.mark.parametrize(
    "error",
    [
        DocumentGone("The file is no longer where it was read."),
        DocumentEncrypted("The PDF is protected by a password, which is not kept."),
    ],
)
async def test_what_cannot_be_drawn_says_so_beside_the_text(error: Exception) -> None:
    session = ScriptedSession()

    failing = [True]

    def fail(number: int) -> None:
        if failing[0]:
            raise error

    session.before_page = fail
    async with running(session) as driver:
        await open_sheet(driver)
        await driver.press("v")
        await driver.see("No picture; this is the text.", str(error)[:40], "KP40-117 diaphragm, EPDM")
        failing[0] = False
        await driver.press("v")
        await driver.see("Page 2 of 3 · as wide")
        assert "No picture" not in driver.text


async def test_a_page_that_takes_long_holds_nothing_up_and_is_given_up_for_another() -> None:
    session = ScriptedSession()
    hold, begun = threading.Event(), threading.Event()

    def slow(number: int) -> None:
        if number == 3:
            begun.set()
            hold.wait(20)

    session.before_page = slow
    try:
        async with running(session) as driver:
            await open_picture(driver)
            await driver.press("right_square_bracket")
            await driver.see("Page 3 of 3 is being drawn")
            await driver.until(begun.is_set)
            await driver.press("left_square_bracket")
            await driver.see("Page 2 of 3 · as wide")
            hold.set()
            await driver.pilot.pause()
            assert "Page 2 of 3 · as wide" in driver.text, "what nobody waits for any more is not shown"
    finally:
        hold.set()


class SlowToOpen(ScriptedSession):
    """Pages are opened only when ``may_open`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.may_open, self.opening = threading.Event(), threading.Event()

    def source_pages(self, source: Source) -> PaintedPages:
        self.opening.set()
        self.may_open.wait(20)
        return super().source_pages(source)


async def test_two_pages_wanted_at_once_share_one_process_which_is_closed() -> None:
    session = SlowToOpen()
    try:
        async with running(session) as driver:
            await open_sheet(driver)
            await driver.press("v")
            await driver.until(session.opening.is_set)
            await driver.press("right_square_bracket")
            await driver.see("Page 3 of 3")
            session.may_open.set()
            await driver.until(lambda: painted_rows(driver))
            assert len(session.opened_pages) == 1
            assert session.opened_pages[0].drawn[-1].number == 3
            await driver.press("escape")
            await driver.until(lambda: session.opened_pages[0].is_closed)
    finally:
        session.may_open.set()


async def test_without_colour_ink_and_paper_are_told_apart_by_signs() -> None:
    async with running(flags={"ui": {"theme": "no-colour"}}) as driver:
        await open_picture(driver)
        assert any(sign in driver.text for sign in "▄█▀")
        reversed_ = [
            segment.text
            for strip in driver.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None and segment.style.reverse
        ]
        assert reversed_, "the passage is marked without colour"


# ------------------------------------------------------------ Kitty's protocol


def decoded(escape: str) -> tuple[dict[str, str], bytes]:
    """What a terminal makes of a transmitted picture."""
    commands = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", escape)
    assert "".join(f"\x1b_G{keys};{data}\x1b\\" for keys, data in commands) == escape, "nothing but commands"
    assert all(len(data) <= 4096 for _, data in commands)
    assert [("m=1" in keys) for keys, _ in commands] == [True] * (len(commands) - 1) + [False]
    assert all("q=2" in keys for keys, _ in commands), "the terminal is to answer nothing"
    keys = dict(part.split("=") for part in commands[0][0].split(",") if part)
    return keys, zlib.decompress(base64.b64decode("".join(data for _, data in commands)))


def test_a_picture_is_transmitted_whole_and_forgotten() -> None:
    rgb = bytes(range(256)) * 90 + bytes(60)
    keys, pixels = decoded(kitty.transmitted(rgb, (100, 77), identity=0x123456, cells=(10, 4)))
    assert pixels == rgb
    assert (keys["i"], keys["s"], keys["v"], keys["c"], keys["r"]) == (str(0x123456), "100", "77", "10", "4")
    assert keys["a"] == "T" and keys["U"] == "1" and keys["f"] == "24" and keys["o"] == "z"
    through = kitty.forgotten(7, in_tmux=True)
    assert through == "\x1bPtmux;\x1b\x1b_Ga=d,d=I,q=2,i=7;\x1b\x1b\\\x1b\\"


def test_a_cell_says_its_picture_its_row_and_its_column() -> None:
    assert kitty.MOST_CELLS == 297 and kitty.NUMBER_MARKS[:3] == ("\u0305", "\u030d", "\u030e")
    assert kitty.NUMBER_MARKS[-1] == "\U0001d244" and len(set(kitty.NUMBER_MARKS)) == 297
    segment = kitty.row_of_cells(0x0A0B0C, 2, range(3, 5))
    mark = kitty.NUMBER_MARKS
    assert segment.text == f"\U0010eeee{mark[2]}{mark[3]}\U0010eeee{mark[2]}{mark[4]}"
    assert segment.cell_length == 2
    assert segment.style is not None and segment.style.color is not None
    assert segment.style.color.triplet == (0x0A, 0x0B, 0x0C)


@pytest.mark.parametrize(
    ("graphics", "environ", "look"),
    [
        ("auto", {"TERM": "xterm-256color"}, "blocks"),
        ("auto", {"TERM": "xterm-kitty"}, "kitty"),
        ("auto", {"TERM": "tmux-256color", "TERM_PROGRAM": "tmux", "KITTY_WINDOW_ID": "1"}, "blocks"),
        ("auto", {"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, "kitty"),
        ("auto", {"TERM": "foot"}, "sixel"),
        ("auto", {"TERM": "foot-extra"}, "sixel"),
        ("auto", {"TERM": "footloose"}, "blocks"),
        ("auto", {"TERM": "mlterm-256color"}, "sixel"),
        ("auto", {"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ("auto", {"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm"),
        ("auto", {"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, "blocks"),
        ("auto", {"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, "iterm"),  # over ssh
        ("auto", {"TERM": "xterm-256color", "KONSOLE_VERSION": "220400"}, "iterm"),
        ("auto", {"TERM": "xterm-256color", "KONSOLE_VERSION": "211203"}, "blocks"),
        ("auto", {"TERM": "xterm", "XTERM_VERSION": "XTerm(379)", "KONSOLE_VERSION": "221203"}, "blocks"),
        ("auto", {"TERM": "screen-256color", "LC_TERMINAL": "iTerm2"}, "blocks"),
        ("auto", {"TERM": "xterm-256color", "STY": "1.pts", "KONSOLE_VERSION": "221203"}, "blocks"),
        ("kitty", {"TERM": "xterm-256color"}, "kitty"),
        ("kitty", {"TERM": "tmux-256color"}, "placeholders"),
        ("sixel", {"TERM": "xterm-256color"}, "sixel"),
        ("sixel", {"TERM": "tmux-256color"}, "blocks"),
        ("iterm", {"TERM": "xterm-256color"}, "iterm"),
        ("iterm", {"TERM": "xterm-256color", "TMUX": "/tmp/tmux"}, "blocks"),
        ("blocks", {"TERM": "xterm-kitty"}, "blocks"),
    ],
)
def test_what_a_page_is_shown_by_follows_from_what_the_terminal_says_of_itself(
    graphics: Any, environ: dict[str, str], look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "cell_pixels", lambda: (9, 19))
    found = page_look.sizing(graphics, environ, in_colour=True, true_colour=True)
    assert (found.look, found.cell) == (look, (1, 2) if look == "blocks" else (9, 19))
    assert bool(found.lack) == (graphics in ("sixel", "iterm") and look == "blocks")
    assert page_look.sizing(graphics, environ, in_colour=False, true_colour=True).look == "ink"
    few = page_look.sizing(graphics, environ, in_colour=True, true_colour=False)
    assert few.look == ("blocks" if look == "placeholders" else look)
    assert bool(few.lack) == (look == "placeholders" or bool(found.lack)), "and it is said why"


@pytest.mark.parametrize(
    ("told", "cell"),
    [
        ((36, 100, 904, 688), (9, 19)),  # xterm's, with its edges
        ((24, 80, 0, 0), None),
        ((0, 0, 0, 0), None),
        ((24, 80, 65535, 65535), None),
        ((24, 80, 80, 24), None),
    ],
)
def test_the_size_of_a_cell_is_believed_within_bounds(
    told: tuple[int, int, int, int], cell: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal.fcntl, "ioctl", lambda *_: struct.pack("HHHH", *told))
    with Path(os.devnull).open() as stream:
        monkeypatch.setattr("sys.__stdout__", stream)
        assert terminal.cell_pixels() == cell


# What a terminal answers: who it is, where its cursor is and in what state, its colours, whether it shows pictures.
ASKED = re.compile(r"\x1b\[[0-9;?=>]*c|\x1b\[\??[56]n|\x1b\][0-9;]*\?|\x1b_G[^;]*a=q|\x1b\[[0-9;]*t|\x1bP\+q")


@pytest.mark.parametrize("look", ["kitty", "placeholders", "sixel", "iterm", "blocks"])
@pytest.mark.parametrize("in_tmux", [False, True])
async def test_the_terminal_is_asked_nothing(monkeypatch: pytest.MonkeyPatch, look: Look, in_tmux: bool) -> None:
    """In all that is written while pages are shown, turned, made larger and left."""
    written: list[str] = []
    monkeypatch.setattr(HeadlessDriver, "is_headless", False)
    monkeypatch.setattr(HeadlessDriver, "write", lambda _, data: written.append(data))
    monkeypatch.setattr(page_look, "sizing", lambda *_, **__: Sizing(look, (1, 2) if look == "blocks" else (10, 20)))
    if in_tmux:
        monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    async with running() as driver:
        await open_picture(driver)
        await driver.press("plus", "right_square_bracket")
        await driver.see("Page 3 of 3")
        await driver.press("v")
        await driver.see("KP40-117 diaphragm, EPDM")
        await driver.press("escape")
    output = "".join(written)
    shown = {"kitty": "a=p", "placeholders": "a=T", "sixel": "\x1bP0;1q", "iterm": "1337;File="}.get(look, "▀")
    assert "Page 3 of 3" in output and shown in output, "all of it was recorded"
    assert not ASKED.search(output.replace("\x1b\x1b", "\x1b"))


@pytest.mark.parametrize("query", ["\x1b[c", "\x1b[>0c", "\x1b[6n", "\x1b]11;?\x07", "\x1b_Gi=1,a=q,s=1;AAAA\x1b\\"])
def test_a_question_would_be_found(query: str) -> None:
    assert ASKED.search(query)


async def test_in_tmux_the_page_is_transmitted_and_its_cells_are_painted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_look, "sizing", lambda *_, **__: Sizing("placeholders", (10, 20)))
    written: list[str] = []
    async with running(size=(80, 24)) as driver:
        monkeypatch.setattr(driver.app, "write_to_terminal", written.append)
        view = await open_picture(driver)
        keys, pixels = decoded(written[0])
        assert len(pixels) == 3 * int(keys["s"]) * int(keys["v"])
        assert int(keys["s"]) == 10 * int(keys["c"]), "drawn for the pixels that the cells have"
        assert int(keys["c"]) == view.virtual_size.width - 2 and int(keys["r"]) == view.virtual_size.height
        row = next(row for row in driver.rows if "\U0010eeee" in row)
        assert row.count("\U0010eeee") == int(keys["c"])
        svg = driver.app.export_screenshot()
        assert "▀" in svg and "\U0010eeee" not in svg, "elsewhere the terminal's picture is not to be had"
        await driver.press("right_square_bracket")
        await driver.see("Page 3 of 3 · as wide")
        assert written[2] == kitty.forgotten(int(keys["i"]), in_tmux=False), "the one before is given back"
        await driver.press(*["plus"] * 7)
        await driver.until(lambda: view.virtual_size.width - 2 > 200)
        assert max(view.virtual_size.width - 2, view.virtual_size.height) <= kitty.MOST_CELLS
    assert sum("a=T" in each for each in written) == sum("a=d" in each for each in written), "none is left behind"


# ------------------------------------------------------------ pixels


def picture(rows: list[str]) -> PagePicture:
    shades = {".": b"\xff\xff\xff", "#": b"\0\0\0", "r": b"\xff\0\0"}
    return PagePicture(1, 1, len(rows[0]), len(rows), b"".join(shades[sign] for row in rows for sign in row))


def test_two_pixels_stand_in_a_cell_and_equal_cells_are_one_run() -> None:
    pixels = PagePixels(picture(["..##r", "..#.r", "#...."]))
    assert pixels.row_count == 2
    white, black, red = (255, 255, 255), (0, 0, 0), (255, 0, 0)
    assert [(run.count, run.upper, run.lower) for run in pixels.runs(0, 0, 5)] == [
        (2, white, white),
        (1, black, black),
        (1, black, white),
        (1, red, red),
    ]
    assert [run.count for run in pixels.runs(0, 1, 3)] == [1, 1]
    assert "".join(run.character * run.count for run in pixels.ink_runs(0, 0, 4)) == "  █▀"
    assert pixels.runs(0, 3, 3) == []


def test_a_marker_shows_on_paper_and_on_black() -> None:
    for sign in ".#":
        page = picture([sign * 4] * 4)
        marked = PagePixels(PagePicture(1, 1, 4, 4, page.rgb, ((0, 0, 4, 2),), ()))
        inside, outside = marked.runs(0, 0, 4)[0], marked.runs(1, 0, 4)[0]
        assert inside.upper != outside.upper
    white_on_black = PagePixels(picture(["###.", "####", "####", "####"]))
    assert "".join(run.character * run.count for run in white_on_black.ink_runs(0, 0, 4)) == "   ▀"
