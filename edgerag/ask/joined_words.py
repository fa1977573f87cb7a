"""What stands in a question about documents, as a query for words: "the pump or the valve, but not the motor".

Only plain joints are followed. Where a question goes beyond them ("only", "more than twice", "or not"), the words that
say so are given back, and nothing is counted as if they were not there. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from edgerag.ask.collection_words import JOINTS, UNSPACED_JOINTS, Joints
from edgerag.types import WordQuery

# More ways to combine what is asked for are no question that a person has.
_MOST_WAYS = 32
_NO_NAME = r"(?-i:(?![A-ZÀ-ÞА-Я][a-zß-ÿа-я]))"
_QUOTED = re.compile('"[^"]*"|“[^”]*”|„[^“”]*[“”]|«[^»]*»')
_COMMA = r"[,;，；、]"
# Stands for a quoted phrase while the words around it are taken apart; never in a question, from which it is removed.
_HOLE = "\ue000"
_HOLES = re.compile(f"{_HOLE}([0-9]+){_HOLE}")

Content = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Joined:
    """``beyond`` are words that the query does not follow: it is then not what was asked."""

    words: WordQuery
    beyond: tuple[str, ...] = ()


class JoinReader:
    """Reads the words of one language."""

    def __init__(self, joints: Joints, *, spaced: bool) -> None:
        def whole(words: str) -> re.Pattern[str]:
            # With a capital alone it is part of a name: "Pas de Calais".
            pattern = rf"{_NO_NAME}(?<![\w-])(?:{words})(?:(?<=['’])|(?![\w-]))" if spaced else f"(?:{words})"
            return re.compile(pattern, re.IGNORECASE)

        self._either = whole(joints.either)
        # In English it may hang on its verb.
        self._neither = re.compile(rf"{whole(joints.neither).pattern}|(?<=do|es|id)n['’]?t(?!\w)", re.IGNORECASE)
        self.without = whole(joints.without)
        self._negative = re.compile(f"{self._neither.pattern}|{self.without.pattern}", re.IGNORECASE)
        self._also = re.compile(f"{whole(joints.also).pattern}|{_COMMA}", re.IGNORECASE)
        self._but = whole(joints.but)
        self._beyond = whole(joints.beyond)
        self._comma = re.compile(_COMMA)
        self._empty = whole(joints.empty)

    def negation(self, text: str) -> re.Match[str] | None:
        """The first word that says "not"."""
        return self._neither.search(_without_quotes(text))

    def joints(self, text: str) -> tuple[str, ...]:
        """Every word in it that says more than "and"."""
        bare = _without_quotes(text)
        found = [match for pattern in (self._either, self._negative, self._beyond) for match in pattern.finditer(bare)]
        return tuple(dict.fromkeys(match[0].casefold() for match in sorted(found, key=lambda match: match.start())))

    def beyond(self, text: str) -> tuple[str, ...]:
        """The words in it that no query follows."""
        found = (match[0].casefold() for match in self._beyond.finditer(_without_quotes(text)))
        return tuple(dict.fromkeys(found))

    def read(self, text: str, *, negated: bool, content: Content) -> Joined:
        """``negated``: the verb before it was. ``content`` gives the words of a part that mean something."""
        quotes: list[str] = []

        def hole(match: re.Match[str]) -> str:
            quotes.append(match[0])
            return f"{_HOLE}{len(quotes) - 1}{_HOLE}"

        def words_of(part: str) -> tuple[str, ...]:
            return content(_HOLES.sub(lambda match: quotes[int(match[1])], self._empty.sub(" ", part)))

        text = _QUOTED.sub(hole, text.replace(_HOLE, ""))
        beyond = [match[0].casefold() for match in self._beyond.finditer(text)]
        wanted: list[list[tuple[str, ...]]] = []  # of each clause, its alternatives
        unwanted: list[tuple[str, ...]] = []
        for number, clause in enumerate(self._but.split(text)):
            held, left_out, failed = self._clause(clause, negated and not number, words_of)
            wanted += [held] if held else []
            unwanted += left_out
            beyond += failed
        if len(wanted) > _MOST_WAYS or len(ways := list(product(*wanted))) > _MOST_WAYS:
            return Joined(WordQuery.all_of(words_of(text)), tuple(dict.fromkeys(beyond)) or ("…",))
        any_of = tuple(dict.fromkeys(tuple(dict.fromkeys(sum(way, ()))) for way in ways if way))
        return Joined(WordQuery(any_of, tuple(dict.fromkeys(unwanted))), tuple(dict.fromkeys(beyond)))

    def _clause(
        self, clause: str, negated: bool, words_of: Content
    ) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]], list[str]]:
        """Alternatives that are wanted, groups that are not, and what cannot be followed."""
        parts: list[str] = []
        said: list[str] = []
        position = 0
        for match in self._negative.finditer(clause):
            parts.append(clause[position : match.start()])
            said.append(match[0])
            position = match.end()
        parts.append(clause[position:])
        first, rest = parts[0], parts[1:]
        filled = [part for part in rest if words_of(part)]
        if said and not filled:  # behind its object, as in German: all before it is meant
            negated, rest = True, []
        if said and not words_of(first):  # "neither X nor Y", "not X": nothing before it
            negated, first = True, ""
        elif filled and self._ends_with_either(first):
            return [], [], [*self._either.findall(first)[-1:], said[0].casefold()]
        held: list[tuple[str, ...]] = []
        left_out: list[tuple[str, ...]] = []
        if negated:
            left_out += self._groups(first, words_of)
        else:
            held += self._alternatives(first, words_of)
        for part in rest:
            left_out += self._groups(part, words_of)
        return held, left_out, []

    def _ends_with_either(self, text: str) -> bool:
        last = list(self._either.finditer(text))
        return bool(last) and not re.search(r"\w", text[last[-1].end() :])

    def _alternatives(self, text: str, words_of: Content) -> list[tuple[str, ...]]:
        parts = self._either.split(text)
        if len(parts) > 1:  # then a comma is one, too: "a, b or c"
            parts = [piece for part in parts for piece in self._comma.split(part)]
        return [words for part in parts if (words := words_of(part))]

    def _groups(self, text: str, words_of: Content) -> list[tuple[str, ...]]:
        parts = [piece for part in self._either.split(text) for piece in self._also.split(part)]
        return [words for part in parts if (words := words_of(part))]


def _without_quotes(text: str) -> str:
    """The same, with blanks in the place of quoted phrases, so that places stay."""
    return _QUOTED.sub(lambda match: " " * len(match[0]), text)


@cache
def join_reader(language: str) -> JoinReader:
    """Of a language that is written with spaces; "" of those that are not."""
    return JoinReader(JOINTS[language], spaced=True) if language else JoinReader(UNSPACED_JOINTS, spaced=False)


def alone(words: Sequence[str], *, without: Sequence[str]) -> WordQuery:
    """Each of the words for itself; ``without`` those that say how they go together."""
    joining = {word for said in without for word in said.casefold().split()}
    return WordQuery(tuple((word,) for word in words if word.casefold() not in joining))
