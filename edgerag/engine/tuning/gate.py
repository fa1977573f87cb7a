"""The gate of splicing: whether this model answers as well from spliced passages as from exact ones.

Both are asked the same made-up questions (facts.py) in the program's own layout, greedily, and their answers are
checked by string. The recipes come in the order of what they cost at question time; the first whose right answers are
within three points of the exact ones is taken, and when none is, passages stay exact.

No answer depends on the questions before it: each mode has a generator and a cache of its own, no saved states, and the
cache is brought back to the beginning that all prompts share. So a gate that was stopped goes on with the next
question, and gives what it would have given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

from edgerag.engine.generator import LlamaGenerator, open_generator
from edgerag.engine.kvcache import Recompute
from edgerag.engine.tuning.apply import Processors, choice_settings, tuned_model
from edgerag.engine.tuning.budget import Budget, Stopped
from edgerag.engine.tuning.facts import FactQuestion, fact_questions, is_right
from edgerag.engine.tuning.record import Gate, RecipeAnswers, Tuning
from edgerag.types import EncodedChat, Generator, ModelFile, Sampling

DEFAULT_QUESTIONS, FEWEST_QUESTIONS = 200, 20
# Link tokens, and which passages are computed in place all the same.
RECIPES: tuple[tuple[int, Recompute], ...] = ((0, "none"), (16, "none"), (0, "last"))
MOST_LOSS = 0.03  # of the questions, that a recipe may lose against exact
# Of the questions, that exact passages must have answered. Who takes the value from any of the four passages has a
# quarter right; nearer to that, answers say nothing of what splicing costs.
LEAST_RIGHT = 0.4
_EXACT: tuple[int, Recompute] = (-1, "none")
_SEED = 20_26
_ANSWER_TOKENS = 48
_CONTEXT_TOKENS = 2048

# The prompt of a question, as the program lays it out for this model.
Layout = Callable[[FactQuestion, Generator], EncodedChat]


def run_gate(
    model: ModelFile,
    tuning: Tuning,
    cpus: Processors,
    *,
    layout: Layout,
    sampling: Sampling,
    budget: Budget,
    keep: Callable[[Tuning], None],
    questions: int = DEFAULT_QUESTIONS,
    report: Callable[[str], None] = lambda _: None,
) -> Tuning:
    """Goes on from what ``tuning`` knows of its gate until it is decided or the budget ends. ``keep`` is given the
    tuning after each answer, ``report`` a sentence now and then. Raises ModelError."""
    asked = fact_questions(questions, seed=_SEED)
    gate = tuning.gate
    numerics = tuning.choice.numerics_name
    if gate is None or (gate.questions, gate.seed, gate.numerics) != (questions, _SEED, numerics):
        gate = Gate(questions=questions, seed=_SEED, numerics=numerics)
    run = _Run(model, tuning, gate, cpus, layout, sampling, budget, keep, report)
    if not gate.finished:
        try:
            run.all(asked)
        except Stopped:
            report("The gate is not finished; the same command goes on.")
    return run.tuning


@dataclasses.dataclass(slots=True)
class _Run:
    model: ModelFile
    tuning: Tuning
    gate: Gate
    cpus: Processors
    layout: Layout
    sampling: Sampling
    budget: Budget
    keep: Callable[[Tuning], None]
    report: Callable[[str], None]

    def all(self, questions: Sequence[FactQuestion]) -> None:
        exact = self._ask("exact", _EXACT, questions, least_right=LEAST_RIGHT * len(questions))
        if exact.given_up:
            self._set(
                finished=True,
                passages="exact",
                why=f"With exact passages it answers {exact.right} of {len(exact.marks)} questions rightly: too few to "
                "see what splicing would cost.",
            )
            return
        least = exact.right - MOST_LOSS * len(questions)
        for recipe in RECIPES:
            answers = self._ask("spliced", recipe, questions, least_right=least)
            if not answers.given_up and answers.right >= least:
                self._set(
                    finished=True,
                    passages="spliced",
                    link_tokens=answers.link_tokens,
                    recompute=answers.recompute,
                    why=f"Spliced {recipe_name(answers)} {answers.right} of {len(questions)} answers are "
                    f"right, with exact passages {exact.right}.",
                )
                return
        self._set(
            finished=True,
            passages="exact",
            why=f"No recipe comes within {100 * MOST_LOSS:.0f} points of the {exact.right} of {len(questions)} answers "
            "that are right with exact passages.",
        )

    def _ask(
        self,
        passages: Literal["exact", "spliced"],
        recipe: tuple[int, Recompute],
        questions: Sequence[FactQuestion],
        *,
        least_right: float,
    ) -> RecipeAnswers:
        """Asks what was not asked yet; gives up as soon as ``least_right`` is out of reach."""
        answers = self.gate.answers(*recipe) or RecipeAnswers(*recipe, "")
        if answers.given_up or len(answers.marks) == len(questions):
            return answers
        generator = self._open(passages, recipe)
        try:
            beginning = _beginning(questions[:2], generator, self.layout)
            self._back_to(beginning, generator)
            while len(answers.marks) < len(questions) and not answers.given_up:
                self.budget.check()
                question = questions[len(answers.marks)]
                self._back_to(beginning, generator)
                right = is_right(self._answer(question, generator), question)
                answers = dataclasses.replace(answers, marks=answers.marks + str(int(right)))
                best = answers.right + len(questions) - len(answers.marks)
                answers = dataclasses.replace(answers, given_up=best < least_right)
                self._keep(answers)
                self._tell(answers, passages, len(questions))
        finally:
            generator.close()
        return answers

    def _answer(self, question: FactQuestion, generator: LlamaGenerator) -> str:
        chat = self.layout(question, generator)
        steps = generator.generate(
            chat.tokens,
            passages=chat.passages,
            max_tokens=_ANSWER_TOKENS,
            sampling=self.sampling,
            cancelled=lambda: self.budget.cancelled,
        )
        text = "".join(step.text for step in steps)
        self.budget.check()  # an answer that was cut off says nothing
        return text

    def _back_to(self, beginning: tuple[int, ...], generator: LlamaGenerator) -> None:
        """Leaves the cache as it is before every question: the last token of the beginning computed by itself."""
        list(generator.generate(beginning, max_tokens=1, sampling=self.sampling, cancelled=lambda: False))

    def _open(self, passages: Literal["exact", "spliced"], recipe: tuple[int, Recompute]) -> LlamaGenerator:
        link_tokens, recompute = recipe
        settings = choice_settings(self.tuning.choice, self.cpus, context_tokens=_CONTEXT_TOKENS)
        return open_generator(
            tuned_model(self.model, self.tuning),
            dataclasses.replace(settings, passages=passages, link_tokens=max(0, link_tokens), recompute=recompute),
        )

    def _keep(self, answers: RecipeAnswers) -> None:
        recipe = (answers.link_tokens, answers.recompute)
        others = tuple(one for one in self.gate.recipes if (one.link_tokens, one.recompute) != recipe)
        self._set(recipes=(*others, answers))

    def _set(self, **changes: object) -> None:
        self.gate = dataclasses.replace(self.gate, **changes)  # type: ignore[arg-type]
        self.tuning = dataclasses.replace(self.tuning, gate=self.gate)
        self.keep(self.tuning)

    def _tell(self, answers: RecipeAnswers, passages: str, count: int) -> None:
        if len(answers.marks) % 10 == 0 or len(answers.marks) == count or answers.given_up:
            how = passages if answers.link_tokens < 0 else f"{passages} {recipe_name(answers)}"
            end = ": too many are wrong" if answers.given_up else ""
            self.report(f"{how}: {answers.right} of {len(answers.marks)} right, {count} asked{end}")


def recipe_name(answers: RecipeAnswers) -> str:
    """For sentences and the table."""
    if answers.recompute == "last":
        return "but for the best one"
    return f"with {answers.link_tokens} link tokens"


def _beginning(questions: Sequence[FactQuestion], generator: LlamaGenerator, layout: Layout) -> tuple[int, ...]:
    """What the prompts of all questions begin with."""
    one, other = (layout(question, generator).tokens for question in questions)
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:common]
