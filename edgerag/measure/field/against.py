"""An earlier run of a bench beside this one: what became faster, what slower, and where the noise hides it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edgerag.errors import UsageError
from edgerag.measure.field.run import verdict_text
from edgerag.measure.field.series import Series, read_series
from edgerag.measure.field.verdict import Verdict, between_runs

_LARGEST_FILE = 50_000_000
# What must be the same for two runs to be of the same thing.
_SAME_MACHINE = ("architecture", "processor", "logical_cores", "physical_cores", "memory_bytes")
_MODELS = ("chat", "embedder")


def read_run(file: Path) -> Mapping[str, Any]:
    """The record of an earlier run, as `--json` gave it or as a file of bench/results. Raises UsageError."""
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise UsageError(f"{str(file)!r} is larger than any result.")
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{str(file)!r} cannot be read as a result: {error}.") from error
    inner = record.get("figures", record) if isinstance(record, dict) else None
    if not isinstance(inner, dict) or not list(series_of(inner)):
        raise UsageError(
            f"{str(file)!r} holds no runs to compare with.",
            remedy="Name what `edgerag bench ... --json` of this version wrote.",
        )
    return inner


def series_of(record: Mapping[str, Any]) -> Iterator[Series]:
    kept = record.get("series", {})
    if isinstance(kept, Mapping):
        for name, value in kept.items():
            if (series := read_series(str(name), value)) is not None:
                yield series


def compare(now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """``{"comparable": bool, "why": [...], "verdicts": {series: verdict}}``. Runs of another machine, another model or
    another effort are not compared."""
    why = list(_differences(now, before))
    verdicts = {} if why else between_runs(list(series_of(now)), list(series_of(before)))
    if not why and not verdicts:
        why.append("They have measured nothing in common.")
    return {
        "comparable": not why,
        "why": why,
        "verdicts": {name: verdict.record() for name, verdict in verdicts.items()},
    }


def against_text(compared: Mapping[str, Any]) -> str:
    if not compared["comparable"]:
        return "".join(f"Not compared with the earlier run: {reason}\n" for reason in compared["why"])
    lines = ["Against the earlier run:"]
    for name, record in compared["verdicts"].items():
        verdict = Verdict(*(record[key] for key in ("verdict", "ratio", "low", "high", "chance", "why")))
        lines.append(f"  {name.replace('_', ' ')}: {verdict_text(verdict)}")
    return "\n".join(lines) + "\n"


def _differences(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    for what, ours, theirs in (
        *((key, _inner(now, "machine", key), _inner(before, "machine", key)) for key in _SAME_MACHINE),
        *((f"{kind} model", _inner(now, "models", kind), _inner(before, "models", kind)) for kind in _MODELS),
        ("effort (--quick)", now.get("quick"), before.get("quick")),
    ):
        if ours != theirs:
            yield f"It had another {what.replace('_', ' ')}: {theirs}, and this one {ours}."


def _inner(record: Mapping[str, Any], section: str, key: str) -> Any:
    part = record.get(section)
    return part.get(key) if isinstance(part, Mapping) else None
