"""How long answers took, and how long one is expected to take: numbers alone, no word of a question or a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# A chat answer is short and waited for; a report (a broad question, a long answer) is read later.
Profile = Literal["chat", "report"]


@dataclass(frozen=True, slots=True)
class Observation:
    """One answer that a model wrote."""

    profile: Profile
    retrieve_s: float  # plan, both legs, fusion, text, selection
    rerank_s: float  # by features, and a second look
    read_s: float  # until the first token, once the prompt was there
    generate_s: float  # the prompt put together, the answer written and checked
    computed_tokens: int  # of the prompt, that no kept state saved
    prompt_tokens: int
    answer_tokens: int
    source_count: int
    looked_count: int  # passages that a second look read
    total_s: float

    def __post_init__(self) -> None:
        seconds = (self.retrieve_s, self.rerank_s, self.read_s, self.generate_s, self.total_s)
        counts = (self.computed_tokens, self.prompt_tokens, self.answer_tokens, self.source_count, self.looked_count)
        if not all(0 <= value < float("inf") for value in (*seconds, *counts)):
            raise ValueError(f"{self} cannot be")


@dataclass(frozen=True, slots=True)
class Weights:
    """L = a T_retrieve + b T_rerank + c T_generate + d I_cache_miss, all in units of their means: the weights are at
    least 0, and sum to 1."""

    retrieve: float
    rerank: float
    generate: float
    cache_miss: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a window of observations says of one profile."""

    profile: Profile
    weights: Weights
    # The means that everything is counted in; 0.0 of what never took any time.
    mean_retrieve_s: float
    mean_rerank_s: float
    mean_generate_s: float
    mean_computed_tokens: float
    mean_total_s: float
    # What an answer usually has, before anything is known of it but how many sources it gets.
    source_tokens: float  # of the prompt, for each source
    other_tokens: float  # of the prompt, without sources
    computed_share: float  # of the prompt
    looked_s: float  # for each passage of a second look; 0.0: none was seen
    mean_looked: float  # passages of a second look
    tail: float  # how many times its forecast an answer takes at the 95th percentile
    error: float  # median of |forecast - seen| / seen, each forecast made before its answer
    count: int  # of the observations


@dataclass(frozen=True, slots=True)
class Forecast:
    """How long an answer is expected to take."""

    seconds: float
    p95_s: float
    error: float  # of such forecasts up to now: the median, as a share
    source_count: int  # at most so many
    looked_count: int
