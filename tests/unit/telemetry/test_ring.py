"""The ring of the last traces: bounded, private, whole after a kill, written by several at once."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgerag.errors import StorageFull, TracesError
from edgerag.telemetry import ring as ring_module
from edgerag.telemetry.ring import TraceHead, TraceRing

WRITER = """
import sys
from pathlib import Path
from edgerag.telemetry import ring as ring_module
from edgerag.telemetry.ring import TraceHead, TraceRing

print("ready", flush=True)
ring_module._BUSY_TIMEOUT_S = 60.0  # a test does not end because the machine is busy
path, mark, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdin.readline()  # until all of them are there
with TraceRing(path, writing="WAL") as ring:
    for number in range(count):
        ring.put(TraceHead(f"{mark}{number:031x}", "ask", number, 1, "end"), "{}", keep=1000)
        print(number, flush=True)
"""


def begin(path: Path, mark: str, count: int) -> subprocess.Popen[str]:
    """Writes once a line has come, and names each trace that is kept."""
    command = [sys.executable, "-c", WRITER, str(path), mark, str(count)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def head(number: int, *, kind: str = "ask", duration_ns: int = 5) -> TraceHead:
    return TraceHead(f"{number:032x}", kind, number, duration_ns, "end")  # type: ignore[arg-type]


def test_the_last_are_kept_of_answers_and_ingests_apart(tmp_path: Path) -> None:
    with TraceRing(tmp_path / "t.sqlite", writing="WAL") as ring:
        ring.put(head(999, kind="ingest"), "{}", keep=3)
        for number in range(10):
            ring.put(head(number), f'{{"n":{number}}}', keep=3)
        assert [int(each.trace_id, 16) for each in ring.heads(kind="ask")] == [9, 8, 7]
        assert len(ring.heads(kind="ingest")) == 1
        assert ring.otlp(head(9).trace_id) == '{"n":9}'
        with pytest.raises(TracesError, match="is gone"):
            ring.otlp(head(0).trace_id)


def test_less_is_kept_from_now_on_where_less_is_wanted(tmp_path: Path) -> None:
    with TraceRing(tmp_path / "t.sqlite", writing="WAL") as ring:
        for number in range(6):
            ring.put(head(number), "{}", keep=10)
        ring.put(head(6), "{}", keep=2)
        assert [int(each.trace_id, 16) for each in ring.heads()] == [6, 5]


def test_they_take_no_more_room_than_they_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_module, "_MOST_BYTES", 50_000)
    with TraceRing(tmp_path / "t.sqlite", writing="WAL") as ring:
        for number in range(40):
            ring.put(head(number), os.urandom(4000).hex(), keep=1000)
        heads = ring.heads()
        assert 0 < sum(each.size_bytes for each in heads) <= 50_000
        assert int(heads[0].trace_id, 16) == 39
        ring.put(head(40), os.urandom(60_000).hex(), keep=1000)
        assert [int(each.trace_id, 16) for each in ring.heads()] == [40]  # the last one stays in any case
    assert (tmp_path / "t.sqlite").stat().st_size < 300_000


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.touch(mode=0o666)
    with TraceRing(path, writing="WAL") as ring:
        ring.put(head(1), "{}", keep=10)
        modes = {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {0o600}


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    writers = [begin(path, mark, 60) for mark in "abc"]
    for writer in writers:
        assert writer.stdout is not None and writer.stdin is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=120)
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    with TraceRing(path) as ring:
        assert len(ring.heads()) == 180


def test_a_killed_writer_leaves_what_it_had_written(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    writer = begin(path, "a", 100_000)
    assert writer.stdout is not None and writer.stdin is not None
    assert writer.stdout.readline() == "ready\n"
    writer.stdin.write("\n")
    writer.stdin.flush()
    for _ in range(30):
        written = int(writer.stdout.readline())
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate()
    with TraceRing(path, writing="WAL") as ring:
        assert len(ring.heads()) > written
        ring.put(head(1), "{}", keep=1000)
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_prefix_of_an_id_will_do_unless_several_have_it(tmp_path: Path) -> None:
    with TraceRing(tmp_path / "t.sqlite", writing="WAL") as ring:
        for digits in ("ab0", "ab1", "c"):
            ring.put(TraceHead(digits.ljust(32, "0"), "ask", 1, 1, "end"), "{}", keep=10)
        assert ring.find("C").trace_id.startswith("c")
        assert ring.find("ab1").trace_id.startswith("ab1")
        with pytest.raises(TracesError, match="Several"):
            ring.find("ab")
        for nonsense in ("d", "", "%", "' OR 1=1 --"):
            with pytest.raises(TracesError, match="no trace"):
                ring.find(nonsense)


def test_the_slowest_come_first(tmp_path: Path) -> None:
    with TraceRing(tmp_path / "t.sqlite", writing="WAL") as ring:
        for number, duration_ns in enumerate((5, 90, 20)):
            ring.put(head(number, duration_ns=duration_ns), "{}", keep=10)
        assert [each.duration_ns for each in ring.heads(slowest=True)] == [90, 20, 5]


def test_what_is_no_ring_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(TracesError, match=r"t\.sqlite"):
        TraceRing(path, writing="WAL")
    assert path.read_bytes().startswith(b"no database")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as db:
        db.execute("PRAGMA application_id = 7")
    with pytest.raises(TracesError, match="another program"):
        TraceRing(other, writing="WAL")
    with pytest.raises(TracesError, match="No answer"):
        TraceRing(tmp_path / "nothing.sqlite")


def test_a_damaged_trace_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with TraceRing(path, writing="WAL") as ring:
        for number in range(2):
            ring.put(head(number), "{}", keep=10)
        with sqlite3.connect(path) as db:
            db.execute("UPDATE traces SET otlp = x'00ff' WHERE trace_id = ?", (head(0).trace_id,))
        with pytest.raises(TracesError, match="damaged"):
            ring.otlp(head(0).trace_id)
        assert ring.otlp(head(1).trace_id) == "{}"


@pytest.mark.parametrize("column", ["kind", "began_ns", "duration_ns", "outcome", "size_bytes"])
@pytest.mark.parametrize("value", [b"\x00\xff", "neither", 1.5])
def test_a_row_that_nobody_wrote_is_named(tmp_path: Path, column: str, value: object) -> None:
    with TraceRing(tmp_path / "t.sqlite", writing="WAL") as ring:
        ring.put(head(1), "{}", keep=3)
        ring.put(head(2), "{}", keep=3)
    db = sqlite3.connect(tmp_path / "t.sqlite")
    db.execute(f"UPDATE traces SET {column} = ? WHERE trace_id = ?", (value, head(1).trace_id))
    db.commit()
    db.close()
    with TraceRing(tmp_path / "t.sqlite") as ring:
        if (column, value) in (("outcome", "neither"), ("outcome", 1.5)):  # kept as the text that it is, or becomes
            assert ring.heads()[-1].outcome == str(value)
            return
        assert [each.trace_id for each in ring.heads()] == [head(2).trace_id], "it hides no other"
        assert ring.damaged_count(kind="ask") == 1
        assert ring.damaged_count(kind="ingest") == (column == "kind"), "of the others only where it may be one of them"
        with pytest.raises(TracesError, match="its row is damaged"):
            ring.find(head(1).trace_id)


def test_a_file_that_was_only_begun_holds_no_trace_yet(tmp_path: Path) -> None:
    (tmp_path / "t.sqlite").touch()
    with pytest.raises(TracesError, match="No answer was traced yet"):
        TraceRing(tmp_path / "t.sqlite")


def test_a_full_disk_is_told_as_one(tmp_path: Path) -> None:
    with TraceRing(tmp_path / "t.sqlite", writing="WAL") as ring:
        ring._db.execute("PRAGMA max_page_count = 8")  # as SQLite sees a disk that has no room for more
        with pytest.raises(StorageFull, match="Free some space"):
            for number in range(50):
                ring.put(head(number), os.urandom(4000).hex(), keep=1000)


def test_waiting_for_another_writer_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_module, "_BUSY_TIMEOUT_S", 0.05)
    path = tmp_path / "t.sqlite"
    with TraceRing(path, writing="WAL") as ring:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(TracesError, match="another program"):
            ring.put(head(1), "{}", keep=10)
        assert time.monotonic() >= began
        other.execute("ROLLBACK")
        other.close()
        ring.put(head(1), "{}", keep=10)
