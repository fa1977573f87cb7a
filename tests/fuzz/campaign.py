"""`make fuzz`: many damaged inputs through a sanitized kernel, on all cores; counts go to bench/results/fuzz-*.json.

python tests/fuzz/campaign.py [--inputs 20000] [--first 0]. Fails at the first input that crashes, hangs or lies.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "bench")]
import sanitized  # noqa: E402
from record import record  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first input; an input is the same in every run"
    )
    options = parser.parse_args()
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="edgerag-fuzz-") as folder:
        library = sanitized.compile_sanitized(Path(folder))
        share = -(-options.inputs // workers)
        starts = range(options.first, options.first + options.inputs, share)
        folders = [Path(folder) / str(start) for start in starts]
        last = options.first + options.inputs
        processes = [
            sanitized.start(library, folder=own, first=start, count=min(share, last - start))
            for start, own in zip(starts, folders, strict=True)
        ]
        results = []
        failed = False
        for process, own in zip(processes, folders, strict=True):
            output, errors = process.communicate()
            if process.returncode:
                number = (own / "number").read_text() if (own / "number").is_file() else "none"
                sys.stderr.write(f"input {number}:\n{errors[-6000:]}\n")
                failed = True
            else:
                results.append(json.loads(output))
    if failed:
        return 1
    counts: Counter[str] = Counter()
    for result in results:
        counts.update(result["counts"])
    figures = {
        "inputs": sum(result["inputs"] for result in results),
        "crashes": 0,
        "hangs": 0,
        "ids_out_of_range": 0,
        "counts": dict(sorted(counts.items())),
        "slowest_input_ms": max(result["slowest_input_ms"] for result in results),
        "seconds": max(result["seconds"] for result in results),
    }
    parameters = {"first": options.first, "paths": results[0]["paths"], "sanitizers": sanitized.SANITIZERS}
    sys.stdout.write(f"{json.dumps(figures, indent=2)}\n{record('fuzz', figures, parameters=parameters)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
