from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgerag.ingest.parse.number_format import BUILT_IN, GENERAL, shown


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (1.0, GENERAL, "1"),
        (0.1 + 0.2, GENERAL, "0.3"),
        (-12.5, GENERAL, "-12.5"),
        (123456789012.0, GENERAL, "123456789012"),
        (1e300, GENERAL, "1e+300"),
        (0.19, "0%", "19%"),
        (0.1925, "0.0%", "19.3%"),  # half is rounded up, as on the screen
        (-0.05, "0%;[Red]-0%", "-5%"),
        (1234567.891, "#,##0.00", "1,234,567.89"),
        (1234.5, '#,##0.00\\ "€"', "1,234.50 €"),
        (1234.5, "_-* #,##0.00\\ [$€-407]_-;\\-* #,##0.00\\ [$€-407]_-", "1,234.50 €"),
        (-5, "[$$-409]#,##0.00;[Red]([$$-409]#,##0.00)", "($5.00)"),
        (-5.5, "$#,##0.00", "-$5.50"),
        (0, '#,##0;-#,##0;"none"', "0"),
        (12_345_678, '0.0,,"M"', "12.3M"),
        (42, "00000", "00042"),
        (5_551_234, "000-0000", "555-1234"),
        (3, '0 "kg"', "3 kg"),
        (0.5, "#,##0.##", "0.5"),
        (2, "0.##", "2"),
        (12345.678, "0.00E+00", "1.23E+04"),
        (0.5, "# ?/?", "0.5"),
        (7, "@", "7"),
        (5, ";;;", "5"),  # hidden from the eye, but it stands in the cell
        (1500, '[>=1000]0.0,"k";0', "1500"),  # conditions are not followed
    ],
)
def test_numbers_are_as_on_the_screen(value: float, code: str, text: str) -> None:
    assert shown(value, code) == text


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (45000, "dd/mm/yyyy", "2023-03-15"),
        (45000, "m/d/yy", "2023-03-15"),
        (45000, "[$-407]d. mmmm yyyy;@", "2023-03-15"),
        (45000, 'yyyy"年"m"月"d"日"', "2023-03-15"),
        (45000, "mmm yyyy", "2023-03"),
        (45000, "yyyy", "2023"),
        (45000.75, "m/d/yy h:mm", "2023-03-15 18:00"),
        (45000.75, "yyyy-mm-dd hh:mm:ss", "2023-03-15 18:00:00"),
        (0.5, "h:mm AM/PM", "12:00"),
        (0.99999999, "h:mm:ss", "00:00:00"),  # rounded into the next day
        (1.5, "[h]:mm:ss", "36:00:00"),
        (-0.25, "[h]:mm", "-6:00"),
        (0.0625, "[mm]:ss", "90:00"),
        (0.0345, "mm:ss", "00:49:41"),
        (59, "dd/mm/yyyy", "1900-02-28"),
        (60, "dd/mm/yyyy", "1900-02-29"),
        (61, "dd/mm/yyyy", "1900-03-01"),
        (-3, "dd/mm/yyyy", "-3"),
        (1e9, "dd/mm/yyyy", "1000000000"),
        (45000, "Standard", "45000"),  # "General" in German, which has letters of dates in it
    ],
)
def test_dates_and_times_are_iso(value: float, code: str, text: str) -> None:
    assert shown(value, code) == text


def test_a_workbook_may_count_its_days_from_1904() -> None:
    assert shown(0, "yyyy-mm-dd", from_1904=True) == "1904-01-01"
    assert shown(43538, "yyyy-mm-dd", from_1904=True) == "2023-03-15"


def test_codes_known_by_number_only() -> None:
    assert shown(0.25, BUILT_IN[9]) == "25%"
    assert shown(45000, BUILT_IN[14]) == "2023-03-15"
    assert shown(-1234, BUILT_IN[37]) == "(1,234)"


CODES = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from([*'0#?.,%;ydmhs"\\_*[]@/ E+-eA', "[h]", "[$€-407]", '"x"', "AM/PM"]), max_size=25).map(
        "".join
    ),
)


@given(st.floats(), CODES, st.booleans())
@example(1e14, "0" * 400 + "." + "0" * 400, False)
@example(1e14, "0" + "%" * 400, False)
@example(2_958_465.999999, "yyyy-mm-dd", True)
@example(2_958_465.999999, "yyyy-mm-dd", False)
def test_any_code_shows_something_on_one_line(value: float, code: str, from_1904: bool) -> None:
    text = shown(value, code, from_1904=from_1904)
    assert text
    if math.isfinite(value) and "\n" not in code and "\r" not in code:
        assert any(character.isdigit() for character in text)
