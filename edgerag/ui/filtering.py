"""What a person types to keep a question to some documents becomes a filter: on the command line and in the UI."""

from __future__ import annotations

from datetime import datetime

from edgerag.dates import after_ns, first_ns
from edgerag.locations import user_path
from edgerag.session import document_number
from edgerag.types import Filter, FilterText


def read_filter(typed: FilterText) -> Filter | None:
    """None when nothing is typed. Entries of a field stand between commas. Raises UsageError for what is no date and
    can be no path."""
    return make_filter(
        inside=_entries(typed.inside),
        tags=_entries(typed.tags),
        languages=_entries(typed.languages),
        types=_entries(typed.types),
        since=typed.since.strip(),
        until=typed.until.strip(),
    )


def make_filter(
    *,
    inside: list[str],
    tags: list[str],
    languages: list[str],
    types: list[str],
    since: str,
    until: str,
) -> Filter | None:
    """None when nothing is asked for. Raises UsageError as :func:`read_filter`."""
    numbers = {name: document_number(name) for name in inside}
    today = datetime.now().astimezone().date()
    where = Filter(
        document_ids=tuple(number for number in numbers.values() if number is not None),
        paths=tuple(str(user_path(name)) for name, number in numbers.items() if number is None),
        tags=tuple(tags),
        languages=tuple(languages),
        types=tuple(types),
        since_ns=first_ns(since, today=today) if since else None,
        until_ns=after_ns(until, today=today) if until else None,
    )
    return None if where == Filter() else where


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]
