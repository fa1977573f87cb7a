"""Stages as frames within frames: where the time of several answers went, added up.

Pure. What runs beside the answering thread is left out, so that the frames within one never take more than it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgerag.types import StageSpan

OTHER = "other"  # what no stage accounts for
# The way from the outermost frame to a stage of the answering thread.
_WAYS: Mapping[str, tuple[str, ...]] = {
    "plan": ("search", "plan"),
    "scan": ("search", "scan"),
    "keyword": ("search", "keyword"),
    "words": ("search", "words"),
    "embed": ("search", "embed"),
    "vector": ("search", "vector"),
    "fuse": ("search", "fuse"),
    "rerank": ("search", "rerank"),
    "second_look": ("search", "second_look"),
    "select": ("search", "select"),
    "instant": ("search", "instant"),
    "model_load": ("model_load",),
    "prompt": ("read", "prompt"),
    "first_token": ("read", "first_token"),
    "prefill": ("read", "first_token", "prefill"),
    "generate": ("generate",),
    "check": ("check",),
}


@dataclass(frozen=True, slots=True)
class Frame:
    """``inner`` takes no more than ``seconds``, in the order of their first beginning."""

    name: str
    seconds: float
    inner: tuple[Frame, ...] = ()

    @property
    def depth(self) -> int:
        return 1 + max((frame.depth for frame in self.inner), default=0)


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """When the stages of one answer were, and how long it took in all."""

    spans: tuple[StageSpan, ...]
    seconds: float


def flame(answers: Sequence[TimedAnswer]) -> Frame:
    """One frame over all of ``answers``. What is in it and not in a frame of its own is in one called ``OTHER``."""
    sums: dict[tuple[str, ...], float] = {}
    for answer in answers:
        for span in answer.spans:
            if (way := _WAYS.get(span.stage)) is not None:
                sums[way] = sums.get(way, 0.0) + span.seconds
    whole = max(sum(answer.seconds for answer in answers), sum(_inner_seconds((), sums).values()))
    return _frame((), "", whole, sums)


def _frame(way: tuple[str, ...], name: str, seconds: float, sums: Mapping[tuple[str, ...], float]) -> Frame:
    inner = tuple(_frame((*way, child), child, took, sums) for child, took in _inner_seconds(way, sums).items())
    rest = seconds - sum(frame.seconds for frame in inner)
    if not way and rest > 0:
        inner = (*inner, Frame(OTHER, rest))
    return Frame(name, seconds, inner)


def _inner_seconds(way: tuple[str, ...], sums: Mapping[tuple[str, ...], float]) -> dict[str, float]:
    """The frames right below: what was measured of each, or else all that is in it."""
    found: dict[str, float] = {}
    for other in sums:
        if len(other) > len(way) and other[: len(way)] == way:
            child = other[: len(way) + 1]
            found[child[-1]] = sums[child] if child in sums else sum(_leaves(child, sums))
    return found


def _leaves(way: tuple[str, ...], sums: Mapping[tuple[str, ...], float]) -> Iterator[float]:
    return iter(_inner_seconds(way, sums).values())
