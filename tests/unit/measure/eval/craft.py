"""Chunks, sources and small sets for the tests of evaluation."""

from __future__ import annotations

from edgerag.measure.eval.sets import Expected, Question, QuestionSet, Text
from edgerag.types import Chunk, Hit, Scores, Source, StoredChunk

FACTS = {
    "badger": "The badger sleeps by day in its sett, which it digs in sandy ground.",
    "heron": "The heron stands in shallow water and waits for fish.",
    "otter": "The otter swims in rivers at night and eats crayfish.",
    "swift": "The swift sleeps in flight and lands only to breed.",
}


def stored(
    path: str = "/a.md",
    text: str = "Some text.",
    *,
    number: int = 1,
    pages: tuple[int, int] | None = None,
    also_in: tuple[str, ...] = (),
) -> StoredChunk:
    first, last = pages or (None, None)
    chunk = Chunk(0, 0, len(text), text, (), first, last, 1, 1, 3)
    return StoredChunk(number, 1, path, "", "text/plain", chunk, also_in=also_in)


def source(chunk: StoredChunk, *, cited: bool, number: int = 1) -> Source:
    scores = Scores(keyword=None, keyword_rank=None, vector=None, vector_rank=None, fused=1.0)
    return Source(number, Hit(chunk, scores), chunk.chunk.text, 0, cited)


def animals() -> QuestionSet:
    """Four documents, a question about each, and one that none answers."""
    asked = {
        "badger": ("When does the badger sleep?", "by day"),
        "heron": ("What does the heron wait for?", "fish"),
        "otter": ("What does the otter eat at night?", "crayfish"),
        "swift": ("Where does the swift sleep?", "in flight"),
    }
    questions = [
        Question(f"q-{name}", text, (Expected(name),), (answer,), place)
        for place, (name, (text, answer)) in enumerate(asked.items())
    ]
    questions.append(Question("q-none", "Which bank lends money to trumpeters?", (), (), len(questions)))
    return QuestionSet("animals", tuple(Text(name, "", text) for name, text in FACTS.items()), tuple(questions))
