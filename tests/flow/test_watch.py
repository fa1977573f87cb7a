"""`edgerag ingest --watch` and `--report` as a user runs them: real processes, a real model."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 90.0


def edgerag(*arguments: str, check: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-m", "edgerag", *arguments], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    if check is not None:
        assert done.returncode == check, f"exit {done.returncode}: {done.stderr}"
    return done


def found(query: str) -> list[str]:
    return [Path(hit["file"]).name for hit in json.loads(edgerag("search", "--json", query).stdout)["hits"]]


def paths() -> list[str]:
    return [Path(record["path"]).name for record in status()["documents"]]


def status() -> Any:
    return json.loads(edgerag("status", "--files", "--json").stdout)


class Following:
    """A running `ingest --watch --json`, and the lines that it wrote."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "edgerag", "ingest", "--watch", "--json", "--eager", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        self.errors: list[str] = []
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def until(self, event: str, **expected: str) -> dict[str, Any]:
        """The next line of that event in which each named file has that outcome."""
        end = time.monotonic() + DEADLINE_S
        seen = []
        while True:
            try:
                line = json.loads(self._lines.get(timeout=max(0.0, end - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"{event} {expected} did not come: {seen} {self.errors}") from None
            seen.append(line)
            outcomes = {Path(report["path"]).stem: report["outcome"] for report in line.get("reports", ())}
            if line["event"] == event and expected.items() <= outcomes.items():
                return line

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=DEADLINE_S)
        self.close()
        assert not any("Traceback" in line for line in self.errors), self.errors
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "badger.md").write_text("# Badger\n\nThe badger sleeps by day.")
    return folder


@pytest.fixture
def following(home: Path, docs: Path) -> Iterator[Following]:
    running = Following(str(docs))
    running.until("watching")
    yield running
    running.close()


def test_what_changes_is_found_and_others_may_write_in_between(following: Following, docs: Path) -> None:
    assert found("badger") == ["badger.md"]
    (docs / "walrus.md").write_text("The walrus dives for clams.")
    following.until("ingested", walrus="ingested")
    assert "walrus.md" in found("clams")
    edgerag("tag", str(docs / "walrus.md"), "--add", "sea")  # the library is not held
    partial = docs / "badger.md.new"
    partial.write_text("# Badger\n\nThe badger digs tunnels in autumn.")
    partial.rename(docs / "badger.md")
    following.until("ingested", badger="ingested")
    assert "badger.md" in found("tunnels autumn")
    (docs / "walrus.md").unlink()
    line = following.until("ingested", walrus="removed")
    assert line["reports"][0]["reason"] == "The file is gone."
    assert paths() == ["badger.md"]
    assert {record["root"] for record in status()["documents"]} == {str(docs)}
    assert following.end() == 0


@pytest.mark.long
def test_folders_move_and_rules_change(following: Following, docs: Path) -> None:
    (docs / "old").mkdir()
    (docs / "old" / "otter.md").write_text("The otter cracks mussels.")
    following.until("ingested", otter="ingested")
    (docs / "old").rename(docs / "new")
    following.until("ingested", otter="unchanged")
    assert [record["path"] for record in status()["documents"]][-1] == str(docs / "new" / "otter.md")
    (docs / ".gitignore").write_text("new/\n")
    line = following.until("ingested", otter="removed")
    assert line["reports"][0]["reason"] == f"It is ignored by {docs / '.gitignore'}."
    (docs / ".gitignore").unlink()
    following.until("ingested", otter="ingested")
    assert following.end() == 0


@pytest.mark.long
def test_documents_stay_while_their_disk_is_gone(following: Following, docs: Path, tmp_path: Path) -> None:
    docs.rename(tmp_path / "unplugged")
    assert "stay" in following.until("root_gone")["message"]
    assert paths() == ["badger.md"]
    (tmp_path / "unplugged" / "heron.md").write_text("The heron stands in shallow water.")
    (tmp_path / "unplugged").rename(docs)
    following.until("root_back")
    following.until("ingested", heron="ingested")
    assert paths() == ["badger.md", "heron.md"]
    assert following.end() == 0


def test_a_failed_file_is_in_the_exit_code(following: Following, docs: Path) -> None:
    (docs / "broken.docx").write_bytes(b"PK\x03\x04 no more")
    following.until("ingested", broken="failed")
    assert following.end() == 1


@pytest.mark.long
def test_a_library_that_is_being_written_to_is_waited_for(following: Following, docs: Path, home: Path) -> None:
    hold = (
        "import sys, fcntl, os\n"
        "lock = os.open(sys.argv[1], os.O_RDWR)\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(home / "indexes" / "default" / "writer.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None and holder.stdin is not None
    with holder:
        assert holder.stdout.readline() == b"held\n"
        refused = edgerag("ingest", str(docs), check=3)
        assert "is writing to the library" in refused.stderr and "Wait until it is done" in refused.stderr
        (docs / "walrus.md").write_text("The walrus dives for clams.")
        assert "is writing to the library" in following.until("busy")["message"]
        holder.stdin.close()
    following.until("ingested", walrus="ingested")
    assert following.end() == 0


@pytest.mark.long
def test_a_second_ingest_is_told_who_is_at_work(home: Path, docs: Path) -> None:
    (docs / "long.md").write_text(
        "\n\n".join(f"Sentence {n} of a long document about number {n}." for n in range(20_000))
    )
    first = subprocess.Popen(
        [sys.executable, "-m", "edgerag", "ingest", "--quiet", str(docs)], stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + DEADLINE_S
        lock = home / "indexes" / "default" / "writer.lock"
        while not (lock.exists() and lock.read_text().split()[:1] == [str(first.pid)]):
            assert time.monotonic() < end and first.poll() is None
            time.sleep(0.05)
        second = edgerag("ingest", str(docs), check=3)
        assert f"pid {first.pid}" in second.stderr and "Traceback" not in second.stderr
    finally:
        first.kill()
        first.wait()


class TestReport:
    @pytest.mark.long
    def test_json_and_csv_say_what_became_of_each_file(self, home: Path, docs: Path) -> None:
        (docs / "broken.docx").write_bytes(b"PK\x03\x04 no more")
        (docs / "empty.txt").write_bytes(b"")
        report = docs / "report.json"
        edgerag("ingest", "--report", str(report), str(docs), check=1)
        files = {Path(file["path"]).name: file for file in json.loads(report.read_text())["files"]}
        assert {name: file["state"] for name, file in files.items()} == {
            "badger.md": "ingested", "broken.docx": "failed", "empty.txt": "skipped"
        }  # fmt: skip
        badger = files["badger.md"]
        assert badger["media_type"] == "text/markdown"
        assert badger["chunks"] == 1 and badger["seconds"] > 0
        assert badger["size_bytes"] == (docs / "badger.md").stat().st_size
        assert 0.5 < badger["text_share"] <= 1
        assert files["broken.docx"]["reason"] and files["empty.txt"]["reason"]
        table = docs.parent / "report.csv"
        edgerag("ingest", "--report", str(table), str(docs), check=1)
        with table.open(newline="") as file:
            rows = {Path(row["path"]).name: row for row in csv.DictReader(file)}
        assert rows["badger.md"]["state"] == "unchanged"
        assert (rows["report.json"]["state"], "report.json" in paths()) == ("skipped", False)
        assert int(rows["badger.md"]["characters"]) == badger["characters"] > 0

    def test_one_that_cannot_be_written_is_told_before_any_work(self, home: Path, docs: Path) -> None:
        for path, code, words in (
            (docs / "report.txt", 2, ".json nor .csv"),
            (docs / "nowhere" / "report.json", 2, "no folder"),
            (docs, 2, ".json nor .csv"),
            (Path("/proc/report.json"), 2, "takes no file"),
        ):
            done = edgerag("ingest", "--report", str(path), str(docs), check=code)
            assert words in done.stderr
        assert "A path is empty" in edgerag("ingest", "--report", "", str(docs), check=2).stderr
        assert not (home / "indexes" / "default").exists()

    @pytest.mark.long
    def test_it_follows_a_watch_without_being_read_itself(self, home: Path, docs: Path) -> None:
        report = docs / "report.json"
        following = Following("--report", str(report), str(docs))
        try:
            following.until("watching")
            (docs / "walrus.md").write_text("The walrus dives for clams.")
            following.until("ingested", walrus="ingested")
            end = time.monotonic() + DEADLINE_S
            while len(json.loads(report.read_text())["files"]) < 2:
                assert time.monotonic() < end
                time.sleep(0.1)
            assert following.end() == 0
        finally:
            following.close()
        assert paths() == ["badger.md", "walrus.md"]

    @pytest.mark.long
    def test_status_lists_what_is_known_of_each_file(self, home: Path, docs: Path) -> None:
        (docs / "broken.docx").write_bytes(b"PK\x03\x04 no more")
        edgerag("ingest", str(docs), check=1)
        known = status()
        (badger,) = known["documents"]
        assert (badger["state"], badger["chunk_count"]) == ("ingested", 1)
        assert badger["character_count"] > 20 and 0.5 < badger["text_share"] <= 1
        assert [Path(failure["path"]).name for failure in known["failed"]] == ["broken.docx"]
        text = edgerag("status", "--files").stdout
        assert "badger.md" in text and "characters" in text
        assert next(line for line in text.splitlines() if "broken.docx" in line).startswith("-")


class TestWhatIsLeftOut:
    @pytest.mark.long
    def test_rules_of_files_and_of_the_command_line(self, home: Path, docs: Path) -> None:
        (docs / "walrus.txt").write_text("The walrus dives for clams.")
        (docs / ".hidden.md").write_text("The weasel hides.")
        edgerag("ingest", "--hidden", str(docs))
        assert sorted(paths()) == [".hidden.md", "badger.md", "walrus.txt"]
        edgerag("ingest", "--hidden", "--include", "*.md", str(docs))
        assert len(paths()) == 3  # include limits what is looked at, and removes nothing
        done = json.loads(edgerag("ingest", "--json", "--exclude", "*.txt", str(docs)).stdout)
        assert {Path(r["path"]).name: r["reason"] for r in done["reports"] if r["outcome"] == "removed"} == {
            "walrus.txt": "It is excluded by the pattern '*.txt' (ingest.exclude).",
            ".hidden.md": "It is hidden (ingest.hidden).",
        }

    @pytest.mark.long
    def test_what_was_named_itself_stays(self, home: Path, docs: Path) -> None:
        (docs / ".gitignore").write_text("walrus.*\n")
        (docs / "walrus.txt").write_text("The walrus dives for clams.")
        edgerag("ingest", str(docs / "walrus.txt"))
        edgerag("ingest", str(docs))
        assert sorted(paths()) == ["badger.md", "walrus.txt"]


def niceness_of_parser(pid: int) -> int | None:
    """That of the child which parses; None while there is none."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread or a child may end while it is looked at.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in (task / "children").read_text().split():
                if b"parse.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return os.getpriority(os.PRIO_PROCESS, int(child))
    return None


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(("arguments", "expected"), [((), 10), (("--eager",), 0)])
def test_the_ingest_and_its_parser_step_back(home: Path, docs: Path, arguments: tuple[str, ...], expected: int) -> None:
    text = "\n\n".join(f"Sentence {n} of a long document about number {n}." for n in range(5_000))
    for number in range(10):
        (docs / f"{number}.md").write_text(text)
    expected = max(expected, os.getpriority(os.PRIO_PROCESS, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "edgerag", "ingest", "--quiet", *arguments, str(docs)], stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + DEADLINE_S
        while niceness_of_parser(process.pid) != expected:
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.01)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == expected
    finally:
        process.kill()
        process.wait()
