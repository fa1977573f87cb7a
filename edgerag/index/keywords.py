"""The keyword leg: BM25 over ``chunk_words``, and how much of a query a chunk covers."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence

from edgerag.index import analyze, documents, filters
from edgerag.index.word_rules import Rules, rules_of_all
from edgerag.types import Filter, LegHit

# Weights of title, headings, body in BM25. A title says what the whole document is about, and stands
# in each of its chunks.
_COLUMN_WEIGHTS = (1.5, 1.5, 1.0)
_BATCH = 500


def search(db: sqlite3.Connection, query: str, *, limit: int, where: Filter | None = None) -> list[LegHit]:
    """The best chunks by BM25, higher is better; equal scores by id. Rarity is that of the whole library."""
    terms = analyze.query_terms(query, rules=rules_of_library(db))
    if not terms or limit < 1:
        return []
    chosen, parameters = "", tuple[object, ...]()
    if where is not None:
        matching = filters.matching(where)
        # CROSS JOIN keeps the order of the loops: the other way round every chunk would run the MATCH anew.
        chosen = f" CROSS JOIN chunks c ON c.id = chunk_words.rowid AND c.document_id IN ({matching.select})"
        parameters = matching.parameters
    # The text put into the statement is fixed; what the user gave is in the parameters.
    rows = db.execute(
        f"SELECT chunk_words.rowid, bm25(chunk_words, ?, ?, ?) AS score FROM chunk_words{chosen}"  # noqa: S608
        " WHERE chunk_words MATCH ? ORDER BY score, chunk_words.rowid LIMIT ?",
        (*_COLUMN_WEIGHTS, *parameters, analyze.match_expression(terms), limit),
    )
    return [LegHit(chunk_id, -score) for chunk_id, score in rows]


def coverage(db: sqlite3.Connection, query: str, chunk_ids: Sequence[int]) -> dict[int, float]:
    """For each chunk the share (0..1) of the query's content terms in it, each weighted by its rarity.

    A term that stands nowhere in the library weighs most: a question about something unknown is
    covered by nothing.
    """
    terms = analyze.query_terms(query, rules=rules_of_library(db))
    total = int(db.execute("SELECT count(*) FROM chunk_words_docsize").fetchone()[0])
    covered = dict.fromkeys(chunk_ids, 0.0)
    sum_of_weights = 0.0
    for term in terms:
        holders = _holders(db, term, covered)
        (count,) = db.execute(
            "SELECT count(*) FROM chunk_words WHERE chunk_words MATCH ?", (term.expression,)
        ).fetchone()
        weight = math.log(1 + (total - count + 0.5) / (count + 0.5))
        sum_of_weights += weight
        for chunk_id in holders:
            covered[chunk_id] += weight
    if not sum_of_weights:
        return covered
    return {chunk_id: min(1.0, weight / sum_of_weights) for chunk_id, weight in covered.items()}


def rules_of_library(db: sqlite3.Connection) -> tuple[Rules, ...]:
    """Those by which the words of its documents were made."""
    return rules_of_all(documents.analysed(db))


def _holders(db: sqlite3.Connection, term: analyze.Term, among: dict[int, float]) -> list[int]:
    ids = list(among)
    found: list[int] = []
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        marks = ",".join("?" * len(batch))
        # The text put into the statement is question marks only.
        statement = f"SELECT rowid FROM chunk_words WHERE chunk_words MATCH ? AND rowid IN ({marks})"  # noqa: S608
        found += [row[0] for row in db.execute(statement, (term.expression, *batch))]
    return found
