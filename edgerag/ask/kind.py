"""What kind of question it is, how spread out, and how many sources it therefore gets. Pure; no model is asked.

The entropy is Shannon's, in bits, of the question's content words, each with a probability in proportion to its idf:
one rare word among common ones gives few bits, many words of equal rarity give many; 2 ** bits is the number of equally
rare words that the question amounts to. Function words and words that stand nowhere in the library have no part in it.
How many sources follow from it is measured (bench/source_count.py) and stands in docs/performance.md.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from edgerag.ask.cues import is_broad, languages_of
from edgerag.ask.exact import exact_strings
from edgerag.ask.language import function_words
from edgerag.ask.pieces import key_of, names_in, pieces
from edgerag.index.stopwords import STOP_PHRASES, STOP_WORDS
from edgerag.types import QuestionKind

# The table of docs/performance.md. One more source costs some 200 tokens of the prompt.
_FOCUSED_SOURCES = 4
_VAGUE_SOURCES = 6
_BROAD_SOURCES = 9
_VAGUE_BITS = 2.0  # a question below this names less than four equally rare words

_MOST_KEYWORDS = 6
_MOST_KEYWORD_CHARACTERS = 14  # of scripts without spaces
_NAMES_OF_A_BROAD_QUESTION = 4
_QUESTION_MARKS = frozenset("?？؟;¿")


def kind_of(question: str, *, follows: bool = False, aggregate: bool = False) -> QuestionKind:
    """The kind of ``question``; ``follows`` and ``aggregate`` say what the conversation and its wording showed."""
    if aggregate:
        return "aggregate"
    own = pieces(question)
    exact = exact_strings(question)
    strings = {key_of(part) for string in exact for part in (string, *pieces(string))}
    if exact and strings.issuperset(map(key_of, own)):
        return "identifier"
    if follows:
        return "follow_up"
    return "keywords" if own and _is_words_alone(question, own) else "question"


def is_broad_question(question: str) -> bool:
    """Whether its answer lies in several places: it compares, asks for an overview, or names several things."""
    return is_broad(question) or len(names_in(question)) >= _NAMES_OF_A_BROAD_QUESTION


def entropy_bits(weights: Iterable[float]) -> float:
    """Shannon entropy of the distribution in proportion to ``weights`` (0 or more each); 0.0 of none."""
    positive = [weight for weight in weights if weight > 0]
    shares = [weight / sum(positive) for weight in positive]
    return -sum(share * math.log2(share) for share in shares if share > 0) + 0.0


def wanted_sources(kind: QuestionKind, *, broad: bool, bits: float) -> int:
    """How many sources a question of that kind gets where nothing limits it."""
    if broad:
        return _BROAD_SOURCES
    vague = kind == "keywords" or (kind in ("question", "follow_up") and bits < _VAGUE_BITS)
    return _VAGUE_SOURCES if vague else _FOCUSED_SOURCES


def _is_words_alone(question: str, own: Collection[str]) -> bool:
    if _QUESTION_MARKS.intersection(question) or any(phrase in question for phrase in STOP_PHRASES):
        return False
    words = question.split()
    if len(words) > _MOST_KEYWORDS or sum(map(len, own)) > _MOST_KEYWORD_CHARACTERS * len(words):
        return False
    languages = languages_of(question) or ("en",)
    listed = frozenset[str]().union(*(STOP_WORDS.get(code, frozenset()) | function_words(code) for code in languages))
    return not any(word.casefold().strip(".,:") in listed for word in words)
