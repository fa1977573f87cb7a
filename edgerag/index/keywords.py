"""The keyword leg: BM25 over ``chunk_words``, and what it counts for a query."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgerag.index import analyze, documents, filters
from edgerag.index.store import damaged_row
from edgerag.index.word_rules import Rules, rules_of_all
from edgerag.types import Filter, LegHit

# Weights of title, headings, body in BM25. A title says what the whole document is about, and stands
# in each of its chunks.
_COLUMN_WEIGHTS = (1.5, 1.5, 1.0)
# Chunks that FTS5 weighs for a query, as good as never more: 1,000 take 0.7 ms. Of 100,000 chunks 98 % of the five
# best hits are those that all terms give (bench/common_words.py); the reranker looks at all terms in any case.
_MOST_WEIGHED = 8_000
# Of FTS5's bm25(): see scores().
_K1, _B, _LEAST_RARITY = 1.2, 0.75, 1e-6


def search(
    db: sqlite3.Connection,
    query: str,
    *,
    limit: int,
    where: Filter | None = None,
    rules: Sequence[Rules] | None = None,
    counts: TermCounts | None = None,
) -> list[LegHit]:
    """The best chunks by BM25, higher is better; equal scores by id. Rarity is that of the whole library.

    Of a large library the commonest terms of the query have no part in it, unless the others find too little: FTS5
    would weigh every chunk that holds any of them, and they say least. ``rules``: for this as for all below, those to
    make the words of the query by; None for those of the library. ``counts`` are those of :func:`term_counts`.
    """
    terms = terms_of(db, query, rules)
    if not terms or limit < 1:
        return []
    telling = _telling(terms, counts or term_counts(db, query, rules), limit=limit)
    found = _best(db, telling, limit=limit, where=where)
    return found if len(found) == limit or telling == terms else _best(db, terms, limit=limit, where=where)


def _telling(terms: tuple[analyze.Term, ...], counts: TermCounts, *, limit: int) -> tuple[analyze.Term, ...]:
    """The rarest terms that stand in so many chunks together, in their order; all, where they stand in no more."""
    taken: set[int] = set()
    rows = 0
    for place in sorted(range(len(terms)), key=lambda place: (counts.holders[place], place)):
        if rows >= limit and rows + counts.holders[place] > _MOST_WEIGHED:
            break
        taken.add(place)
        rows += counts.holders[place]
    return tuple(term for place, term in enumerate(terms) if place in taken)


def _best(db: sqlite3.Connection, terms: tuple[analyze.Term, ...], *, limit: int, where: Filter | None) -> list[LegHit]:
    chosen, parameters = "", tuple[object, ...]()
    if where is not None:
        matching = filters.matching(where)
        # CROSS JOIN keeps the order of the loops: the other way round every chunk would run the MATCH anew. The
        # condition is asked of each match, not of all documents first: of rare words there are few matches.
        chosen = (
            " CROSS JOIN chunks c ON c.id = chunk_words.rowid"
            f" CROSS JOIN documents d ON d.id = c.document_id AND ({matching.condition})"
        )
        parameters = matching.parameters
    # The text put into the statement is fixed; what the user gave is in the parameters.
    rows = db.execute(
        f"SELECT chunk_words.rowid, bm25(chunk_words, ?, ?, ?) AS score FROM chunk_words{chosen}"  # noqa: S608
        " WHERE chunk_words MATCH ? ORDER BY score, chunk_words.rowid LIMIT ?",
        (*_COLUMN_WEIGHTS, *parameters, analyze.match_expression(terms), limit),
    )
    return [LegHit(chunk_id, -score) for chunk_id, score in rows]


def terms_of(db: sqlite3.Connection, query: str, rules: Sequence[Rules] | None = None) -> tuple[analyze.Term, ...]:
    """What is looked for."""
    return analyze.query_terms(query, rules=rules_of_library(db) if rules is None else rules)


def rules_of_library(db: sqlite3.Connection) -> tuple[Rules, ...]:
    """Those by which the words of its documents were made."""
    return rules_of_all(documents.analysed(db))


@dataclass(frozen=True, slots=True)
class TermCounts:
    """What BM25 knows of a library: its chunks, the words in all of them, and in how many chunks each term of a query
    is, and each form of it, both in the order of :func:`terms_of`."""

    chunks: int
    words: int
    holders: tuple[int, ...]
    form_holders: tuple[int, ...]  # of all terms, one after the other

    @staticmethod
    def together(several: Iterable[TermCounts]) -> TermCounts:
        """Those of several libraries, counted by the same rules, as if they were one."""
        counts = list(several)
        return TermCounts(
            chunks=sum(count.chunks for count in counts),
            words=sum(count.words for count in counts),
            holders=tuple(map(sum, zip(*(count.holders for count in counts), strict=True))),
            form_holders=tuple(map(sum, zip(*(count.form_holders for count in counts), strict=True))),
        )

    def idf(self, place: int) -> float:
        """How much finding a term says: never below zero, and most where it stands nowhere."""
        holders = self.holders[place]
        return math.log(1 + (self.chunks - holders + 0.5) / (holders + 0.5))

    def rarity(self, place: int) -> float:
        """What FTS5 multiplies a form by."""
        holders = self.form_holders[place]
        return max(_LEAST_RARITY, math.log((self.chunks - holders + 0.5) / (holders + 0.5)))

    def damping(self, words: int) -> float:
        """What FTS5 adds below to the occurrences of a term in a chunk of so many words."""
        return _K1 * (1 - _B + _B * words * self.chunks / self.words)


def term_counts(db: sqlite3.Connection, query: str, rules: Sequence[Rules] | None = None) -> TermCounts:
    terms = terms_of(db, query, rules)
    by_form = {form: _holder_count(db, form) for term in terms for form in term.expressions}
    holders = [
        by_form[term.expressions[0]] if len(term.expressions) == 1 else _holder_count(db, term.expression)
        for term in terms
    ]
    # FTS5 keeps the number of its rows and of the words in each column in this row, as varints, as of the last commit.
    row = db.execute("SELECT block FROM chunk_words_data WHERE id = 1").fetchone()
    chunks, *words = _varints(row[0]) if row and row[0] else (0,)  # one that was never written to keeps none
    forms = [by_form[form] for term in terms for form in term.expressions]
    return TermCounts(chunks, sum(words), tuple(holders), tuple(forms))


def scores(
    db: sqlite3.Connection,
    query: str,
    chunk_ids: Sequence[int],
    *,
    own: TermCounts,
    together: TermCounts,
    rules: Sequence[Rules],
) -> dict[int, float]:
    """The BM25 of each chunk as :func:`search` would give it in one library with all documents: ``own`` is what is
    counted here, ``together`` what is counted there.

    FTS5 gives what each form of a term adds to a score. That is solved for the occurrences of the form, and these are
    weighed anew (formula and constants: sqlite.org/fts5.html, the bm25() function).
    """
    found = dict.fromkeys(chunk_ids, 0.0)
    lengths = _lengths(db, chunk_ids)
    forms = [(form, term.weight) for term in terms_of(db, query, rules) for form in term.expressions]
    for place, (form, term_weight) in enumerate(forms):
        if not own.form_holders[place]:
            continue
        rarity, own_rarity = together.rarity(place), own.rarity(place)
        for chunk_id, score in _form_scores(db, form, chunk_ids):
            if chunk_id not in lengths or not own.words:
                raise damaged_row(f"chunk {chunk_id} has words, and their number is not kept")
            share = -score / own_rarity  # of an endless number of occurrences, times k1 + 1
            occurrences = share * own.damping(lengths[chunk_id]) / (_K1 + 1 - share)
            weight = term_weight * rarity * (_K1 + 1)
            found[chunk_id] += weight * occurrences / (occurrences + together.damping(lengths[chunk_id]))
    return found


def _form_scores(db: sqlite3.Connection, form: str, chunk_ids: Sequence[int]) -> list[tuple[int, float]]:
    return db.execute(
        "SELECT rowid, bm25(chunk_words, ?, ?, ?) FROM chunk_words"
        " WHERE chunk_words MATCH ? AND rowid IN (SELECT value FROM json_each(?))",
        (*_COLUMN_WEIGHTS, form, json.dumps(list(chunk_ids))),
    ).fetchall()


def _lengths(db: sqlite3.Connection, chunk_ids: Sequence[int]) -> dict[int, int]:
    """The words of each chunk, which FTS5 keeps for each column as varints."""
    rows = db.execute(
        "SELECT id, sz FROM chunk_words_docsize WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(chunk_ids)),),
    )
    return {chunk_id: sum(_varints(sizes)) for chunk_id, sizes in rows}


def _varints(data: object) -> list[int]:
    """Numbers of 7 bits a byte, the highest first; the last byte of each has its high bit clear. Those that FTS5
    writes here are far below the nine bytes from where on SQLite has another rule."""
    if not isinstance(data, bytes):  # SQLite keeps any value in any column
        raise damaged_row(f"the counts {data!r:.100} of the keyword index")
    numbers, number = [], 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers


def _holder_count(db: sqlite3.Connection, expression: str) -> int:
    (count,) = db.execute("SELECT count(*) FROM chunk_words WHERE chunk_words MATCH ?", (expression,)).fetchone()
    return int(count)


def weights(
    db: sqlite3.Connection, query: str, *, counts: TermCounts, rules: Sequence[Rules] | None = None
) -> dict[str, float]:
    """The content terms of a query as it says them, with their idf, in order; 0.0 for one that stands nowhere."""
    terms = terms_of(db, query, rules)
    return {term.surface: counts.idf(n) if counts.holders[n] else 0.0 for n, term in enumerate(terms)}
