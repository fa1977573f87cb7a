"""From a plan to hits in one order: both legs, exact matches, fusion, and the text of what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgerag.ask.exact import exact_matches, exact_strings
from edgerag.ask.fuse import fuse
from edgerag.ask.retrieve import retrieve
from edgerag.config import RetrievalSettings
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import CancelCheck, Embedder, Filter, Hit, Plan

if TYPE_CHECKING:
    from edgerag.types import Library


@dataclass(frozen=True, slots=True)
class Ranked:
    """The hits, best first, and what went another way.

    ``cosine_ceiling`` is the highest cosine that a hit the vector leg did not return can have; None
    when nothing can be said about it.
    """

    hits: tuple[Hit, ...]
    cosine_ceiling: float | None
    notes: tuple[str, ...]


def rank(
    plan: Plan,
    *,
    library: Library,
    embedder: Callable[[], Embedder],
    settings: RetrievalSettings,
    stopwatch: Stopwatch,
    cancelled: CancelCheck,
    where: Filter | None = None,
) -> Ranked:
    """Searches as planned. Raises Cancelled, LibraryError."""
    found = retrieve(plan, library=library, embedder=embedder, stopwatch=stopwatch, cancelled=cancelled, where=where)
    with stopwatch.measure("fuse"):
        ids = list(dict.fromkeys(hit.chunk_id for hit in (*found.keyword, *found.vector)))
        # A chunk that went away between the two look-ups is left out by the library.
        chunks = {chunk.id: chunk for chunk in library.chunks(ids)}
        fused = fuse(
            keyword=found.keyword,
            vector=found.vector,
            keyword_weight=plan.keyword_weight,
            vector_weight=plan.vector_weight,
            rrf_k=settings.rrf_k,
            exact=exact_matches(exact_strings(plan.question), chunks.values()),
        )
        hits = tuple(Hit(chunks[chunk_id], scores) for chunk_id, scores in fused if chunk_id in chunks)
    # A full leg stopped at its last hit: whatever it left out is no nearer. One that is not full has
    # seen every vector, so that what it left out has none.
    full = len(found.vector) >= plan.candidate_count
    return Ranked(hits, found.vector[-1].score if full else None, found.notes)
