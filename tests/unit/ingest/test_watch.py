"""Folders that are followed while things happen in them; times are short, nothing is assumed to be quick."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import pytest

from edgerag.errors import LibraryBusy, StorageFull
from edgerag.ingest import watch as watch_module
from edgerag.ingest.ignore import Selection
from edgerag.ingest.settling import Patience
from edgerag.ingest.watch import Watch, follow
from edgerag.types import IngestDone, IngestEvent, WatchEvent, WatchNote

QUICK = Patience(quiet=0.3, gather=1.0, longest=3.0, presence=0.1, poll=0.2, poll_share=0.5, sweep=1000.0, retry=0.3)
DEADLINE_S = 30.0


class Watched:
    """A watch in a thread of its own, and what it said."""

    def __init__(self, *paths: Path, own: Path = Path("/nowhere/library"), **more: object) -> None:
        more = {"selection": Selection(), "patience": QUICK, **more}
        self._watch = Watch(paths, own=own, **more)  # type: ignore[arg-type]
        self._stop = threading.Event()
        self.batches: list[set[str]] = []
        self.notes: list[WatchNote] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        for item in self._watch.changes(self._stop.is_set):
            if isinstance(item, WatchNote):
                self.notes.append(item)
            else:
                self.batches.append({os.path.relpath(path, self._base) for path in item})

    def __call__(self, base: Path) -> Watched:
        self._base = base
        return self

    def __enter__(self) -> Watched:
        self._watch.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        self._thread.join()
        self._watch.__exit__()

    @property
    def told(self) -> set[str]:
        return set().union(*self.batches)

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < end, (self.batches, self.notes)
            time.sleep(0.02)

    def until_told(self, *paths: str) -> None:
        self.until(lambda: self.told.issuperset(paths))

    def until_noted(self, kind: str) -> None:
        self.until(lambda: any(note.kind == kind for note in self.notes))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("a")
    (folder / "sub" / "b.md").write_text("b")
    return folder


def watched(base: Path, *paths: Path, **more: object) -> Watched:
    return Watched(*(paths or (base,)), **more)(base)  # type: ignore[arg-type]


def test_new_changed_and_deleted_files_are_told(docs: Path) -> None:
    with watched(docs) as watch:
        (docs / "new.md").write_text("n")
        (docs / "a.md").write_text("changed")
        (docs / "sub" / "b.md").unlink()
        watch.until_told("new.md", "a.md", "sub/b.md")
        assert not watch.notes


def test_what_happens_before_the_first_look_is_not_lost(docs: Path) -> None:
    watch = watched(docs)
    (docs / "early.md").write_text("e")
    with watch:
        watch.until_told("early.md")


def test_folders_made_later_are_followed_to_any_depth(docs: Path) -> None:
    with watched(docs) as watch:
        (docs / "x" / "y" / "z").mkdir(parents=True)
        (docs / "x" / "y" / "z" / "1.md").write_text("1")
        watch.until(lambda: any("x/y/z/1.md".startswith(path) for path in watch.told))
        watch.batches.clear()
        (docs / "x" / "y" / "z" / "2.md").write_text("2")
        watch.until_told("x/y/z/2.md")


def test_a_folder_that_moves_is_told_at_both_places_and_followed(docs: Path) -> None:
    with watched(docs) as watch:
        (docs / "sub").rename(docs / "moved")
        watch.until_told("sub", "moved")
        (docs / "moved" / "c.md").write_text("c")
        watch.until_told("moved/c.md")
        shutil.rmtree(docs / "moved")
        watch.until_told("moved")


def test_a_save_by_a_new_file_and_renaming_is_one_change(docs: Path) -> None:
    """As vim and many others: a trial file, a backup, the new content under another name."""
    with watched(docs) as watch:
        (docs / "4913").write_text("")
        (docs / "4913").unlink()
        (docs / ".a.md.swp").write_text("x")
        (docs / "a.md").rename(docs / "a.md~")
        (docs / "a.md.tmp").write_text("new text")
        (docs / "a.md.tmp").rename(docs / "a.md")
        (docs / "a.md~").unlink()
        (docs / ".a.md.swp").unlink()
        watch.until_told("a.md")
        assert watch.batches[0] <= {"a.md", "a.md.tmp", "4913"}
        assert len(watch.batches) == 1


def test_a_file_that_grows_is_told_when_it_is_whole(docs: Path) -> None:
    with watched(docs) as watch:
        with (docs / "big.md").open("w") as file:
            for _ in range(12):
                file.write("more\n")
                file.flush()
                time.sleep(0.1)
            whole = not watch.batches
        watch.until_told("big.md")
        assert len([batch for batch in watch.batches if "big.md" in batch]) == 1 or not whole


def test_what_the_rules_leave_out_is_not_told(docs: Path) -> None:
    (docs / ".gitignore").write_text("*.log\n")
    (docs / "node_modules").mkdir()
    with watched(docs, withheld=[str(docs / "report.json")]) as watch:
        for name in ("x.log", "node_modules/y.md", ".hidden", "report.json", "seen.md"):
            (docs / name).write_text("x")
        (docs / ".git").mkdir()
        (docs / ".git" / "HEAD").write_text("x")
        watch.until_told("seen.md")
        assert watch.told == {"seen.md"}


def test_a_changed_ignore_file_has_its_folder_looked_at(docs: Path) -> None:
    with watched(docs) as watch:
        (docs / "sub" / ".gitignore").write_text("*.md\n")
        watch.until_told("sub")
        (docs / ".edgeragignore").write_text("!*.md\n")
        watch.until_told(".")


def test_the_library_is_not_told_although_it_lies_inside(docs: Path) -> None:
    own = docs / "library"
    own.mkdir()
    with watched(docs, own=own) as watch:
        (own / "library.sqlite-wal").write_text("x")
        (docs / "seen.md").write_text("x")
        watch.until_told("seen.md")
        assert watch.told == {"seen.md"}


def test_a_named_file_is_followed_through_renames_and_its_neighbours_are_not(docs: Path) -> None:
    with watched(docs, docs / "a.md") as watch:
        (docs / "other.md").write_text("x")
        for text in ("first", "second"):
            (docs / "a.tmp").write_text(text)
            (docs / "a.tmp").rename(docs / "a.md")
            watch.batches.clear()
            watch.until_told("a.md")
        assert watch.told == {"a.md"}


def test_a_root_that_vanishes_is_said_and_nothing_of_it_is_told_until_it_is_back(docs: Path, tmp_path: Path) -> None:
    with watched(docs) as watch:
        docs.rename(tmp_path / "unplugged")
        watch.until_noted("root_gone")
        assert str(docs) in watch.notes[0].message and "stay" in watch.notes[0].message
        assert watch.batches == []
        (tmp_path / "unplugged" / "elsewhere.md").write_text("x")
        (tmp_path / "unplugged").rename(docs)
        watch.until_noted("root_back")
        watch.until_told(".")
        (docs / "again.md").write_text("x")
        watch.until_told("again.md")


def test_an_empty_folder_where_a_disk_was_is_no_folder_of_deleted_files(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mount point stays when a stick is pulled out, on another file system than what was there; made up here."""
    real = watch_module._identity
    mounted = True

    def identity(path: str) -> tuple[int, int] | None:
        found = real(path)
        return found if mounted or found is None else (found[0] + 1, found[1])

    monkeypatch.setattr(watch_module, "_identity", identity)
    monkeypatch.setattr(watch_module, "_has_entries", lambda _: mounted)
    with watched(docs) as watch:
        mounted = False
        watch.until_noted("root_gone")
        (docs / "a.md").unlink()
        time.sleep(3 * QUICK.quiet)
        assert watch.batches == []
        mounted = True
        watch.until_noted("root_back")
        watch.until_told(".")


def test_one_root_that_is_gone_does_not_stop_the_others(docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with watched(tmp_path, docs, other) as watch:
        shutil.rmtree(docs)
        watch.until_noted("root_gone")
        watch.batches.clear()
        (other / "x.md").write_text("x")
        watch.until_told("other/x.md")


def test_very_many_changes_have_the_whole_looked_at(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "_MOST_CHANGES", 50)
    with watched(docs) as watch:
        for number in range(200):
            (docs / f"{number}.md").write_text("x")
        watch.until_told(".")
        assert any(note.kind == "looking" for note in watch.notes)


def test_everything_is_looked_at_from_time_to_time(docs: Path) -> None:
    from dataclasses import replace

    with watched(docs, patience=replace(QUICK, sweep=0.5)) as watch:
        watch.until(lambda: len([batch for batch in watch.batches if "." in batch]) >= 2)


class Refusing:
    """An observer where the kernel has no watch left."""

    def __init__(self, folders: Collection[str]) -> None:
        self.failure = "OS file watch limit reached. about [...]"

    def take(self) -> set[str]:
        return set()

    def stop(self) -> None:
        pass


@pytest.mark.parametrize("why", ["limit", "remote"])
def test_where_the_kernel_tells_nothing_files_are_compared(
    docs: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "limit":
        monkeypatch.setattr(watch_module, "Observer", Refusing)
    else:
        monkeypatch.setattr(watch_module, "is_remote", lambda _: True)
    with watched(docs) as watch:
        if why == "limit":
            watch.until_noted("watching")
            assert "max_user_watches" in watch.notes[0].message
            watch.until_told(".")
            watch.batches.clear()
        (docs / "new.md").write_text("n")
        (docs / "a.md").write_text("longer than before")
        (docs / "sub" / "b.md").unlink()
        watch.until_told("new.md", "a.md", "sub/b.md")


def test_names_in_odd_bytes_are_told(docs: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.md")
    with watched(docs) as watch:
        (docs / odd).write_text("x")
        watch.until(lambda: bool(watch.told & {odd, "."}))
        (docs / "after.md").write_text("x")
        watch.until(lambda: "after.md" in watch.told)


def test_folders_in_odd_bytes_are_followed(docs: Path) -> None:
    odd = docs / os.fsdecode(b"d\xe9")
    odd.mkdir()
    with watched(docs) as watch:
        (odd / "x.md").write_text("x")
        watch.until_told(os.path.relpath(odd / "x.md", docs))


def test_a_queue_that_overflowed_loses_nothing(docs: Path) -> None:
    """More events at once than the kernel keeps, from another process."""
    script = (
        "import sys, os\n"
        "for n in range(9000):\n"
        "    with open(f'{sys.argv[1]}/{n % 300}.md', 'a') as f: f.write('x')\n"
        "    os.utime(f'{sys.argv[1]}/{n % 300}.md')\n"
    )
    with watched(docs) as watch:
        subprocess.run([sys.executable, "-c", script, str(docs)], check=True)
        watch.until(lambda: len(watch.told) >= 300 or "." in watch.told)


# ---------------------------------------------------------------- following with ingests


def done(*, interrupted: bool = False) -> IngestDone:
    return IngestDone(reports=(), chunks_embedded=0, seconds=0.0, interrupted=interrupted)


class Ingests:
    """Ingests that are told of, and may refuse."""

    def __init__(self, *, refuse: Sequence[Exception] = (), interrupted: bool = False) -> None:
        self.asked: list[Collection[str] | None] = []
        self.done: list[Collection[str] | None] = []
        self._refuse = list(refuse)
        self._interrupted = interrupted

    def __call__(self, changed: Collection[str] | None) -> Iterator[IngestEvent]:
        self.asked.append(changed)
        if changed is not None and self._refuse:
            raise self._refuse.pop(0)
        yield done(interrupted=self._interrupted)
        self.done.append(changed)


def followed(docs: Path, ingests: Ingests, act: Callable[[], None], until: Callable[[], bool]) -> list[WatchEvent]:
    end = time.monotonic() + DEADLINE_S
    events: list[WatchEvent] = []
    acted = False
    following = follow(
        [docs],
        run=ingests,
        own=Path("/nowhere"),
        selection=Selection(),
        cancelled=lambda: until() or time.monotonic() > end,
        patience=QUICK,
    )
    for event in following:
        events.append(event)
        if isinstance(event, WatchNote) and event.kind == "watching" and not acted:
            acted = True
            act()
    return events


def test_all_is_ingested_first_and_then_what_changes(docs: Path) -> None:
    ingests = Ingests()
    events = followed(docs, ingests, lambda: make(docs / "n.md"), lambda: len(ingests.done) >= 2)
    assert ingests.asked == [None, {str(docs / "n.md")}]
    assert isinstance(events[0], IngestDone)
    assert isinstance(events[1], WatchNote) and str(docs) in events[1].message


def make(path: Path) -> None:
    path.write_text("x")


def test_a_busy_library_is_said_once_and_tried_again(docs: Path) -> None:
    busy = [LibraryBusy("Another process (pid 7) is writing to the library.") for _ in range(3)]
    ingests = Ingests(refuse=busy)
    events = followed(docs, ingests, lambda: make(docs / "n.md"), lambda: len(ingests.done) >= 2)
    notes = [event for event in events if isinstance(event, WatchNote) and event.kind == "busy"]
    assert len(notes) == 1 and "pid 7" in notes[0].message
    assert ingests.done[-1] == {str(docs / "n.md")}


def test_a_full_disk_ends_it(docs: Path) -> None:
    ingests = Ingests(refuse=[StorageFull("The disk is full.")])
    with pytest.raises(StorageFull):
        followed(docs, ingests, lambda: make(docs / "n.md"), lambda: False)


def test_an_interrupted_first_ingest_is_the_end(docs: Path) -> None:
    events = followed(docs, Ingests(interrupted=True), lambda: None, lambda: False)
    assert events == [done(interrupted=True)]
