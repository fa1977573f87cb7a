"""Invariant 2: whatever stops the writer, the last committed library is whole and the next run goes on.

The writer of tests/faults is stopped at its system calls by a preloaded library. Here a sample of all places and
faults is tried; `make faults` tries them all. What is asserted each time: the library opens and verifies, it holds
what was committed, searches equal exact search, the next run ends as an undisturbed one and leaves nothing behind, and
where an error reaches the user it is one sentence with what to do.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from faults import harness, replay, writer
from faults.state import read_state

if harness.why_not():
    pytest.skip(f"nothing can be injected: {harness.why_not()}", allow_module_level=True)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return harness.build_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture(scope="module")
def worker(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Worker]:
    with harness.running(shim, tmp_path_factory.mktemp("worker")) as running:
        yield running


@pytest.fixture(scope="module")
def traced(worker: harness.Worker) -> tuple[dict[str, Any], list[harness.Call]]:
    return worker.trace()


def test_every_change_of_a_file_is_counted(traced: Any) -> None:
    run, calls = traced
    assert run["whole"], "the calls that were counted rebuild the files byte by byte: none went another way"
    seen = {(call.op, call.role) for call in calls}
    assert ("write", "hnsw.graph.tmp") in seen, "hnswlib's ofstream"
    assert {("write", "sqlite"), ("write", "sqlite-wal"), ("fsync", "sqlite-wal"), ("unlink", "sqlite-wal")} <= seen
    assert {("write", "hnsw.tmp"), ("fsync", "hnsw.tmp"), ("rename", "hnsw"), ("fsync", "segments")} <= seen
    assert {("unlink", "hnsw"), ("mkdir", "segments"), ("fsync", "lib"), ("fsync", "base")} <= seen


def test_the_run_that_is_disturbed_does_everything(traced: Any) -> None:
    layouts = [segments for segments, _ in traced[0]["layouts"]]
    assert any(dead for segments in layouts for _, dead in segments), "rows of sealed segments were removed"
    assert any(len(before) > len(after) for before, after in pairwise(layouts)), "merged"
    assert max(map(len, layouts)) >= 3
    assert "compact" in traced[0]["steps"]


def test_the_same_calls_are_made_each_time(worker: harness.Worker, traced: Any) -> None:
    again = [(call.op, call.name) for call in worker.trace()[1]]
    assert again == [(call.op, call.name) for call in traced[1]], "a place has the same number in every run"


KINDS = ["kill-before", "kill-after", "eio", "dead", "enospc", "full", "short", "short-full", "short-kill"]


@pytest.mark.parametrize("every", [6, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_stopped_anywhere_nothing_committed_is_lost(worker: harness.Worker, traced: Any, kind: str, every: int) -> None:
    points = harness.sample(traced[1], kind, every=every)
    assert len(points) >= 2
    wrong, ended = [], set()
    for number, (call, retry) in enumerate(points):
        again = not retry and number % 3 == 0  # the run after it meets the same fault
        answer = worker.do("fault", at=call.number, kind=kind, retry=retry, again=again)
        ended.add(answer["ended"])
        wrong += [f"{call} {'and on' if retry else ''}: {text}" for text in answer["wrong"]]
    assert wrong == []
    assert ended & {"killed", "refused"} or kind == "short", "the fault did happen"


def test_after_a_power_loss_what_was_committed_is_there(worker: harness.Worker, traced: Any) -> None:
    lost = worker.do("power", variants=list(replay.VARIANTS), every=151)
    assert lost["wrong"] == []
    assert lost["states"] > 25


def test_a_library_that_was_only_being_made_is_not_called_damaged(worker: harness.Worker, traced: Any) -> None:
    """Its first page may be torn, and a reader cannot undo that; the next writer does."""
    first = next(call.number for call in traced[1] if (call.op, call.role) == ("write", "sqlite"))
    lost = worker.do("power", variants=["sized", "torn"], every=1, calls=[first, first + 3])
    assert lost["wrong"] == []
    assert lost["states"] > 3


@pytest.mark.parametrize("forgotten", [".hnsw.tmp", "/segments", "-wal"])
def test_a_forgotten_sync_would_be_noticed(worker: harness.Worker, traced: Any, forgotten: str) -> None:
    """The same test, on a log from which these syncs are left out: it must fail."""
    sealed = [call.number for call in traced[1] if call.op == "fsync" and call.role == "segments"]
    place = [sealed[1], sealed[1] + 1]  # the first seal was committed long before
    lost = worker.do("power", variants=["lost", "names"], every=1, calls=place, unsynced=forgotten)
    assert lost["wrong_count"] > 0


# ------------------------------------------------------------ as the user sees it


def run_command(home: Path, shim: Path, at: int, kind: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    folder = home / "indexes" / "default"
    faults = {"LD_PRELOAD": str(shim), "FAULTS_FOLDER": str(folder), "FAULTS_AT": str(at), "FAULTS_KIND": kind}
    environ = harness.environment(EDGERAG_HOME=str(home), **faults)
    command = [sys.executable, "-m", "edgerag", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("full", ("remove", "/docs/a")),
        ("eio", ("remove", "/docs/a")),
        ("full", ("library", "compact")),
        ("dead", ("library", "compact")),
    ],
)
def test_a_command_that_cannot_write_says_so_in_a_sentence(
    tmp_path: Path, shim: Path, kind: str, arguments: tuple[str, ...]
) -> None:
    folder = tmp_path / "indexes" / "default"
    folder.parent.mkdir()
    # Up to where a removal of "b" has left a graph half dead: there is something to compact.
    prepare(folder, steps=9)
    before = read_state(folder)
    done = run_command(tmp_path, shim, 12, kind, *arguments)
    assert done.returncode == 5, done.stderr
    assert "Traceback" not in done.stderr
    said = done.stderr.strip().splitlines()
    assert len(said) <= 2
    assert str(folder) in said[-1] or str(folder) in said[0]
    assert "Free some space" in done.stderr
    after = read_state(folder)
    assert (after.content, after.wrong) == (before.content, [])


@pytest.mark.parametrize(
    ("kind", "at"),
    [
        pytest.param(kind, at, marks=() if (kind, at) in (("full", 1), ("enospc", 2), ("eio", 4)) else pytest.mark.long)
        for kind in ("full", "enospc", "eio")
        for at in (1, 2, 4)
    ],
)
def test_a_full_disk_keeps_nobody_from_reading(tmp_path: Path, shim: Path, kind: str, at: int) -> None:
    """A reader needs room beside the database too, and goes on without where there is none."""
    folder = tmp_path / "indexes" / "default"
    folder.parent.mkdir()
    prepare(folder, steps=9)
    done = run_command(tmp_path, shim, at, kind, "library", "verify")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "library.sqlite is whole" in done.stdout


def test_changes_that_a_full_disk_keeps_from_being_read_are_not_passed_over(tmp_path: Path, shim: Path) -> None:
    folder = tmp_path / "indexes" / "default"
    folder.parent.mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", f"import os, signal\n{KILLED}", str(folder)], env=harness.environment(), check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert (folder / "library.sqlite-wal").stat().st_size
    (folder / "library.sqlite-shm").unlink()  # as after a restart of the machine
    for kind, at in (("full", 1), ("enospc", 2)):
        done = run_command(tmp_path, shim, at, kind, "library", "verify")
        assert done.returncode == 5, done.stderr
        assert "library.sqlite-wal holds changes" in done.stderr
        assert "Free some space" in done.stderr
        assert "Traceback" not in done.stderr
    state = read_state(folder)  # once there is room
    assert state.wrong == []
    assert state.content is not None
    assert "a word3" in state.content


KILLED = """
import os, signal, sys
from pathlib import Path
from faults import writer
with writer.open_small(Path(sys.argv[1]), "write") as library:
    writer.STEPS[0].run(library)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def prepare(folder: Path, *, steps: int) -> None:
    with writer.open_small(folder, "write") as library:
        for step in writer.STEPS[:steps]:
            step.run(library)


# ------------------------------------------------------------ a disk that is really full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted folder of 64 KiB, to be made larger by :func:`resize`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def resize(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Takes all room that is left; gives the file that does."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


@pytest.mark.long
def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    folder = small_disk / "lib"
    done, stopped = 0, 0
    command = [sys.executable, "-m", "faults.writer", str(folder)]
    for size in ("64k", "200k", "300k", "400k", "500k", "700k", "8m"):
        resize(small_disk, size)
        run = subprocess.run(
            [*command, str(done)], env=harness.environment(), capture_output=True, text=True, check=False, timeout=60
        )
        steps = [int(line.split()[0]) for line in run.stdout.splitlines()]
        done = max([done, *steps])
        filler = fill(small_disk)
        state = read_state(folder)  # a full disk keeps nobody from reading
        filler.unlink()
        assert state.wrong == []
        if run.returncode == 0:
            break
        stopped += 1
        assert run.returncode == 5, run.stderr
        assert run.stderr.startswith("StorageFull: "), run.stderr
        assert "Free some space" in run.stderr
    assert done == len(writer.STEPS)
    assert stopped >= 4
    assert not [path.name for path in folder.rglob("*.tmp")]


def test_a_library_opens_for_reading_on_a_full_disk(small_disk: Path) -> None:
    resize(small_disk, "8m")
    folder = small_disk / "lib"
    prepare(folder, steps=9)
    before = read_state(folder)
    for left in folder.glob("*-shm"):  # as after the last process is gone
        left.unlink()
    filler = fill(small_disk)
    with writer.open_small(folder, "read") as reader:
        query = writer.embed(["query 1"])[0]
        hits = reader.search_vectors(query, limit=5, ef_search=100)
        assert len(hits) == 5
        assert read_state(folder) == before
        # Once there is room a writer can come, and the reader follows it.
        filler.unlink()
        with writer.open_small(folder, "write") as library:
            writer.remove(library, "/docs/a")
            library.seal()
            assert {chunk.path for chunk in reader.chunks([hit.chunk_id for hit in hits])} == set()
            found = reader.search_vectors(query, limit=50, ef_search=100)
            assert len(found) == library.chunk_count() - library.pending_count()
