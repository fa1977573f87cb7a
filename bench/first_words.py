"""How long a person waits, and how much memory it takes: whole processes, from start to first word.

    python bench/first_words.py [--docs FOLDER] [--runs 5]

Every command runs as a user runs it, in a home of its own that holds the documents already ingested,
files warm in the page cache. Figures are medians; the baseline of the same run is a bare
``python -c pass``. Results go to bench/results/first_words-<sha12>.json.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from record import record

CHECKOUT = Path(__file__).resolve().parent.parent
QUESTIONS = (
    "Which torque do the lid screws of the pump need?",
    "What does error E-1042 mean?",
    "How long is the notice period?",
    "At which temperature are vaccines stored?",
    "How long are snapshots kept?",
)


@dataclass(frozen=True, slots=True)
class Run:
    first_byte_s: float  # from process start to the first byte on stdout
    total_s: float
    peak_rss_bytes: int


def timed(command: Sequence[str], environ: Mapping[str, str]) -> Run:
    """Runs a command that must succeed."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(1)
    first_byte_s = time.perf_counter() - started
    process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    total_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{errors.decode(errors='replace')}")
    return Run(first_byte_s, total_s, usage.ru_maxrss * 1024)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--docs", type=Path, default=CHECKOUT / "examples" / "docs")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    edgerag = [sys.executable, "-m", "edgerag"]
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as folder:
        home = Path(folder)
        (home / "models").symlink_to(CHECKOUT / "models")
        environ = {**os.environ, "EDGERAG_HOME": folder}
        ingest = timed([*edgerag, "ingest", "--json", str(arguments.docs)], environ)
        again = [timed([*edgerag, "ingest", "--json", str(arguments.docs)], environ) for _ in range(arguments.runs)]
        bare, usage, asks, searches = [], [], [], []
        for number in range(arguments.runs):
            question = QUESTIONS[number % len(QUESTIONS)]
            bare.append(timed([sys.executable, "-c", "pass"], environ))
            usage.append(timed([*edgerag, "--help"], environ))
            searches.append(timed([*edgerag, "search", question], environ))
            asks.append(timed([*edgerag, "ask", question], environ))
    figures = {
        "runs": arguments.runs,
        "documents": sum(1 for path in arguments.docs.rglob("*") if path.is_file()),
        "python_bare_s": median(run.total_s for run in bare),
        "help_s": median(run.total_s for run in usage),
        "search_s": median(run.total_s for run in searches),
        "ask_first_token_s": median(run.first_byte_s for run in asks),
        "ask_first_token_max_s": round(max(run.first_byte_s for run in asks), 4),
        "ask_total_s": median(run.total_s for run in asks),
        "ask_peak_rss_bytes": max(run.peak_rss_bytes for run in asks),
        "search_peak_rss_bytes": max(run.peak_rss_bytes for run in searches),
        "ingest_s": round(ingest.total_s, 4),
        "ingest_peak_rss_bytes": ingest.peak_rss_bytes,
        "ingest_unchanged_s": median(run.total_s for run in again),
    }
    for name, figure in figures.items():
        print(f"{name:24} {figure}")
    print(record("first_words", figures))
    return 0


def median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 4)


if __name__ == "__main__":
    sys.exit(main())
