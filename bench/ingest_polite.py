"""How long a question waits for its hits while an ingest runs, beside how long it waits on an idle machine.

    python bench/ingest_polite.py --docs FOLDER --models FOLDER [--questions 150] [--rounds 3] [--json FILE]

One process asks (`Session.search`: plan to hits, the embedding of the query included, models loaded), another ingests.
Each round measures every way of being polite once, and idle before and after, so that a machine that changes its speed
changes all figures. The ways: `nice` (a low priority alone), `sched_idle` (the class SCHED_IDLE as well), `way`
(low priority, and the ingest stands still while somebody asks), `both`; and `inside`, an ingest in the process that
asks, as in the terminal UI. Bound: p95 of `way` and of `inside` at most twice that of idle.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from record import record

from edgerag.config import load_settings
from edgerag.index import right_of_way
from edgerag.locations import locate
from edgerag.machine.courtesy import step_back
from edgerag.session import Session
from edgerag.types import IngestProgress

WAYS = ("nice", "sched_idle", "way", "both")
_GAP_S = (0.05, 0.25)  # between two questions, at random: a batch has no beat to fall in with
_BOUND = 2.0
_WORDS = 60  # of a made-up passage


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] in ("ask", "ingest"):
        _CHILDREN[sys.argv[1]](*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--docs", type=Path, required=True, help="what the library holds when questions are asked")
    parser.add_argument("--questions", type=int, default=150, help="in each round and way")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", type=Path, required=True, help="the models folder")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        (home / "models").symlink_to(arguments.models.resolve())
        os.environ["EDGERAG_HOME"] = str(home)
        subprocess.run([sys.executable, "-m", "edgerag", "ingest", "--quiet", str(arguments.docs)], check=False)
        figures = measure(home, Path(folder), arguments.questions, arguments.rounds)
    print(json.dumps(figures, indent=2))
    print(record("ingest-polite", figures, parameters={"questions": arguments.questions, "rounds": arguments.rounds},
                 file=arguments.json))  # fmt: skip


def measure(home: Path, scratch: Path, questions: int, rounds: int) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {"idle_machine": [], "inside": [], **{way: [] for way in WAYS}}
    embedded: dict[str, list[float]] = {way: [] for way in (*WAYS, "inside")}
    for number in range(rounds):
        for way in (*WAYS, "inside"):
            library = scratch / "lib"
            shutil.rmtree(home / "indexes" / "polite", ignore_errors=True)
            shutil.copytree(home / "indexes" / "default", home / "indexes" / "polite")
            docs = made_up(scratch / "docs", seed=1000 * number + len(way))
            seconds["idle_machine"] += asked(questions // 2, way="none")
            if way == "inside":
                answer = json.loads(run("ask", str(questions), "inside", str(docs)))
                seconds["inside"] += answer["seconds"]
                embedded["inside"].append(answer["passages_per_s"])
                continue
            with ingesting(docs, way) as rate:
                seconds[way] += asked(questions, way=way)
            embedded[way].append(rate[0])
            shutil.rmtree(library, ignore_errors=True)
    idle = summary(seconds["idle_machine"])
    figures: dict[str, Any] = {"idle": idle, "bound": _BOUND}
    for way in (*WAYS, "inside"):
        found = summary(seconds[way])
        found["p50_ratio"] = round(found["p50_ms"] / idle["p50_ms"], 2)
        found["p95_ratio"] = round(found["p95_ms"] / idle["p95_ms"], 2)
        found["passages_per_s"] = round(statistics.median(embedded[way]), 1)
        figures[way] = found
    figures["within_bound"] = all(figures[way]["p95_ratio"] <= _BOUND for way in ("way", "inside"))
    return figures


def summary(seconds: Sequence[float]) -> dict[str, float]:
    ranked = sorted(seconds)
    pick = [ranked[min(len(ranked) - 1, int(share * len(ranked)))] for share in (0.5, 0.95)]
    return {"p50_ms": round(1000 * pick[0], 2), "p95_ms": round(1000 * pick[1], 2), "count": len(ranked)}


def run(*arguments: str) -> str:
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]


def asked(questions: int, *, way: str) -> list[float]:
    answer: list[float] = json.loads(run("ask", str(questions), way))["seconds"]
    return answer


@contextlib.contextmanager
def ingesting(docs: Path, way: str) -> Iterator[list[float]]:
    """An ingest, from when it embeds; the passages it embedded a second are in the list in the end."""
    rate: list[float] = []
    process = subprocess.Popen(
        [sys.executable, __file__, "ingest", way, str(docs)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "embedding\n"
    try:
        yield rate
    finally:
        process.stdin.close()
        rate.append(float(process.stdout.readline()))
        process.wait()


def made_up(folder: Path, *, seed: int) -> Path:
    """Documents that no library knows yet, enough for minutes."""
    pick = random.Random(seed)
    words = [
        f"{a}{b}{c}" for a in ("ba", "ko", "mi", "ta", "ru") for b in ("den", "lor", "sip") for c in ("", "a", "ing")
    ]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number in range(15):
        passages = (" ".join(pick.choices(words, k=_WORDS)).capitalize() + "." for _ in range(200))
        (folder / f"{number}.md").write_text("\n\n".join(passages))
    return folder


# ------------------------------------------------------------ the children


def session() -> Session:
    os.environ["EDGERAG_LIBRARY_NAME"] = "polite"
    locations = locate(os.environ)
    return Session(load_settings(locations.config_file, os.environ, {}), locations)


def ask_child(questions: str, way: str, docs: str = "") -> None:
    """Asks, and prints how long each question took; with ``docs`` it ingests them meanwhile in another thread."""
    if way not in ("way", "both", "inside"):
        right_of_way.LOCK_NAME = "nobody.lock"
    done: dict[str, float] = {}
    stop = threading.Event()
    with session() as opened:
        opened.search("what is loaded first", limit=10)
        working: threading.Thread | None = None
        if docs:
            began = threading.Event()
            working = threading.Thread(target=lambda: done.update(rate=_ingest(opened, docs, began, stop)))
            working.start()
            began.wait()
        seconds = _ask(opened, int(questions))
        stop.set()
        if working is not None:
            working.join()
    print(json.dumps({"seconds": seconds, "passages_per_s": done.get("rate", 0.0)}))


def _ask(opened: Session, questions: int) -> list[float]:
    pick = random.Random(7)
    words = [
        "how",
        "does",
        "the",
        "borrow",
        "checker",
        "decide",
        "which",
        "value",
        "may",
        "be",
        "moved",
        "or",
        "copied",
        "into",
        "another",
        "thread",
        "of",
        "a",
        "program",
    ]
    seconds = []
    for _ in range(questions):
        time.sleep(pick.uniform(*_GAP_S))
        question = " ".join(pick.sample(words, 9))
        began = time.perf_counter()
        opened.search(question, limit=10)
        seconds.append(time.perf_counter() - began)
    return seconds


def ingest_child(way: str, docs: str) -> None:
    with session() as opened:
        step_back(opened.settings.ingest.nice)
        if way in ("sched_idle", "both"):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        stop, began = threading.Event(), threading.Event()

        def tell() -> None:
            began.wait()
            print("embedding", flush=True)
            sys.stdin.read()
            stop.set()

        threading.Thread(target=tell, daemon=True).start()
        print(_ingest(opened, docs, began, stop), flush=True)


def _ingest(opened: Session, docs: str, began: threading.Event, stop: threading.Event) -> float:
    """Passages embedded a second from when the first were until ``stop``."""
    first = last = (0.0, 0)
    for event in opened.ingest([Path(docs)], cancelled=stop.is_set):
        if isinstance(event, IngestProgress) and event.chunks_done:
            last = (time.monotonic(), event.chunks_done)
            if not began.is_set():
                first = last
                began.set()
    seconds = last[0] - first[0]
    return (last[1] - first[1]) / seconds if seconds > 0 else 0.0


_CHILDREN: dict[str, Callable[..., None]] = {"ask": ask_child, "ingest": ingest_child}

if __name__ == "__main__":
    main()
