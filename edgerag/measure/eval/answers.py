"""How good an answer is beside the gold answers, and whether it cites where they stand. Pure.

Exact match and F1 are SQuAD's (Rajpurkar et al. 2016): lower case, without punctuation and English articles. In scripts
that put no space between words a character is a word, as CMRC 2018 (Cui et al. 2019) and MLQA have it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from edgerag.ask.words import UNSPACED
from edgerag.measure.eval.matching import Target, targets_met
from edgerag.types import Source

_ARTICLES = frozenset({"a", "an", "the"})
_MARK = re.compile(r"\s*\[\d{1,3}\]")  # of a citation
_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """None where a measure does not apply: ``exact`` and ``f1`` to what no model wrote, they and ``holds`` without a
    gold answer, ``citation_precision`` without a citation, ``citation_recall`` when no place is expected."""

    exact: float | None
    f1: float | None
    holds: float | None  # whether a gold answer stands in the answer
    sources_hold: float | None  # whether one stands in its sources: what a better model could have said
    citation_precision: float | None  # the share of the cited sources that are right
    citation_recall: float | None  # the share of what is expected that is cited


def answer_figures(
    text: str, *, written: bool, sources: Sequence[Source], gold: Sequence[str], targets: Sequence[Target]
) -> AnswerFigures:
    """``text`` as it was given, with its marks; ``written``: by a model, not quoted from the sources. A cited source is
    right when it holds a gold answer; where there is none, when it is what is expected."""
    said = _MARK.sub("", text)
    cited = [source for source in sources if source.cited]
    met = [targets_met(source.hit.chunk, targets) for source in cited]
    right = [holds(source.hit.chunk.chunk.text, gold) for source in cited] if gold else [bool(m) for m in met]
    passages = [source.hit.chunk.chunk.text for source in sources]
    return AnswerFigures(
        exact=float(exact_match(said, gold)) if gold and written else None,
        f1=f1(said, gold) if gold and written else None,
        holds=float(holds(said, gold)) if gold else None,
        sources_hold=float(any(holds(passage, gold) for passage in passages)) if gold else None,
        citation_precision=sum(right) / len(right) if right else None,
        citation_recall=len(frozenset().union(*met)) / len(targets) if targets else None,
    )


def exact_match(said: str, gold: Sequence[str]) -> bool:
    """Whether it is one of the gold answers, as they are normalised."""
    return words(said) in [words(answer) for answer in gold]


def f1(said: str, gold: Sequence[str]) -> float:
    """The overlap of its words with those of the gold answer that it is nearest to."""
    return max((_f1(words(said), words(answer)) for answer in gold), default=0.0)


def holds(text: str, gold: Sequence[str]) -> bool:
    """Whether a gold answer stands in ``text``, word for word as they are normalised."""
    inside = f" {' '.join(words(text))} "
    return any(f" {' '.join(wanted)} " in inside for wanted in map(words, gold) if wanted)


def words(text: str) -> list[str]:
    """The words that are compared."""
    lowered = unicodedata.normalize("NFKC", text).lower()
    bare = "".join("" if _is_mark(character) else character for character in lowered)
    return [word for word in _WORD.findall(bare) if word not in _ARTICLES]


def _is_mark(character: str) -> bool:
    """Punctuation of any script, and ASCII's signs as in SQuAD's script."""
    return unicodedata.category(character).startswith("P") or character in "$+<=>^`|~"


def _f1(said: Sequence[str], wanted: Sequence[str]) -> float:
    if not said or not wanted:
        return float(said == wanted)
    common = (Counter(said) & Counter(wanted)).total()
    return 2 * common / (len(said) + len(wanted))
