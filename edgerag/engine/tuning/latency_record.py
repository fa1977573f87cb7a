"""How long answers took on this machine, and what was calibrated from it: numbers, in a private folder (kept.py)."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from edgerag.engine.probe import engine_fingerprint
from edgerag.engine.states.folder import make_private
from edgerag.engine.tuning.kept import Kept
from edgerag.machine.cpu import read_processor
from edgerag.machine.fingerprint import machine_fingerprint
from edgerag.machine.memory import total_bytes
from edgerag.machine.topology import read_topology
from edgerag.types import Calibration, Observation

_MOST_KEPT = 8  # models and machines


@dataclass(frozen=True, slots=True)
class LatencyRecord:
    """Of one chat model on one machine."""

    window: tuple[Observation, ...] = ()  # oldest first
    calibrations: tuple[Calibration, ...] = ()  # by profile; changed by `bench ask --calibrate` alone


class LatencyRecords:
    """Those of all models, by their names. Making one reads nothing."""

    def __init__(self, folder: Path, *, most: int) -> None:
        """``most``: observations of one model; the oldest go."""
        self._folder = folder
        self._most = most
        self._kept: Kept[LatencyRecord] = Kept(folder, name="latency", kind=LatencyRecord, most=_MOST_KEPT)

    @property
    def has_calibrations(self) -> bool:
        """Whether there are any, of whatever model and machine: without looking at the machine, which takes longer."""
        return any(record.calibrations for record in self._kept.all().values())

    def find(self, model: str) -> LatencyRecord:
        return self._kept.find(self._key(model)) or LatencyRecord()

    def observe(self, model: str, *observations: Observation) -> LatencyRecord:
        record = self.find(model)
        return self._keep(model, dataclasses.replace(record, window=(*record.window, *observations)[-self._most :]))

    def calibrate(self, model: str, calibrations: tuple[Calibration, ...]) -> LatencyRecord:
        return self._keep(model, dataclasses.replace(self.find(model), calibrations=calibrations))

    def _keep(self, model: str, record: LatencyRecord) -> LatencyRecord:
        with contextlib.suppress(OSError):  # a disk that cannot be written: then only this process knows
            make_private(self._folder)
        self._kept.keep(self._key(model), record)
        return record

    def _key(self, model: str) -> str:
        return f"{self._machine}-{model}"

    @cached_property
    def _machine(self) -> str:
        machine = machine_fingerprint(read_processor(), read_topology(), memory_bytes=total_bytes())
        return f"{machine}-{engine_fingerprint()}"
