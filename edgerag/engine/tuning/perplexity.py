"""How well a model predicts plain English: what a change of weights or cache may cost is counted here.

Two settings are compared on the same tokens, and only if those are enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgerag.engine.llama import Context, Run
from edgerag.engine.tuning.budget import Budget

PROSE = Path(__file__).with_name("prose.txt")
MOST_RISE = 0.01  # of perplexity, that a faster setting may cost
# Each window is read from its beginning. Logits of a batch take 4 bytes for each word of the vocabulary and each
# token: 130 MB for the largest vocabularies.
WINDOW_TOKENS, BATCH_TOKENS = 512, 128
# The difference of two settings is known to some 0.3 % from so many tokens; fewer decide nothing.
FEWEST_TOKENS = 512


def read_prose() -> str:
    return PROSE.read_text(encoding="utf-8")


def log_losses(context: Context, tokens: Sequence[int], *, budget: Budget) -> list[float]:
    """For each of ``tokens`` but the first of each window: minus the logarithm of the probability that it was given.

    The context is empty afterwards. Raises Stopped.
    """
    losses: list[float] = []
    for start in range(0, len(tokens), WINDOW_TOKENS):
        window = tokens[start : start + WINDOW_TOKENS]
        context.clear()
        for first in range(0, len(window), BATCH_TOKENS):
            budget.check()
            batch = window[first : first + BATCH_TOKENS]
            context.decode_runs([Run(batch, first)], outputs="all")
            following = window[first + 1 : first + 1 + len(batch)]
            losses += [_loss(context, row, token) for row, token in enumerate(following)]
    context.clear()
    return losses


def perplexity(losses: Sequence[float]) -> float:
    return math.exp(math.fsum(losses) / len(losses))


def _loss(context: Context, row: int, token: int) -> float:
    logits = context.logits(row)
    wanted = float(logits[token])
    highest = float(logits.max())
    logits -= highest
    np.exp(logits, out=logits)
    return highest + math.log(float(logits.sum(dtype=np.float64))) - wanted
