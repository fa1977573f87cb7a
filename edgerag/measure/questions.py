"""Questions with known answers, made by code: facts about machines that do not exist, in passages of a given length."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgerag.ask.quotes import to_sources
from edgerag.ask.words import content_words
from edgerag.engine.tuning.perplexity import read_prose
from edgerag.errors import UsageError
from edgerag.types import Chunk, Hit, Message, Scores, Source, StoredChunk

_LEAST_QUOTED = 200  # characters
_CHARACTERS_PER_TOKEN = 3.9  # of such prose, with the tokenizers of small chat models
_MACHINES = ("compressor", "conveyor", "boiler", "centrifuge", "generator", "lathe", "winch", "dryer", "mixer", "press")
_MAKERS = ("Halvorsen", "Brandt", "Okafor", "Lindqvist", "Moreau", "Tanaka", "Castillo", "Novak", "Adeyemi", "Keller")
_PLACES = ("hall", "workshop", "basement", "annex", "yard", "tower", "gallery", "depot")
_FILLER = (
    "The cover is held by four screws and is taken off before any work begins.",
    "Dust is removed with a dry cloth; water must not reach the terminals.",
    "A log of all work is kept in the folder beside the control panel.",
    "Spare parts are ordered from the store with the number on the plate.",
    "The belt is looked at every month and replaced when it shows cracks.",
    "Noise that was not there before is a reason to stop and look.",
    "Before it is started again, the guard is closed and the area is clear.",
    "The lamp on the panel is green while everything is in order.",
    "Two people are needed to lift the upper part, which is heavy.",
    "Grease is put on the bearings, never on the belt.",
    "The drawing shows the order in which the parts are put together.",
    "When the work is done, the tools are counted and put away.",
)
# (sentence that holds the fact, question)
_FACTS = (
    ("Its working pressure is {value} bar.", "What is the working pressure of the {name}?"),
    ("The oil is changed after {value} hours.", "After how many hours is the oil of the {name} changed?"),
    ("It weighs {value} kilograms.", "How many kilograms does the {name} weigh?"),
    ("The safety fuse is rated at {value} amperes.", "At how many amperes is the fuse of the {name} rated?"),
    ("The person in charge of it is {person}.", "Who is in charge of the {name}?"),
    ("It stands in the {place} number {value}.", "Where does the {name} stand?"),
)


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """``passages``: (title, text), best first; the first holds the answer."""

    question: str
    answers: tuple[str, ...]
    passages: tuple[tuple[str, str], ...]
    follow_up: str = ""
    more: tuple[str, str] | None = None  # a passage that the follow-up brings in
    number: int = 0

    def is_answered_by(self, text: str) -> bool:
        said = _normal(text)
        return any(f" {_normal(answer)} " in f" {said} " for answer in self.answers)

    def followed_up(self) -> FactQuestion:
        """The next question of the conversation: about the same passages, and one that is new."""
        passages = (self.passages[0], *([self.more] if self.more else []), *self.passages[2:])
        return FactQuestion(self.follow_up or self.question, self.answers, passages, number=self.number)


def synthetic_questions(count: int, *, passage_tokens: int, seed: int) -> list[FactQuestion]:
    """``count`` questions, each with four passages of about ``passage_tokens``, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - made-up facts, no secrets
    return [_synthetic(chance, number, passage_tokens) for number in range(count)]


def given_questions(file: Path, *, count: int) -> list[FactQuestion]:
    """``count`` questions of a file in SQuAD's form, evenly spread, each with its paragraph and the three others of
    the file that share most words with the question. Raises UsageError when it is none."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))["data"]
        paragraphs = [
            (str(article.get("title", "Document")).replace("_", " "), paragraph["context"], paragraph["qas"])
            for article in data
            for paragraph in article["paragraphs"]
        ]
        asked = [
            (qa["question"], tuple(answer["text"] for answer in qa["answers"]), index)
            for index, (_, _, qas) in enumerate(paragraphs)
            for qa in qas
        ]
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{file} is no file of questions in SQuAD's form: {error}.") from error
    words = [frozenset(content_words(context)) for _, context, _ in paragraphs]
    chosen = asked[:: max(1, len(asked) // count)][:count]
    found = []
    for number, (question, answers, gold) in enumerate(chosen):
        wanted = frozenset(content_words(question))
        others = sorted((i for i in range(len(words)) if i != gold), key=lambda i: (-len(wanted & words[i]), i))[:3]
        passages = tuple((paragraphs[i][0], paragraphs[i][1]) for i in (gold, *others))
        found.append(FactQuestion(question, answers, passages, number=number))
    return found


def sources_of(question: FactQuestion) -> tuple[Source, ...]:
    """The passages as the sources of an answer, best first."""
    hits = []
    for rank, (title, text) in enumerate(question.passages, start=1):
        name = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:16]
        chunk = Chunk(0, 0, len(text), text, (), None, None, 1, 1, len(text) // 4)
        key = f"doc-{name}-chunk-0-v1"
        stored = StoredChunk(int(name, 16) % 10**9, rank, f"/{rank}.md", title, "text/markdown", chunk, kv_key=key)
        hits.append(Hit(stored, Scores(None, rank, None, rank, 1.0 / rank)))
    return to_sources(hits, question=question.question)


def quoting_prompts(count: int) -> list[tuple[Message, ...]]:
    """Requests for a passage word for word."""
    paragraphs = [text for text in read_prose().split("\n\n") if len(text) > _LEAST_QUOTED]
    return [
        (
            Message("system", ("You copy texts.",)),
            Message("user", (f"Copy this text word for word:\n\n{paragraphs[number % len(paragraphs)]}",)),
        )
        for number in range(count)
    ]


def telling_prompts(count: int) -> list[tuple[Message, ...]]:
    """Questions whose answer stands nowhere."""
    return [
        (
            Message("system", ("You are a helpful assistant.",)),
            Message(
                "user",
                (
                    "\n\n".join(text for _, text in question.passages),
                    "\n\nForget the text above and tell a story about a fox and the sea.",
                ),
            ),
        )
        for question in synthetic_questions(count, passage_tokens=150, seed=22)
    ]


def _synthetic(chance: random.Random, number: int, passage_tokens: int) -> FactQuestion:
    names = [f"{maker} {machine}" for maker in _MAKERS for machine in _MACHINES]
    chosen = chance.sample(names, 5)
    facts = chance.sample(_FACTS, 2)
    passages, answers = [], []
    for name in chosen:
        values = [
            {
                "value": str(chance.randrange(3, 990)),
                "person": f"{chance.choice(('Ms', 'Mr'))} {chance.choice(_MAKERS)}-{chance.choice(_MAKERS)}",
                "place": chance.choice(_PLACES),
            }
            for _ in facts
        ]
        sentences = [sentence.format(**value) for (sentence, _), value in zip(facts, values, strict=True)]
        passages.append((name, _prose(chance, name, sentences, passage_tokens)))
        answers.append(values)
    sentence, asked = facts[0]
    answer = answers[0][0]
    return FactQuestion(
        question=asked.format(name=chosen[0]),
        answers=(answer["person"] if "{person}" in sentence else answer["value"],),
        passages=tuple(passages[:4]),
        follow_up=facts[1][1].format(name=chosen[0]),
        more=passages[4],
        number=number,
    )


def _prose(chance: random.Random, name: str, facts: Sequence[str], tokens: int) -> str:
    """A passage about ``name`` with the facts in it, of about so many tokens."""
    sentences = [f"This page is about the {name}."]
    length = len(sentences[0]) + sum(len(fact) for fact in facts)
    filler: list[str] = []
    while length < tokens * _CHARACTERS_PER_TOKEN:
        filler.append(chance.choice(_FILLER))
        length += len(filler[-1]) + 1
    for fact in facts:
        filler.insert(chance.randrange(len(filler) + 1), fact)
    return " ".join(sentences + filler)


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
