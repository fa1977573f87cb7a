"""Text analysis for the keyword index: the same rules when a chunk is indexed and when it is asked for.

FTS5's tokenizer (``porter unicode61``) does words in scripts that put spaces between them. This module
does the rest: compatibility forms and case are folded (NFKC, casefold); words lose their endings by the rules of
their document's language (word_rules.py); and runs of scripts without spaces are cut into single characters, which a
query finds again as overlapping phrases of 2 (Han, Kana, Hangul) or 3 (Thai, Lao, Khmer, Myanmar) of them. A query
is looked for by all rules that the library holds. What it holds is only ever quoted, so that no text can become FTS5
syntax. Measured in docs/decisions/011 and 037.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from edgerag.index import word_rules
from edgerag.index.stopwords import STOP_PHRASES, stop_words_of
from edgerag.index.word_rules import PLAIN, Rules

# Terms of one query. Each costs a pass over its postings, and FTS5 bounds the depth of an expression
# (256); a question of a few sentences stays well below.
MAX_TERMS = 96
# Of all of them together, in a library of many languages.
_MAX_FORMS = 8 * MAX_TERMS
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
    """One thing to look for: ``surface`` as the query says it (folded), ``forms`` as it is indexed."""

    surface: str
    forms: tuple[str, ...]  # each once; words separated by spaces are a phrase
    weight: int = 1

    @property
    def expressions(self) -> tuple[str, ...]:
        """Each form as an FTS5 string, always quoted, so nothing in it is syntax."""
        return tuple('"' + form.replace('"', '""') + '"' for form in self.forms)

    @property
    def expression(self) -> str:
        """Any of the forms."""
        return " OR ".join(self.expressions)


def fold(text: str) -> str:
    """Compatibility forms, case and unstorable characters folded away."""
    return unicodedata.normalize("NFKC", _UNSTORABLE.sub(" ", text)).casefold()


def index_text(text: str, *, rules: Rules = PLAIN) -> str:
    """``text`` as it is given to FTS5: words and single spaces."""
    return " ".join(word_rules.indexed(_apart(fold(text)), rules).split())


def _apart(folded: str) -> str:
    """Words with spaces between them, and between the characters of scripts that are spelled without."""
    return _SPACELESS_RUN.sub(lambda run: f" {' '.join(_units(run[0]))} ", _only_words(folded))


def query_terms(query: str, *, rules: Sequence[Rules] = (PLAIN,)) -> tuple[Term, ...]:
    """The content terms of a query, each once, in order; stop words only if there is nothing else.

    Each has the forms that it has by any of ``rules``; terms that share one are one.
    """
    return _query_terms(query[:_MAX_QUERY_CHARACTERS], tuple(rules))


# Plan, search and ranking of one question all want the same ones.
@lru_cache(maxsize=64)
def _query_terms(query: str, rules: tuple[Rules, ...]) -> tuple[Term, ...]:
    terms: list[Term] = []
    place: dict[str, int] = {}  # of the term, by each of its forms
    folded = fold(query)
    plainly = word_rules.plain_letters(folded) == folded
    for said in _all_said(folded):
        forms = dict.fromkeys(form for r in rules for form in word_rules.asked(said.words, r, plainly=plainly))
        new = tuple(form for form in forms if form not in place)
        at = next((place[form] for form in forms if form in place), len(terms))
        if at < len(terms):
            terms[at] = replace(terms[at], forms=terms[at].forms + new)
        elif new:
            terms.append(Term(said.surface, new, said.weight))
        place.update(dict.fromkeys(new, at))
    stop = stop_words_of([term.surface for term in terms])
    content = [term for term in terms if term.surface not in stop] or terms
    return tuple(_bounded(content[:MAX_TERMS]))


def _bounded(terms: Sequence[Term]) -> Iterator[Term]:
    """The first of them, with _MAX_FORMS forms in all."""
    room = _MAX_FORMS
    for term in terms:
        if room:
            yield replace(term, forms=term.forms[:room])
            room -= min(room, len(term.forms))


def phrase_term(text: str, *, rules: Sequence[Rules] = (PLAIN,)) -> Term | None:
    """All words of ``text`` as one phrase, stop words too; None when nothing of it is indexed."""
    folded = fold(text)
    words = " ".join(_apart(folded).split())
    plainly = word_rules.plain_letters(folded) == folded
    forms = dict.fromkeys(form for r in rules for form in word_rules.asked(words, r, plainly=plainly))
    return Term(folded.strip(), tuple(forms)) if forms else None


def match_expression(terms: tuple[Term, ...]) -> str:
    """The FTS5 expression that finds any of the terms; BM25 adds up one that is said again."""
    return " OR ".join(term.expression for term in terms for _ in range(term.weight))


@dataclass(frozen=True, slots=True)
class _Said:
    """A term before any rules: ``words`` separated by spaces."""

    surface: str
    words: str
    weight: int = 1


def _all_said(folded: str) -> Iterator[_Said]:
    for piece in _APOSTROPHE.sub(" ", folded).split():
        position = 0
        for run in _SPACELESS_RUN.finditer(piece):
            yield from _word_terms(piece[position : run.start()])
            yield from _phrases(run[0])
            position = run.end()
        yield from _word_terms(piece[position:])


def _units(run: str) -> list[str]:
    return list(run) if _PAIR_RUN.match(run) else _CLUSTER.findall(run)


def _phrases(run: str) -> Iterator[_Said]:
    """The overlapping phrases of a run, question words cut out unless there is nothing else."""
    for part in [part for part in _STOP_PHRASES.split(run) if part] or [run]:
        yield from _windows(part)


def _windows(run: str) -> Iterator[_Said]:
    units = _units(run)
    size = min(len(units), 2 if _PAIR_RUN.match(run) else 3)
    for start in range(len(units) - size + 1):
        window = units[start : start + size]
        yield _Said("".join(window), " ".join(window))


def _word_terms(piece: str) -> Iterator[_Said]:
    """The words of a piece without spaces; one with signs inside is first of all a phrase.

    ``e-1042`` gives the phrase, with weight, and the longer of its parts, so that an exact identifier
    ranks first and its parts still find something.
    """
    words = _only_words(piece).split()
    if not words or len(piece) > MAX_TERM_CHARACTERS:
        return
    if len(words) > 1:
        weight = 1 if _COMPOUND.fullmatch(piece) else _IDENTIFIER_WEIGHT
        yield _Said(_trimmed(piece), " ".join(words), weight)
        words = [word for word in words if len(word) > 1]
    for word in words:
        yield _Said(word, word)


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
