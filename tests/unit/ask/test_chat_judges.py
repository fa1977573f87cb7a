"""The chat model's word: the prompt holds question and passage, and always fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from fakes import ScriptedGenerator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgerag.ask.chat_judges import Likelihood, YesNo
from edgerag.ask.prompt import opening_messages, passage_of
from edgerag.engine.generator import WEIGHED_TOKENS
from edgerag.errors import ModelError
from edgerag.types import CancelCheck, Hit, Judgement, Passage, PassageSpan

Judge = type[YesNo] | type[Likelihood]


class WeighingGenerator(ScriptedGenerator):
    """Thinks that longer prompts say yes."""

    def weigh(
        self,
        tokens: Sequence[int],
        *,
        passages: Sequence[PassageSpan] = (),
        words: Sequence[str],
        others: Sequence[str],
        cancelled: CancelCheck,
    ) -> Judgement:
        assert 0 < len(tokens) < self.context_tokens, "the prompt must fit"
        assert "yes" in words and "no" in others and not passages and not cancelled()
        return Judgement(float(len(tokens)))

    def likelihood(
        self, tokens: Sequence[int], text: str, *, passages: Sequence[PassageSpan] = (), cancelled: CancelCheck
    ) -> Judgement:
        assert 0 < len(tokens) + WEIGHED_TOKENS < self.context_tokens, "there must be room for the question"
        assert not passages and not cancelled()
        self.continued = text
        return Judgement(-float(len(tokens)))


def judge(generator: WeighingGenerator, question: str, hit: Hit, judge: Judge = YesNo) -> Judgement:
    return judge(generator).judge(question, hit.chunk, cancelled=lambda: False)


def test_the_prompt_begins_as_an_answers_does_and_ends_with_the_question(hit: Callable[..., Hit]) -> None:
    generator = WeighingGenerator()
    one = hit("The lid takes 12 Nm.")
    judge(generator, "What torque?", one)
    (*opening, asked) = generator.messages[-1]
    assert tuple(opening) == opening_messages()
    assert asked.parts[0] == passage_of(one.chunk, 1)
    assert "Question: What torque?" in str(asked.parts[1])
    assert str(asked.parts[1]).endswith("yes or no.")


def test_the_question_itself_is_what_would_be_written(hit: Callable[..., Hit]) -> None:
    generator = WeighingGenerator()
    one = hit("The lid takes 12 Nm.")
    judge(generator, "What torque?", one, Likelihood)
    (*opening, asked) = generator.messages[-1]
    assert tuple(opening) == opening_messages()
    assert asked.parts[0] == passage_of(one.chunk, 1)
    assert "torque" not in str(asked.parts[1])
    assert generator.continued == "What torque?"


def test_a_passage_that_is_cut_has_no_state(hit: Callable[..., Hit]) -> None:
    generator = WeighingGenerator(context_tokens=60)
    judge(generator, "What torque?", hit("word " * 500))
    passage = generator.messages[-1][-1].parts[0]
    assert isinstance(passage, Passage)
    assert passage.key == ""
    assert passage.text.startswith("word word")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(question=st.text(max_size=300), passage=st.text(min_size=1, max_size=300), room=st.integers(100, 160))
def test_any_question_and_passage_fit(hit: Callable[..., Hit], question: str, passage: str, room: int) -> None:
    judge(WeighingGenerator(context_tokens=room), question, hit(passage))
    judge(WeighingGenerator(context_tokens=room), question, hit(passage), Likelihood)


@pytest.mark.parametrize("way", [YesNo, Likelihood])
def test_a_context_without_room_is_an_error_that_says_so(hit: Callable[..., Hit], way: Judge) -> None:
    with pytest.raises(ModelError, match="context of 10 tokens"):
        judge(WeighingGenerator(context_tokens=10), "What torque?", hit("The lid takes 12 Nm."), way)
