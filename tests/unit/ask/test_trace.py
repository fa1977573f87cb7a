"""What explains an answer: where each hit stood and what became of it, and what each part of the prompt takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from fakes import HashingEmbedder, ScriptedGenerator
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.fuse import fuse
from edgerag.ask.pipeline import ask
from edgerag.ask.prompt import assemble
from edgerag.ask.trace import prompt_budget, traced_hits
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.errors import ModelMissing
from edgerag.index.library import Library
from edgerag.types import (
    Answer,
    AnswerDone,
    Chunk,
    Embedder,
    EncodedChat,
    Hit,
    LegHit,
    Message,
    Passage,
    PassageSpan,
    Prefill,
    Source,
    StoredChunk,
    Turn,
)

TEXTS = {
    "/handbook/pump.txt": "The lid screws of the pump need a torque of 12 newton metres. Grease them every year.",
    "/handbook/codes.txt": "Error E-1042 means that the inlet filter is blocked. Clean the filter with warm water.",
    "/handbook/leave.txt": "Employees have thirty days of leave. The notice period is six weeks to a quarter's end.",
    "/handbook/lid.txt": "The screws of the lid are of steel. The pump has eight screws in its lid.",
}
TORQUE = "Which torque do the lid screws of the pump need?"
Sources = Callable[..., tuple[Source, ...]]


@pytest.fixture
def library(library_of: Callable[..., Library]) -> Library:
    return library_of(TEXTS, embedder=HashingEmbedder(dimension=256))


def answer_to(
    question: str,
    library: Library,
    *,
    generator: ScriptedGenerator | None = None,
    retrieval: RetrievalSettings | None = None,
    generation: GenerationSettings | None = None,
    history: Sequence[Turn] = (),
    embedder: Callable[[], Embedder] = lambda: HashingEmbedder(dimension=256),
) -> Answer:
    events = ask(
        question,
        library=library,
        embedder=embedder,
        generator=lambda: generator or ScriptedGenerator("It is 12 newton metres [1]."),
        retrieval=retrieval or RetrievalSettings(),
        generation=generation or GenerationSettings(),
        history=history,
        cancelled=lambda: False,
    )
    return next(event.answer for event in events if isinstance(event, AnswerDone))


# ------------------------------------------------------------ hits


def test_every_hit_says_what_became_of_it(library: Library) -> None:
    answer = answer_to(TORQUE, library)
    trace = answer.trace
    assert trace is not None
    assert [hit.source for hit in trace.hits if hit.outcome == "source"] == [source.number for source in answer.sources]
    assert trace.hits[0].hit.chunk.path == "/handbook/pump.txt"
    assert trace.hits[0].reranked_rank == 1
    assert {hit.outcome for hit in trace.hits} <= {"source", "irrelevant", "copy", "alike", "no_room", "enough"}
    assert trace.vector_leg == "searched"
    assert all(hit.probability is not None for hit in trace.hits)


def test_a_refused_question_says_so_of_what_was_nearest(library: Library) -> None:
    answer = answer_to("Which orchestra won the prize for brass music?", library)
    assert not answer.found
    assert answer.trace is not None
    assert {hit.outcome for hit in answer.trace.hits} == {"refused"}
    assert answer.trace.budget is None


def test_sources_that_did_not_fit_are_told_apart(library: Library) -> None:
    tight = GenerationSettings(context_tokens=70, answer_tokens=8)
    answer = answer_to("lid screws pump torque?", library, generation=tight)
    assert answer.trace is not None
    outcomes = {hit.hit.chunk.path: hit.outcome for hit in answer.trace.hits}
    dropped = [path for path, outcome in outcomes.items() if outcome == "prompt_full"]
    assert not set(dropped) & {source.hit.chunk.path for source in answer.sources}
    assert outcomes["/handbook/pump.txt"] == "source"


@pytest.mark.parametrize(
    ("question", "embedder", "leg"),
    [
        ("E-1042", HashingEmbedder(dimension=256), "words_sure"),
        (TORQUE, HashingEmbedder(dimension=128), "failed"),
        (TORQUE, None, "failed"),
    ],
)
def test_it_is_told_what_became_of_the_vectors(
    library: Library, question: str, embedder: HashingEmbedder | None, leg: str
) -> None:
    def supply() -> Embedder:
        if embedder is None:
            raise ModelMissing("There is no embedder.")
        return embedder

    trace = answer_to(question, library, embedder=supply).trace
    assert trace is not None
    assert trace.vector_leg == leg


_LEG = st.lists(st.integers(1, 12), unique=True, max_size=12)


@given(keyword=_LEG, vector=_LEG, exact=st.sets(st.integers(1, 12)))
def test_the_ranks_of_the_fusion_can_be_told_from_the_scores(
    keyword: list[int], vector: list[int], exact: set[int]
) -> None:
    order = fuse(
        keyword=[LegHit(n, 9.0 - n) for n in keyword],
        vector=[LegHit(n, 1 / n) for n in vector],
        keyword_weight=1.0,
        vector_weight=1.0,
        rrf_k=60,
        exact=exact,
    )
    hits = [Hit(_stored(chunk_id), scores) for chunk_id, scores in order]
    traced = traced_hits(hits[::-1], probabilities={}, selection=None, sources=())
    assert [hit.fused_rank for hit in traced[::-1]] == list(range(1, len(hits) + 1))
    assert {hit.outcome for hit in traced} <= {"too_low"}


def _stored(chunk_id: int) -> StoredChunk:
    chunk = Chunk(0, 0, 1, "x", (), None, None, 1, 1, 1)
    return StoredChunk(chunk_id, 1, "/a", "A", "text/plain", chunk)


# ------------------------------------------------------------ prompt


def test_the_parts_of_a_prompt_add_up_to_its_tokens(library: Library) -> None:
    answer = answer_to(TORQUE, library)
    assert answer.trace is not None
    budget = answer.trace.budget
    assert budget is not None
    assert budget.prompt_tokens == answer.tokens.prompt
    kinds = [part.kind for part in budget.parts]
    assert kinds[0] == "instruction"
    assert kinds[-1] == "format"
    assert {part.source for part in budget.parts if part.kind == "source"} == {s.number for s in answer.sources}
    question = next(part for part in budget.parts if part.kind == "question")
    assert question.tokens == len(f"Question: {TORQUE}".split())
    assert budget.prompt_tokens + budget.answer_room + budget.free_tokens == budget.context_tokens
    assert TORQUE in str(answer.trace.messages[-1].parts[-1])


def test_earlier_turns_have_a_part_of_their_own(library: Library) -> None:
    first = answer_to(TORQUE, library)
    turn = Turn(first.question, first.text, first.messages, tuple(s.hit.chunk.id for s in first.sources))
    second = answer_to("And what does error E-1042 mean?", library, history=[turn])
    assert second.trace is not None
    budget = second.trace.budget
    assert budget is not None
    assert "earlier" in [part.kind for part in budget.parts]
    assert budget.prompt_tokens == second.tokens.prompt


class _Spanning(ScriptedGenerator):
    """Says where passages lie, as a real one does."""

    def encode_chat(self, messages: Sequence[Message]) -> EncodedChat:
        tokens: list[int] = []
        spans = []
        for message in messages:
            for part in message.parts:
                if isinstance(part, Passage):
                    tokens += self.encode_text(part.header)
                    start = len(tokens)
                    tokens += self.encode_text(part.text)
                    spans.append(PassageSpan(part.key, start, len(tokens), ()))
                else:
                    tokens += self.encode_text(part)
        return EncodedChat(tuple(tokens), tuple(spans))


def test_approximate_tokens_are_told_by_source(sources: Sources) -> None:
    generator = _Spanning()
    prompt = assemble(
        "Which?",
        sources=sources("one two three", "four five six seven"),
        history=(),
        generator=generator,
        settings=GenerationSettings(),
    )
    first, second = prompt.passages  # of the second source, as the best one stands last
    prefill = Prefill(
        0, 0, 5, 10, 0.1, approximate_spans=((first.start + 1, first.end), (second.start, second.start + 2))
    )
    budget = prompt_budget(prompt, generator=generator, context_tokens=2048, prefill=prefill)
    told = {part.source: part.approximate_tokens for part in budget.parts if part.kind == "source"}
    assert told == {2: 3, 1: 2}
    assert sum(part.tokens for part in budget.parts) == len(prompt.tokens)


def test_what_was_written_before_has_a_part(sources: Sources) -> None:
    generator = _Spanning()
    prompt = assemble(
        "Which?", sources=sources("one two"), history=(), generator=generator, settings=GenerationSettings()
    )
    going_on = replace(prompt, tokens=(*prompt.tokens, *generator.encode_text("It is so")))
    budget = prompt_budget(going_on, generator=generator, context_tokens=2048, written="It is so")
    assert next(part.tokens for part in budget.parts if part.kind == "written") == 3
    assert budget.prompt_tokens == len(going_on.tokens)


# ------------------------------------------------------------ time


def test_each_token_is_stamped_and_stages_have_beginnings(library: Library) -> None:
    answer = answer_to(TORQUE, library, generator=ScriptedGenerator("It is 12 newton metres [1]."))
    trace = answer.trace
    assert trace is not None
    assert len(trace.token_ns) == answer.tokens.answer
    assert list(trace.token_ns) == sorted(trace.token_ns)
    stages = [span.stage for span in trace.spans]
    assert stages.index("plan") < stages.index("keyword") < stages.index("select") < stages.index("generate")
    total = next(time.seconds for time in answer.timings if time.stage == "total")
    assert all(0 <= span.start_s <= span.start_s + span.seconds <= total + 1e-6 for span in trace.spans)
    assert {"embedder_load", "question_vector"} <= set(stages)
    assert {time.stage for time in answer.timings} - {"total"} <= set(stages)
