"""Where the time of each token goes: sampled, decoded, made text. Two readings of a clock for each, no more."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import ParamSpec, TypeVar

from edgerag.types import TokenTiming

P = ParamSpec("P")
T = TypeVar("T")


class TokenClock:
    """Collects what belongs to the next token; one answer, one thread."""

    __slots__ = ("_decode_ns", "_sampling_ns")

    def __init__(self) -> None:
        self._sampling_ns = 0
        self._decode_ns = 0

    def sampled(self, sample: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``sample`` gives, its time noted as sampling."""
        began_ns = perf_counter_ns()
        result = sample(*args, **kwargs)
        self._sampling_ns += perf_counter_ns() - began_ns
        return result

    def decoded(self, decode: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``decode`` gives, its time noted as decoding."""
        began_ns = perf_counter_ns()
        result = decode(*args, **kwargs)
        self._decode_ns += perf_counter_ns() - began_ns
        return result

    def token(self, *, detokenise_ns: int) -> TokenTiming:
        """The times of the token that is at hand; counting begins anew."""
        timing = TokenTiming(self._sampling_ns, self._decode_ns, detokenise_ns)
        self._sampling_ns = self._decode_ns = 0
        return timing
