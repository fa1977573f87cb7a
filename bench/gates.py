"""Whether passages may be spliced, for several chat models: `edgerag models tune --kv` of each, kept as a result.

    python bench/gates.py NAME... [--questions 200] [--json FILE]

Names from `edgerag models list`; another file is taken in first with `edgerag models add`. A trial that was stopped
goes on, and one that is decided is not asked again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from record import record


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    figures = {name: _gate(name, arguments.questions) for name in arguments.names}
    print(record("gates", figures, parameters={"questions": arguments.questions}, file=arguments.json))


def _gate(name: str, questions: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "edgerag", "models", "tune", name, "--kv", "--questions", str(questions)]
    # At most so many seconds; a trial of 200 questions and four ways takes a tenth of it here.
    done = subprocess.run([*command, "--seconds", "10000", "--json"], check=True, stdout=subprocess.PIPE, text=True)
    tuned = json.loads(done.stdout)
    gate: dict[str, Any] = tuned["gate"]
    return {key: gate[key] for key in ("finished", "passages", "link_tokens", "recompute", "why", "recipes")} | {
        "accuracy_exact": gate["accuracy_exact"],
        "accuracy_chosen": gate["accuracy_chosen"],
    }


if __name__ == "__main__":
    main()
