"""``edgerag bench``: measures the program on this machine, and says how it stands beside its peers."""

from __future__ import annotations

import argparse
from typing import Any

from edgerag.config import parse_size
from edgerag.errors import UsageError
from edgerag.ui import output, report


def run_bench(arguments: argparse.Namespace, *, budget_bytes: int) -> int:
    """``budget_bytes`` is the setting's, for a run without ``--budget``. Raises UsageError."""
    try:
        from edgerag.measure.index import bench_index
    except ImportError as error:  # a machine that only searches need not have it
        raise UsageError(f"The bench needs hnswlib to compare with, which is not usable here: {error}.") from error
    if arguments.budget:
        budget_bytes = _size(arguments.budget)
    figures = bench_index(
        rows=arguments.rows, vectors=arguments.vectors, budget_bytes=budget_bytes, progress=report.say
    )
    if arguments.json:
        output.write_json(figures)
    else:
        output.write(index_text(figures))
    return report.EXIT_OK


def index_text(figures: dict[str, Any]) -> str:
    """The figures for people: a line for each recall, then memory and opening."""
    lines = [
        f"{figures['rows']:,} vectors of {figures['dimension']} dimensions, one core; "
        f"{figures['walk']} against hnswlib with {figures['hnswlib_instructions']}"
    ]
    lines += [
        (
            f"  recall@10 {level['recall']:.3f}: {level['qps']:,.0f} queries/s, hnswlib {level['qps_hnswlib']:,.0f}: "
            f"{level['ratio_qps']:.2f} times; p50 {level['p50_ms']:.2f} ms, p99 {level['p99_ms']:.2f} ms"
        )
        for level in figures["at"]
    ]
    resident = figures["resident_max_bytes"]
    lines += [
        f"  memory: {output.size(figures['rss_bytes'])}, hnswlib {output.size(figures['rss_hnswlib_bytes'])}",
        f"  budget: {output.size(figures['budget_bytes'])}, most resident: "
        + ("not told by this system" if resident is None else output.size(resident)),
        f"  open: {figures['open_ms']:.1f} ms, hnswlib {figures['load_hnswlib_ms']:.0f} ms",
    ]
    return "\n".join(lines) + "\n"


def _size(text: str) -> int:
    try:
        size_bytes = parse_size(text)
    except ValueError as error:
        raise UsageError(f"--budget: {error}.") from error
    if size_bytes < 1:
        raise UsageError("--budget: nothing can be searched in no memory.")
    return size_bytes
