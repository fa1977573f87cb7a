"""Builds the shim, and runs the worker under it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CHECKOUT = HERE.parent.parent

# Which faults can happen to which calls.
_NEEDS_ROOM = ("open", "write", "truncate", "rename", "mkdir", "fsync", "allocate")
_GROWS = ("open", "write", "mkdir", "allocate")


@dataclass(frozen=True, slots=True)
class Call:
    """A counted call of an undisturbed run."""

    number: int
    op: str
    size_bytes: int
    name: str  # of the file
    role: str  # the file's kind: what stands behind its first dot, or its name


def why_not() -> str:
    """Why nothing can be injected here; empty when it can."""
    if not sys.platform.startswith("linux"):
        return "LD_PRELOAD is Linux's"
    if shutil.which("cc") is None:
        return "there is no C compiler (cc) to build the shim with"
    return ""


def build_shim(folder: Path) -> Path:
    """Compiles the shim; takes a quarter of a second."""
    shim = folder / "shim.so"
    command = ["cc", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(shim), str(HERE / "shim.c"), "-ldl"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return shim


def environment(**more: str) -> dict[str, str]:
    """For a child that imports this checkout and its tests, with one thread."""
    path = os.pathsep.join([str(CHECKOUT), str(HERE.parent)])
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | threads | more


class Worker:
    """A running worker, which takes one job at a time."""

    def __init__(self, process: subprocess.Popen[str], scratch: Path) -> None:
        self._process = process
        self.scratch = scratch

    def do(self, job: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"job": job} | arguments) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def trace(self) -> tuple[dict[str, Any], list[Call]]:
        """An undisturbed run and its counted calls."""
        log, trace = self.scratch / "trace.log", self.scratch / "trace.txt"
        log.unlink(missing_ok=True)
        trace.unlink(missing_ok=True)
        run = self.do("trace", log=str(log), trace=str(trace))
        calls = []
        for line in trace.read_text(encoding="utf-8").splitlines():
            number, op, size, path = line.split(" ", 3)
            name = Path(path).name
            if path == run["base"]:
                name = "base"
            role = name if "." not in name or name.endswith(".lock") else name.split(".", 1)[1]
            calls.append(Call(int(number), op, int(size), name, role))
        return run, calls


@contextmanager
def running(shim: Path, scratch: Path) -> Iterator[Worker]:
    command = [sys.executable, "-m", "faults.worker", str(scratch)]
    process = subprocess.Popen(
        command,
        env=environment(LD_PRELOAD=str(shim)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=scratch,
    )
    try:
        yield Worker(process, scratch)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def faults_of(call: Call) -> list[tuple[str, bool]]:
    """(kind, whether the same process goes on) of every fault that can happen to a call."""
    kinds = [("kill-before", False), ("kill-after", False), ("eio", False), ("eio", True), ("dead", False)]
    if call.op in _NEEDS_ROOM:
        kinds += [("enospc", False), ("enospc", True)]
    if call.op in _GROWS:
        kinds.append(("full", False))
    if call.op == "write" and call.size_bytes > 1:
        kinds += [("short", False), ("short-full", False), ("short-kill", False)]
    return kinds


def sample(calls: list[Call], kind: str, *, every: int) -> list[tuple[Call, bool]]:
    """Calls for one fault, and whether the process goes on after it.

    Of each kind of call on each kind of file one place where it occurs; of these every so manieth.
    """
    alike: dict[tuple[str, str, bool], list[Call]] = {}
    for call in calls:
        for name, goes_on in faults_of(call):
            if name == kind:
                alike.setdefault((call.op, call.role, goes_on), []).append(call)
    chosen = list(enumerate(alike.items()))[::every]
    return [(like[(index * 7919) % len(like)], goes_on) for index, ((_, _, goes_on), like) in chosen]
