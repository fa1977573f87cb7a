"""Text analysis for the keyword index: the same rules when a chunk is indexed and when it is asked for.

FTS5's tokenizer (``porter unicode61``) does words in scripts that put spaces between them. This module
does the rest: compatibility forms and case are folded (NFKC, casefold); long words of alphabets keep
their first letters only, which does for endings in every language what Porter's rules do for English;
and runs of scripts without spaces are cut into single characters, which a query finds again as
overlapping phrases of 2 (Han, Kana, Hangul) or 3 (Thai, Lao, Khmer, Myanmar) of them. What a query holds
is only ever quoted, so that no text can become FTS5 syntax. Measured in docs/decisions/011.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from edgerag.index.stopwords import STOP_PHRASES, stop_words_of

# Terms of one query. Each costs a pass over its postings, and FTS5 bounds the depth of an expression
# (256); a question of a few sentences stays well below.
MAX_TERMS = 96
# Longer runs without a space are data, not words (base64, DNA): nobody asks for them.
MAX_TERM_CHARACTERS = 128
# Analysed at most: a query longer than this has given its 96 terms long before.
_MAX_QUERY_CHARACTERS = 20_000

# Scripts whose characters are words or nearly so: phrases of two. Hangul has spaces, but its particles
# cling to the words.
_PAIRS = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3100-\u312f\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Scripts whose words are spelled without spaces: phrases of three clusters.
_TRIPLES = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0ecf\u0edc-\u0edf\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u17dc-\u17dd"
_PAIR_RUN = re.compile(f"[{_PAIRS}]+")
_TRIPLE_RUN = re.compile(f"[{_TRIPLES}]+")
_SPACELESS_RUN = re.compile(f"[{_PAIRS}]+|[{_TRIPLES}]+")
# One letter with what stands on, under and after it; Thai and Lao write some vowels before the consonant.
_CLUSTER = re.compile(
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?"
    "[^\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebc\u0ec6-\u0ecd\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u17dd]"
    "[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebc\u0ec6-\u0ecd\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u17dd]*|."
)
# Letters kept of a word. hit@1 on XQuAD with and without: de .91/.88, ru .90/.80, el .91/.85, tr .88/.82,
# en .94/.94; on Cranfield and SciFact nDCG@10 does not fall. Six for Latin letters measures alike,
# but takes more words for the same ("transfer", "transform").
_LATIN = "a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_LONG_WORDS = re.compile(
    f"([{_LATIN}]{{7}})[{_LATIN}]+"
    "|([\u0370-\u03ff\u1f00-\u1fff]{6})[\u0370-\u03ff\u1f00-\u1fff]+"  # Greek
    "|([\u0400-\u052f]{6})[\u0400-\u052f]+"  # Cyrillic
    "|([\u0531-\u0587\u10d0-\u10ff]{6})[\u0531-\u0587\u10d0-\u10ff]+"  # Armenian, Georgian
    "|([\u0620-\u064a]{6})[\u0620-\u064a]+"  # Arabic
)
# The Arabic article and what is written together with it. hit@1 on XQuAD .87 with, .82 without.
_ARABIC_ARTICLE = re.compile(
    r"(?<!\w)[\u0648\u0641]?(?:\u0628\u0627\u0644|\u0643\u0627\u0644|\u0644\u0644|\u0627\u0644)(?=\w{3})"
)
_STOP_PHRASES = re.compile("|".join(sorted(STOP_PHRASES, key=len, reverse=True)))
# Between words, not inside identifiers: l'État, d'Italia, what's.
_APOSTROPHE = re.compile("['\u2018\u2019\u02bc]")
# A word of words, as languages make them; anything else with signs inside is an identifier.
_COMPOUND = re.compile(r"[^\W\d_]+(?:[-\u2010\u2011\u2013\u2014/,;!?]+[^\W\d_]+)*\W*")
# An identifier counts this often, or a short passage that repeats its parts would stand before it.
_IDENTIFIER_WEIGHT = 4
# SQLite takes neither: NUL would end the string, lone surrogates are not UTF-8.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for: ``surface`` as the query says it (folded), ``words`` as they are indexed."""

    surface: str
    words: str  # separated by spaces; more than one is a phrase
    weight: int = 1

    @property
    def expression(self) -> str:
        """An FTS5 string; always quoted, so nothing in it is syntax."""
        return '"' + self.words.replace('"', '""') + '"'


def fold(text: str) -> str:
    """Compatibility forms, case and unstorable characters folded away."""
    return unicodedata.normalize("NFKC", _UNSTORABLE.sub(" ", text)).casefold()


def index_text(text: str) -> str:
    """``text`` as it is given to FTS5: words and single spaces."""
    words = _shorten(_only_words(fold(text)))
    return " ".join(_SPACELESS_RUN.sub(lambda run: f" {' '.join(_units(run[0]))} ", words).split())


def _shorten(folded: str) -> str:
    """Words without their endings."""
    return _LONG_WORDS.sub(lambda word: word[word.lastindex or 0], _ARABIC_ARTICLE.sub("", folded))


def query_terms(query: str) -> tuple[Term, ...]:
    """The content terms of a query, each once, in order; stop words only if there is nothing else."""
    terms: dict[str, Term] = {}
    for term in _all_terms(fold(query[:_MAX_QUERY_CHARACTERS])):
        terms.setdefault(term.words, term)
    stop = stop_words_of([term.surface for term in terms.values()])
    content = [term for term in terms.values() if term.surface not in stop]
    return tuple((content or list(terms.values()))[:MAX_TERMS])


def match_expression(terms: tuple[Term, ...]) -> str:
    """The FTS5 expression that finds any of the terms; BM25 adds up one that is said again."""
    return " OR ".join(term.expression for term in terms for _ in range(term.weight))


def _all_terms(folded: str) -> Iterator[Term]:
    for piece in _APOSTROPHE.sub(" ", folded).split():
        position = 0
        for run in _SPACELESS_RUN.finditer(piece):
            yield from _word_terms(piece[position : run.start()])
            yield from _phrases(run[0])
            position = run.end()
        yield from _word_terms(piece[position:])


def _units(run: str) -> list[str]:
    return list(run) if _PAIR_RUN.match(run) else _CLUSTER.findall(run)


def _phrases(run: str) -> Iterator[Term]:
    """The overlapping phrases of a run, question words cut out unless there is nothing else."""
    for part in [part for part in _STOP_PHRASES.split(run) if part] or [run]:
        yield from _windows(part)


def _windows(run: str) -> Iterator[Term]:
    units = _units(run)
    size = min(len(units), 2 if _PAIR_RUN.match(run) else 3)
    for start in range(len(units) - size + 1):
        window = units[start : start + size]
        yield Term("".join(window), " ".join(window))


def _word_terms(piece: str) -> Iterator[Term]:
    """The words of a piece without spaces; one with signs inside is first of all a phrase.

    ``e-1042`` gives the phrase, with weight, and the longer of its parts, so that an exact identifier
    ranks first and its parts still find something.
    """
    words = _only_words(piece).split()
    if not words or len(piece) > MAX_TERM_CHARACTERS:
        return
    if len(words) > 1:
        weight = 1 if _COMPOUND.fullmatch(piece) else _IDENTIFIER_WEIGHT
        yield Term(_trimmed(piece), _shorten(" ".join(words)), weight)
        words = [word for word in words if len(word) > 1]
    for word in words:
        yield Term(word, _shorten(word))


def _only_words(text: str) -> str:
    """``text`` with a space for everything that is not a letter, number or mark."""
    return "".join(map(_word_or_space, text))


def _trimmed(piece: str) -> str:
    inside = [position for position, c in enumerate(piece) if _word_or_space(c) != " "]
    return piece[inside[0] : inside[-1] + 1]


@cache
def _word_or_space(character: str) -> str:
    category = unicodedata.category(character)
    return character if category[0] in "LNM" or category == "Co" else " "
