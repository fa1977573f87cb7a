"""Both legs of the search: words (BM25) and meaning (vectors).

The question is embedded in another thread while the keyword leg runs and the words of what it found are read. Of a
question that is words alone the keyword leg comes first, and where it is sure of its best passage the other is not run
at all. The vector leg has a time to be ready in; what keeps it from that, or from running, becomes a note, never a
failure: words alone still find a lot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edgerag.ask.confidence import is_confident
from edgerag.ask.question_vector import QuestionVector
from edgerag.errors import EmbedderMismatch, ModelError, TooLate
from edgerag.telemetry.page_faults import page_faults
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import (
    CancelCheck,
    Embedder,
    Filter,
    LegHit,
    Plan,
    SearchWork,
    StoredChunk,
    VectorLeg,
    WordEvidence,
)

if TYPE_CHECKING:
    from edgerag.types import Library, Vectors

_TEXTS_AT_ONCE = 5  # some milliseconds of a warm disk at most, in which nobody looks whether the vector is there


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What each leg found, best first, and why a leg that was planned did not run.

    ``query_vector`` is that of the question, (dim,); None when the vector leg did not run. ``unrelated_cosine`` is what
    its embedder gives to texts that have nothing to do with each other.
    """

    keyword: tuple[LegHit, ...]
    vector: tuple[LegHit, ...]
    notes: tuple[str, ...]
    query_vector: Vectors | None = None
    unrelated_cosine: float = 0.0
    vector_leg: VectorLeg = "searched"
    words: WordEvidence | None = None  # of the question and the best of the keyword leg, where there was time for it
    texts: Mapping[int, StoredChunk] = field(default_factory=dict)  # of those of the keyword leg that were read by then

    @property
    def exited_early(self) -> bool:
        """The keyword leg was sure enough."""
        return self.vector_leg == "words_sure"


def retrieve(
    plan: Plan,
    *,
    library: Library,
    embedder: Callable[[], Embedder],
    stopwatch: Stopwatch,
    cancelled: CancelCheck,
    where: Filter | None = None,
    deadline_ms: int = 0,
    early_words: int = 0,
    early_texts: bool = False,
    embedding: QuestionVector | None = None,
) -> Retrieved:
    """Runs the legs that the plan gives a weight, both among the documents of ``where`` (as check_filter gave it).
    ``embedding`` is that of the plan's question where it was begun before; else it is begun here.

    ``deadline_ms`` is how long the vector leg may take once its model is there; 0 is as long as it needs. The words
    of so many keyword hits as ``early_words`` are read while the question is embedded, and where all texts are wanted,
    with ``early_texts``, as many of theirs as it lasts for. Raises Cancelled, LibraryError.
    """
    if embedding is None and plan.vector_weight > 0 and not plan.words_first:
        with stopwatch.measure_beside("embed_start"):
            embedding = QuestionVector(plan.question, embedder, stopwatch)
    if embedding is not None:
        embedding.needed()
    with stopwatch.measure("keyword") as facts:
        keyword = tuple(library.search_keywords(plan.question, limit=plan.candidate_count, where=where))
        facts["hits"] = len(keyword)
    if plan.vector_weight <= 0:
        return Retrieved(keyword, (), (), vector_leg="no_weight")
    if plan.words_first and is_confident(keyword, term_count=len(plan.terms)):
        return Retrieved(keyword, (), (), vector_leg="words_sure")
    embedding = embedding or QuestionVector(plan.question, embedder, stopwatch)
    with stopwatch.measure("words"):
        words = library.word_evidence(plan.question, [hit.chunk_id for hit in keyword[:early_words]])
        wanted = [hit.chunk_id for hit in keyword] if early_texts else []
        texts = _read_meanwhile(wanted, library=library, embedding=embedding)
    try:
        with stopwatch.measure("embed") as facts:
            facts["deadline_ms"] = deadline_ms
            model = embedding.model(cancelled)
            if not model.identity.is_same_as(library.identity):
                raise EmbedderMismatch(
                    f"the library was made with the embedder {library.identity.name!r}, "
                    f"and {model.identity.name!r} is in use."
                )
            query = embedding.vector(cancelled, deadline_ms=deadline_ms)
        with stopwatch.measure("vector") as facts:
            work, before = SearchWork(), page_faults()
            vector = library.search_vectors(
                query,
                limit=plan.candidate_count,
                ef_search=plan.ef_search,
                where=where,
                out_of_time=lambda: embedding.is_late(deadline_ms),
                work=work,
            )
            faults = page_faults() - before
            facts |= {
                "segments": work.segments,
                "blocks": work.blocks,
                "distances": work.distances,
                "page_faults_minor": faults.minor,
                "page_faults_major": faults.major,
                "hits": len(vector),
            }
    except TooLate:
        limit = f"{deadline_ms} ms (retrieval.vector_deadline_ms)"
        note = f"Searched by words only: the vectors were not ready within {limit}."
        return Retrieved(keyword, (), (note,), vector_leg="late", words=words, texts=texts)
    except (ModelError, EmbedderMismatch) as error:
        note = f"Searched by words only: {error}"
        return Retrieved(keyword, (), (note,), vector_leg="failed", words=words, texts=texts)
    return Retrieved(
        keyword,
        tuple(vector),
        (),
        query_vector=query,
        unrelated_cosine=embedding.unrelated_cosine,
        words=words,
        texts=texts,
    )


def _read_meanwhile(ids: Sequence[int], *, library: Library, embedding: QuestionVector) -> dict[int, StoredChunk]:
    """A few at a time, so that the vector hardly waits for it, whatever the disk."""
    texts: dict[int, StoredChunk] = {}
    for first in range(0, len(ids), _TEXTS_AT_ONCE):
        if embedding.is_there():
            break
        texts.update((chunk.id, chunk) for chunk in library.chunks(ids[first : first + _TEXTS_AT_ONCE]))
    return texts
