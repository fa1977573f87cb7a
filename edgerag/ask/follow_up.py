"""A question that leans on the conversation becomes one that can be searched for. No model is asked. Pure.

Recognised by what it leaves open: a pronoun before which nothing stands that it could mean ("Why did it stop?"), a
beginning that goes on ("And in Germany?"), a fragment ("since when?"), or no word that means anything ("why?"). A
question that announces a new subject, or that is complete, is left as it is. What is added are words: names first,
then the rarest words of the questions before, each turn back counting half; and the names in the last answer, which
are often what a pronoun means. They stand behind the question, so that an exact string or a phrase in it stays one.
The model is still shown what was asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from edgerag.ask.cues import (
    POSSESSIVES,
    SUBJECTLESS,
    TRAILING,
    is_determiner,
    is_fragment,
    is_preposition,
    languages_of,
    lead_of,
    points_outward,
    pronouns_of,
    wants_definition,
    without_shift,
)
from edgerag.ask.exact import exact_strings
from edgerag.ask.pieces import key_of, names_in, pieces
from edgerag.ask.words import UNSPACED

# Behind "and …" so many words of its own make a question complete.
_WORDS_AFTER_LEAD = 3
# So many words before a pronoun are enough for it to mean one of them ("How is a pump cleaned before it is stored?").
_WORDS_OF_AN_ANTECEDENT = 2
_WORDS_OF_A_FRAGMENT = 2
# A question that goes on for longer than this says itself what it is about.
_WORDS_OF_A_COMPLETE_QUESTION = 9
# "Where did this reformer teach?" leans, "When were these settlers naturalised as English colonists?" needs nothing.
_WORDS_BEYOND_A_DETERMINER = 4
_CHARACTERS_PER_WORD = 2  # of scripts without spaces

# The more a question says itself, the fewer words it is lent.
_MOST_ADDED = 6
_FEWEST_ADDED = 3
_NAME_WEIGHT = 2.0
_FADE = 0.5
_TURNS_LOOKED_AT = 4
# Of a longer answer it cannot be told which of its names is meant.
_LONGEST_ANSWER = 300
_NAMES_OF_ANSWER = 3
_ANSWER_WEIGHT = 1.5
# Title and headings of what the last answer rests on: below the words that were said.
_ABOUT_WEIGHT = 0.3

Weigh = Callable[[str], Mapping[str, float]]  # the content terms of a text, as the index has them, with their idf

_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Earlier:
    """One earlier question of the conversation; ``about`` are titles and headings of what its answer cited."""

    question: str
    answer: str = ""
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelfContained:
    """A question as it is searched: ``question`` without the announcement of a new subject, and words that the
    conversation lends it."""

    question: str
    added: tuple[str, ...] = ()


def self_contained(question: str, *, earlier: Sequence[Earlier], weigh: Weigh) -> SelfContained:
    """What to search for ``question``, asked after ``earlier`` (oldest first)."""
    candidates: dict[str, tuple[str, float]] = {}  # by key: the word and its weight
    turns = list(earlier[-_TURNS_LOOKED_AT:])
    for index, turn in enumerate(turns):
        if index and not leans_on(turn.question, turns[index - 1].question):
            candidates = {}  # what was said before a new subject does not come back
        candidates = {key: (word, weight * _FADE) for key, (word, weight) in candidates.items()}
        _remember(candidates, turn, weigh)
    asked = without_shift(question)
    if not turns or asked != question or not leans_on(question, turns[-1].question):
        return SelfContained(asked)
    own = {key_of(piece) for piece in pieces(question)}
    best = sorted(
        ((key, word, weight) for key, (word, weight) in candidates.items() if weight > 0 and key not in own),
        key=lambda candidate: -candidate[2],
    )
    room = max(_FEWEST_ADDED, _MOST_ADDED - sum(map(_words_in, pieces(question))))
    added: list[str] = []
    for _, word, _ in best:
        # A long run of an unspaced script is many words; the best is lent in any case.
        if added and _words_in(word) > room:
            break
        added.append(word)
        room -= _words_in(word)
        if room <= 0:
            break
    return SelfContained(question, tuple(added))


def leans_on(question: str, previous: str) -> bool:
    """Whether ``question``, asked after ``previous``, leaves open what only the conversation says."""
    if without_shift(question) != question:
        return False
    languages = dict.fromkeys([*languages_of(question), *languages_of(previous)])
    size = sum(_words_in(piece) for piece in pieces(question) if not is_preposition(piece, languages))
    if size == 0:
        return True
    if exact_strings(question) and size <= _WORDS_OF_A_FRAGMENT and not question.rstrip().endswith(("?", "？")):
        return False  # an identifier that was typed in
    if lead_of(question, languages) is not None and size <= _WORDS_AFTER_LEAD:
        return True
    if size >= _WORDS_OF_A_COMPLETE_QUESTION:
        return False
    if any(_points_back(match, question, size) for match in pronouns_of(question, languages)):
        return True
    if TRAILING.search(question.strip()) and size <= 2 * _WORDS_OF_A_FRAGMENT:
        return True
    if size > _WORDS_OF_A_FRAGMENT or not question.rstrip().endswith(("?", "？", "؟")) or wants_definition(question):
        return False
    if is_fragment(question, languages):
        return True
    return size == 1 and bool(SUBJECTLESS.intersection(languages)) and not names_in(question)


def _points_back(match: re.Match[str], question: str, size: int) -> bool:
    """Whether a pronoun means something that the question does not say."""
    before, pronoun = question[: match.start()], match[0]
    if is_determiner(pronoun) and size >= _WORDS_BEYOND_A_DETERMINER:
        return False
    if pronoun.casefold() in POSSESSIVES and names_in(question[match.end() :]):
        return False
    return not (bool(names_in(before)) if points_outward(before, pronoun) else _has_antecedent(before))


def _has_antecedent(before: str) -> bool:
    """Whether something stands in the words before a pronoun that it can mean."""
    return bool(names_in(before)) or sum(map(_words_in, pieces(before))) >= _WORDS_OF_AN_ANTECEDENT


def _words_in(piece: str) -> int:
    return max(1, len(piece) // _CHARACTERS_PER_WORD) if _UNSPACED_RUN.match(piece) else len(piece.split())


def _remember(candidates: dict[str, tuple[str, float]], turn: Earlier, weigh: Weigh) -> None:
    """Puts the words of a turn into ``candidates``."""
    names = {key_of(name) for name in names_in(turn.question)}
    for piece in pieces(turn.question):
        _offer(candidates, piece, (_NAME_WEIGHT if key_of(piece) in names else 1.0) * _rarity(piece, weigh))
    if len(turn.answer) <= _LONGEST_ANSWER:
        # The first word of an answer has a capital anyway; in one of few words it is what was asked for.
        short = pieces(turn.answer) if len(turn.answer.split()) <= _NAMES_OF_ANSWER else ()
        for name in dict.fromkeys([*short, *names_in(turn.answer)][:_NAMES_OF_ANSWER]):
            _offer(candidates, name, _ANSWER_WEIGHT * _rarity(name, weigh))
    for text in turn.about:
        for piece in pieces(text):
            _offer(candidates, piece, _ABOUT_WEIGHT * _rarity(piece, weigh))


def _offer(candidates: dict[str, tuple[str, float]], word: str, weight: float) -> None:
    key = key_of(word)
    if key not in candidates or candidates[key][1] < weight:
        candidates[key] = (word, weight)


def _rarity(piece: str, weigh: Weigh) -> float:
    """The idf of its rarest term; 0 for what stands nowhere, which finds nothing."""
    return max(weigh(piece).values(), default=0.0)
