"""``edgerag bench ask | embed | all``: the parts one after the other, and what they found as one record."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edgerag.config import Settings
from edgerag.engine.catalog import Catalog
from edgerag.errors import EdgeragError
from edgerag.measure.facts import machine_facts
from edgerag.measure.field import answering, searching
from edgerag.measure.field.scratch import QUICK, THOROUGH, Scratch, scratch
from edgerag.measure.field.series import PartResult, series_record
from edgerag.measure.field.verdict import Verdict, by_turns

Progress = Callable[[str], None]
FORMAT = 1  # of the record
# A quick run ends within two minutes: what has not begun by then is left out and named.
_QUICK_S = 80.0

_ALL: Mapping[str, Callable[[Scratch], PartResult]] = {**searching.PARTS, **answering.PARTS}
BENCHES: Mapping[str, tuple[str, ...]] = {
    "embed": ("embedding",),
    "ask": ("stages", "prefill_decode", "assembly", "overlap", "sources"),
    # What is quick comes first.
    "all": (
        "embedding",
        "instructions",
        "assembly",
        "sources",
        "stages",
        "prefill_decode",
        "pinning",
        "overlap",
        "loading",
        "weights",
    ),
}
_NEEDS_EMBEDDER = frozenset({"embedding", "stages", "sources", "overlap"})
_NEEDS_CHAT = frozenset({"stages", "prefill_decode", "assembly", "weights", "pinning", "overlap"})


def bench_field(
    bench: str,
    *,
    catalog: Catalog,
    settings: Settings,
    quick: bool,
    parts: Sequence[str] = (),
    progress: Progress = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """The record of one bench, as values for JSON; ``parts``: some of BENCHES[bench], all if empty.

    What cannot be measured here is no error: its part says why, and what to do. Raises EdgeragError where nothing at
    all could be."""
    began = clock()
    results: list[PartResult] = []
    with scratch(catalog, settings, QUICK if quick else THOROUGH) as place:
        for name in parts or BENCHES[bench]:
            if quick and clock() - began > _QUICK_S:
                results.append(PartResult(name, "", notes=("Left out: the two minutes of a quick run were over.",)))
                continue
            progress(f"Measuring: {name.replace('_', ' ')}.")
            results.append(_measured(name, place))
    if not any(result.series or result.figures for result in results):
        reasons = " ".join(dict.fromkeys(note for result in results for note in result.notes))
        raise EdgeragError(f"Nothing could be measured. {reasons}")
    return {
        "format": FORMAT,
        "bench": bench,
        "quick": quick,
        "seconds": round(clock() - began, 1),
        "machine": machine_facts(),
        "models": _models(catalog, settings),
        "observations": [dataclasses.asdict(each) for each in place.observations],
        "parts": {result.name: part_record(result) for result in results},
        "series": {series.name: series_record(series) for result in results for series in result.series},
    }


def _measured(name: str, place: Scratch) -> PartResult:
    needed = [kind for kind, parts in (("chat", _NEEDS_CHAT), ("embedder", _NEEDS_EMBEDDER)) if name in parts]
    if missing := next(filter(None, map(place.missing_model, needed)), ""):
        return PartResult(name, "", notes=(f"Not measured: {missing}",))
    try:
        return _ALL[name](place)
    except EdgeragError as error:
        return PartResult(name, "", notes=(f"Not measured: {error}",))


def part_record(result: PartResult) -> dict[str, Any]:
    of = {series.name: series for series in result.series}
    return {
        "question": result.question,
        "figures": dict(result.figures),
        "medians": {
            series.name.partition(".")[2]: {"median": round(series.median, 6), "spread": round(series.spread, 4)}
            for series in result.series
        },
        "comparisons": [
            {"way": versus.way, "to": versus.other, **by_turns(of[versus.series], of[versus.other_series]).record()}
            for versus in result.versus
        ],
        "notes": list(result.notes),
    }


def verdict_text(verdict: Verdict) -> str:
    text = f"{verdict.word} ({verdict.ratio:.2f} times, {verdict.low:.2f} to {verdict.high:.2f})"
    return f"{text}. {verdict.why}" if verdict.why else text


def value_text(value: float, unit: str) -> str:
    """``1.24 s``, ``3.1 ms``, ``62 µs``, ``512 tokens/s``"""
    if unit != "s":
        return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1 or name == "µs":
            return f"{value * factor:.3g} {name}"
    raise AssertionError("the loop ends with microseconds")


def _models(catalog: Catalog, settings: Settings) -> dict[str, str]:
    """Names of what was measured: figures of other models are not compared."""
    found = {}
    for kind, wanted in (("chat", settings.models.chat), ("embedder", settings.models.embedder)):
        try:
            found[kind] = catalog.find(kind, wanted).name  # type: ignore[arg-type]
        except EdgeragError:
            found[kind] = ""
    return found
