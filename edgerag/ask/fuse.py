"""Two rankings become one: weighted reciprocal rank fusion.

Cormack, Clarke and Büttcher 2009, "Reciprocal Rank Fusion outperforms Condorcet and individual
Rank Learning Methods". Ranks, not scores, are added, so that BM25 and cosine need no common scale.
Pure; the same hits always give the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from edgerag.types import LegHit, Scores

# A chunk that holds the identifier or the quoted phrase of the question gets as much as a third leg
# that ranks it first, whatever the embedder thinks of it.
EXACT_WEIGHT = 1.0


def fuse(
    *,
    keyword: Sequence[LegHit],
    vector: Sequence[LegHit],
    keyword_weight: float,
    vector_weight: float,
    rrf_k: int,
    exact: Collection[int] = (),
) -> list[tuple[int, Scores]]:
    """Chunk ids with their scores, best first.

    ``exact`` are the chunks in which the question's identifiers and quoted phrases stand; they keep
    the order that the keyword leg gave them. A leg of weight 0 adds no hits of its own.
    """
    keyword_rank = {hit.chunk_id: rank for rank, hit in enumerate(keyword, start=1)} if keyword_weight else {}
    vector_rank = {hit.chunk_id: rank for rank, hit in enumerate(vector, start=1)} if vector_weight else {}
    exact_ids = [hit.chunk_id for hit in keyword if hit.chunk_id in exact] if keyword_weight else []
    exact_rank = {chunk_id: rank for rank, chunk_id in enumerate(exact_ids, start=1)}
    keyword_score = {hit.chunk_id: hit.score for hit in keyword}
    vector_score = {hit.chunk_id: hit.score for hit in vector}

    def scores(chunk_id: int) -> Scores:
        fused = 0.0
        for rank, weight in (
            (keyword_rank.get(chunk_id), keyword_weight),
            (vector_rank.get(chunk_id), vector_weight),
            (exact_rank.get(chunk_id), EXACT_WEIGHT),
        ):
            if rank is not None:
                fused += weight / (rrf_k + rank)
        return Scores(
            keyword=keyword_score.get(chunk_id),
            keyword_rank=keyword_rank.get(chunk_id),
            vector=vector_score.get(chunk_id),
            vector_rank=vector_rank.get(chunk_id),
            fused=fused,
        )

    fused = {chunk_id: scores(chunk_id) for chunk_id in [*keyword_rank, *vector_rank]}
    last = len(keyword) + len(vector) + 1
    return sorted(
        fused.items(),
        key=lambda item: (-item[1].fused, item[1].keyword_rank or last, item[1].vector_rank or last, item[0]),
    )
