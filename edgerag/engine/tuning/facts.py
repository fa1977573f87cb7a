"""Questions whose answers stand in one of four passages: made up, so that no model has read them anywhere.

Every passage describes one thing of a kind in a dozen plain sentences (about 200 tokens); the other three describe
others of the same kind with the same sentences, so the right passage has to be read. Seeded: the same number gives the
same questions, and more of them begin with those of fewer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

PASSAGES = 4
# How often the passage with the answer is the best hit: less often than measured retrieval finds it (94 % of XQuAD),
# since there splicing matters least: the best passage stands next to the question.
_FIRST_SHARE = 0.7

_SYLLABLES = ("bar", "cor", "dal", "fen", "gil", "har", "kel", "lor", "mar", "nev", "or", "pel", "ros", "sel", "tor")
_ENDINGS = ("by", "don", "field", "ham", "ley", "mere", "ness", "stead", "ton", "wick")
_PEOPLE = ("Abara", "Benning", "Castelo", "Dorsey", "Eklund", "Farouk", "Gruber", "Haldane", "Ibsen", "Jovic", "Kimura")
_FIRST_NAMES = ("Alma", "Boris", "Clara", "David", "Edith", "Felix", "Greta", "Hugo", "Ines", "Jonas", "Katya", "Leo")
_MATERIALS = ("granite", "oak", "cast iron", "limestone", "brick", "steel", "slate", "larch", "copper", "basalt")
_COLOURS = ("green", "yellow", "dark blue", "red", "grey", "white", "orange", "brown", "black", "violet")
_MONTHS = ("January", "March", "April", "June", "August", "September", "October", "December")
_SUBJECTS = ("herons", "old tools", "river maps", "glass bottles", "bee hives", "fossils", "rope making", "clocks")

_FILLER = (
    "Visitors reach it on foot from the village.",
    "A small car park lies on the other side of the road.",
    "The archive holds a few letters about its early years.",
    "Nothing of the first building on this site is left.",
    "In hard winters the road to it is sometimes closed.",
)


@dataclass(frozen=True, slots=True)
class FactPassage:
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class FactQuestion:
    question: str
    answer: str  # the words that a right answer holds
    passages: tuple[FactPassage, ...]  # as retrieval would rank them, best first


@dataclass(frozen=True, slots=True)
class _Attribute:
    sentence: str  # with {name} and {value}
    question: str
    values: tuple[str, ...]


def _people() -> tuple[str, ...]:
    return tuple(f"{first} {last}" for first in _FIRST_NAMES for last in _PEOPLE)


_ATTRIBUTES = (
    _Attribute("{name} was opened in {value}.", "In which year was {name} opened?", tuple(map(str, range(1841, 1996)))),
    _Attribute("It is led by {value}.", "Who leads {name}?", _people()),
    _Attribute("Its main wall is built of {value}.", "What is the main wall of {name} built of?", _MATERIALS),
    _Attribute("The doors are painted {value}.", "What colour are the doors of {name}?", _COLOURS),
    _Attribute("The tower is {value} metres high.", "How high is the tower of {name}?", tuple(map(str, range(12, 98)))),
    _Attribute("Repairs are made every {value}.", "In which month are repairs made at {name}?", _MONTHS),
    _Attribute(
        "It has {value} permanent workers.", "How many workers does {name} have?", tuple(map(str, range(3, 95)))
    ),
    _Attribute(
        "A room on the ground floor shows {value}.", "What does the room on the ground floor of {name} show?", _SUBJECTS
    ),
    _Attribute(
        "The emergency number is {value}.",
        "What is the emergency number of {name}?",
        tuple(str(number) for number in range(2103, 9900, 37)),
    ),
)
_KINDS = ("pumping station", "lighthouse", "water mill", "observatory", "signal box", "weather station")


def fact_questions(count: int, *, seed: int) -> list[FactQuestion]:
    return [_question(random.Random(f"{seed}-{number}")) for number in range(count)]  # noqa: S311 - reproducible


def is_right(answer: str, question: FactQuestion) -> bool:
    """Whether the answer holds the words asked for, whole: 12 is not in 112."""
    return f" {_folded(question.answer)} " in f" {_folded(answer)} "


def _folded(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def _question(chance: random.Random) -> FactQuestion:
    kind = chance.choice(_KINDS)
    names: list[str] = []
    while len(names) < PASSAGES:
        place = (chance.choice(_SYLLABLES) + chance.choice(_SYLLABLES) + chance.choice(_ENDINGS)).capitalize()
        name = f"{place} {kind}"
        if name not in names:
            names.append(name)
    values = {attribute: chance.sample(attribute.values, PASSAGES) for attribute in _ATTRIBUTES}
    passages = [
        _passage(name, {attribute: values[attribute][number] for attribute in _ATTRIBUTES}, chance)
        for number, name in enumerate(names)
    ]
    asked = chance.choice(_ATTRIBUTES)
    rank = 0 if chance.random() < _FIRST_SHARE else chance.randrange(1, PASSAGES)
    ranked = passages[1:]
    ranked.insert(rank, passages[0])
    return FactQuestion(
        question=asked.question.format(name=f"the {names[0]}"), answer=values[asked][0], passages=tuple(ranked)
    )


def _passage(name: str, values: dict[_Attribute, str], chance: random.Random) -> FactPassage:
    attributes = list(values)
    chance.shuffle(attributes)
    sentences = [
        attribute.sentence.format(name=f"The {name}" if attribute.sentence.startswith("{name}") else name, value=value)
        for attribute, value in ((one, values[one]) for one in attributes)
    ]
    fillers = chance.sample(_FILLER, 4)
    for number, filler in enumerate(fillers):
        sentences.insert(chance.randrange(1, len(sentences) + 1) if number else len(sentences), filler)
    opening = f"The {name} is one of several in the district."
    return FactPassage(title=f"The {name}", text=" ".join([opening, *sentences]))
