"""Every fault at every call of the writer, and a power loss after every one: `make faults`.

The result goes to bench/results. It is nonzero exit if anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "bench")]

from faults import harness, replay  # noqa: E402
from record import record  # noqa: E402

# Of the run after a kill, and around a failed sync, these tell the others apart least.
_FEWER = ("lost", "names", "torn", "random")
# So many-th calls whose fault meets the run after it once more, while that one clears up.
_AGAIN = 3
_KILLED_AT = 16  # places of a first run, evenly, after which the second run loses its power


def fault_jobs(calls: list[harness.Call]) -> Iterator[dict[str, Any]]:
    for call in calls:
        for kind, retry in harness.faults_of(call):
            again = not retry and call.number % _AGAIN == 0
            yield {"job": "fault", "at": call.number, "kind": kind, "retry": retry, "again": again}


def power_jobs(calls: list[harness.Call]) -> Iterator[dict[str, Any]]:
    count = len(calls)
    for start in range(1, count + 1, 100):
        window = [start, min(start + 100, count + 1)]
        yield {"job": "power", "variants": list(replay.VARIANTS), "every": 1, "calls": window}
    for call in calls:
        if call.op == "fsync":
            window = [call.number, call.number + 40]
            yield {
                "job": "power",
                "variants": list(_FEWER),
                "every": 5,
                "at": call.number,
                "kind": "eio",
                "calls": window,
            }
    for index in range(_KILLED_AT):
        at = 1 + index * count // _KILLED_AT
        yield {"job": "power", "variants": list(_FEWER), "every": 11, "at": at, "kind": "kill-after", "process": 2}


class Tally:
    """What came out, as it goes into the result."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        self.second_faults = 0
        self.endings: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.power: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.wrong_count = 0

    def add(self, job: dict[str, Any], answer: dict[str, Any]) -> None:
        if job["job"] == "fault":
            self.faults[job["kind"] + (" then on" if job["retry"] else "")] += 1
            self.second_faults += job["again"]
            self.endings[answer["ended"]] += 1
            if answer["error"]:
                self.errors[answer["error"][0]] += 1
            self.wrong_count += bool(answer["wrong"])
        else:
            what = {"none": "any call", "eio": "a failed sync", "kill-after": "a kill"}[job.get("kind", "none")]
            self.power[f"points after {what}"] += answer["points"]
            self.power[f"different states after {what}"] += answer["states"]
            self.wrong_count += answer["wrong_count"]
        self.wrong += [f"{job}: {text}"[:500] for text in answer["wrong"]]


def work(worker: harness.Worker, jobs: SimpleQueue[dict[str, Any]], tally: Tally) -> None:
    while True:
        try:
            job = jobs.get_nowait()
        except Empty:
            return
        tally.add(job, worker.do(**job))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="writers at a time")
    parser.add_argument("--every", type=int, default=1, help="take only every so manieth job")
    parser.add_argument("--json", type=Path, help="file of the result, instead of bench/results")
    options = parser.parse_args()
    if reason := harness.why_not():
        sys.stderr.write(f"Nothing can be injected: {reason}.\n")
        return 2
    began = time.monotonic()
    memory = Path("/dev/shm")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None))
        shim = harness.build_shim(Path(folder))
        workers = []
        for number in range(options.jobs):
            scratch = Path(folder) / f"worker{number}"
            scratch.mkdir()
            workers.append(stack.enter_context(harness.running(shim, scratch)))
        run, calls = workers[0].trace()
        jobs: SimpleQueue[dict[str, Any]] = SimpleQueue()
        for job in [*fault_jobs(calls), *power_jobs(calls)][:: options.every]:
            jobs.put(job)
        total, tally = jobs.qsize(), Tally()
        threads = [Thread(target=work, args=(worker, jobs, tally), daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            threads[0].join(timeout=10)
            threads[-1].join(timeout=10)
            sys.stderr.write(f"\r{total - jobs.qsize()} of {total} jobs, {tally.wrong_count} wrong ")
            sys.stderr.flush()
        if not jobs.empty():
            raise RuntimeError("a worker ended before its time")
    figures = {
        "counted_calls": len(calls),
        "calls": {f"{op} {role}": n for (op, role), n in Counter((c.op, c.role) for c in calls).items()},
        "every_write_goes_through_the_shim": run["whole"],
        "fault_points": sum(tally.faults.values()),
        "of_these_with_a_second_fault": tally.second_faults,
        "faults": dict(tally.faults),
        "endings": dict(tally.endings),
        "errors_seen": dict(tally.errors),
        "power_loss": dict(tally.power),
        "wrong_count": tally.wrong_count,
        "wrong": tally.wrong[:50],
        "seconds": round(time.monotonic() - began),
    }
    parameters = {
        "steps": run["steps"],
        "jobs": options.jobs,
        "every": options.every,
    }
    target = record("faults", figures, parameters=parameters, file=options.json)
    sys.stdout.write(f"\n{target}: {figures['fault_points']} faults, {dict(tally.power)}, {tally.wrong_count} wrong\n")
    return 1 if tally.wrong_count else 0


if __name__ == "__main__":
    sys.exit(main())
