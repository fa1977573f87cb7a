"""Every passage that holds some words, counted: an exhaustive look into the keyword index.

Exact and deterministic: SQLite walks the postings and counts; what comes back is bounded, whatever is found. A
*piece* is a word or a phrase and is compared as the index has it: without case, accents and endings.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from edgerag.index import analyze, filters
from edgerag.index.keywords import rules_of_library
from edgerag.types import DocumentMatch, Filter, KeywordScan, PieceCount

# Each is a pass over its postings; a question with more words than this is no search for words.
MOST_PIECES = 16


def scan(
    db: sqlite3.Connection, pieces: Sequence[str], *, document_limit: int, where: Filter | None = None
) -> KeywordScan:
    """The documents of ``where`` in which every one of ``pieces`` stands; all of them for no pieces.

    At most ``document_limit`` are named, those with most matching passages first, then by path; the counts are of all.
    """
    scope = filters.matching(where or Filter())
    (documents,) = db.execute(f"SELECT count(*) FROM ({scope.select})", scope.parameters).fetchone()  # noqa: S608
    (passages,) = db.execute(
        f"SELECT count(*) FROM chunks c WHERE c.document_id IN ({scope.select})",  # noqa: S608 - see filters.matching()
        scope.parameters,
    ).fetchone()
    rules = rules_of_library(db)
    terms = {piece: analyze.phrase_term(piece, rules=rules) for piece in pieces[:MOST_PIECES]}
    expressions = {piece: f"({term.expression})" for piece, term in terms.items() if term is not None}
    if not expressions:
        return _everything(db, scope, documents, passages, document_limit)
    # A title stands in every passage of its document, so it counts for the document and for no passage.
    together = "{headings body} : (" + " AND ".join(expressions.values()) + ")"
    hits = f"""
        SELECT c.document_id AS id, c.id AS chunk_id, c.ordinal AS ordinal FROM chunk_words
        CROSS JOIN chunks c ON c.id = chunk_words.rowid AND c.document_id IN ({scope.select})
        WHERE chunk_words MATCH ?
    """  # noqa: S608 - fixed text; what the user gave is in the parameters
    holders = " INTERSECT ".join(f"SELECT DISTINCT id FROM ({hits})" for _ in expressions)  # noqa: S608
    holder_parameters = [value for expression in expressions.values() for value in (*scope.parameters, expression)]
    joint_passages, joint_documents = db.execute(
        f"SELECT count(*), count(DISTINCT id) FROM ({hits})",  # noqa: S608
        (*scope.parameters, together),
    ).fetchone()
    (holding,) = db.execute(f"SELECT count(*) FROM ({holders})", holder_parameters).fetchone()  # noqa: S608
    rows = db.execute(
        f"""
        WITH holders (id) AS ({holders}),
        joint (id, passages, first, chunk_id) AS
            (SELECT id, count(*), min(ordinal), chunk_id FROM ({hits}) GROUP BY id)
        SELECT d.id, d.path, coalesce(j.passages, 0), j.chunk_id
        FROM holders h JOIN documents d ON d.id = h.id LEFT JOIN joint j ON j.id = h.id
        ORDER BY 3 DESC, d.path LIMIT ?
        """,  # noqa: S608
        (*holder_parameters, *scope.parameters, together, document_limit),
    ).fetchall()
    by_piece = tuple(_count(db, hits, scope, piece, expression) for piece, expression in expressions.items())
    rarest = min(by_piece, key=lambda count: count.passage_count).piece
    return KeywordScan(
        pieces=by_piece,
        document_total=documents,
        passage_total=passages,
        document_count=holding,
        passage_count=joint_passages,
        joint_document_count=joint_documents,
        documents=tuple(
            DocumentMatch(
                document_id=document_id,
                path=path,
                passage_count=count,
                chunk_id=_first_chunk(db, document_id, expressions[rarest]) if chunk_id is None else chunk_id,
            )
            for document_id, path, count, chunk_id in rows
        ),
    )


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


def _first_chunk(db: sqlite3.Connection, document_id: int, expression: str) -> int:
    (chunk_id,) = db.execute(
        "SELECT c.id FROM chunk_words CROSS JOIN chunks c ON c.id = chunk_words.rowid AND c.document_id = ?"
        " WHERE chunk_words MATCH ? ORDER BY c.ordinal LIMIT 1",
        (document_id, expression),
    ).fetchone()
    return int(chunk_id)
