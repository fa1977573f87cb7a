"""The parts below the widgets: layout of text, paths, figures, and the picture of an ingest."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from scripted_session import DOCUMENTS, MANUAL, ScriptedSession, paged, plain_document, source

from edgerag.telemetry.frames import Frame
from edgerag.types import FileDone, FileReport, FilesDiscovered, IngestDone, IngestProgress, Page
from edgerag.ui.tui import paths, shown
from edgerag.ui.tui.facts import Facts
from edgerag.ui.tui.ingest_view import IngestView, bar, summary
from edgerag.ui.tui.keys import all_shortcuts
from edgerag.ui.tui.passage import Passage, cells, home_words, lay_out, locate, row_of
from edgerag.ui.tui.screens.help import key_lines
from edgerag.ui.tui.why_content import frame_piece
from edgerag.ui.tui.widgets.block_map import legend
from edgerag.ui.tui.widgets.status_line import compose_line
from edgerag.ui.why.layout import FlameCell

_TEXT = st.text(alphabet=st.sampled_from("ab cd\n\t备用é̂🤖-\r"), max_size=300)


@given(_TEXT, st.integers(min_value=1, max_value=40))
def test_rows_hold_the_whole_text_in_order_and_fit(text: str, width: int) -> None:
    rows = lay_out(plain_document("t", text), width)
    joined = ""
    for row in rows:
        joined += text[row.start : row.end]
        content = text[row.start : row.end]
        room = sum(cells(character) for character in content.removesuffix(" "))
        assert room <= width or len(content) == 1 or len(content.strip()) <= 1
    assert joined == text.replace("\n", "")
    numbers = [row.line_number for row in rows if row.line_number]
    assert numbers == list(range(1, len(numbers) + 1))
    for offset in range(len(text)):
        row = rows[row_of(rows, offset)]
        assert text[offset] == "\n" or row.start <= offset < row.end


def test_every_page_has_its_mark_before_its_text() -> None:
    document = paged("p", ["one\n", "two\nmore\n", "three\n"])
    rows = lay_out(document, 20)
    assert [row.page_mark or document.text[row.start : row.end] for row in rows] == [
        1,
        "one",
        2,
        "two",
        "more",
        3,
        "three",
    ]


def test_rows_of_a_spreadsheet_have_their_own_numbers_and_no_marks() -> None:
    text = "Costs\n\nItem | Price\nBolt | 1\n\nNut | 2\n"
    spans = [(2, 0, 20), (3, 20, 29), (7, 29, 38)]
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    document = replace(plain_document("t", text), media_type=media_type, pages=tuple(Page(*span) for span in spans))
    rows = lay_out(document, 40)
    assert [(row.line_number, text[row.start : row.end]) for row in rows] == [
        (0, "Costs"),
        (0, ""),
        (2, "Item | Price"),
        (3, "Bolt | 1"),
        (0, ""),
        (7, "Nut | 2"),
    ]
    assert not any(row.page_mark for row in rows)


def test_rows_of_an_empty_document() -> None:
    assert len(lay_out(plain_document("e", ""), 10)) == 1


def test_a_part_of_a_file_has_the_line_numbers_of_the_file() -> None:
    document = dataclasses.replace(plain_document("t", "one\ntwo\n"), first_line=1_000)
    assert [row.line_number for row in lay_out(document, 20)] == [1_000, 1_001]


def test_a_passage_is_found_where_it_was_or_where_it_went() -> None:
    document = DOCUMENTS["/docs/kestrel-p40-manual.md"]
    cited = source("/docs/m.md", document, "Drain the pump before frost.", "before frost", number=1, document_id=1)
    there = locate(document, cited)
    assert there is not None and not there.moved
    assert document.text[there.quote_start : there.quote_end] == "before frost"
    moved = locate(plain_document("m", "New.\n" + MANUAL), cited)
    assert moved is not None and moved.moved and moved.quote_start == there.quote_start + 5
    only_quote = locate(plain_document("m", "Close it before frost."), cited)
    assert only_quote is not None and (only_quote.start, only_quote.moved) == (9, True)
    assert locate(plain_document("m", "Nothing."), cited) is None


def test_paths_typed_pasted_and_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "it's one.md", tmp_path / "two files"
    one.touch()
    two.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert paths.parse("  ") == []
    assert paths.parse(str(one)) == [one], "a quote in a name is no quoting"
    assert paths.parse("~/two files") == [two]
    assert paths.parse(f"'{two}'") == [two]
    assert paths.parse(f"\"{one}\" '{two}'") == [one, two]
    assert paths.parse(f"file://{tmp_path}/two%20files") == [two]
    assert paths.parse("~nobody-here/x") == [Path("~nobody-here/x")]
    assert paths.parse("/no/such place") == [Path("/no/such place")]


def test_completions_are_folders_first_and_hidden_only_when_asked(tmp_path: Path) -> None:
    for name in ("beta", "alpha", ".git"):
        (tmp_path / name).mkdir()
    (tmp_path / "a.md").touch()
    labels = [completion.label for completion in paths.complete(f"{tmp_path}/")]
    assert labels == ["alpha", "beta", "a.md"]
    assert [c.typed for c in paths.complete(f"{tmp_path}/.g")] == [f"{tmp_path}/.git/"]
    assert paths.complete(f"{tmp_path}/nowhere/") == []
    assert paths.complete("/\x00") == []
    found = paths.complete(f"{tmp_path}/a")
    assert paths.common_continuation(f"{tmp_path}/", found) == f"{tmp_path}/a"
    assert paths.common_continuation("x", []) == "x"


def test_an_ingest_is_pictured_from_its_events() -> None:
    view = IngestView(running=True)
    assert (view.fraction, view.figures()) == (0.0, "looking for files")
    view = view.after(FilesDiscovered(4))
    assert view.figures() == "4 files found"
    failed = FileReport("/b.pdf", "failed", "Broken.", 0)
    skipped = FileReport("/c.png", "skipped", "No reader.", 0)
    view = view.after(FileDone(FileReport("/a.md", "ingested", "", 3))).after(FileDone(skipped)).after(FileDone(failed))
    view = view.after(IngestProgress(3, 4, 0, 3, 12.4, None, "/a.md"))
    assert view.fraction == pytest.approx(3 / 7)
    assert view.figures() == "3/4 files · 0/3 chunks · 12 chunks/s"
    assert replace(view, paused=True).figures() == "3/4 files · 0/3 chunks · paused"
    timed = view.after(IngestProgress(3, 4, 16, 3, 12.4, 80.0, "/a.md"))
    assert timed.figures().endswith("left") and "left" not in replace(timed, paused=True).figures()
    assert (view.state, replace(view, paused=True).state) == ("Reading", "Paused")
    stopping = replace(view, paused=True, stopping=True)
    assert (stopping.state, stopping.can_be_paused, view.can_be_paused) == ("Stopping", False, True)
    assert view.troubles == (skipped, failed)
    done = IngestDone((skipped, failed), 3, 0.6, interrupted=False)
    view = view.after(done)
    assert (view.fraction, view.troubles) == (1.0, (failed, skipped))
    assert summary(done) == "1 skipped, 1 failed · 3 chunks embedded in 1 s"


@given(st.floats(min_value=-1, max_value=2), st.integers(min_value=0, max_value=80))
def test_a_bar_always_has_its_width(fraction: float, width: int) -> None:
    assert len("".join(bar(fraction, width))) == width


@pytest.mark.parametrize("width", range(1, 220, 7))
def test_the_status_line_fits_and_keeps_the_library(width: int) -> None:
    status = ScriptedSession().library_status()
    facts = Facts(known=True, model="m" * 60, library_name="default", library=status, resident_bytes=412_000_000)
    for told in (facts, replace(facts, library=None)):
        line = " │ ".join(compose_line(told, width))
        assert len(line) <= width
        assert width < 30 or "3" in line or "no documents" in line


def test_the_status_line_names_the_libraries_that_are_asked_together() -> None:
    status = ScriptedSession().library_status()
    facts = Facts(known=True, model="m", library_name="work", also=("home", "club"), library=status)
    assert "work: 3 documents" in compose_line(facts, 200)[1]
    assert compose_line(facts, 200)[1].endswith(", and home, club")


def test_a_passage_over_several_pages_is_said_to_be_on_all_of_them() -> None:
    pages = tuple(Page(number, 10 * number, 10 * number + 10) for number in range(10))
    document = replace(plain_document("m", "x" * 100), pages=pages)
    over = home_words(document, Passage(25, 58, 31, 33, moved=False))
    assert over == "the passage is on pages 2–5, its quote on page 3"
    assert home_words(document, Passage(22, 30, 23, 25, moved=False)) == "the passage is on page 2"


@given(_TEXT, st.integers(min_value=0, max_value=40))
def test_what_is_fitted_takes_no_more_cells_and_shows_where_it_is_cut(text: str, width: int) -> None:
    whole = shown.fitted(text, 10**6)
    line = shown.fitted(text, width)
    assert cell_len(line) <= width
    assert line == whole or (line == "" and width == 0) or line.endswith("…")


@given(_TEXT, st.integers(min_value=2, max_value=40), st.integers(min_value=1, max_value=4))
def test_rows_are_no_wider_and_no_more_and_show_where_they_are_cut(text: str, width: int, count: int) -> None:
    rows = shown.rows(text, width, count)
    assert len(rows) <= count
    assert all(row.cell_length <= width for row in rows)
    whole = "".join(shown.fitted(text, 10**6).split())
    said = "".join("".join(row.plain for row in rows).split())
    assert said == whole or (said.endswith("…") and whole.startswith(said[:-1]))


def test_a_long_text_of_wide_letters_shows_that_it_goes_on() -> None:
    rows = shown.rows("备用电源能工作多久" * 20, 20, 3)
    assert [row.cell_length for row in rows] == [20, 20, 19]
    assert rows[-1].plain.endswith("…")


@pytest.mark.parametrize(
    ("cells", "text"), [(20, "▏keyword search 50% "), (15, "▏keyword search"), (8, "▏keywor…"), (3, "▏  "), (1, "▏")]
)
def test_a_name_in_the_flame_is_whole_or_shows_where_it_is_cut(cells: int, text: str) -> None:
    assert frame_piece(FlameCell(Frame("keyword", 1.0), 0, cells), 2.0)[0] == text


def test_the_signs_of_the_map_are_not_parted_from_their_words() -> None:
    assert all(line.cell_length <= 77 for line in legend().split("\n")), "at 80 columns"


@pytest.mark.parametrize("width", [20, 36, 80])
def test_what_a_key_does_stands_under_itself(width: int) -> None:
    for one in all_shortcuts():
        first, *rest = key_lines(one, {}, width)
        assert all(line.cell_length <= width for line in rest), one
        begins = first.plain.find(one.description.split()[0])
        indents = {len(line.plain) - len(line.plain.lstrip()) for line in rest}
        assert len(indents) <= 1 and (begins < 0 or indents <= {begins}), one
