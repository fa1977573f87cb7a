"""Splicing is allowed only where the answers stay as good, however often the trial was stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_record import MODEL
from tuning_fakes import FIRST

from edgerag.engine.tuning import gate as gate_module
from edgerag.engine.tuning.apply import Processors
from edgerag.engine.tuning.budget import Budget
from edgerag.engine.tuning.facts import PASSAGES, FactQuestion, fact_questions, is_right
from edgerag.engine.tuning.gate import run_gate
from edgerag.engine.tuning.record import Tuning
from edgerag.types import EncodedChat, Generated, Sampling

CPUS = Processors((0,), (0,), 1, pinned=False)
GREEDY = Sampling(temperature=0, top_p=1, repeat_penalty=1.1, seed=0)
COUNT = 40

Knows = Callable[
    [str, int | str, int], bool
]  # passages, link tokens or "last", number of the question -> whether it answers right


# ---------------------------------------------------------------- the questions


@given(st.integers(0, 1000), st.integers(0, 30))
def test_questions_can_be_answered_from_one_passage_alone(seed: int, number: int) -> None:
    asked = fact_questions(number + 1, seed=seed)[number]
    holding = [passage for passage in asked.passages if _name(asked, passage.title)]
    assert len(holding) == 1
    assert len({passage.title for passage in asked.passages}) == PASSAGES
    assert is_right(holding[0].text, asked)
    for passage in asked.passages:
        assert 100 <= len(passage.text.split()) <= 200


def _name(asked: FactQuestion, title: str) -> bool:
    return title.removeprefix("The ") in asked.question


def test_questions_are_the_same_again_and_more_begin_with_those_of_fewer() -> None:
    assert fact_questions(20, seed=1)[:5] == fact_questions(5, seed=1)
    assert fact_questions(5, seed=1) != fact_questions(5, seed=2)
    assert len({asked.question for asked in fact_questions(100, seed=1)}) == 100


def test_the_right_passage_is_not_always_the_best_hit() -> None:
    ranks = [
        next(rank for rank, passage in enumerate(asked.passages) if _name(asked, passage.title))
        for asked in fact_questions(200, seed=3)
    ]
    assert 120 <= ranks.count(0) <= 160
    assert set(ranks) == set(range(PASSAGES))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("It is 47 metres high.", True),
        ("47", True),
        ("**47** metres [1].", True),
        ("It is 147 metres high.", False),
        ("It is 4.7 km", False),
        ("", False),
    ],
)
def test_an_answer_is_right_when_it_holds_the_words(answer: str, right: bool) -> None:
    assert is_right(answer, FactQuestion("How high?", "47", ())) is right


# ---------------------------------------------------------------- the gate


class FakeGenerator:
    """Answers as it knows. Its prompt is (beginning, number of the question)."""

    opened = 0

    def __init__(self, settings: Any, knows: Knows) -> None:
        type(self).opened += 1
        self.settings, self.knows = settings, knows
        self.closed = False
        self.cache: list[tuple[int, ...]] = []

    def generate(self, tokens: tuple[int, ...], *, max_tokens: int, **_: Any) -> Iterator[Generated]:
        assert not self.closed
        self.cache.append(tuple(tokens))
        if max_tokens == 1:
            return iter([Generated("x", 1, "length")])
        assert self.cache[-2] == (7, 7), "what the last question left is still there"
        number = tokens[-1]
        asked = QUESTIONS[number]
        said = (
            asked.answer
            if self.knows(
                self.settings.passages,
                "last" if self.settings.recompute == "last" else self.settings.link_tokens,
                number,
            )
            else "no idea"
        )
        return iter([Generated(said, 3, "end")])

    def close(self) -> None:
        self.closed = True


QUESTIONS = fact_questions(COUNT, seed=gate_module._SEED)


def layout(asked: FactQuestion, generator: object) -> EncodedChat:
    return EncodedChat((7, 7, QUESTIONS.index(asked)))


def ask(
    monkeypatch: pytest.MonkeyPatch,
    knows: Knows,
    tuning: Tuning | None = None,
    *,
    answers: int = 10**6,
    told: list[str] | None = None,
) -> Tuning:
    """Runs the gate for so many answers."""
    kept: list[Tuning] = []

    def cancelled() -> bool:
        return len(kept) >= answers

    monkeypatch.setattr(gate_module, "open_generator", lambda model, settings: FakeGenerator(settings, knows))
    return run_gate(
        MODEL,
        tuning or Tuning(choice=FIRST, first=FIRST),
        CPUS,
        layout=layout,
        sampling=GREEDY,
        budget=Budget(1e9, cancelled=cancelled),
        keep=kept.append,
        questions=COUNT,
        report=(told if told is not None else []).append,
    )


def knowing(**right: int) -> Knows:
    """``spliced_16=30``: the first 30 questions are answered right by that recipe."""

    def knows(passages: str, recipe: int | str, number: int) -> bool:
        return number < right["exact" if passages == "exact" else f"spliced_{recipe}"]

    return knows


@pytest.mark.parametrize(
    ("right", "passages", "recipe"),
    [
        ({"exact": 30, "spliced_0": 30, "spliced_16": 40, "spliced_last": 40}, "spliced", 0),
        ({"exact": 30, "spliced_0": 29, "spliced_16": 40, "spliced_last": 40}, "spliced", 0),  # 1 of 40 is 2.5 points
        ({"exact": 30, "spliced_0": 28, "spliced_16": 29, "spliced_last": 40}, "spliced", 16),
        ({"exact": 30, "spliced_0": 20, "spliced_16": 28, "spliced_last": 30}, "spliced", "last"),
        ({"exact": 30, "spliced_0": 20, "spliced_16": 28, "spliced_last": 28}, "exact", 0),
    ],
)
def test_the_cheapest_recipe_that_keeps_the_answers_is_taken(
    monkeypatch: pytest.MonkeyPatch, right: dict[str, int], passages: str, recipe: int | str
) -> None:
    found = ask(monkeypatch, knowing(**right)).gate_in_force
    assert found is not None
    assert (found.passages, "last" if found.recompute == "last" else found.link_tokens) == (passages, recipe)
    assert found.accuracy_exact == 30 / 40
    assert found.accuracy_chosen >= found.accuracy_exact - 0.03
    assert "30" in found.why


def test_a_recipe_that_cannot_win_any_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    found = ask(monkeypatch, knowing(exact=40, spliced_0=0, spliced_16=40, spliced_last=0), told=told).gate
    assert found is not None
    recipes = {"last" if one.recompute == "last" else one.link_tokens: one for one in found.recipes}
    assert recipes[0].given_up
    assert len(recipes[0].marks) == 2
    assert "last" not in recipes  # 16 was good enough
    assert any("too many are wrong" in sentence for sentence in told)


@pytest.mark.parametrize(("exact", "passages"), [(0, "exact"), (15, "exact"), (16, "spliced")])
def test_a_model_that_hardly_answers_shows_nothing_and_stays_exact(
    monkeypatch: pytest.MonkeyPatch, exact: int, passages: str
) -> None:
    found = ask(monkeypatch, knowing(exact=exact, spliced_0=40)).gate_in_force
    assert found is not None
    assert found.passages == passages
    assert ("too few" in found.why) is (passages == "exact")
    assert found.recipes[0].given_up is (passages == "exact")
    assert len(found.recipes) == (1 if passages == "exact" else 2)


@pytest.mark.parametrize("step", [1, 3, 17])
def test_a_stopped_gate_goes_on_and_comes_to_the_same(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    def knows(passages: str, recipe: int | str, number: int) -> bool:
        return number % 3 != 0 if passages == "exact" else number % 7 not in (recipe == 16, 3, 5)

    whole = ask(monkeypatch, knows)
    tuning, pieces = None, 0
    while tuning is None or not (tuning.gate and tuning.gate.finished):
        tuning = ask(monkeypatch, knows, tuning, answers=step)
        pieces += 1
        assert pieces < 500
    assert pieces > 3
    assert tuning.gate == whole.gate


def test_a_finished_gate_asks_nothing_and_other_weights_are_asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    done = ask(monkeypatch, knowing(exact=30, spliced_0=30))
    opened = FakeGenerator.opened
    assert ask(monkeypatch, knowing(exact=0), done) == done
    assert FakeGenerator.opened == opened
    other = Tuning(
        choice=type(FIRST)(prefill_threads=1, decode_threads=1, cache_type="q8_0"), first=FIRST, gate=done.gate
    )
    assert other.gate_in_force is None
    asked = ask(monkeypatch, knowing(exact=30, spliced_0=0, spliced_16=0, spliced_last=0), other).gate_in_force
    assert asked is not None
    assert asked.passages == "exact"
