"""From a plan to hits in one order: both legs, exact matches, fusion, and the text of what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from edgerag.ask.background import background
from edgerag.ask.exact import exact_matches, exact_strings
from edgerag.ask.features import NAMES, Found, Nearness, features
from edgerag.ask.fuse import fuse
from edgerag.ask.plan import VECTOR_WEIGHT
from edgerag.ask.question_vector import QuestionVector
from edgerag.ask.rerank import shipped
from edgerag.ask.retrieve import Retrieved, retrieve
from edgerag.ask.select import Likeness
from edgerag.ask.word_features import word_shares
from edgerag.config import RetrievalSettings
from edgerag.errors import EmbedderMismatch
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import (
    CancelCheck,
    Embedder,
    Filter,
    Hit,
    LatentEvidence,
    Plan,
    Scores,
    SecondLookReport,
    StoredChunk,
    VectorLeg,
    WordEvidence,
)

if TYPE_CHECKING:
    from edgerag.types import Library


# Candidates that the reranker looks at: below the first fifty of a fusion there is next to nothing to be found.
RERANKED = 50
_COVERED, _TOGETHER, _NEARNESS, _IS_EMBEDDED = (
    NAMES.index(name) for name in ("covered_softly", "best_window", "nearness", "is_embedded")
)


@dataclass(frozen=True, slots=True)
class Ranked:
    """The hits, best first, and what went another way. ``exited_early``: the keyword leg was sure by itself.
    ``likeness`` has the vectors of the reranked ones where vectors were searched."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...]
    exited_early: bool
    likeness: Likeness = field(default_factory=Likeness)
    vector_leg: VectorLeg = "searched"
    second_look: SecondLookReport | None = None


def rank(
    plan: Plan,
    *,
    library: Library,
    embedder: Callable[[], Embedder],
    settings: RetrievalSettings,
    stopwatch: Stopwatch,
    cancelled: CancelCheck,
    where: Filter | None = None,
    limit: int | None = None,
    embedding: QuestionVector | None = None,
) -> Ranked:
    """Searches as planned. ``limit``: of so many hits the text is read, and the others are left out; None reads all.
    ``embedding``: as for retrieve().

    Raises Cancelled, LibraryError.
    """
    strings = exact_strings(plan.question)
    found = retrieve(
        plan,
        library=library,
        embedder=embedder,
        stopwatch=stopwatch,
        cancelled=cancelled,
        where=where,
        deadline_ms=settings.vector_deadline_ms,
        early_words=RERANKED,
        early_texts=bool(strings),
        embedding=embedding,
    )
    with stopwatch.measure("fuse") as facts:
        exact, texts = exact_candidates(strings, found, library=library)
        fused = fused_candidates(plan, found, exact=exact, rrf_k=settings.rrf_k)
        facts["candidates"] = len(fused)
    with stopwatch.measure("rerank") as facts:
        ids = [each.chunk_id for each in fused[:RERANKED]]
        nearness = nearness_of(plan, found, library=library, ids=ids)
        words = candidate_words(plan.question, ids, library=library, early=found.words)
        order = rerank_all(fused[:RERANKED], words=words, nearness=nearness, latent_of=library.latent_evidence)
        facts |= {"candidates": len(ids), "confidence": (order[0][1].reranked or 0.0) if order else 0.0}
        if plan.added_words:
            order = _judged_by_own_words(order, words=library.word_evidence(plan.own_question, [i for i, _ in order]))
    with stopwatch.measure("read"):
        reranked = {chunk_id for chunk_id, _ in order}
        rest = ((each.chunk_id, each.scores) for each in fused if each.chunk_id not in reranked)
        scores = dict([*order, *rest][:limit])
        texts |= {chunk.id: chunk for chunk in library.chunks([each for each in scores if each not in texts])}
        hits = tuple(Hit(texts[chunk_id], score) for chunk_id, score in scores.items() if chunk_id in texts)
    likeness = Likeness() if nearness is None else Likeness(nearness.passages, nearness.background)
    return Ranked(hits, found.notes, found.exited_early, likeness, found.vector_leg)


def candidate_words(question: str, ids: Sequence[int], *, library: Library, early: WordEvidence | None) -> WordEvidence:
    """The words of the question and of these chunks, those that are not among ``early`` read now."""
    if early is None:
        return library.word_evidence(question, ids)
    missing = [chunk_id for chunk_id in ids if chunk_id not in early.passages]
    if not missing:
        return early
    return replace(early, passages={**early.passages, **library.word_evidence(question, missing).passages})


def exact_candidates(
    strings: Sequence[str], found: Retrieved, *, library: Library
) -> tuple[frozenset[int], dict[int, StoredChunk]]:
    """Those of what both legs found in which the exact strings of the question stand, and the texts that are read by
    then: only where there are such strings, of all."""
    if not strings:
        return frozenset(), dict(found.texts)
    ids = dict.fromkeys(hit.chunk_id for hit in (*found.keyword, *found.vector))
    missing = [chunk_id for chunk_id in ids if chunk_id not in found.texts]
    texts = {**found.texts, **{chunk.id: chunk for chunk in library.chunks(missing)}}
    return exact_matches(strings, texts.values()), texts


def fused_candidates(plan: Plan, found: Retrieved, *, exact: frozenset[int], rrf_k: int) -> list[Found]:
    """What both legs found by the fusion of their ranks, best first. ``exact``: as exact_candidates() gives them."""
    fused = fuse(
        keyword=found.keyword,
        vector=found.vector,
        keyword_weight=plan.keyword_weight,
        vector_weight=plan.vector_weight,
        rrf_k=rrf_k,
        exact=exact,
    )
    return [Found(chunk_id, scores, chunk_id in exact) for chunk_id, scores in fused]


def rerank_all(
    found: Sequence[Found],
    *,
    words: WordEvidence,
    nearness: Nearness | None,
    latent_of: Callable[[WordEvidence, Sequence[int]], LatentEvidence | None],
) -> list[tuple[int, Scores]]:
    """The candidates by the reranker, best first, each with its probability; equal ones in the order given. One whose
    words are gone by now is left out. ``latent_of``: see Library.latent_evidence()."""
    there = [each for each in found if each.chunk_id in words.passages]
    if not there:
        return []
    latent = latent_of(words, [each.chunk_id for each in there])
    rows = features(there, words=words, nearness=nearness, latent=latent)
    logits = shipped().scores(rows).astype(np.float64)
    share = np.exp(logits - logits.max())
    share /= share.sum()
    order = np.argsort(-logits, kind="stable")
    return [
        (
            there[place].chunk_id,
            replace(
                there[place].scores,
                reranked=float(share[place]),
                covered=min(1.0, float(rows[place, _COVERED])),
                together=min(1.0, float(rows[place, _TOGETHER])),
                nearness=float(rows[place, _NEARNESS]) if rows[place, _IS_EMBEDDED] else None,
            ),
        )
        for place in order.tolist()
    ]


def _judged_by_own_words(order: Sequence[tuple[int, Scores]], *, words: WordEvidence) -> list[tuple[int, Scores]]:
    """The same with the share of the question's own words where that is more: what the conversation lent helps to find
    a passage, and what lacks it may still be about the question."""
    judged = []
    for chunk_id, scores in order:
        if chunk_id in words.passages:
            covered, together = word_shares(words, chunk_id)
            covered, together = max(scores.covered, min(1.0, covered)), max(scores.together, min(1.0, together))
            scores = replace(scores, covered=covered, together=together)
        judged.append((chunk_id, scores))
    return judged


def nearness_of(plan: Plan, found: Retrieved, *, library: Library, ids: Sequence[int]) -> Nearness | None:
    """What vectors say of the chunks; None where they say nothing: there is none of the question, or the embedder does
    not know its language."""
    if found.query_vector is None or plan.vector_weight < VECTOR_WEIGHT:
        return None
    try:
        (mean, sampled), passages = library.mean_vector(), library.vectors_of(ids)
    except EmbedderMismatch:  # it was given to another embedder at this moment: the cosines found hold, these do not
        return None
    level = background(mean_cosine=float(mean @ found.query_vector), sampled=sampled, unrelated=found.unrelated_cosine)
    return Nearness(question=found.query_vector, passages=passages, background=level)
