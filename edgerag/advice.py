"""What else the doctor looks at: room on the disk, other programs, whether the model was measured here; and which rows
of the tuning guide fit.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.config import Settings
from edgerag.engine.tuning.record import Tunings
from edgerag.engine.tuning.tune import current
from edgerag.errors import ModelError
from edgerag.machine.load import CpuLoad
from edgerag.machine.memory import available_bytes
from edgerag.machine.mounts import shared_kind
from edgerag.settings.tuning_guide import MachineState, fitting
from edgerag.types import Finding, ModelFile, Suggestion

if TYPE_CHECKING:
    from edgerag.engine.catalog import Catalog
    from edgerag.engine.tuning.record import Tuning

# A library of some thousand documents, and the states of what is asked of it.
_COMFORTABLE_DISK_BYTES = 1_000_000_000
_LOOKED_FOR_S = 0.1
_MUCH_LOAD = 0.5  # of the processors, for others: then what is measured says little


def disk_finding(home: Path) -> Finding:
    """The room where libraries, models and states lie."""
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    line = f"{free / 1e9:.1f} GB free where libraries lie ({place})"
    if free >= _COMFORTABLE_DISK_BYTES:
        return Finding("disk", "ok", line, figure=free, unit="bytes")
    remedy = "Free some space, or set EDGERAG_HOME to a folder on another disk."
    return Finding("disk", "warning", line, remedy, figure=free, unit="bytes")


def shared_findings(home: Path) -> list[Finding]:
    """Whether other machines may use what lies there at the same time, and what that costs."""
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    kind = shared_kind(str(place))
    if not kind:
        return []
    return [
        Finding(
            "disk",
            "info",
            f"{place} is shared with other machines ({kind}): an ingest and a question wait for each other there.",
            "A disk of this machine is faster: set EDGERAG_HOME.",
        )
    ]


def load_finding() -> Finding:
    """How much of the processors others take, in a tenth of a second."""
    load = CpuLoad()
    time.sleep(_LOOKED_FOR_S)
    shares = load.shares()
    if not shares:
        return Finding("other programs", "info", "not told by this system")
    busy = sum(shares.values()) / len(shares)
    line = f"take {busy:.0%} of the processors"
    if busy <= _MUCH_LOAD:
        return Finding("other programs", "ok", line, figure=round(busy, 3), unit="share")
    remedy = "Answers are slower meanwhile; measure (bench, models tune) when they are done."
    return Finding("other programs", "warning", line, remedy, figure=round(busy, 3), unit="share")


def tuning_finding(catalog: Catalog, settings: Settings) -> Finding:
    """Whether the chat model runs as it was measured to be fastest here. Raises ModelError where there is none."""
    model = catalog.find("chat", settings.models.chat)
    tuning = current(model, Tunings(catalog.folder))
    if tuning is None:
        return Finding("tuning", "info", f"{model.name} was not measured on this machine.", "Run: edgerag models tune")
    if not tuning.finished:
        return Finding("tuning", "info", f"{model.name} was measured in part.", "Run: edgerag models tune")
    speed = tuning.prefill_tps
    line = f"{model.name} reads {speed:.0f} tokens/s as measured here"
    return Finding("tuning", "ok", line, figure=round(speed, 1), unit="tokens/s")


def tuning_findings(catalog: Catalog, settings: Settings) -> list[Finding]:
    """None where no model answers: that is said elsewhere."""
    if settings.generation.mode != "model":
        return []
    try:
        return [tuning_finding(catalog, settings)]
    except ModelError:
        return []


def suggestions(catalog: Catalog, settings: Settings) -> tuple[Suggestion, ...]:
    """The rows of the tuning guide that fit this machine and these settings."""
    tuning: Tuning | None = None
    try:
        model: ModelFile | None = catalog.find("chat", settings.models.chat)
    except ModelError:
        model = None
    if model is not None:
        tuning = current(model, Tunings(catalog.folder))
    return fitting(
        settings,
        MachineState(
            free_bytes=available_bytes(),
            has_chat_model=model is not None,
            is_tuned=tuning is not None and tuning.finished,
            is_gated=tuning is not None and tuning.gate_in_force is not None,
            reading_tps=0.0 if tuning is None else tuning.prefill_tps,
        ),
    )
