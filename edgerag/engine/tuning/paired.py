"""When a comparison in turns is decided: a busy machine must not choose the settings.

What stands and the candidate are measured one right after the other, again and again; only the ratio within a round
counts, so what slows both down cancels out. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from edgerag.engine.tuning.choice import Decides

LEAST_GAIN = 0.03  # smaller ones are not worth a change that has to be explained
FEWEST_ROUNDS, MOST_ROUNDS = 3, 7
_CLEAR_LOSS = 0.9  # twice at most this: a third round would be a waste
# Of a typical answer: four sources and a few sentences.
_PROMPT_TOKENS, _ANSWER_TOKENS = 800, 80


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens per second; 0 where it was not measured."""

    prefill_tps: float = 0.0
    decode_tps: float = 0.0


@dataclass(frozen=True, slots=True)
class Round:
    """Both, one right after the other."""

    standing: Speed
    candidate: Speed


def gain(one: Round, decides: Decides) -> float:
    """How many times as fast the candidate was."""
    if decides == "prefill":
        return one.candidate.prefill_tps / one.standing.prefill_tps
    if decides == "decode":
        return one.candidate.decode_tps / one.standing.decode_tps
    return answer_seconds(one.standing) / answer_seconds(one.candidate)


def answer_seconds(speed: Speed) -> float:
    return _PROMPT_TOKENS / speed.prefill_tps + _ANSWER_TOKENS / speed.decode_tps


def middle(gains: Sequence[float]) -> float:
    """The median; of ratios, so that twice and half as fast cancel out."""
    return math.exp(median(map(math.log, gains)))


def noise(gains: Sequence[float]) -> float:
    """How far the middle may be off, as a logarithm: half the range, less with every round."""
    return math.log(max(gains) / min(gains)) / 2 / math.sqrt(len(gains))


def is_clear(gains: Sequence[float]) -> bool:
    """Whether more rounds would hardly change the verdict."""
    if len(gains) >= 2 and max(gains) <= _CLEAR_LOSS:
        return True
    if len(gains) < FEWEST_ROUNDS:
        return False
    if len(gains) >= MOST_ROUNDS:
        return True
    return abs(math.log(middle(gains)) - math.log1p(LEAST_GAIN)) > noise(gains)


def wins(gains: Sequence[float]) -> bool:
    """Whether the candidate is faster by more than the noise, and by enough to matter."""
    return len(gains) >= FEWEST_ROUNDS and math.log(middle(gains)) > max(math.log1p(LEAST_GAIN), noise(gains))


def typical(rounds: Sequence[Round]) -> Round:
    """The median speeds of both."""
    return Round(_median([one.standing for one in rounds]), _median([one.candidate for one in rounds]))


def _median(speeds: Sequence[Speed]) -> Speed:
    return Speed(median(s.prefill_tps for s in speeds), median(s.decode_tps for s in speeds))
