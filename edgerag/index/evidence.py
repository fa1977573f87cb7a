"""What the words of a question and of the passages found for it have to do with each other, for whoever ranks them.

Words here are as the keyword index compares them: without endings and accents, and without the letters that tell the
languages of documents apart. Nothing is searched: the passages are those that the legs found.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import lru_cache

from edgerag.index import analyze, keywords, word_rules
from edgerag.index.keywords import TermCounts
from edgerag.index.word_rules import Rules
from edgerag.types import AskedTerm, PassageWords, WordEvidence

_WORDS_REMEMBERED = 50_000


def evidence(
    db: sqlite3.Connection,
    query: str,
    chunk_ids: Sequence[int],
    *,
    counts: TermCounts,
    rules: Sequence[Rules] | None = None,
) -> WordEvidence:
    """Of those of the chunks that are there. ``counts`` are those to weigh by, ``rules`` as for keywords.search()."""
    terms = tuple(
        AskedTerm(forms=_forms(term), idf=counts.idf(place))
        for place, term in enumerate(keywords.terms_of(db, query, rules))
    )
    return WordEvidence(
        terms=terms, passages=passage_words(db, chunk_ids), mean_words=counts.words / max(1, counts.chunks)
    )


def passage_words(db: sqlite3.Connection, chunk_ids: Sequence[int]) -> dict[int, PassageWords]:
    """By chunk; those that are not there are left out. Read from where FTS5 keeps its columns, in half the time that it
    takes through the virtual table."""
    rows = db.execute(
        "SELECT id, c0, c1, c2 FROM chunk_words_content WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(chunk_ids)),),
    )
    return {
        chunk_id: PassageWords(title=_words(title), headings=_words(headings), body=_words(body))
        for chunk_id, title, headings, body in rows
    }


def _forms(term: analyze.Term) -> tuple[tuple[str, ...], ...]:
    forms = (tuple(filter(None, map(_compared, form.split()))) for form in term.forms)
    return tuple(dict.fromkeys(form for form in forms if form))


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(_compared, text.split())))


@lru_cache(maxsize=_WORDS_REMEMBERED)
def _compared(word: str) -> str:
    """A word as it is stored, as FTS5 compares it; "" for one that stands there for queries typed without accents."""
    return word_rules.compared(word)
