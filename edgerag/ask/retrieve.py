"""Both legs of the search: words (BM25) and meaning (vectors).

The embedder loads in another thread while the keyword leg runs. The question is embedded after it in
this one: BM25 takes 0.6 ms where the embedding takes 5, and two threads on two cores would win less
than they cost. Whatever keeps the vector leg from running becomes a note, never a failure: words alone
still find a lot.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgerag.ask.waiting import start, wait
from edgerag.errors import EmbedderMismatch, ModelError
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import CancelCheck, Embedder, Filter, LegHit, Plan

if TYPE_CHECKING:
    from edgerag.types import Library, Vectors


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What each leg found, best first, and why a leg that was planned did not run."""

    keyword: tuple[LegHit, ...]
    vector: tuple[LegHit, ...]
    notes: tuple[str, ...]


def retrieve(
    plan: Plan,
    *,
    library: Library,
    embedder: Callable[[], Embedder],
    stopwatch: Stopwatch,
    cancelled: CancelCheck,
    where: Filter | None = None,
) -> Retrieved:
    """Runs the legs that the plan gives a weight, both among the documents of ``where`` (as check_filter gave it).

    Raises Cancelled, LibraryError.
    """
    future: Future[Embedder] | None = None
    if plan.vector_weight > 0:
        future = start(embedder, name="embedder-supplier")
    with stopwatch.measure("keyword"):
        keyword = library.search_keywords(plan.question, limit=plan.candidate_count, where=where)
    if future is None:
        return Retrieved(tuple(keyword), (), ())
    try:
        with stopwatch.measure("embed"):
            query = _embed(plan, wait(future, cancelled), library)
    except (ModelError, EmbedderMismatch) as error:
        return Retrieved(tuple(keyword), (), (f"Searched by words only: {error}",))
    try:
        with stopwatch.measure("vector"):
            vector = library.search_vectors(query, limit=plan.candidate_count, ef_search=plan.ef_search, where=where)
    except EmbedderMismatch as error:  # it was given to another embedder at this moment
        return Retrieved(tuple(keyword), (), (f"Searched by words only: {error}",))
    return Retrieved(tuple(keyword), tuple(vector), ())


def _embed(plan: Plan, embedder: Embedder, library: Library) -> Vectors:
    identity = embedder.identity
    if not identity.is_same_as(library.identity):
        raise EmbedderMismatch(
            f"the library was made with the embedder {library.identity.name!r}, and {identity.name!r} is in use."
        )
    return embedder.embed_query(plan.question)
