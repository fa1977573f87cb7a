"""Citation marks as models write them: [1], [1, 7], [Source 2], [1-3]."""

from __future__ import annotations

import re

_LARGEST_MARK = 999  # beyond it a number in brackets is a year or a count, not a source that does not exist
_NUMBERS = re.compile(
    r"\s*(?:sources?|src|refs?|references?|passages?|documents?|quellen?|来源)?[\s.:#]*"
    r"(\d{1,4}(?:\s*(?:[,;&–—-]|and|und|to)\s*#?\d{1,4})*)\s*",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d+)\s*(?:[–—-]|to)\s*#?(\d+)", re.IGNORECASE)


def parse_marks(content: str) -> tuple[int, ...] | None:
    """The numbers of a bracket's content: of "1", "1, 7", "Source 2", "1-3"; None if it is no mark."""
    match = _NUMBERS.fullmatch(content)
    if match is None:
        return None
    listed = match[1]
    found: list[int] = []
    for first, last in _RANGE.findall(listed):
        # A wide "range" is a pair of years or of line numbers; its ends alone are looked at.
        found.extend(range(int(first), int(last) + 1) if 0 <= int(last) - int(first) <= 50 else (int(first), int(last)))
    found.extend(int(number) for number in re.findall(r"\d+", _RANGE.sub(" ", listed)))
    if min(found) > _LARGEST_MARK:
        return None
    if 0 in found and len(found) > 1:
        return None  # [0, 1] is an interval or a list: sources count from 1
    return tuple(dict.fromkeys(found))
