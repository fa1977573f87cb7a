"""How long a model takes to judge one passage on this machine, remembered in the models folder (kept.py)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from edgerag.engine.probe import engine_fingerprint
from edgerag.engine.tuning.kept import Kept
from edgerag.machine.cpu import read_processor
from edgerag.machine.fingerprint import machine_fingerprint
from edgerag.machine.memory import total_bytes
from edgerag.machine.topology import read_topology
from edgerag.types import PassageCost

_MOST_KEPT = 32


class PassageCosts:
    """Those of all models, by their names. Making one reads nothing."""

    def __init__(self, folder: Path, *, threads: int) -> None:
        """``threads``: as machine.threads says; with another number a passage takes another time."""
        self._kept: Kept[PassageCost] = Kept(folder, name="second-look", kind=PassageCost, most=_MOST_KEPT)
        self._threads = threads

    def find(self, name: str) -> PassageCost | None:
        """What was kept of the model of that name."""
        return self._kept.find(self._key(name))

    def keep(self, name: str, cost: PassageCost) -> None:
        self._kept.keep(self._key(name), cost)

    def _key(self, name: str) -> str:
        return f"{self._machine}-{self._threads}-{name}"

    @cached_property
    def _machine(self) -> str:
        machine = machine_fingerprint(read_processor(), read_topology(), memory_bytes=total_bytes())
        return f"{machine}-{engine_fingerprint()}"
