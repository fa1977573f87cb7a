"""A Python for another processor, as a file that is called like any other: it starts QEMU's user emulation."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path


def write_interpreter(path: Path, *, cpu: str, architecture: str, python: Path, root: Path | None = None) -> None:
    """Makes ``path`` run ``python`` on ``cpu``; ``root`` is where its system's files lie, if not here.

    Python is told the name by which it was called: a virtual environment, where it is a link to this script, is found
    by that.
    """
    emulator = [str(shutil.which(f"qemu-{architecture}")), "-cpu", cpu]
    if root is not None:
        emulator += ["-L", str(root), "-E", f"LD_LIBRARY_PATH={root / f'usr/lib/{architecture}-linux-gnu'}"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {_quoted(emulator)} -0 "$0" {_quoted([str(python)])} "$@"\n', encoding="utf-8")
    path.chmod(0o755)


def without_emulator(stderr: str) -> str:
    """Standard error, without what QEMU itself has to say."""
    return "\n".join(line for line in stderr.splitlines() if not line.startswith("qemu-"))


def _quoted(words: Sequence[str]) -> str:
    return " ".join(map(shlex.quote, words))
