"""A writer, or a reader, in a forked child that may be stopped at any moment."""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from faults import writer
from faults.state import State, read_state

from edgerag.errors import EdgeragError

_SHIM = ctypes.CDLL(None)
# A writer takes a tenth of a second; so many seconds of silence are for a box under load. They are counted one by one,
# so that a machine that was stopped for a while is not taken for a process that hangs.
_HANGS_AFTER_S = 30
FINISHED, EXPLAINED, RAW = 0, 3, 4  # exit codes of children


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at which counted call, and what is kept of the run."""

    at: int = 0
    kind: str = "none"
    trace: str | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    code: int  # as the system tells it, negative for a signal
    done: int | None  # steps that were reported; None before the library was open
    error: tuple[str, str, str] | None  # type, message and remedy, or type, traceback and ""
    hung: bool
    calls: int  # counted; 0 if it was killed


def arm(base: Path, fault: Fault) -> None:
    def text(value: str | None) -> bytes | None:
        return None if value is None else os.fsencode(value)

    # A killed process loses nothing that it gave to the kernel: syncing would only make this slow.
    _SHIM.faults_arm(
        os.fsencode(base), ctypes.c_long(fault.at), fault.kind.encode(), text(fault.trace), text(fault.log), 1
    )


def write(base: Path, fault: Fault, *, start: int = 0, retries: int = 0) -> Ended:
    """Runs the writer on ``base/lib`` in a child."""

    def work(tell: Callable[[Any], None]) -> None:
        arm(base, fault)
        _SHIM.faults_note(b"process")

        def report(done: int) -> None:
            tell(["done", done])
            _SHIM.faults_note(str(done).encode())

        writer.run(base / "lib", start=start, report=report, retries=retries)
        tell(["calls", _SHIM.faults_counted()])

    code, said, hung = in_child(work)
    told = dict(said)
    error = told.get("error")
    return Ended(code, told.get("done"), None if error is None else tuple(error), hung, told.get("calls", 0))


def read(base: Path) -> State:
    """Reads ``base/lib`` in a child."""
    code, said, hung = in_child(lambda tell: tell(["state", asdict(read_state(base / "lib"))]))
    if code != FINISHED:
        return State(None, "", [f"the reader {'hung' if hung else f'ended with {code}'}: {said}"])
    return State(**said[0][1])


def in_child(work: Callable[[Callable[[Any], None]], None]) -> tuple[int, list[Any], bool]:
    """(exit code, what it told, whether it had to be killed)."""
    sys.stdout.flush()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        faulthandler.enable()

        def tell(value: Any) -> None:
            os.write(theirs, json.dumps(value).encode() + b"\n")

        code = FINISHED
        try:
            work(tell)
        except EdgeragError as error:
            tell(["error", [type(error).__name__, error.message, error.remedy]])
            code = EXPLAINED
        except BaseException as error:  # noqa: BLE001 - what a user must never see is told to the parent
            import traceback

            tell(["error", [type(error).__name__, traceback.format_exc(), ""]])
            code = RAW
        os._exit(code)
    os.close(theirs)
    said, silent_s = bytearray(), 0
    while silent_s < _HANGS_AFTER_S:
        ready, _, _ = select.select([ours], [], [], 1.0)
        if not ready:
            silent_s += 1
            continue
        piece = os.read(ours, 65536)
        if not piece:
            break
        silent_s = 0
        said += piece
    hung = silent_s >= _HANGS_AFTER_S
    if hung:
        os.kill(pid, signal.SIGABRT)  # says on standard error where it stands
        time.sleep(1)
        os.kill(pid, signal.SIGKILL)
    os.close(ours)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), [json.loads(line) for line in said.splitlines()], hung
