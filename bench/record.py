"""Writes the result of a bench, with what is needed to read it later: commit, machine, parameters.

Results go to ``bench/results/<name>-<sha12>.json``; a commit measured again replaces its result.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgerag.measure.facts import machine_facts

CHECKOUT = Path(__file__).resolve().parent.parent
RESULTS = CHECKOUT / "bench" / "results"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout.strip()


def commit() -> str:
    """The commit that is measured, with "+changes" when the tree differs from it; "unknown" outside git."""
    try:
        sha = _git("rev-parse", "--short=12", "HEAD")
        return sha + ("+changes" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


# Taken when the bench starts, and the tree with it: the checkout may move on before a long one is over.
_STARTED_AT = commit()


def record(
    name: str, figures: Mapping[str, Any], *, parameters: Mapping[str, Any] | None = None, file: Path | None = None
) -> Path:
    """Writes one result as JSON, to ``file`` or where results belong, and gives the path."""
    measured = _STARTED_AT
    target = file or RESULTS / f"{name}-{measured[:12]}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    value = {
        "name": name,
        "commit": measured,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        # Of a path outside the checkout its name says enough.
        "command": ["python", *(Path(word).name if Path(word).is_absolute() else word for word in sys.argv)],
        "machine": machine_facts(),
        "parameters": dict(parameters or {}),
        "figures": dict(figures),
    }
    target.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return target
