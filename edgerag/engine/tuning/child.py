"""Work that needs a process of its own: it can be ended at any moment, and reads its environment anew.

As in probe.py, the child is our own interpreter; what it finds comes back as one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from edgerag import errors
from edgerag.engine.files import printable
from edgerag.engine.tuning.budget import Budget, Stopped
from edgerag.errors import EdgeragError, ModelError

_PACKAGE_ROOT = Path(__file__).resolve().parents[3]
_CHILD = "import sys; sys.path.append(sys.argv[1]); from edgerag.engine.tuning.child import child; child(*sys.argv[2:])"
_MARK = "edgerag-child:"
_LOOK_S = 0.1  # how often it is looked whether it has become unwanted
_GRACE_S = 1.0


def command(module: str, task: Mapping[str, Any]) -> list[str]:
    """Runs ``work(task)`` of a module of this package. -P: files of the current folder must not pass for modules."""
    return [sys.executable, "-P", "-c", _CHILD, str(_PACKAGE_ROOT), module, json.dumps(task)]


def run_child(
    module: str, task: Mapping[str, Any], *, budget: Budget, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What ``work(task)`` of ``module`` gives. Raises Stopped when the budget ends first, or what the child raised."""
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command(module, task),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "GGML_NO_BACKTRACE": "1", **(environment or {})},
    )
    try:
        while True:
            try:
                output, trouble = process.communicate(timeout=_LOOK_S)
                break
            except subprocess.TimeoutExpired:
                budget.check()
    except Stopped:
        end(process)
        raise
    finally:
        if process.poll() is None:  # an interrupt from elsewhere
            end(process)
    lines = output.decode("utf-8", "replace").splitlines()
    answer = next((line for line in lines if line.startswith(_MARK)), None)
    if process.returncode == 0 and answer is not None:
        result: dict[str, Any] = json.loads(answer.removeprefix(_MARK))
        if "error" in result:
            raise getattr(errors, result["error"])(result["message"], remedy=result["remedy"])
        return result
    said = [line.strip() for line in trouble.decode("utf-8", "replace").splitlines() if line.strip()]
    raise ModelError(
        f"Measuring in a process of its own failed (exit code {process.returncode})"
        f"{': ' + printable(said[-1][-300:]) if said else ''}."
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process of ours: asked first, then by force."""
    process.terminate()
    try:
        process.communicate(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def child(module: str, task: str) -> None:
    """What the child process does."""
    try:
        result = import_module(f"edgerag.engine.tuning.{module}").work(json.loads(task))
    except EdgeragError as error:
        result = {"error": type(error).__name__, "message": error.message, "remedy": error.remedy}
    sys.stdout.write(f"\n{_MARK}{json.dumps(result)}\n")
    sys.stdout.flush()
