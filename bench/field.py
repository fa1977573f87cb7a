"""The questions of the field on this machine: `edgerag bench all`, kept as a result.

    python bench/field.py [--quick] [--part NAME]... [--chat MODEL] [--json FILE]

What is measured stands in edgerag/measure/field/: stages, reading against writing, weights, pinning, instructions, an
index in memory against one in its file, things beside each other, assembling a prompt, chosen sources.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from record import CHECKOUT, record

from edgerag.config import load_settings
from edgerag.engine.catalog import Catalog
from edgerag.measure.field.run import BENCHES, bench_field
from edgerag.ui import report


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the questions of the field.")
    parser.add_argument("--quick", action="store_true", help="less of everything, in two minutes")
    parser.add_argument("--part", action="append", default=[], dest="parts", choices=BENCHES["all"])
    parser.add_argument("--chat", default="", help="a name from `models list`, or a file")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    catalog = Catalog(CHECKOUT / "models", CHECKOUT / "models" / "manifest.toml")
    settings = load_settings(CHECKOUT / "config.toml", os.environ, {"models": {"chat": arguments.chat}})
    figures = bench_field(
        "all", catalog=catalog, settings=settings, quick=arguments.quick, parts=arguments.parts, progress=report.say
    )
    parameters = {"quick": arguments.quick, "parts": arguments.parts or list(BENCHES["all"])}
    print(record("bench_all", figures, parameters=parameters, file=arguments.json))


if __name__ == "__main__":
    main()
