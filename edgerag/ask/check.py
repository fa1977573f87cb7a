"""Every sentence of a finished answer is looked up in the sources.

A sentence whose number, name, part number or quoted words stand in no source is unsupported, and so is one
that shares too few words with them. Where only words speak against a sentence, the embedder decides, if it
is at hand: other words can mean the same. It is asked once, after the last word, for a few sentences, so
that no answer waits for it. Pure but for that call.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from edgerag.ask.support import SupportFinder, Verdict
from edgerag.ask.words import sentence_spans
from edgerag.types import AnswerSentence, InstantSentence, Source

if TYPE_CHECKING:
    from edgerag.types import Vectors

    Embed = Callable[[Sequence[str]], Vectors]  # texts to unit rows

# Cosine between a sentence and the best passage that says it. On XQuAD 95 % of true sentences in other words
# have 0.5 or more, and 98 % of sentences from elsewhere less (docs/decisions/045).
_SAME_MEANING = 0.5
_MOST_DOUBTFUL = 4  # sentences that the embedder is asked about, at about 10 ms each; the rest stay unsupported
_NOTHING_STATED = Verdict("not_checked", reason="It states nothing that could be looked up.")
_BARE_REPLIES = frozenset("yes no ja nein oui non sí si да нет 是 不是 是的 否 はい いいえ نعم لا".split())  # noqa: SIM905

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"\[\d{1,3}\]")
_LIST_MARKER = re.compile(r"\s*(?:[-*+>]\s+|\d+[.)]\s+|\|\s*)+")
_BLOCK_BEGINS = re.compile(r"\s*(?:[-*+>#|]|\d+[.)]\s)")
_HEADING = re.compile(r"\s*#{1,6}\s")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*")
# Models copy the line breaks of their sources: a long line without a full stop goes on in the next (as in cite.py).
_SHORTEST_WRAPPED_LINE = 50


def check_answer(
    text: str,
    *,
    sources: Sequence[Source],
    question: str,
    instant: Sequence[InstantSentence] = (),
    embed: Embed | None = None,
) -> tuple[AnswerSentence, ...]:
    """The sentences of ``text``, in order, each with the sources that hold it or the reason why none does.

    ``instant`` are the sentences of the sources that are nearest to the question.
    """
    finder = SupportFinder(sources, question=question)
    foreign = finder.is_foreign(text)
    checked: list[AnswerSentence] = []
    doubtful: list[int] = []
    for start, end, words in _sentences(text):
        if words is None:
            checked.append(AnswerSentence(start, end, (), "not_checked", "It is code."))
            continue
        verdict = finder.judge(words, foreign=foreign) if _states_something(words) else _NOTHING_STATED
        if verdict.doubtful:
            doubtful.append(len(checked))
        checked.append(AnswerSentence(start, end, verdict.sources, verdict.support, verdict.reason))
    if doubtful and embed is not None:
        passages = [(s.source, s.text) for s in instant] + [(s.number, s.quote) for s in sources]
        asked = doubtful[:_MOST_DOUBTFUL]
        found = _by_meaning([text[checked[i].start : checked[i].end] for i in asked], passages, embed)
        for index, number in zip(asked, found, strict=True):
            if number is not None:
                checked[index] = dataclasses.replace(checked[index], sources=(number,), support="supported", reason="")
    return tuple(checked)


def _by_meaning(sentences: Sequence[str], passages: Sequence[tuple[int, str]], embed: Embed) -> list[int | None]:
    """For each sentence the source whose passage means the same; None where none does."""
    bare = [" ".join(_MARK.sub("", sentence).split()) for sentence in sentences]
    vectors = embed([*bare, *(" ".join(passage.split()) for _, passage in passages)])
    cosines = vectors[: len(bare)] @ vectors[len(bare) :].T
    found: list[int | None] = []
    for row in cosines:
        best = int(row.argmax())
        found.append(passages[best][0] if row[best] >= _SAME_MEANING else None)
    return found


def _states_something(words: str) -> bool:
    """Headings, lines that lead up to a list, and a bare yes or no state nothing."""
    bare = words.strip(" .,!。，！*_").casefold()
    return not _HEADING.match(words) and not bare.endswith((":", "：")) and bare not in _BARE_REPLIES


def _sentences(text: str) -> Iterator[tuple[int, int, str | None]]:
    """Start, end and words (without marks) of each sentence; None for the words of a block of code."""
    at = 0
    for fence in _FENCE.finditer(text):
        yield from _prose(text, at, fence.start())
        yield fence.start(), fence.end(), None
        at = fence.end()
    yield from _prose(text, at, len(text))


def _prose(text: str, start: int, end: int) -> Iterator[tuple[int, int, str | None]]:
    # Blanked out, a mark behind a full stop does not hide that a sentence ends there, and offsets stay true.
    bare = text[:start] + _MARK.sub(lambda mark: " " * len(mark[0]), text[start:end])
    for first, last in _paragraphs(bare, start, end):
        if marker := _LIST_MARKER.match(bare, first, last):
            first = marker.end()
        spans = [(first + a, first + b) for a, b in sentence_spans(bare[first:last])]
        for place, (begin, stop) in enumerate(spans):
            following = spans[place + 1][0] if place + 1 < len(spans) else last
            stop_with_marks = max([stop, *(m.end() for m in _MARK.finditer(text, stop, following))])
            if any(character.isalnum() for character in bare[begin:stop]):
                yield begin, stop_with_marks, bare[begin:stop]


def _paragraphs(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of lines that belong together. The header of a table is no part of any."""
    lines = [(match.start(), match.end()) for match in re.compile(r"[^\n]*\n|[^\n]+").finditer(text, start, end)]
    first = start
    for number, (begin, stop) in enumerate(lines):
        line = text[begin:stop]
        following = text[slice(*lines[number + 1])] if number + 1 < len(lines) else ""
        if line.lstrip().startswith("|") and _TABLE_RULE.fullmatch(following):
            first = stop
            continue
        if (
            not following.strip()
            or not line.strip()
            or len(line.rstrip()) < _SHORTEST_WRAPPED_LINE
            or _BLOCK_BEGINS.match(following)
            or _HEADING.match(line)
            or line.lstrip().startswith("|")
        ):
            if text[first:stop].strip():
                yield first, stop
            first = stop
