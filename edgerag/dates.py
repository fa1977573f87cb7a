"""The days that a person names: ``2024``, ``2024-05``, ``2024-05-17``, ``today``, ``yesterday``, ``30d``, ``6 months``.

A name stands for a span of whole days in the local time zone: a year, a month, one day. ``30d`` is the day 30 days
ago; a month or a year ago is the same day of that month, or the last one it has. The clock is given.
"""

from __future__ import annotations

import calendar
import re
from datetime import date, datetime, timedelta

from edgerag.errors import UsageError

_ISO = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", re.ASCII)
_AGO = re.compile(r"(\d{1,5})\s*(d|days?|w|weeks?|m|months?|y|years?)(?:\s+ago)?", re.ASCII)
_FORMS = "Write 2024, 2024-05, 2024-05-17, today, yesterday, 30d, 2w, 6m or 1y (days, weeks, months, years ago)."
# What nanoseconds in 64 bits can say reaches from 1677 to 2262.
_FIRST_YEAR, _LAST_YEAR = 1678, 2261


def first_ns(text: str, *, today: date) -> int:
    """Nanoseconds since 1970 of the moment when the named day, month or year begins.

    ``today`` is the day here. Raises UsageError for what is no date.
    """
    return _ns(_span(text, today=today)[0])


def after_ns(text: str, *, today: date) -> int:
    """The same of the moment when it is over. Raises UsageError for what is no date."""
    return _ns(_span(text, today=today)[1])


def _span(text: str, *, today: date) -> tuple[date, date]:
    """The first day, and the day after the last one."""
    words = " ".join(text.lower().split())
    try:
        if words in ("today", "yesterday"):
            return _one_day(today - timedelta(days=words == "yesterday"))
        if match := _ISO.fullmatch(words):
            return _in_range(*_named(*(int(part) if part else None for part in match.groups())))
        if match := _AGO.fullmatch(words):
            return _in_range(*_one_day(_ago(today, int(match[1]), match[2][0])))
    except (ValueError, OverflowError) as error:  # there is no such day
        raise _no_date(text) from error
    raise _no_date(text)


def _named(year: int | None, month: int | None, day: int | None) -> tuple[date, date]:
    assert year is not None, "the pattern has one"
    if month is None:
        return date(year, 1, 1), date(year + 1, 1, 1)
    if day is None:
        return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)
    return _one_day(date(year, month, day))


def _ago(today: date, count: int, unit: str) -> date:
    if unit in "dw":
        return today - timedelta(days=count * (7 if unit == "w" else 1))
    months = today.year * 12 + today.month - 1 - count * (12 if unit == "y" else 1)
    year, month = months // 12, months % 12 + 1
    return date(year, month, min(today.day, calendar.monthrange(year, month)[1]))


def _in_range(first: date, after: date) -> tuple[date, date]:
    if not _FIRST_YEAR <= first.year <= _LAST_YEAR:
        raise ValueError(f"the year {first.year}")
    return first, after


def _one_day(day: date) -> tuple[date, date]:
    return day, day + timedelta(days=1)


def _ns(day: date) -> int:
    """When a day begins here."""
    return int(datetime(day.year, day.month, day.day).astimezone().timestamp()) * 10**9


def _no_date(text: str) -> UsageError:
    return UsageError(f"{text!r} is no date.", remedy=_FORMS)
