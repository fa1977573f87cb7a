from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from edgerag.ui.cells import cell_count, cut, padded, wrapped
from edgerag.ui.output import table
from edgerag.ui.plain import one_line


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("abc", 3),
        ("水泵手册", 8),
        ("ポンプ", 6),
        ("e\u0301te", 3),
        ("펌프", 4),
        ("\u1112\u1161\u11ab", 2),
        ("", 0),
        ("🚰", 2),
    ],
)
def test_wide_letters_take_two_cells_and_marks_on_a_letter_none(text: str, cells: int) -> None:
    assert cell_count(text) == cells


def test_columns_stand_below_each_other_whatever_is_in_them() -> None:
    lines = table([("水泵.pdf", "1"), ("a.pdf", "2"), ("e\u0301.pdf", "3")]).splitlines()
    assert {cell_len(line) for line in lines} == {len("水泵.pdf") + 2 + 2 + 1}
    assert [line[-1] for line in lines] == ["1", "2", "3"]


def test_one_line_is_as_wide_as_it_may_be_and_no_wider() -> None:
    assert one_line("水泵的维护手册", 14) == "水泵的维护手册"
    assert one_line("水泵的维护手册", 13) == "水泵的维护手…"
    assert one_line("水泵的维护手册", 12) == "水泵的维护…"
    assert one_line("pump manual", 6) == "pump…"


_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=40)


@given(_TEXT, st.integers(2, 30))
def test_what_is_cut_or_wrapped_fits(text: str, cells: int) -> None:
    assert cell_count(cut(text, cells)) <= cells and text.startswith(cut(text, cells))
    assert cell_count(padded(cut(text, cells), cells)) == cells
    lines = wrapped(text, cells)
    assert all(cell_count(line) <= cells for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_lines_have_what_goes_before_them() -> None:
    assert wrapped("水泵的维护 手册", 10, first="> ", others="  ") == ["> 水泵的维", "  护 手册"]
