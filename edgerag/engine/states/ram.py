"""States in memory, chosen by what they save.

GreedyDual-Size-Frequency (L. Cherkasova, "Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching
Policy", HP Labs HPL-98-69R1, 1998; after P. Cao and S. Irani, "Cost-Aware WWW Proxy Caching Algorithms", 1997): a
state's priority is L + uses * cost / size, and the lowest goes first. L is the priority of the last that went, so
that what is not used again falls behind what came later. Cost is the seconds that computing it took.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgerag.engine.states.format import Facts
from edgerag.engine.states.key import StateKey


@dataclass(slots=True)
class RamState:
    """One state, and how it has been used."""

    facts: Facts
    data: memoryview
    deprecated_s: float | None = None  # since when
    uses: int = 1
    priority: float = 0.0

    @property
    def rank(self) -> tuple[bool, float]:
        """The lowest goes first; what is deprecated before what is not."""
        return self.deprecated_s is None, self.priority


class RamTier:
    """Not for several threads at once: the store holds a lock."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._states: dict[str, RamState] = {}
        self._inflation = 0.0  # L

    def __len__(self) -> int:
        return len(self._states)

    def find(self, key: StateKey) -> RamState | None:
        """The state of exactly that key."""
        state = self._states.get(key.name)
        return state if state is not None and state.facts.key == key else None

    def use(self, state: RamState) -> None:
        state.uses += 1
        self._weigh(state)

    def fits(self, size_bytes: int) -> bool:
        return size_bytes <= self.limit_bytes

    def put(self, facts: Facts, data: memoryview) -> int:
        """Replaces the state of that name; how many went to make room. That may be the new one itself."""
        self.discard(facts.key.name)
        if not self.fits(data.nbytes):
            return 0
        state = RamState(facts, data)
        self._weigh(state)
        self._states[facts.key.name] = state
        self.used_bytes += data.nbytes
        return self._make_room()

    def discard(self, name: str) -> None:
        state = self._states.pop(name, None)
        if state is not None:
            self.used_bytes -= state.data.nbytes

    def discard_where(self, goes: Callable[[RamState], bool]) -> int:
        """How many went."""
        names = [name for name, state in self._states.items() if goes(state)]
        for name in names:
            self.discard(name)
        return len(names)

    def deprecate(self, names: frozenset[str], *, now_s: float) -> None:
        for name in names & self._states.keys():
            state = self._states[name]
            if state.deprecated_s is None:
                state.deprecated_s = now_s

    def _weigh(self, state: RamState) -> None:
        state.priority = self._inflation + state.uses * state.facts.cost_s / max(1, state.data.nbytes)

    def _make_room(self) -> int:
        if self.used_bytes <= self.limit_bytes:
            return 0
        went = 0
        for name, state in sorted(self._states.items(), key=lambda item: item[1].rank):
            if self.used_bytes <= self.limit_bytes:
                break
            self.discard(name)
            self._inflation = max(self._inflation, state.priority)
            went += 1
        return went
