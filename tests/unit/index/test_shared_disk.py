"""A library on a disk that machines share (NFS, CIFS, a virtual machine's folder): locks alone, no shared memory.

There is no such disk here: the table of mounts is made to say so. What differs there is how SQLite keeps transactions,
and that is the real thing.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgerag import advice
from edgerag.errors import LibraryDamaged, LibraryMissing
from edgerag.index.store import Store
from edgerag.machine import mounts
from edgerag.telemetry.ring import TraceRing
from edgerag.threads.store import ThreadStore

ROOT = Path(__file__).parents[3]
SHARED = "36 35 0:40 / / rw - nfs4 server:/home rw\n"
PUT = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"
# Changes far more than SQLite keeps in memory, so that the file itself is half changed when the process is killed.
KILLED = f"""
import os, signal, sys
from pathlib import Path
from edgerag.machine import mounts
mounts._mount_lines = lambda _: {SHARED!r}
from edgerag.index.store import Store
store = Store(Path(sys.argv[1]), mode="write")
with store.writing() as db:
    db.execute("PRAGMA cache_size = 10")
    db.execute("UPDATE meta SET value = 'half' WHERE key = 'k'")
    for number in range(300):
        db.execute({PUT!r}, (str(number), "x" * 20_000))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(mounts, "_mount_lines", lambda _: SHARED)
    yield


def put(store: Store, key: str, value: str) -> None:
    with store.writing() as db:
        db.execute(PUT, (key, value))


def value(store: Store, key: str) -> str | None:
    with store.reading() as db:
        row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def journal(folder: Path) -> str:
    connection = sqlite3.connect(folder / "library.sqlite")
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    connection.close()
    return str(mode)


def killed(folder: Path) -> None:
    """A library with k = v, whose writer was killed in the middle of a large transaction."""
    store = Store(folder, mode="write")
    put(store, "k", "v")
    store.close()
    whole = (folder / "library.sqlite").read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (folder / "library.sqlite").read_bytes() != whole, "nothing was half done"


@pytest.mark.usefixtures("shared")
def test_no_memory_is_shared_there(tmp_path: Path) -> None:
    writer = Store(tmp_path, mode="write")
    put(writer, "k", "v")
    reader = Store(tmp_path, mode="read")
    assert value(reader, "k") == "v"
    put(writer, "k", "w")
    assert value(reader, "k") == "w"
    assert not list(tmp_path.glob("*-shm")) and not list(tmp_path.glob("*-wal"))
    reader.close()
    writer.close()


def test_a_library_may_move_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened_once(key: str) -> None:
        store = Store(tmp_path, mode="write")
        put(store, key, "v")
        store.close_at_rest()

    opened_once("here")
    assert journal(tmp_path) == "wal"
    with monkeypatch.context() as patch:
        patch.setattr(mounts, "_mount_lines", lambda _: SHARED)
        opened_once("there")
        assert journal(tmp_path) == "delete"  # what the file says of all that is not WAL
    opened_once("back")
    assert journal(tmp_path) == "wal"
    store = Store(tmp_path, mode="read")
    assert [value(store, key) for key in ("here", "there", "back")] == ["v", "v", "v"]
    store.close()


@pytest.mark.usefixtures("shared")
def test_a_kill_leaves_the_last_committed_state_to_a_reader(tmp_path: Path) -> None:
    killed(tmp_path)
    reader = Store(tmp_path, mode="read")
    assert value(reader, "k") == "v"
    assert value(reader, "299") is None
    assert reader.damage() == []
    reader.close()


@pytest.mark.usefixtures("shared")
def test_what_cannot_be_undone_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path)
    connect = Store._connect

    def read_only(self: Store, mode: str, *, immutable: bool = False) -> sqlite3.Connection:
        """As SQLite opens a file that it may not write."""
        return connect(self, "ro" if mode == "rw" else mode, immutable=immutable)

    monkeypatch.setattr(Store, "_connect", read_only)
    with pytest.raises(LibraryDamaged, match=r"broken off and must be undone first.*edgerag status"):
        Store(tmp_path, mode="read")


@pytest.mark.usefixtures("shared")
def test_one_that_was_never_finished_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "library.sqlite").write_bytes(b"")
    (tmp_path / "library.sqlite-journal").write_bytes(b"x")
    with pytest.raises(LibraryMissing):
        Store(tmp_path, mode="read")


@pytest.mark.usefixtures("shared")
def test_readers_and_a_writer_wait_for_each_other_and_see_whole_states(tmp_path: Path) -> None:
    writer = Store(tmp_path, mode="write")
    with writer.writing() as db:
        db.executemany(PUT, [("a", "0"), ("b", "0")])
    seen: list[tuple[str | None, ...]] = []
    ended = threading.Event()

    def read() -> None:
        reader = Store(tmp_path, mode="read")
        while not ended.is_set():
            with reader.reading() as db:
                seen.append(tuple(db.execute("SELECT value FROM meta WHERE key = ?", (k,)).fetchone()[0] for k in "ab"))
        reader.close()

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    number = 0
    while (number < 60 or len(set(seen)) < 5) and number < 20_000:
        number += 1
        with writer.writing() as db:
            db.execute(PUT, ("a", str(number)))
            db.execute(PUT, ("b", str(number)))
        ended.wait(0.001)  # an ingest, too, does something else between two commits
    ended.set()
    for thread in threads:
        thread.join()
    assert len(set(seen)) >= 5
    assert all(a == b for a, b in seen)
    writer.close()


@pytest.mark.usefixtures("shared")
def test_conversations_and_traces_share_no_memory_either(tmp_path: Path) -> None:
    ThreadStore(tmp_path / "threads.sqlite").close()
    ring = TraceRing(tmp_path / "traces.sqlite", writing=mounts.journal_for(tmp_path / "traces.sqlite"))
    ring.close()
    for name in ("threads.sqlite", "traces.sqlite"):
        assert (tmp_path / name).read_bytes()[18:20] == b"\x01\x01", name  # of SQLite's header: 2 is WAL


@pytest.mark.usefixtures("shared")
def test_doctor_says_so(tmp_path: Path) -> None:
    (finding,) = advice.shared_findings(tmp_path / "home")
    assert "nfs4" in finding.message
    assert "wait for each other" in finding.message


def test_a_disk_of_this_machine_is_not_mentioned(tmp_path: Path) -> None:
    assert advice.shared_findings(tmp_path) == []


def test_a_library_with_documents_lives_there(
    opened: Any, material: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ingest, seal, search and closing at rest, as elsewhere; copied to a local disk it is the same."""
    monkeypatch.setattr(mounts, "_mount_lines", lambda _: SHARED)
    library = opened()
    material.put(library, "/docs/a", ["the red pump", "the blue valve"])
    material.embed_pending(library)
    library.seal()
    library.close()
    reader = opened("read")
    (hit,) = reader.search_vectors(material.vector("the red pump"), limit=1, ef_search=10)
    assert reader.chunks([hit.chunk_id])[0].chunk.text == "the red pump"
    assert all(finding.severity != "error" for finding in reader.verify())
    reader.close()
    (database,) = tmp_path.rglob("library.sqlite")
    assert (database.parent / "library.sums").exists()
    assert journal(database.parent) == "delete"
