from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.dates import after_ns, first_ns
from edgerag.errors import UsageError

TODAY = date(2024, 3, 31)


def day(text: str) -> int:
    """The local midnight at which a day begins."""
    return int(datetime.fromisoformat(text).timestamp()) * 10**9


@pytest.mark.parametrize(
    ("text", "first", "after"),
    [
        ("2024", "2024-01-01", "2025-01-01"),
        ("2024-02", "2024-02-01", "2024-03-01"),
        ("2024-12", "2024-12-01", "2025-01-01"),
        ("2024-02-29", "2024-02-29", "2024-03-01"),
        ("2024-5-7", "2024-05-07", "2024-05-08"),
        ("today", "2024-03-31", "2024-04-01"),
        (" Yesterday ", "2024-03-30", "2024-03-31"),
        ("30d", "2024-03-01", "2024-03-02"),
        ("1 day", "2024-03-30", "2024-03-31"),
        ("2 weeks ago", "2024-03-17", "2024-03-18"),
        ("1m", "2024-02-29", "2024-03-01"),
        ("6 months", "2023-09-30", "2023-10-01"),
        ("15 months", "2022-12-31", "2023-01-01"),
        ("1 year", "2023-03-31", "2023-04-01"),
        ("0d", "2024-03-31", "2024-04-01"),
    ],
)
def test_a_name_is_a_span_of_whole_local_days(text: str, first: str, after: str) -> None:
    assert first_ns(text, today=TODAY) == day(first)
    assert after_ns(text, today=TODAY) == day(after)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "2024-13", "2023-02-29", "2024-00", "24", "20245", "tomorrow", "5", "d", "-3d", "9999y"),
        *("99999 months", "99999w", "1000", "9999", "2024-05-17T10:00", "3 fortnights", "٢٠٢٤"),
    ],
)
def test_what_is_no_date_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(UsageError, match="30d"):
        first_ns(text, today=TODAY)


@given(today=st.dates(date(1990, 1, 1), date(2200, 1, 1)), days=st.integers(0, 3000))
def test_so_many_days_ago_is_the_day_of_that_date(today: date, days: int) -> None:
    named = (today - timedelta(days=days)).isoformat()
    assert first_ns(f"{days}d", today=today) == first_ns(named, today=today) < after_ns(named, today=today)


@given(text=st.text(max_size=20))
def test_any_text_is_a_date_or_refused(text: str) -> None:
    try:
        assert first_ns(text, today=TODAY) < after_ns(text, today=TODAY)
    except UsageError as error:
        assert repr(text) in str(error)
