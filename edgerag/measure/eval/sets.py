"""What a set of questions is: its documents, its questions, and what is expected of each. Pure.

A question is *answerable* when something is expected: documents, pages, text or answers. One of which nothing is
expected is unanswerable: the right reply is that it is not in the documents.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypeVar

from edgerag.ask.plan import read_question
from edgerag.errors import UsageError

Half = Literal["all", "tune", "report"]

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Text:
    """One document that a set brings along."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Expected:
    """One thing to be found. What is given must hold together: a passage of this document, on this page, that holds
    this text."""

    document: str = ""  # an id of the set's own documents, else the end of a file's path; "" is any
    page: int | None = None
    text: str = ""
    grade: float = 1.0  # how relevant it is, above 0


@dataclass(frozen=True, slots=True)
class Question:
    """``place`` decides the half: even is to tune on, odd to report."""

    id: str
    text: str
    expected: tuple[Expected, ...]  # each counts alone
    answers: tuple[str, ...]  # any of them is right
    place: int
    origin: str = ""  # where it stands, as an error names it

    @property
    def answerable(self) -> bool:
        return bool(self.expected or self.answers)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """``texts`` is empty for a set about the user's own files."""

    name: str
    texts: tuple[Text, ...]
    questions: tuple[Question, ...]
    notes: tuple[str, ...] = ()  # what was left out in reading, in sentences

    @property
    def fingerprint(self) -> str:
        """Names the questions, what is expected of them and the documents: results of the same can be compared."""
        return _digest([[asdict(text) for text in self.texts], [_identity(question) for question in self.questions]])

    @property
    def texts_fingerprint(self) -> str:
        return _digest([asdict(text) for text in self.texts])


def can_be_asked(text: str) -> bool:
    """Whether anything is left of a question without control characters."""
    try:
        read_question(text)
    except UsageError:
        return False
    return True


def half_of(questions: Sequence[Question], half: Half) -> tuple[Question, ...]:
    """The half to tune constants on, the half to report figures of, or all."""
    if half == "all":
        return tuple(questions)
    parity = 0 if half == "tune" else 1
    return tuple(question for question in questions if question.place % 2 == parity)


def evenly(items: Sequence[_Item], limit: int | None) -> tuple[_Item, ...]:
    """At most ``limit`` of the items, spread evenly over all; all of them without a limit."""
    if limit is None or limit >= len(items):
        return tuple(items)
    return tuple(items[number * len(items) // limit] for number in range(limit))


def place_by_text(text: str) -> int:
    """A place that no other question of the set has a say in: for sets that grow."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big")


def _identity(question: Question) -> list[object]:
    return [question.id, question.text, [asdict(expected) for expected in question.expected], question.answers]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode()).hexdigest()
