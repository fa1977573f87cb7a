"""Every main screen is what its stored picture shows, at three sizes in two themes; and it is whole and readable.

``make pictures`` draws them anew after a change that was meant; look at each that git says has changed. Nothing in them
depends on this machine, on the clock or on a folder of this run.
"""

from __future__ import annotations

import contextlib
import os
from itertools import product
from pathlib import Path
from typing import Any

import driving
import pytest
import textual
from driving import Driver, running
from pictures import Album, difference, drawn_with, rows_of
from rich.cells import cell_len
from rich.style import Style
from test_inspector import TracingSession
from test_machine import hybrid, load
from test_themes import least_contrast
from textual.widgets import DataTable, Input, TextArea
from textual.widgets._footer import FooterKey

from edgerag.locations import Locations
from edgerag.threads.store import ThreadStore
from edgerag.types import BlockHeat, FilterText, SegmentBlocks
from edgerag.ui.tui.preferences import Preferences
from edgerag.ui.tui.screens import machine
from edgerag.ui.tui.screens.machine import MachineScreen
from edgerag.ui.tui.widgets.conversation import Conversation
from edgerag.ui.tui.widgets.thread_list import ThreadList

FOLDER = Path(__file__).parent / "pictures"
RENEW = bool(os.environ.get("RENEW_PICTURES"))
SIZES = [(80, 24), (120, 40), (200, 60)]
NARROW = [(60, 20), (40, 12)]
THEMES = ["dark", "light"]
QUESTION = "How often is the diaphragm replaced?"
_NOON_NS = 1_700_000_000_000_000_000
_KINDS = ["levels", *["links"] * 3, *["nibbles"] * 6, *["vectors"] * 14]


@pytest.fixture(autouse=True)
def home_of_nobody(monkeypatch: pytest.MonkeyPatch, plain_environment: None) -> None:
    monkeypatch.setenv("HOME", "/home/keeper")


def session_of_a_day() -> TracingSession:
    """Some conversations, an index at work, an answer with all there can be in it."""
    clock = iter(range(_NOON_NS - 6 * 86_400 * 10**9, _NOON_NS, 4 * 3600 * 10**9))
    session = TracingSession()
    session.locations = Locations(Path("/home/keeper/edgerag"))
    session.kept = ThreadStore(None, clock_ns=lambda: next(clock, _NOON_NS))
    for question in ("Which oil does the gearbox take?", "备用电源能工作多久？", "Can the pump run dry, and how long?"):
        exchange = session.kept.ask(question, library="default", where=FilterText())
        session.kept.fail(exchange.id, text="It says so [1].", problem="")
    session.reply += "\n\nIt weighs 77 kg."
    session.unsupported = ("It weighs 77 kg.",)
    heat = [
        BlockHeat(
            number=number,
            kind=kind,
            size_bytes=64_000_000,
            resident_bytes=64_000_000 if kind != "vectors" else 64_000_000 * (number * 7 % 5) // 12,
            cached_bytes=64_000_000 if number % 3 else 0,
            hits=10 ** (6 - number // 4) * (1 + number * 5 % 9) if kind != "vectors" or number % 4 else 0,
            idle_s=float(number),
        )
        for number, kind in enumerate(_KINDS)
    ]
    session.blocks = [SegmentBlocks("00000007.hnsw", tuple(heat))]
    session.budget_bytes = lambda: 1_250_000_000  # type: ignore[method-assign]
    return session


async def still(driver: Driver) -> None:
    """No cursor blinks while its picture is taken."""
    for field in [*driver.app.screen.query(Input), *driver.app.screen.query(TextArea)]:
        field.cursor_blink = False
    await driver.pilot.pause()


async def hybrid_machine(screen: MachineScreen) -> None:
    width = max(1, screen._text.container_size.width - 2)
    screen._text.update(
        machine.machine_content(hybrid(), load(), index_bytes=96_000_000, budget_bytes=256_000_000, width=width)
    )


async def screens(driver: Driver) -> Any:
    """Name after name of what is to be seen, each when it is on the screen."""
    await driver.see("Type a question below")
    yield "welcome"
    await driver.ask(QUESTION)
    await driver.see("[?]")
    yield "ask"
    driver.ask_screen.query_one(Conversation).focus()
    await driver.press("2")
    await driver.see("KP40-230")
    yield "ask-passage"
    await driver.press("enter")
    await driver.see("[2] of 3", "▌")
    yield "document"
    await driver.press("v")
    await driver.see("Page 2 of 3 · as wide")
    yield "document-page"
    await driver.press("v")
    await driver.see("KP40-230")
    await driver.press("p")
    await driver.see("[1] of 3", "▌")
    yield "document-text"
    await driver.press("escape", "escape")
    for key, (name, words) in _INSPECTOR.items():
        await driver.press(*(["f12"] if key == "1" else []), key)
        await driver.see(words)
        yield f"why-{name}"
    await driver.press("escape")
    for key, (name, words) in _SCREENS.items():
        await driver.press(key)
        await driver.see(words)
        yield name
        await driver.press("escape")
    await driver.press("ctrl+t")
    await driver.see("Which oil does the gearbox")
    yield "threads"
    await driver.press("escape", "ctrl+p")
    await driver.see("Add documents")
    yield "palette"
    await driver.press("escape", "f1")
    await driver.see("On this screen")
    yield "help"
    await driver.press("escape", "f2")
    await driver.see("Add documents")
    yield "add"


_INSPECTOR = {
    "1": ("plan", "vector leg"),
    "2": ("hits", "Became"),
    "3": ("prompt", "Context of"),
    "4": ("cache", "What is approximate"),
    "5": ("time", "Stages of this answer"),
}
_SCREENS = {
    "f3": ("library", "kestrel-p40-manual.md"),
    "f4": ("check", "612 MB"),
    "f5": ("index", "00000007.hnsw"),
    "f6": ("machine", "A hybrid processor"),
    "f7": ("models", "smollm2-135m-instruct"),
    "f8": ("settings", "[library]"),
    "f9": ("keys", "Everywhere"),
}
_SIDES = {name for name, _ in _SCREENS.values()}


def alike_in_the_footer(driver: Driver) -> list[str]:
    """Labels of keys of which one says no more than the beginning of another: "Next" beside "Next page"."""
    labels = [str(key.description).split() for key in driver.app.screen.query(FooterKey)]
    return [
        f"{' '.join(one)!r} beside {' '.join(other)!r}"
        for place, one in enumerate(labels)
        for at, other in enumerate(labels)
        if place != at and other[: len(one)] == one
    ]


def cut_in_silence(driver: Driver) -> list[str]:
    """Cells of tables that are longer than their column and have no ellipsis."""
    found = []
    for table in driver.app.screen.query(DataTable):
        for row, cells in ((row, table.get_row(row.key)) for row in table.ordered_rows):
            for column, cell in zip(table.ordered_columns, cells, strict=True):
                at = table.get_cell_coordinate(row.key, column.key)
                painted = "".join(segment.text for line in table._render_cell(
                    at.row, at.column, Style(), column.get_render_width(table)
                ) for segment in line)  # fmt: skip
                if cell.plain.strip() not in painted and "…" not in painted:
                    found.append(f"{cell.plain!r} is painted {painted!r}")
    return found


@pytest.mark.parametrize("size", NARROW, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_in_little_room_every_screen_is_whole_and_what_matters_stays(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Preferences, "keep", lambda *_: None)
    monkeypatch.setattr(MachineScreen, "_show", hybrid_machine)
    monkeypatch.setattr(MachineScreen, "_look", lambda self: self.start(hybrid_machine(self)))
    monkeypatch.setattr(driving, "_PATIENCE_S", 2)  # much of what a larger window shows must be scrolled to here

    async def see(self: Driver, *words: str) -> None:
        with contextlib.suppress(AssertionError):
            await sees(self, *words)

    sees = Driver.see
    monkeypatch.setattr(Driver, "see", see)
    async with running(session_of_a_day(), size=size) as driver:
        async for name in screens(driver):
            assert len(driver.rows) == size[1], name
            assert all(cell_len(row) <= size[0] for row in driver.rows), name
            assert alike_in_the_footer(driver) == [] == cut_in_silence(driver), name
            if name in ("ask", "welcome"):
                assert "Ask about your documents" in driver.text, name
                assert driver.app.screen.query_one(Conversation).size.height >= size[1] // 2, name
            if name == "add":
                field = driver.app.screen.query_one(Input)
                assert driver.app.screen.find_widget(field).visible_region == field.region, "not a row of it is cut"


# Every size and every theme; the other pairs are a sweep.
@pytest.mark.parametrize(
    ("theme", "size"),
    [
        pytest.param(theme, size, id=f"{theme}-{size[0]}x{size[1]}", marks=() if at % 2 else pytest.mark.long)
        for at, (theme, size) in enumerate(product(THEMES, SIZES))
    ],
)
async def test_the_screens_are_those_of_the_pictures(
    theme: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("EDGERAG_MACHINE_THREADS")  # of all tests: the settings show it
    drawn_by = drawn_with(FOLDER, renew=RENEW)
    album = Album(FOLDER / f"{theme}-{size[0]}x{size[1]}", renew=RENEW)
    monkeypatch.setattr(Preferences, "keep", lambda *_: None)  # there is no such home
    monkeypatch.setattr(MachineScreen, "_show", hybrid_machine)
    monkeypatch.setattr(MachineScreen, "_look", lambda self: self.start(hybrid_machine(self)))
    troubles: list[str] = []
    async with running(session_of_a_day(), size=size, flags={"ui": {"theme": theme}}) as driver:
        driver.ask_screen.query_one(ThreadList)._clock = lambda: _NOON_NS / 1e9
        async for name in screens(driver):
            await still(driver)
            assert len(driver.rows) == size[1], name
            assert all(len(row) <= size[0] for row in driver.rows), name
            if name in _SIDES:
                assert "Back" in driver.rows[-1], name
            troubles += [f"{name}: {trouble}" for trouble in [*alike_in_the_footer(driver), *cut_in_silence(driver)]]
            contrast, text = least_contrast(driver)
            if contrast < 4.5 and not driver.app.screen.is_modal:  # WCAG 2.2, AA; what is behind a dialog is dimmed
                troubles.append(f"{name}: {text!r} has a contrast of {contrast:.1f}")
            if drawn_by == textual.__version__:
                svg = driver.app.export_screenshot(title="edgerag")
                troubles += filter(None, [album.compare(name, svg, aside=tmp_path / "now")])
    assert not troubles, "\n\n".join([*troubles, "Where that was meant: make pictures, and look at them."])
    if drawn_by != textual.__version__:
        pytest.skip(f"the pictures were drawn with Textual {drawn_by}: `make pictures` draws them with this one")
    assert album.unknown() == set()


def test_what_has_changed_in_a_picture_is_said_in_words() -> None:
    def drawn(*words: str, colour: str = "#fff") -> str:
        lines = "".join(
            f'<text class="t-r1" x="0" y="{20 + 24.4 * n}" textLength="9">{word}</text>\n'
            for n, word in enumerate(words)
        )
        return f".t-r1 {{ fill: {colour} }}\n{lines}"

    assert rows_of(drawn("one &amp; all", "two")) == ["one & all", "two"]
    assert difference(drawn("one"), drawn("one")) == ""
    assert "-two\n+three" in difference(drawn("one", "two"), drawn("one", "three"))
    said = difference(drawn("one"), drawn("one", colour="#000"))
    assert "colours" in said
    assert "row 1, column 1: 'one' fill: #fff -> 'one' fill: #000" in said
