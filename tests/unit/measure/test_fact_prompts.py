"""The gate's questions stand in the program's own prompt."""

from __future__ import annotations

from fakes import ScriptedGenerator

from edgerag.ask.prompt import INSTRUCTION
from edgerag.config import GenerationSettings
from edgerag.engine.tuning.facts import fact_questions
from edgerag.measure.fact_prompts import fact_layout
from edgerag.types import Passage


def test_prompts_are_laid_out_as_the_program_does() -> None:
    generator = ScriptedGenerator()
    layout = fact_layout(GenerationSettings())
    for asked in fact_questions(10, seed=5):
        chat = layout(asked, generator)
        assert chat.tokens
        system, user = generator.messages[-1]
        assert system.parts == (INSTRUCTION,)
        passages = [part for part in user.parts if isinstance(part, Passage)]
        assert {passage.text.strip() for passage in passages} == {passage.text for passage in asked.passages}
        assert passages[-1].text.strip() == asked.passages[0].text  # the best one next to the question
        assert len({passage.key for passage in passages}) == len(passages)
        assert str(user.parts[-1]).endswith(asked.question)
    assert layout(asked, generator) == chat
