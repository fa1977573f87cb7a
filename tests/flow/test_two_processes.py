"""One library, many readers and one writer, each a process of its own.

Readers see what was committed, whole, without being restarted, whatever becomes of the writer; a second writer is told
who the first is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import harness, writer
from faults.reader import document_lines
from faults.state import read_state

from edgerag.errors import LibraryBusy
from edgerag.index.library import Library


class Process:
    """A child that answers lines."""

    def __init__(self, *arguments: str) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, *arguments],
            env=harness.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self._popen.pid

    def read(self) -> Any:
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        if not line:
            assert self._popen.stderr is not None
            raise AssertionError(f"it ended: {self._popen.stderr.read()}")
        return json.loads(line)

    def ask(self) -> Any:
        assert self._popen.stdin is not None
        self._popen.stdin.write("\n")
        self._popen.stdin.flush()
        return self.read()

    def finish(self) -> Any:
        """Ends its input; gives its last line."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        return self.read()

    def wait(self) -> None:
        assert self._popen.wait(timeout=60) == 0

    def kill(self) -> None:
        self._popen.send_signal(signal.SIGKILL)
        self._popen.wait()

    def close(self) -> None:
        if self._popen.poll() is None:
            self.kill()
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            assert stream is not None
            stream.close()


class Start:
    """Starts readers and writers, and waits until they are there."""

    def __init__(self) -> None:
        self.processes: list[Process] = []

    def __call__(self, *arguments: str) -> Process:
        process = Process(*arguments)
        self.processes.append(process)
        assert process.read() == "ready"
        return process

    def reader(self, mode: str, path: Path) -> Process:
        return self("-m", "faults.reader", mode, str(path))

    def writer(self, folder: Path, *, rounds: int) -> Process:
        return self("-c", WRITER, str(folder), str(rounds))


@pytest.fixture
def start() -> Iterator[Start]:
    started = Start()
    yield started
    for process in started.processes:
        process.close()


# Documents come and go, segments are sealed and merged; a line after each round.
WRITER = """
import sys
from pathlib import Path
from faults.reader import document_lines, say
from faults.writer import embed_pending, open_small, put, remove

with open_small(Path(sys.argv[1]), "write") as library:
    say("ready")
    for _ in range(int(sys.argv[2])):
        embed_pending(library)  # what a writer before this one was killed at
        number = max([0, *(int(document.path[2:]) + 1 for document in library.documents())])
        put(library, f"/d{number}", document_lines(number))
        embed_pending(library)
        if number % 2:
            library.seal()
        remove(library, f"/d{number - 5}")
        if number % 7 == 6:
            library.compact()
        say(number)
"""
ROUNDS = 15


def add(library: Library, number: int) -> None:
    writer.put(library, f"/d{number}", document_lines(number))
    writer.embed_pending(library)


def test_a_reader_follows_the_writer_without_being_restarted(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "lib"
    with writer.open_small(folder, "write") as library:
        reader = start.reader("follow", folder)
        assert reader.ask() == {"documents": [], "wrong": [], "segments": [], "words": 0}
        add(library, 0)
        assert reader.ask() == {"documents": [0], "wrong": [], "segments": [], "words": 1}
        library.seal()
        sealed = reader.ask()
        assert (sealed["documents"], len(sealed["segments"]), sealed["wrong"]) == ([0], 1, [])
        add(library, 1)
        library.seal(merge=False)
        assert len(reader.ask()["segments"]) == 2
        writer.remove(library, "/d0")
        removed = reader.ask()
        assert (removed["documents"], removed["words"], len(removed["segments"])) == ([1], 1, 2)
        library.compact()
        compacted = reader.ask()
        assert (compacted["documents"], len(compacted["segments"]), compacted["wrong"]) == ([1], 1, [])
        assert not set(compacted["segments"]) & set(sealed["segments"])
    assert reader.ask() == compacted, "and after the writer has gone"


def test_a_segment_that_was_merged_away_stays_good_for_who_has_it_open(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "lib"
    with writer.open_small(folder, "write") as library:
        add(library, 0)
        add(library, 1)
        library.seal()
        (file,) = (folder / "segments").iterdir()
        holder = start.reader("hold", file)
        writer.remove(library, "/d0")
        library.compact()
        assert holder.ask() == {"same": True, "damage": [], "exists": False}


@pytest.mark.long
def test_many_readers_and_one_writer(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "lib"
    with writer.open_small(folder, "write") as library:
        add(library, 0)
    readers = [start.reader("loop", folder) for _ in range(4)]
    working = start.writer(folder, rounds=ROUNDS)
    assert [working.read() for _ in range(ROUNDS)] == list(range(1, ROUNDS + 1))
    found = [reader.finish() for reader in readers]
    assert [each["wrong"] for each in found] == [[]] * 4
    assert all(each["states"] > 2 for each in found), "they saw the library change"
    assert [each["documents"] for each in found] == [read_whole(folder)] * 4, "and its last state"


def read_whole(folder: Path) -> list[int]:
    state = read_state(folder)
    assert state.wrong == []
    assert state.content is not None
    return sorted(int(document[0][2:]) for document in json.loads(state.content)["documents"])


def test_readers_outlive_writers_that_are_killed(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "lib"
    with writer.open_small(folder, "write") as library:
        add(library, 0)
    readers = [start.reader("loop", folder) for _ in range(2)]
    for rounds in (0, 1, 3, 6):
        working = start.writer(folder, rounds=ROUNDS)
        for _ in range(rounds):
            working.read()
        working.kill()
    last = start.writer(folder, rounds=2)
    assert last.read() + 1 == last.read()
    last.wait()
    found = [reader.finish() for reader in readers]
    assert [each["wrong"] for each in found] == [[]] * 2
    assert all(each["states"] > 2 for each in found)
    assert [each["documents"] for each in found] == [read_whole(folder)] * 2
    names = [path.name for path in (folder / "segments").iterdir()]
    assert not [name for name in names if name.endswith(".tmp")]


def test_a_second_writer_is_told_who_the_first_is(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "indexes" / "default"
    folder.parent.mkdir()
    first = start.writer(folder, rounds=10**6)
    command = [sys.executable, "-m", "edgerag", "remove", "/d0"]
    environ = harness.environment(EDGERAG_HOME=str(tmp_path))
    refused = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 3
    assert f"(pid {first.pid})" in refused.stderr
    assert str(folder) in refused.stderr
    assert "Wait until it is done, or stop it." in refused.stderr
    assert "Traceback" not in refused.stderr
    with pytest.raises(LibraryBusy, match=str(first.pid)):
        writer.open_small(folder, "write")
    first.kill()
    with writer.open_small(folder, "write") as library:  # at once: no lock is left behind
        assert library.verify()[0].severity == "ok"


def test_a_child_of_the_writer_does_not_hold_its_lock(tmp_path: Path) -> None:
    with writer.open_small(tmp_path / "lib", "write"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        writer.open_small(tmp_path / "lib", "write").close()
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
