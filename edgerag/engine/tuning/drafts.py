"""Whether looking up what may follow pays on this machine: on an answer that quotes, and on one that does not."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from edgerag.engine.generator import LlamaGenerator, open_generator
from edgerag.engine.tuning.apply import Processors, choice_settings
from edgerag.engine.tuning.budget import Budget
from edgerag.engine.tuning.choice import Choice
from edgerag.engine.tuning.paired import Round, Speed
from edgerag.engine.tuning.requantise import twin_model
from edgerag.types import ModelFile, Sampling

_CONTEXT_TOKENS = 512
_READ, _REPEATED = 240, 40  # tokens of the text, and of its beginning once more: the model goes on repeating
_LEAST_ANSWER, _MOST_ANSWER = 8, 64
_ANSWER_S = 0.8
_SAMPLING = Sampling(temperature=0, top_p=1, repeat_penalty=1.0, seed=0)


def rounds(
    model: ModelFile,
    cpus: Processors,
    standing: Choice,
    candidate: Choice,
    tokens: Sequence[int],
    *,
    speed: Speed,
    budget: Budget,
) -> Iterator[Round]:
    """Decoding; the geometric mean of both kinds of answer. One model is loaded at a time."""
    count = round(min(_MOST_ANSWER, max(_LEAST_ANSWER, speed.decode_tps * _ANSWER_S)))
    prompts = ([*tokens[:_READ], *tokens[:_REPEATED]], list(tokens[_READ : _READ + _REPEATED]))
    while True:
        found = {}
        for choice in (standing, candidate):
            settings = choice_settings(choice, cpus, context_tokens=_CONTEXT_TOKENS)
            generator = open_generator(twin_model(model, choice.weights), settings)
            try:
                rates = [_rate(generator, prompt, count, budget) for prompt in prompts]
            finally:
                generator.close()
            found[choice] = Speed(decode_tps=math.exp(math.fsum(map(math.log, rates)) / len(rates)))
        yield Round(found[standing], found[candidate])


def _rate(generator: LlamaGenerator, prompt: list[int], count: int, budget: Budget) -> float:
    """Tokens per second behind the first. An answer that ends early is as good as a long one."""
    began, said = 0.0, 0
    for step in generator.generate(prompt, max_tokens=count, sampling=_SAMPLING, cancelled=lambda: budget.cancelled):
        if step.prefill is not None:
            began = time.perf_counter()
        said = max(said, step.token_count)
    budget.check()
    return max(1, said) / (time.perf_counter() - began)
