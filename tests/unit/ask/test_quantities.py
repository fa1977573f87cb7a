from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.number_words import numeral_zh
from edgerag.ask.quantities import Quantity, is_unit, month_number, quantities


def only(text: str) -> Quantity:
    (quantity,) = [found for found in quantities(text) if not found.weak]
    return quantity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000", "1,000"),
        ("1000", "1.000"),
        ("1000", "1 000"),
        ("1000", "1\u202f000"),
        ("1000", "1'000"),
        ("1234567", "1,234,567"),
        ("1234567.5", "1.234.567,5"),
        ("1234.5", "1,234.5"),
        ("1500000", "15,00,000"),
        ("11.5", "11,5"),
        ("2.50", "2.5"),
        ("09", "9"),
        ("3000000", "3 million"),
        ("3 million", "3 Millionen"),
        ("250000", "250 thousand"),
        ("三", "3"),
        ("12", "twelve"),
        ("12", "zwölf"),
        ("12", "douze"),
        ("12", "doce"),
        ("42", "forty-two"),
        ("42", "zweiundvierzig"),
        ("42", "quarante-deux"),
        ("7 layers", "a seven-layer model"),
        ("12", "十二"),
        ("1998", "一九九八"),
        ("30000", "3万"),
        ("30000", "三万"),
        ("12", "１２"),
        ("12", "١٢"),
        ("1980", "1980s"),
        ("80", "the 1980s"),
        ("50%", "50 percent"),
        ("50 %", "fifty per cent"),
    ],
)
def test_the_same_number_is_the_same_however_it_is_written(one: str, other: str) -> None:
    values = [{value for quantity in quantities(text) for value in quantity.values} for text in (one, other)]
    assert values[0] & values[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [("1000", "100"), ("1.5", "15"), ("1,50", "1500"), ("0.125", "125"), ("1.2.3", "123"), ("12", "二")],
)
def test_another_number_is_another(one: str, other: str) -> None:
    assert not only(one).values & {value for quantity in quantities(other) for value in quantity.values}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("8 °C", "8 degrees Celsius"),
        ("9 kg", "9 kilograms"),
        ("5 h", "5 Stunden"),
        ("20-minute", "20 minutes"),
        ("3km", "3 km"),
    ],
)
def test_units_are_compared_by_what_they_mean(one: str, other: str) -> None:
    assert only(one).unit == only(other).unit != ""


def test_what_is_counted_is_the_next_word_if_that_says_anything() -> None:
    assert only("18 yards").unit != only("18 seconds").unit
    assert only("24 of the games").unit == only("8 degrees").unit == ""


@pytest.mark.parametrize("text", ["one of them", "the second one", "eine Pumpe", "un hombre", "两个", "in May"])
def test_words_that_mean_something_else_are_weak(text: str) -> None:
    assert all(quantity.weak for quantity in quantities(text))


def test_places_are_those_of_the_number() -> None:
    text = "From 1939 to 1945, six years."
    assert [text[q.start : q.end] for q in quantities(text)] == ["1939", "1945", "six"]


def test_months_and_units_are_known() -> None:
    assert month_number("Mai") == month_number("mayo") == month_number("May") == "5"
    assert month_number("Monday") is None
    assert is_unit("Celsius") and not is_unit("Kestrel")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("十", 10),
        ("二十", 20),
        ("一百零五", 105),
        ("三千二百", 3200),
        ("一万二千", 12_000),
        ("三亿", 300_000_000),
        ("万", 10_000),
    ],
)
def test_chinese_numerals(text: str, number: int) -> None:
    assert numeral_zh(text) == number


@given(st.integers(0, 10**9))
def test_digits_read_as_themselves_with_and_without_separators(number: int) -> None:
    for written in (f"{number}", f"{number:,}", f"{number:,}".replace(",", "."), f"{number:,}".replace(",", " ")):
        assert str(number) in {value for quantity in quantities(f"x {written} y") for value in quantity.values}


@given(st.text(alphabet="0123456789.,' %°CkgM-三十万½²١०", max_size=40))
def test_whatever_looks_like_numbers_is_read(text: str) -> None:
    quantities(text)


def test_endless_digits_are_data() -> None:
    assert quantities("7" * 10_000) == []
