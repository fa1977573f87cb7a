"""Faults of seven kinds, drawn at random, in the life of a small library: is anything lost, is anything wrong said?

    python bench/injected_faults.py [--faults 280] [--seed 1] [--only KIND] [--json FILE]

Process faults stop or disturb an ingest, a compaction, the bringing up of an old library, a backup, an import, a
conversation or a repair: killed at a call that changes a file or at any moment, a full disk (ENOSPC), a bad one (EIO,
of writes and of reads), no memory (an allocation that fails, or all from one on; RLIMIT_AS). Storage faults change
what lies there: a flipped bit, a file cut short, a file gone (but not conversations: without their file nothing tells
of them); of the database with and without its checksums, of segments, conversations and packages.

After each the program is used as a user would: searched, verified, repaired, fed again. Judged is

    lost     a document or conversation that was committed is gone or changed, and nothing said so
    wrong    a passage that no document has, or passages missing from an answer, and nothing said so
    unwhole  after a process fault: the library does not verify, or the next run does not end where it should
    raw      an error without a sentence

tests/faults stops a writer at every single call; here is everything else, at random. Linux, a C compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from injected_faults_material import (
    Operation,
    Truth,
    answers_of,
    damage,
    ended_word,
    flip,
    is_named,
    named_by,
    queries_for,
    write_documents,
)
from record import CHECKOUT, record

from edgerag.threads.sums import DAMAGED

sys.path.append(str(CHECKOUT / "tests"))
from faults.children import EXPLAINED, FINISHED, RAW  # type: ignore[import-not-found]
from faults.harness import build_shim, environment, why_not  # type: ignore[import-not-found]

_LEAST_ROOM_BYTES, _ROOM_BYTES = 100_000, 48_000_000  # of address space that a starved process may still take
GOLDEN = CHECKOUT / "tests" / "golden" / "libraries"
KINDS = ("kill", "full disk", "bad disk", "no memory", "flipped bit", "cut short", "missing")
_OF_PROCESSES = {
    "kill": ("kill-before", "kill-after", "kill-timed"),
    "full disk": ("enospc", "full"),
    "bad disk": ("eio", "dead", "read-eio", "read-eio-lasting"),
    "no memory": ("alloc", "alloc", "alloc-lasting", "oom"),
}


class Program:
    """The child that runs jobs."""

    def __init__(self, scratch: Path) -> None:
        shims = [build_shim(scratch), scratch / "read.so"]
        source = str(CHECKOUT / "bench" / "injected_faults_shim.c")
        command = ["cc", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(shims[1]), source, "-ldl"]
        subprocess.run(command, check=True)
        preloaded = environment(LD_PRELOAD=":".join(map(str, shims)))
        preloaded["PYTHONPATH"] += os.pathsep + str(CHECKOUT / "bench")
        self._process = subprocess.Popen(
            [sys.executable, str(CHECKOUT / "bench" / "injected_faults_child.py"), str(scratch / "warm")],
            env=preloaded,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def do(self, job: str, home: Path, *, fault: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"job": job, "home": str(home), "fault": fault, **arguments}) + "\n")
        self._process.stdin.flush()
        result: dict[str, Any] = json.loads(self._process.stdout.readline())
        return result

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


class Bench:
    def __init__(self, scratch: Path, seed: int) -> None:
        self.scratch = scratch
        self.pick = random.Random(seed)
        self.docs = scratch / "docs"  # one path for both states of the folder
        self.program = Program(scratch)
        self.points: list[dict[str, Any]] = []
        self._number = 0

    # -------------------------------------------------------- what there is

    def prepare(self) -> None:
        for state in ("first", "second"):
            write_documents(self.scratch / state, second=state == "second")
        one = self.scratch / "first-home"
        self.use("first")
        self.must("ingest", one, docs=str(self.docs))
        self.must("converse", one, queries=["What is the pressure of the valve?", "And the lid screws?"])
        self.must("backup", one)
        (one / "out.edgerag").rename(self.scratch / "in.edgerag")
        self.first = self.truth(one)
        two = self.scratch / "second-home"
        shutil.copytree(one, two)
        self.use("second")
        self.must("ingest", two, docs=str(self.docs))
        self.second = self.truth(two)
        arriving = self.scratch / "arriving-home"
        arriving.mkdir()
        shutil.copy(self.scratch / "in.edgerag", arriving)
        damaged = self.scratch / "damaged-home"
        shutil.copytree(two, damaged)
        flip(damaged / "indexes" / "default" / "library.sqlite", random.Random(5), times=3)
        queries = list(self.second.answers)
        self.operations = [
            Operation("ingest", "ingest", "first-home", self.first, self.second, {"docs": str(self.docs)}),
            Operation("compact", "compact", "second-home", self.second, self.second),
            Operation("backup", "backup", "first-home", self.first, self.first),
            Operation("import", "arrive", "arriving-home", None, self.first),
            Operation("ask", "converse", "second-home", self.second, self.second, {"queries": queries[:3]}),
            Operation("repair", "repair", "damaged-home", self.second, self.second),
            *(self.old(version) for version in ("01", "10")),
        ]

    def old(self, version: str) -> Operation:
        home = self.scratch / f"old-{version}-home"
        with tarfile.open(GOLDEN / f"library-v{version}.tar.xz") as tar:
            tar.extractall(home / "indexes" / "default", filter="data")
        brought_up = self.scratch / f"new-{version}-home"
        shutil.copytree(home, brought_up)
        truth = self.truth(brought_up)
        queries = ["heron", "lid screws"]
        return Operation(f"bring up {version}", "search", home.name, truth, truth, {"queries": queries})

    def use(self, state: str) -> None:
        shutil.rmtree(self.docs, ignore_errors=True)
        shutil.copytree(self.scratch / state, self.docs)

    def must(self, job: str, home: Path, **arguments: Any) -> dict[str, list[Any]]:
        done = self.program.do(job, home, **arguments)
        assert done["code"] == FINISHED, (job, done)
        told: dict[str, list[Any]] = done["told"]
        return told

    def truth(self, home: Path) -> Truth:
        texts = dict(self.must("content", home)["document"])
        return Truth(texts, answers_of(self.must("search", home, queries=queries_for(texts))))

    @contextmanager
    def case(self, base: str) -> Iterator[Path]:
        self._number += 1
        home = self.scratch / f"case-{self._number}"
        shutil.copytree(self.scratch / base, home)
        try:
            yield home
        finally:
            shutil.rmtree(home)

    # -------------------------------------------------------- faults of processes

    def process_fault(self, kind: str, operation: Operation) -> None:
        how = self.pick.choice(_OF_PROCESSES[kind])
        with self.case(operation.base) as home:
            counts, length_us = self.measured(operation)
            # Evenly by orders of magnitude: most of what needs memory needs little.
            room = int(_LEAST_ROOM_BYTES * (_ROOM_BYTES / _LEAST_ROOM_BYTES) ** self.pick.random())
            at = {"oom": room, "kill-timed": 1 + self.pick.randrange(length_us)}.get(how)
            if at is None:
                which = 1 if how.startswith("read") else 2 if how.startswith("alloc") else 0
                at = 1 + self.pick.randrange(max(1, counts[which]))
            ended = self.program.do(operation.job, home, fault={"kind": how, "at": at}, **operation.arguments)
            found: dict[str, list[Any]] = {"lost": [], "wrong": [], "unwhole": [], "raw": []}
            self.judge_end(ended, how, found)
            self.judge_shown(ended, operation, found)
            self.judge_left(home, operation, ended, found)
        self.tell(kind, operation.name, {"how": how, "at": at, "ended": ended_word(ended)}, found)

    _measured: dict[str, tuple[list[int], int]] = {}  # noqa: RUF012 - of undisturbed runs, once

    def measured(self, operation: Operation) -> tuple[list[int], int]:
        import time

        if operation.name not in self._measured:
            with self.case(operation.base) as home:
                began = time.perf_counter()
                done = self.program.do(operation.job, home, fault={"kind": "count"}, **operation.arguments)
                length_us = int(1e6 * (time.perf_counter() - began))
            assert done["code"] == FINISHED, (operation.name, done)
            self._measured[operation.name] = (done["told"]["counts"][0], length_us)
        return self._measured[operation.name]

    def judge_end(self, ended: dict[str, Any], how: str, found: dict[str, list[Any]]) -> None:
        if ended["hung"]:
            found["raw"].append("it hung")
        elif ended["code"] == RAW:
            name, trace, _ = ended["told"]["error"][0]
            found["raw"].append([name, trace[-900:]])
        elif ended["code"] < 0 and not how.startswith("kill"):
            found["raw"].append(f"ended by signal {-ended['code']}")

    def judge_shown(self, ended: dict[str, Any], operation: Operation, found: dict[str, list[Any]]) -> None:
        """What it had answered by then."""
        truths = [truth for truth in (operation.before, operation.after) if truth]
        for query, passages, _ in ended["told"].get("answer", []):
            found["wrong"] += [[query, each] for each in passages if not any(truth.holds(each) for truth in truths)]

    def judge_left(self, home: Path, operation: Operation, ended: dict[str, Any], found: dict[str, list[Any]]) -> None:
        told = ended["told"]
        if operation.name == "ask":
            asked = [question for question, *_ in self.must("questions", home)["questions"][0]]
            found["lost"] += [query for query in told.get("asked", []) if query not in asked]
        if operation.name == "backup" and (home / "out.edgerag").exists():
            self.judge_package(home, operation.after, found)
        left = self.program.do("content", home)
        is_missing = left["code"] == EXPLAINED and left["told"]["error"][0][0] == "LibraryMissing"
        if not (operation.before is None and is_missing) and operation.name != "repair":
            if left["code"] != FINISHED:
                found["lost"].append(left["told"].get("error"))
                return
            self.judge_documents(dict(left["told"].get("document", [])), operation, ended, found)
            verified = self.program.do("verify", home)
            if verified["code"] != FINISHED or any(verified["told"]["findings"]):
                found["unwhole"].append(verified["told"])
        again = self.program.do(operation.job, home, **operation.arguments)
        if operation.name in ("backup", "import") and again["code"] == EXPLAINED:
            again["code"] = FINISHED if "there already" in str(again) or "something at" in str(again) else RAW
        if again["code"] != FINISHED:
            found["unwhole"].append(["again", again["told"].get("error")])
            return
        self.judge_end_state(home, operation, again, found)

    def judge_documents(
        self, texts: dict[str, str], operation: Operation, ended: dict[str, Any], found: dict[str, list[Any]]
    ) -> None:
        """Each is as it was before or as it is after."""
        before = (operation.before or operation.after).texts
        after = operation.after.texts
        for path in {*before, *after, *texts}:
            allowed = {before.get(path), after.get(path)}
            if operation.before is None:
                allowed = {after[path]}
            if ended["code"] == FINISHED:
                allowed = {after.get(path)}
            if texts.get(path) not in allowed:
                found["lost" if path not in texts else "wrong"].append([path, (texts.get(path) or "")[:200]])

    def judge_end_state(
        self, home: Path, operation: Operation, again: dict[str, Any], found: dict[str, list[Any]]
    ) -> None:
        texts = dict(self.must("content", home).get("document", []))
        named = named_by([again])
        for path in {*operation.after.texts, *texts}:
            if texts.get(path) != operation.after.texts.get(path) and path not in named:
                found["unwhole"].append(["in the end", path])
        answered = self.must("search", home, queries=list(operation.after.answers))
        self.compare(answered, operation.after, found, is_named=bool(named))

    def judge_package(self, home: Path, truth: Truth, found: dict[str, list[Any]]) -> None:
        other = home / "elsewhere"
        other.mkdir()
        shutil.move(home / "out.edgerag", other / "in.edgerag")
        arrived = self.program.do("arrive", other)
        if arrived["code"] != FINISHED or dict(self.must("content", other)["document"]) != truth.texts:
            found["unwhole"].append(["the package", arrived["told"]])
        shutil.rmtree(other)

    # -------------------------------------------------------- faults of storage

    def storage_fault(self, kind: str, target: str) -> None:
        with self.case("arriving-home" if target == "package" else "second-home") as home:
            library = home / "indexes" / "default"
            sums = target != "database, no sums"
            if not sums:
                (library / "library.sums").unlink()  # as after a writer that was killed
            path = {
                "sums": library / "library.sums",
                "segment": self.pick.choice(sorted((library / "segments").glob("*.hnsw")) or [library]),
                "conversations": home / "threads.sqlite",
                "package": home / "in.edgerag",
            }.get(target, library / "library.sqlite")
            detail = damage(path, kind, self.pick)
            found: dict[str, list[Any]] = {"lost": [], "wrong": [], "unwhole": [], "raw": []}
            steps = {
                "conversations": self.after_conversations,
                "package": self.after_package,
            }.get(target, self.after_library)(home, found)
        self.tell(kind, target, {"file": path.name, "detail": detail, "steps": steps}, found)

    def after_conversations(self, home: Path, found: dict[str, list[Any]]) -> list[str]:
        with self.case("second-home") as whole:
            truth = self.must("questions", whole)["questions"][0]
        seen = self.program.do("questions", home)
        self.judge_end(seen, "", found)
        if seen["code"] == FINISHED:
            kept, damage = seen["told"]["questions"][0], seen["told"]["damage"][0]
            found["wrong"] += [each for each in kept if each not in truth and each[0] != DAMAGED]
            if len([each for each in kept if each in truth]) < len(truth) and not damage:
                found["lost"] += [each for each in truth if each not in kept]
        return [ended_word(seen)]

    def after_package(self, home: Path, found: dict[str, list[Any]]) -> list[str]:
        arrived = self.program.do("arrive", home)
        self.judge_end(arrived, "", found)
        if arrived["code"] == FINISHED and dict(self.must("content", home)["document"]) != self.first.texts:
            found["wrong"].append("what arrived is not what left")
        if arrived["code"] != FINISHED and (home / "indexes" / "default").exists():
            found["unwhole"].append("half a library arrived")
        return [ended_word(arrived)]

    def after_library(self, home: Path, found: dict[str, list[Any]]) -> list[str]:
        truth = self.second
        searched = self.program.do("search", home, queries=list(truth.answers))
        asked = self.program.do("converse", home, queries=list(truth.answers)[:2])
        read = self.program.do("content", home)
        verified = self.program.do("verify", home)
        steps = [searched, asked, read, verified]
        for step in steps:
            self.judge_end(step, "", found)
        for query, passages, _ in [*searched["told"].get("answer", []), *asked["told"].get("answer", [])]:
            found["wrong"] += [[query, each] for each in passages if not truth.holds(each)]
        if searched["code"] == FINISHED:
            said = any(notes for _, _, notes in searched["told"]["answer"])
            self.compare(searched["told"], truth, found, is_named=said)
        found["wrong"] += [path for path, text in read["told"].get("document", []) if truth.texts.get(path) != text]
        gone = set(truth.texts) - {path for path, _ in read["told"].get("document", [])}
        if gone and read["code"] == FINISHED and not is_named(verified) and not read["told"].get("unreadable"):
            found["lost"] += sorted(gone)
        mended = self.program.do("repair", home)
        self.judge_end(mended, "", found)
        steps.append(mended)
        if mended["code"] == FINISHED:
            texts = dict(self.must("content", home).get("document", []))
            named = named_by([mended])
            for path, text in truth.texts.items():
                if (
                    texts.get(path) != text
                    and not ({path} | {"documents"}) & named
                    and not any("#" in n for n in named)
                ):
                    found["lost" if path not in texts else "wrong"].append(["repaired", path])
            again = self.program.do("ingest", home, docs=str(self.docs))
            steps.append(again)
            self.judge_end(again, "", found)
            if again["code"] == FINISHED:
                texts = dict(self.must("content", home).get("document", []))
                if texts != truth.texts:
                    found["unwhole"].append(["fed again", sorted(set(truth.texts) ^ set(texts))])
                verified = self.program.do("verify", home)
                if verified["code"] != FINISHED or any(verified["told"]["findings"]):
                    found["unwhole"].append(["fed again", verified["told"]])
                self.compare(self.must("search", home, queries=list(truth.answers)), truth, found, is_named=False)
            else:
                found["unwhole"].append(["fed again", again["told"].get("error")])
        return [ended_word(step) + ("!" if is_named(step) else "") for step in steps]

    def compare(self, told: dict[str, Any], truth: Truth, found: dict[str, list[Any]], *, is_named: bool) -> None:
        """Passages that no document has are wrong; passages that are missing are, where nothing says so."""
        for query, passages, _ in told.get("answer", []):
            found["wrong"] += [[query, each] for each in passages if not truth.holds(each)]
        if not is_named:
            for query, places in answers_of(told).items():
                missing = [place for place in truth.answers[query][:1] if place not in places]
                found["wrong"] += [[query, "without", place] for place in missing]

    def tell(self, kind: str, into: str, facts: dict[str, Any], found: dict[str, list[Any]]) -> None:
        point = {"kind": kind, "into": into, **facts, **{name: each for name, each in found.items() if each}}
        self.points.append(point)
        print(len(self.points), json.dumps(point, ensure_ascii=False)[:600], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--faults", type=int, default=280)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=KINDS, action="append", help="kinds of faults (default: all)")
    parser.add_argument("--into", default="", help="only this operation or file")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    if reason := why_not():
        parser.error(reason)
    memory = Path("/dev/shm")  # a process that is killed loses nothing that the kernel has
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        bench = Bench(Path(folder), arguments.seed)
        bench.prepare()
        draws = all_draws(bench, arguments.only or KINDS, arguments.into)
        for number in range(arguments.faults):
            draws[number % len(draws)]()
        bench.program.close()
    record_result(bench.points, arguments)


def all_draws(bench: Bench, kinds: tuple[str, ...] | list[str], into: str) -> list[Callable[[], None]]:
    """One of each kind after the other, each time into something else."""
    places = {kind: [each.name for each in bench.operations] for kind in _OF_PROCESSES}
    stored = ["database", "database", "database, no sums", "segment", "segment", "sums", "conversations", "package"]
    by_name = {operation.name: operation for operation in bench.operations}

    def draw(kind: str) -> None:
        possible = [place for place in places.get(kind, stored) if into in place]
        if kind == "missing":  # conversations that are gone cannot be told from those that nobody had
            possible = [place for place in possible if place not in ("conversations", "package")]
        chosen = bench.pick.choice(possible)
        if kind in _OF_PROCESSES:
            bench.process_fault(kind, by_name[chosen])
        else:
            bench.storage_fault(kind, chosen)

    return [lambda kind=kind: draw(kind) for kind in kinds]  # type: ignore[misc]


def record_result(points: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    judged = ("lost", "wrong", "unwhole", "raw")
    figures = {
        "faults": len(points),
        **{name: sum(name in point for point in points) for name in judged},
        "by_kind": Counter(point["kind"] for point in points),
        "by_place": Counter(point["into"] for point in points),
        "ended": Counter(point["ended"] for point in points if "ended" in point),
        "each": points,
    }
    print(json.dumps({name: value for name, value in figures.items() if name != "each"}, indent=2))
    print(record("faults", figures, parameters={"seed": arguments.seed}, file=arguments.json))
    sys.exit(any(name in point for point in points for name in judged))


if __name__ == "__main__":
    main()
