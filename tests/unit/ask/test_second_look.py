"""A second look puts right what it sees in time, says how much that was, and harms nothing when it cannot look."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest
from fakes import HashingEmbedder, ScriptedGenerator, ScriptedReranker
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.pipeline import ask, search
from edgerag.ask.plan import make_plan
from edgerag.ask.rank import Ranked
from edgerag.ask.second_look import LEARNED_FROM, SecondLook, fused, learned_cost, look_again, planned_count
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.errors import Cancelled, ModelTooLarge
from edgerag.index.library import Library
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import AnswerDone, Chunk, Hit, HitsFound, Judgement, PassageCost, Plan, Reranker, Scores, StoredChunk

TEXTS = {f"/{n}.txt": f"the pump number {n} has a lid" for n in range(6)}
NO_LIMIT = RetrievalSettings(second_look_ms=0)


class Costs(dict[str, PassageCost]):
    """A memory of what passages take."""

    def find(self, name: str) -> PassageCost | None:
        return self.get(name)

    def keep(self, name: str, cost: PassageCost) -> None:
        self[name] = cost


def settled(seconds: float) -> Costs:
    return Costs({"judge by reranker": PassageCost(seconds, questions=LEARNED_FROM)})


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def after(self, seconds: float) -> Callable[[], None]:
        def tick() -> None:
            self.now += seconds

        return tick


def plan_of(question: str) -> Plan:
    return make_plan(question, settings=RetrievalSettings(), languages=("*",), terms=lambda text: tuple(text.split()))


@pytest.fixture
def ranked(hit: Callable[..., Hit]) -> Ranked:
    """Six hits, the first twice as likely as the next, and so on."""
    hits = []
    for number in range(6):
        made = hit(f"text {number}", chunk_id=number)
        hits.append(dataclasses.replace(made, scores=dataclasses.replace(made.scores, reranked=2.0**-number)))
    return Ranked(tuple(hits), notes=(), exited_early=False)


def look(
    ranked: Ranked,
    reranker: Reranker,
    settings: RetrievalSettings = NO_LIMIT,
    *,
    costs: Costs | None = None,
    clock: Clock | None = None,
    question: str = "which text is it",
) -> Ranked:
    return look_again(
        plan_of(question),
        ranked,
        second_look=SecondLook("reranker", lambda: reranker, costs if costs is not None else Costs()),
        settings=settings,
        stopwatch=Stopwatch(),
        cancelled=lambda: False,
        clock=clock or Clock(),
    )


def texts(ranked: Ranked) -> list[int]:
    return [int(hit.chunk.chunk.text.split()[-1]) for hit in ranked.hits]


def test_a_passage_that_the_model_likes_comes_first_and_says_so(ranked: Ranked) -> None:
    after = look(ranked, ScriptedReranker("text 3"))
    assert texts(after) == [3, 0, 1, 2, 4, 5]
    assert after.hits[0].scores.second_look == pytest.approx(1 / (1 + 5 * math.exp(-10)))
    assert after.notes == ("Second look: all of the first 6 passages were read by judge in 0 ms.",)


def test_what_is_not_looked_at_keeps_its_order_behind(ranked: Ranked) -> None:
    settings = dataclasses.replace(NO_LIMIT, second_look_count=3)
    after = look(ranked, ScriptedReranker("text 2", "text 5"), settings)
    assert texts(after) == [2, 0, 1, 3, 4, 5]
    assert [hit.scores.second_look is None for hit in after.hits] == [False] * 3 + [True] * 3


def test_a_weight_of_nothing_changes_nothing(ranked: Ranked) -> None:
    settings = dataclasses.replace(NO_LIMIT, second_look_weight=0.0)
    assert texts(look(ranked, ScriptedReranker("text 5"), settings)) == [0, 1, 2, 3, 4, 5]


def test_hits_that_the_features_did_not_judge_are_not_looked_at(ranked: Ranked) -> None:
    unjudged = dataclasses.replace(ranked.hits[5], scores=dataclasses.replace(ranked.hits[5].scores, reranked=None))
    after = look(dataclasses.replace(ranked, hits=(*ranked.hits[:5], unjudged)), ScriptedReranker("text 5"))
    assert texts(after) == [0, 1, 2, 3, 4, 5]
    assert "first 5 passages" in after.notes[0]


@pytest.mark.parametrize("question", ["E-1042", "AB-77/3"])
def test_an_exact_string_is_not_judged(ranked: Ranked, question: str) -> None:
    reranker = ScriptedReranker("text 5")
    assert look(ranked, reranker, question=question) == ranked
    assert reranker.judged == []


def test_the_first_time_the_clock_tells_and_the_budget_is_passed_by_less_than_one_passage(ranked: Ranked) -> None:
    clock, costs = Clock(), Costs()
    reranker = ScriptedReranker("text 5", tick=clock.after(0.3))
    after = look(ranked, reranker, RetrievalSettings(second_look_ms=1000), costs=costs, clock=clock)
    assert len(reranker.judged) == 3
    assert clock.now - 100.0 <= 1.0
    assert after.notes == (
        "Second look: 3 of the first 6 passages were read by judge in 900 ms; more do not fit in 1000 ms "
        "(retrieval.second_look_ms).",
    )
    assert costs["judge by reranker"].seconds == pytest.approx(0.3)


def test_where_the_time_is_for_one_passage_or_two_the_clock_goes_on_telling(ranked: Ranked) -> None:
    costs = Costs()
    for _ in range(9):
        clock = Clock()
        look(ranked, ScriptedReranker(tick=clock.after(0.45)), RetrievalSettings(), costs=costs, clock=clock)
        assert clock.now - 100.0 == pytest.approx(0.9)
    assert costs == {}


def test_with_what_is_remembered_the_same_number_is_read_though_the_machine_is_a_little_slower(ranked: Ranked) -> None:
    costs = settled(0.2)
    for seconds in (0.15, 0.2, 0.24, 0.3):
        clock = Clock()
        reranker = ScriptedReranker(tick=clock.after(seconds))
        look(ranked, reranker, RetrievalSettings(second_look_ms=1000), costs=costs, clock=clock)
        assert len(reranker.judged) == 4
    assert costs == settled(0.2)


def test_one_that_became_far_slower_is_stopped_by_the_clock(ranked: Ranked) -> None:
    clock, costs = Clock(), settled(0.1)
    reranker = ScriptedReranker(tick=clock.after(0.45))
    look(ranked, reranker, RetrievalSettings(second_look_ms=1000), costs=costs, clock=clock)
    assert len(reranker.judged) == 3  # the third was begun before the second was over
    assert clock.now - 100.0 <= 1.0 + 0.45
    assert costs == settled(0.1)


def test_passages_whose_state_was_there_say_nothing_of_the_time(ranked: Ranked) -> None:
    class Restoring(ScriptedReranker):
        def judge(self, *arguments: object, **named: object) -> Judgement:
            judgement = super().judge(*arguments, **named)  # type: ignore[arg-type]
            return dataclasses.replace(judgement, is_whole=False)

    clock, costs = Clock(), settled(0.3)
    look(ranked, Restoring(tick=clock.after(0.01)), RetrievalSettings(second_look_ms=10_000), costs=costs, clock=clock)
    assert costs == settled(0.3)


def test_where_not_even_one_fits_the_order_stays_and_it_is_said(ranked: Ranked) -> None:
    reranker = ScriptedReranker("text 5")
    after = look(ranked, reranker, RetrievalSettings(second_look_ms=100), costs=settled(2.0))
    assert (texts(after), reranker.judged) == ([0, 1, 2, 3, 4, 5], [])
    assert "0 of the first 6" in after.notes[0]


def test_a_model_that_cannot_be_had_leaves_the_order_and_is_named(ranked: Ranked) -> None:
    def missing() -> Reranker:
        raise ModelTooLarge("big.gguf needs 9,000 MB of memory.")

    after = look_again(
        plan_of("which text is it"),
        ranked,
        second_look=SecondLook("reranker", missing, Costs()),
        settings=NO_LIMIT,
        stopwatch=Stopwatch(),
        cancelled=lambda: False,
    )
    assert after.hits == ranked.hits
    assert after.notes == ("The passages were not looked at a second time: big.gguf needs 9,000 MB of memory.",)


def test_one_that_fails_in_the_middle_leaves_the_order(ranked: Ranked) -> None:
    def failing() -> None:
        if len(reranker.judged) == 3:
            raise ModelTooLarge("no memory is left.")

    reranker = ScriptedReranker("text 1", tick=failing)
    after = look(ranked, reranker)
    assert after.hits == ranked.hits
    assert "no memory is left" in after.notes[0]


def test_cancel_ends_it_between_two_passages(ranked: Ranked) -> None:
    reranker = ScriptedReranker()
    with pytest.raises(Cancelled):
        look_again(
            plan_of("which text is it"),
            ranked,
            second_look=SecondLook("reranker", lambda: reranker, Costs()),
            settings=NO_LIMIT,
            stopwatch=Stopwatch(),
            cancelled=lambda: len(reranker.judged) >= 2,
        )
    assert len(reranker.judged) == 2


odds = st.floats(-1e6, 1e6)


def _hit(number: int, share: float) -> Hit:
    chunk = Chunk(0, 0, 1, "x", (), None, None, 1, 1, 1)
    stored = StoredChunk(number, number, f"/{number}", "", "text/plain", chunk)
    return Hit(stored, Scores(None, None, None, None, fused=0.0, reranked=share))


@given(judged=st.lists(st.tuples(st.floats(0, 1), odds), max_size=12), weight=st.floats(0, 100))
def test_fusion_keeps_all_and_is_in_order_of_both(judged: list[tuple[float, float]], weight: float) -> None:
    hits = [_hit(number, share) for number, (share, _) in enumerate(judged)]
    found = fused(hits, [Judgement(value) for _, value in judged], weight=weight)
    assert sorted(hit.chunk.id for hit in found) == list(range(len(judged)))
    sums = [math.log(max(judged[hit.chunk.id][0], 1e-30)) + weight * judged[hit.chunk.id][1] for hit in found]
    assert sums == sorted(sums, reverse=True)
    assert all(0 <= hit.scores.second_look <= 1 for hit in found if hit.scores.second_look is not None)


@given(count=st.integers(0, 50), budget=st.floats(0, 60), cost=st.floats(1e-4, 10))
def test_what_is_planned_fits_and_one_alone_is_not_read(count: int, budget: float, cost: float) -> None:
    planned = planned_count(count, budget_s=budget, cost=PassageCost(cost, questions=LEARNED_FROM))
    assert 0 <= planned <= count
    if budget:
        assert planned * cost <= budget
        assert planned != 1
    assert planned_count(count, budget_s=budget, cost=None) == count


def test_of_the_first_questions_the_shortest_time_counts_and_then_it_is_settled() -> None:
    known: PassageCost | None = None
    for measured in (0.9, 0.4, 0.5, 0.3, 0.6):
        known = learned_cost(known, measured)
    assert known == PassageCost(0.3, questions=LEARNED_FROM)
    for measured in (5.0, 0.31, 0.2, 0.11):
        assert learned_cost(known, measured) == known
    assert learned_cost(known, 0.09) == PassageCost(0.09, questions=1)  # another model has that name now


def test_the_first_question_on_a_busy_machine_does_not_decide_for_ever(ranked: Ranked) -> None:
    costs, counts = Costs(), []
    for seconds in (0.9, 0.9, 0.2, 0.2, 0.2, 0.2, 0.2):
        clock = Clock()
        reranker = ScriptedReranker(tick=clock.after(seconds))
        look(ranked, reranker, RetrievalSettings(second_look_ms=1000), costs=costs, clock=clock)
        counts.append(len(reranker.judged))
    assert counts == [1, 1, 4, 4, 4, 4, 4]
    assert costs["judge by reranker"].seconds == pytest.approx(0.2)


# ------------------------------------------------------------ in the flow


def test_an_answer_is_made_of_what_the_second_look_puts_first(library_of: Callable[..., Library]) -> None:
    library = library_of(TEXTS)
    second_look = SecondLook("reranker", lambda: ScriptedReranker("number 4"), Costs())
    events = list(
        ask(
            "which pump has a lid",
            library=library,
            embedder=lambda: HashingEmbedder(dimension=256),
            generator=lambda: ScriptedGenerator("Number 4 [1]."),
            retrieval=dataclasses.replace(NO_LIMIT, vector_deadline_ms=0),
            generation=GenerationSettings(),
            second_look=second_look,
            cancelled=lambda: False,
        )
    )
    hits = next(event.hits for event in events if isinstance(event, HitsFound))
    done = events[-1]
    assert isinstance(done, AnswerDone)
    assert "number 4" in hits[0].chunk.chunk.text
    assert "number 4" in done.answer.sources[0].quote
    assert any(note.startswith("Second look: all of the first 6 passages") for note in done.answer.notes)
    assert "second_look" in {time.stage for time in done.answer.timings}


def test_a_search_is_looked_at_too_and_gives_the_same_each_time(library_of: Callable[..., Library]) -> None:
    library = library_of(TEXTS)
    found = [
        search(
            "which pump has a lid",
            library=library,
            embedder=lambda: HashingEmbedder(dimension=256),
            settings=dataclasses.replace(NO_LIMIT, vector_deadline_ms=0),
            limit=3,
            second_look=SecondLook("reranker", lambda: ScriptedReranker("number 4"), Costs()),
        ).hits
        for _ in range(2)
    ]
    assert found[0] == found[1]
    assert "number 4" in found[0][0].chunk.chunk.text
