"""Citation marks as models write them: [1], [1, 7], [Source 2], [1-3]."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LARGEST_MARK = 999  # beyond it a number in brackets is a year or a count, not a source that does not exist
_NUMBERS = re.compile(
    r"\s*(?:sources?|src|refs?|references?|passages?|documents?|quellen?|来源)?[\s.:#]*"
    r"(\d{1,4}(?:\s*(?:[,;&–—-]|and|und|to)\s*#?\d{1,4})*)\s*",
    re.IGNORECASE,
)
# What an index stands behind, in prose: a[3], max_len[2]. Other words may carry a glued mark.
_INDEXED = re.compile(r"(?:^|\W)(?:[a-z]|[A-Za-z]\w*_\w*)$")
_LONGEST_NAME = 40  # characters of what may be an index's name
_LAST_WORDS = re.compile(r"(?:\w+\W+)?\w+\W*$")
_LONGEST_WORDS = 80  # characters of what is compared with the sources
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


def is_index(before: str) -> bool:
    """Whether a bracket directly behind this text is an index of code and no mark."""
    return _INDEXED.search(before[-_LONGEST_NAME:]) is not None


def is_copied(before: str, bracket: str, texts: Sequence[str]) -> bool:
    """Whether ``bracket`` is a document's own reference: it and the two words before it stand so in one of the texts
    of the sources."""
    words = _LAST_WORDS.search(before[-_LONGEST_WORDS:])
    if words is None or not any(bracket in text for text in texts):
        return False
    pattern = re.compile(r"\s+".join(map(re.escape, f"{words[0]}{bracket}".split())))
    return any(pattern.search(text) for text in texts)
