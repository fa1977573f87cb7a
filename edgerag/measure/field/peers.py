"""The runs that `bench index`, `generate` and `ingest` keep, as series that can be compared with an earlier run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from edgerag.measure.field.series import Better, Series, read_series


def peer_series(bench: str, figures: Mapping[str, Any]) -> Iterator[Series]:
    """Of the figures of one of these benches; those that it did not measure are left out."""
    if bench == "index":
        for level in figures.get("at", ()):
            yield from _series(f"index.qps at recall {level['target']}", "queries/s", "more", level.get("qps_runs"))
    for way, runs in figures.get("ttft_runs_s", {}).items():
        yield from _series(f"first words.{way}", "s", "less", runs)
    for way, runs in figures.get("prefill_tps_runs", {}).items():
        yield from _series(f"prefill.{way}", "tokens/s", "more", runs)
    for kind, of_kind in figures.get("decode", {}).items():
        for way, runs in of_kind.get("tps_runs", {}).items():
            yield from _series(f"decode.{kind} {way}", "tokens/s", "more", runs)
    for way, runs in figures.get("embed_runs_s", {}).items():
        yield from _series(f"embed.{way}", "s", "less", runs)


def _series(name: str, unit: str, better: Better, runs: Any) -> Iterator[Series]:
    series = read_series(name, {"unit": unit, "better": better, "runs": runs})
    if series is not None:
        yield series
