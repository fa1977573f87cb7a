"""Every passage that holds some words, counted: an exhaustive look into the keyword index.

Exact and deterministic: SQLite walks the postings and counts; what comes back is bounded, whatever is found. A word
may be a phrase, and is compared as the index has it: without case, accents and endings.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from edgerag.index import analyze, filters
from edgerag.index.keywords import rules_of_library
from edgerag.types import DocumentMatch, Filter, KeywordScan, PieceCount, WordQuery

# Each is a pass over its postings; a question with more words than this is no search for words.
MOST_PIECES = 16


def scan(db: sqlite3.Connection, words: WordQuery, *, document_limit: int, where: Filter | None = None) -> KeywordScan:
    """The documents of ``where`` that ``words`` mean; all of them for no words.

    At most ``document_limit`` are named, those with most matching passages first, then by path; the counts are of all.
    """
    scope = filters.matching(where or Filter())
    (documents,) = db.execute(f"SELECT count(*) FROM ({scope.select})", scope.parameters).fetchone()  # noqa: S608
    (passages,) = db.execute(
        f"SELECT count(*) FROM chunks c WHERE c.document_id IN ({scope.select})",  # noqa: S608 - see filters.matching()
        scope.parameters,
    ).fetchone()
    rules = rules_of_library(db)
    terms = {word: analyze.phrase_term(word, rules=rules) for word in words.words[:MOST_PIECES]}
    expressions = {word: f"({term.expression})" for word, term in terms.items() if term is not None}
    looked_for = _only(words, expressions)
    if looked_for == WordQuery():
        return _everything(db, scope, documents, passages, document_limit)
    hits = f"""
        SELECT c.document_id AS id, c.id AS chunk_id, c.ordinal AS ordinal FROM chunk_words
        CROSS JOIN chunks c ON c.id = chunk_words.rowid AND c.document_id IN ({scope.select})
        WHERE chunk_words MATCH ?
    """  # noqa: S608 - fixed text; what the user gave is in the parameters
    meant = _meant(looked_for, expressions, hits, scope)
    (count,) = db.execute(f"SELECT count(*) FROM ({meant.select})", meant.parameters).fetchone()  # noqa: S608
    joint_passages = joint_documents = 0
    if looked_for.any_of:
        # A title stands in every passage of its document, so it counts for the document and for no passage.
        together = "{headings body} : (" + _either(looked_for.any_of, expressions) + ")"
        joint_passages, joint_documents = db.execute(
            f"SELECT count(*), count(DISTINCT id) FROM ({hits}) WHERE id IN ({meant.select})",  # noqa: S608
            (*scope.parameters, together, *meant.parameters),
        ).fetchone()
        rows = db.execute(
            f"""
            WITH meant (id) AS ({meant.select}),
            joint (id, passages, first, chunk_id) AS
                (SELECT id, count(*), min(ordinal), chunk_id FROM ({hits}) GROUP BY id)
            SELECT d.id, d.path, coalesce(j.passages, 0), j.chunk_id
            FROM meant m JOIN documents d ON d.id = m.id LEFT JOIN joint j ON j.id = m.id
            ORDER BY 3 DESC, d.path LIMIT ?
            """,  # noqa: S608
            (*meant.parameters, *scope.parameters, together, document_limit),
        ).fetchall()
    else:
        rows = db.execute(
            "SELECT d.id, d.path, 0, (SELECT c.id FROM chunks c WHERE c.document_id = d.id ORDER BY c.ordinal LIMIT 1)"  # noqa: S608
            f" FROM documents d WHERE d.id IN ({meant.select}) ORDER BY d.path LIMIT ?",
            (*meant.parameters, document_limit),
        ).fetchall()
    counts = {word: _count(db, hits, scope, word, expressions[word]) for word in looked_for.words}
    by_rarity = sorted(looked_for.held, key=lambda word: counts[word].passage_count)
    named = (
        (*row[:3], _first_chunk(db, row[0], [expressions[word] for word in by_rarity]) if row[3] is None else row[3])
        for row in rows
    )
    return KeywordScan(
        pieces=tuple(counts.values()),
        document_total=documents,
        passage_total=passages,
        document_count=count,
        passage_count=joint_passages,
        joint_document_count=joint_documents,
        documents=tuple(DocumentMatch(*row) for row in named if row[3] is not None),
        words=looked_for,
    )


def _only(words: WordQuery, known: Collection[str]) -> WordQuery:
    """The query without what nothing can be looked for: a word that is none."""

    def reduced(groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        kept = (tuple(word for word in group if word in known) for group in groups)
        return tuple(dict.fromkeys(filter(None, kept)))

    return WordQuery(reduced(words.any_of), reduced(words.none_of))


def _either(groups: Sequence[Sequence[str]], expressions: Mapping[str, str]) -> str:
    """As an expression of FTS5: one of the groups whole."""
    return " OR ".join("(" + " AND ".join(expressions[word] for word in group) + ")" for group in groups)


@dataclass(frozen=True, slots=True)
class _Meant:
    """The ids of the documents that are meant, as a statement and its parameters."""

    select: str
    parameters: tuple[object, ...]


def _meant(words: WordQuery, expressions: Mapping[str, str], hits: str, scope: filters.Matching) -> _Meant:
    """A document is what holds the words, not a passage: so each word is a look of its own."""
    parameters: list[object] = []

    def holding(group: Sequence[str]) -> str:
        for word in group:
            parameters.extend((*scope.parameters, expressions[word]))
        return " INTERSECT ".join(f"SELECT DISTINCT id FROM ({hits})" for _ in group)  # noqa: S608 - fixed text

    if words.any_of:
        select = " UNION ".join(f"SELECT id FROM ({holding(group)})" for group in words.any_of)  # noqa: S608
    else:
        select = scope.select
        parameters.extend(scope.parameters)
    if words.none_of:
        without = (f" EXCEPT SELECT id FROM ({holding(group)})" for group in words.none_of)  # noqa: S608
        select = f"SELECT id FROM ({select})" + "".join(without)  # noqa: S608
    return _Meant(select, tuple(parameters))


def _everything(
    db: sqlite3.Connection, scope: filters.Matching, documents: int, passages: int, limit: int
) -> KeywordScan:
    rows = db.execute(
        "SELECT d.id, d.path, count(*), min(c.ordinal), c.id FROM documents d JOIN chunks c ON c.document_id = d.id"  # noqa: S608
        f" WHERE d.id IN ({scope.select}) GROUP BY d.id ORDER BY d.path LIMIT ?",
        (*scope.parameters, limit),
    ).fetchall()
    return KeywordScan(
        pieces=(),
        document_total=documents,
        passage_total=passages,
        document_count=documents,
        passage_count=passages,
        joint_document_count=documents,
        documents=tuple(DocumentMatch(row[0], row[1], row[2], row[4]) for row in rows),
    )


def _count(db: sqlite3.Connection, hits: str, scope: filters.Matching, piece: str, expression: str) -> PieceCount:
    passages, documents = db.execute(
        f"SELECT count(*), count(DISTINCT id) FROM ({hits})",  # noqa: S608 - fixed text
        (*scope.parameters, expression),
    ).fetchone()
    return PieceCount(piece, document_count=documents, passage_count=passages)


def _first_chunk(db: sqlite3.Connection, document_id: int, expressions: Sequence[str]) -> int | None:
    """The first chunk of the document with the first of those that stands in it at all."""
    for expression in expressions:
        row = db.execute(
            "SELECT c.id FROM chunk_words CROSS JOIN chunks c ON c.id = chunk_words.rowid AND c.document_id = ?"
            " WHERE chunk_words MATCH ? ORDER BY c.ordinal LIMIT 1",
            (document_id, expression),
        ).fetchone()
        if row is not None:
            return int(row[0])
    return None
