"""Stops writers at one system call each, and answers with what was wrong then.

It is started with the shim loaded and everything imported, so that a writer costs a fork and not a start of
Python. It never opens a library itself: each writer and each reader is a process that sees a folder for
the first time. Reads jobs from standard input, one JSON per line, and answers each with a line.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from faults import replay, writer
from faults.children import FINISHED, Fault, read, write
from faults.judge import Judge, outcome

from edgerag.index.hnsw import build  # noqa: F401 - with hnswlib, so that no child has to


def job_trace(judge: Judge, log: str, trace: str) -> dict[str, Any]:
    """An undisturbed run; ``whole`` says that its log rebuilds its files byte by byte."""
    with judge.base() as base:
        ended = write(base, Fault(log=log, trace=trace))
        disk = replay.Disk(str(base))
        for record in replay.read_log(Path(log)):
            disk.apply(record)
        return {
            "code": ended.code,
            "calls": ended.calls,
            "whole": disk.contents("all") == replay.read_in(base),
            "steps": [step.name for step in writer.STEPS],
            "layouts": [json.loads(state.layout) for state in judge.states],
            "base": str(base),
        }


def job_fault(judge: Judge, at: int, kind: str, retry: bool, again: bool) -> dict[str, Any]:
    """One fault at one call. With ``retry`` the same process tries again and goes on to its end.

    With ``again`` the next run, which first clears up, meets the same fault at one of its first calls.
    """
    fault = Fault(at, kind)
    with judge.base() as base:
        ended = write(base, fault, retries=1 if retry else 0)
        wrong = outcome(ended, fault)
        wrong += judge.differs(read(base), ended.done)
        if retry and ended.code != FINISHED:
            wrong.append(f"did not go on after the fault: {ended.error}")
        if kind == "short" and ended.code == FINISHED and ended.done != len(writer.STEPS):
            wrong.append(f"ended after {ended.done} steps")
        second = Fault(1 + at % 37, kind) if again else None
        wrong += judge.finish(base, done=ended.done, fault=second)
    return {
        "ended": "killed" if ended.code == -signal.SIGKILL else "finished" if ended.code == FINISHED else "refused",
        "error": ended.error and [ended.error[0], ended.error[1].replace(str(base), "")],
        "wrong": wrong,
    }


def job_power(
    judge: Judge,
    variants: list[replay.Variant],
    every: int,
    at: int = 0,
    kind: str = "none",
    process: int = 1,
    calls: tuple[int, int] = (0, 10**9),
    unsynced: str = "",
) -> dict[str, Any]:
    """Power lost during a run, or during the run after one that had a fault at call ``at``.

    ``process`` says which of the two, ``calls`` between which of its counted calls; ``every``-th place of these is
    taken. After a failed sync the first process tries again. Syncs of files whose path ends in ``unsynced`` are left
    out, as if the writer had forgotten them.
    """
    log = judge.scratch / "power.log"
    log.unlink(missing_ok=True)
    seen: set[Any] = set()
    wrong: list[str] = []
    points = 0
    with judge.base() as base:
        ended = write(base, Fault(at, kind, log=str(log)), retries=1 if kind == "eio" else 0)
        if ended.code != FINISHED:
            write(base, Fault(log=str(log)), start=ended.done or 0)
        for place, disk, done in _places(log, str(base), process=process, calls=range(*calls), unsynced=unsynced):
            if place % every:
                continue
            for variant in variants:
                points += 1
                contents = disk.contents(variant, seed=place)
                key = (done, tuple(contents.items()))
                if key not in seen:
                    seen.add(key)
                    found = _lost(judge, contents, done)
                    wrong += [f"after {kind} {at}, place {place} of run {process}, {variant}: {text}" for text in found]
    return {"points": points, "states": len(seen), "wrong": wrong[:20], "wrong_count": len(wrong)}


def _places(
    log: Path, base: str, *, process: int, calls: range, unsynced: str
) -> Iterator[tuple[int, replay.Disk, int | None]]:
    """The disk after each call and each report of one process of a log, with the steps reported until then."""
    disk, done, current, place, number = replay.Disk(base), None, 0, 0, 0
    for record in replay.read_log(log):
        if not (unsynced and record.op == "fsync" and record.path.endswith(unsynced)):
            disk.apply(record)
        number = record.number or number
        if record.op == "note" and record.path == "process":
            current, number = current + 1, 0
        elif record.op == "note":
            done = int(record.path)
        elif not record.number:
            continue  # opening for reading, closing: nothing changes
        if current == process and number in calls:
            yield place, disk, done
            place += 1


def _lost(judge: Judge, contents: dict[str, bytes | None], done: int | None) -> list[str]:
    with judge.base() as base:
        replay.write_out(contents, base)
        wrong = judge.differs(read(base), done)
        return wrong + [f"then: {text}" for text in judge.finish(base, done=done)]


def main() -> None:
    for name in "abcdef":
        writer.embed(writer.lines(name, 36))  # loads the random numbers of numpy, and is remembered
    gc.freeze()  # a child that collects garbage would copy the pages of all that is imported
    judge = Judge(Path(sys.argv[1]))
    jobs: dict[str, Callable[..., dict[str, Any]]] = {"trace": job_trace, "fault": job_fault, "power": job_power}
    for line in sys.stdin:
        job = json.loads(line)
        sys.stdout.write(json.dumps(jobs[job.pop("job")](judge, **job)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
