"""Names, part numbers and quoted words of a sentence: what must stand in a source as it is. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise

from edgerag.ask.exact import is_identifier
from edgerag.ask.language import FUNCTION_WORDS
from edgerag.ask.words import UNSPACED, fold

_WORD = re.compile(rf"[^\W\d_{UNSPACED}]+")
_IDENTIFIER = re.compile(r"[A-Za-z0-9_$#@][\w$#@]*(?:(?:::|->|[-./:])[\w$#@]+)*", re.ASCII)
# 1980s, 21st, 50km, 5.5GB, 20-minute, mid-1990s: numbers, with something before or behind them.
_NUMBER_WITH_MORE = re.compile(r"(?:[a-z]+-)?[\d.,/:-]+[A-Za-z]{0,4}(?:-[A-Za-z]+)*")
_QUOTED = re.compile(
    r"“([^”“\n]{2,300})”|„([^“”„\n]{2,300})[“”]|\"([^\"\n]{2,300})\"|«\s?([^»«\n]{2,300}?)\s?»|»([^«»\n]{2,300})«"
    r"|「([^」\n]{2,300})」|『([^』\n]{2,300})』|《([^》\n]{2,300})》"
)
# What stands around the dot in a name that Chinese or Japanese transliterates.
_DOTTED_NAME = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]{2}[·・‧][\u3040-\u30ff\u4e00-\u9fff]{2}")
_MOST_CAPITALS = 0.6  # a line with more capitalised words than this is a title
_SHORTEST_PREFIX = 3
_SHORT_NAME = 4


def capitalised(sentence: str) -> list[tuple[str, bool]]:
    """The words of a sentence that look like names, each with whether the sentence begins with it.

    None in a title, where everything is capitalised.
    """
    words = _WORD.findall(sentence)
    upper = [word for word in words if word[0].isupper()]
    if (
        len(words) > 3
        and len(upper) / len(words) > _MOST_CAPITALS
        and not any(len(w) > 3 and w.islower() for w in words)
    ):
        return []
    found: list[tuple[str, bool]] = []
    for index, word in enumerate(words):
        if len(word) == 1 or not word[0].isupper() or word.casefold() in FUNCTION_WORDS:
            continue
        found.append((word, index == 0))
    return found


def identifiers(sentence: str) -> list[str]:
    """Part numbers, error codes, function names: E-1042, max_len, HashMap."""
    found = []
    for match in _IDENTIFIER.finditer(sentence):
        string = match.group().rstrip(".-:/")
        if is_identifier(string) and not _NUMBER_WITH_MORE.fullmatch(string):
            found.append(string)
    return found


def quotes(sentence: str) -> list[str]:
    """The words between quotation marks of any kind, and those around the dot of a transliterated name."""
    marked = [next(filter(None, groups)).strip() for groups in _QUOTED.findall(sentence)]
    return marked + _DOTTED_NAME.findall(sentence)


def compact(text: str) -> str:
    """Text as quotes are compared: letters and digits only, folded."""
    return "".join(character for character in fold(text) if character.isalnum())


class NameIndex:
    """The words of a source, to look names up in."""

    def __init__(self, text: str) -> None:
        text = unicodedata.normalize("NFKC", text)
        words = _WORD.findall(text)
        self._by_prefix: dict[str, set[str]] = {}
        for word in map(fold, set(words)):
            self._by_prefix.setdefault(word[:_SHORTEST_PREFIX], set()).add(word)
        self._initials = frozenset(_initials(words))

    def holds(self, name: str) -> bool:
        """Whether ``name`` stands there, in whatever case it is inflected, or as what it abbreviates."""
        folded = fold(name)
        near = self._by_prefix.get(folded[:_SHORTEST_PREFIX], ())
        return (
            folded in near
            or any(_same_name(folded, other) for other in near)
            or (name.isupper() and len(name) > 1 and name in self._initials)
        )


def _same_name(one: str, other: str) -> bool:
    """Luther and Luther's, Польша and Польше; not Johnson and Johnston."""
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) <= _SHORTEST_PREFIX:
        return longer in (shorter + "s", shorter + "es")
    common = next((n for n, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    if common == len(shorter):
        # German, Germany; a short one is another name's beginning: John, Johnson.
        return len(longer) - len(shorter) <= (3 if len(shorter) > _SHORT_NAME else 2)
    if ord(one[0]) < 0x370:
        return False
    return common >= max(_SHORTEST_PREFIX, len(longer) - 3)  # endings of Greek and Cyrillic


def _initials(words: Iterable[str]) -> Iterator[str]:
    """What capitalised words in a row are shortened to: United Nations, UN."""
    run = ""
    for word, following in pairwise([*words, ""]):
        if word[0].isupper():
            run += word[0]
            if len(run) > 1:
                yield run
        elif not (len(word) <= 3 and following[:1].isupper()):  # "of the" inside a name
            run = ""
