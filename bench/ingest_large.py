"""The memory of an ingest of one very large text: that of all its processes, while it is read, stored and embedded.

    python bench/ingest_large.py --models FOLDER [--size 2GB] [--minutes 30] [--json FILE]

Embedding gigabytes takes hours: the ingest is stopped after `--minutes`, and the result says how far it came.
Documents come first and can be found by keyword at once; passages are embedded when no part waits to be stored. Bound:
the largest sum of the resident memory of all processes is at most 600 MB, and does not grow after the first part of the
time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from record import record

from edgerag.config import parse_size

_BOUND_BYTES = 600_000_000
_LOOK_EVERY_S = 0.2
_WORDS = 4_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, required=True, help="the models folder")
    parser.add_argument("--size", default="2GB")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), parse_size(arguments.size), arguments.models, arguments.minutes * 60)
    print(json.dumps(figures, indent=2))
    print(record("ingest-large", figures, parameters={"size": arguments.size}, file=arguments.json))


def measure(scratch: Path, size_bytes: int, models: Path, seconds: float) -> dict[str, Any]:
    home, docs = scratch / "home", scratch / "docs"
    home.mkdir()
    docs.mkdir()
    (home / "models").symlink_to(models.resolve())
    make_log(docs / "large.log", size_bytes)
    environ = os.environ | {"EDGERAG_HOME": str(home)}
    process = subprocess.Popen([sys.executable, "-m", "edgerag", "ingest", "--quiet", str(docs)], env=environ)
    began, peak = time.monotonic(), {"all": 0, "main": 0, "children": 0}
    series: list[dict[str, Any]] = []
    stopped = False
    while process.poll() is None:
        resident = resident_bytes(process.pid)
        main_bytes, all_bytes = resident.get(process.pid, 0), sum(resident.values())
        peak["all"] = max(peak["all"], all_bytes)
        peak["main"] = max(peak["main"], main_bytes)
        peak["children"] = max(peak["children"], all_bytes - main_bytes)
        now = time.monotonic() - began
        if not series or now - series[-1]["s"] >= seconds / 20:
            series.append({"s": round(now, 1), "bytes": all_bytes, **stored(home)})
        if now > seconds and not stopped:
            stopped = True
            process.send_signal(signal.SIGINT)
        time.sleep(_LOOK_EVERY_S)
    return {
        "size_bytes": size_bytes,
        "peak_rss_bytes": peak["all"],
        "peak_rss_main_bytes": peak["main"],
        "peak_rss_children_bytes": peak["children"],
        "bound_bytes": _BOUND_BYTES,
        "within_bound": peak["all"] <= _BOUND_BYTES,
        "stopped_after_s": round(time.monotonic() - began, 1) if stopped else None,
        **stored(home),
        "series": series,
    }


def stored(home: Path) -> dict[str, int]:
    """How far it came, out of the library."""
    path = home / "indexes" / "default" / "library.sqlite"
    if not path.exists():
        return {"parts": 0, "characters": 0, "chunks_embedded": 0}
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            parts, characters = db.execute("SELECT count(*), coalesce(sum(text_length), 0) FROM documents").fetchone()
            (embedded,) = db.execute("SELECT count(*) FROM chunks WHERE state > 0").fetchone()
    except sqlite3.Error:  # it is being made
        return {"parts": 0, "characters": 0, "chunks_embedded": 0}
    return {"parts": parts, "characters": characters, "chunks_embedded": embedded}


def make_log(path: Path, size_bytes: int) -> None:
    """Lines as a server writes them; no two are the same."""
    pick = random.Random(1)
    words = [f"w{number:x}" for number in range(_WORDS)]
    lines = [" ".join(pick.choices(words, k=pick.randrange(5, 25))) for _ in range(20_000)]
    written, number = 0, 0
    with path.open("w", encoding="utf-8") as file:
        while written < size_bytes:
            block = "".join(f"{number + n:010d} INFO {line}\n" for n, line in enumerate(lines))
            number += len(lines)
            written += file.write(block)


def resident_bytes(pid: int) -> dict[int, int]:
    """Of a process and all that it started, by pid."""
    found = {}
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        found[pid] = next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0)
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found |= resident_bytes(int(child))
    except (OSError, ProcessLookupError):  # it has ended
        return found
    return found


if __name__ == "__main__":
    main()
