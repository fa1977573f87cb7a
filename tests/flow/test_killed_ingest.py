"""An ingest of files, archives and mails that is killed at any of its commits, and the one after it.

Twenty points, before and after a commit: ten of a first ingest, ten of one that finds files edited, moved, copied and
gone. Each time the next run ends as an undisturbed one: the same documents, passages, archives, and hits of both legs
at the same places; and at most one batch is embedded again.
"""

from __future__ import annotations

import io
import json
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from faults import harness
from faults.ingesting import BATCH

POINTS = 10


def chapters(subject: str, count: int) -> str:
    return "\n\n".join(
        f"# {subject} chapter {n}\n\n" + f"This is passage number {n} of the {subject}. " * 12 for n in range(count)
    )


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def tarred(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))
    return out.getvalue()


def mailbox(*subjects: str) -> str:
    head = "From a@example.org Mon Jan  1 00:00:00 2024\nFrom: a@example.org\nTo: b@example.org\n"
    date = "Date: Mon, 1 Jan 2024 00:00:00 +0000\n"
    return "\n".join(
        f"{head}{date}Subject: {subject} report\n\n" + f"The {subject} stands in water. " * 9 + "\n"
        for subject in subjects
    )


def write(docs: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def letter(subject: str, *attached: tuple[str, bytes] | EmailMessage) -> bytes:
    message = EmailMessage()
    message["From"], message["Subject"] = "a@example.org", subject
    message.set_content(f"The {subject} stands in water. " * 9)
    for each in attached:
        if isinstance(each, EmailMessage):
            message.add_attachment(each)
        else:
            message.add_attachment(each[1], maintype="application", subtype="octet-stream", filename=each[0])
    message.set_boundary(f"of the {subject}")
    return message.as_bytes()


def forwarded(*attached: tuple[str, bytes]) -> EmailMessage:
    message = message_from_bytes(letter("ibis", *attached), policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message


BROKEN = ("broken.pdf", b"%PDF-1.4 broken")

FIRST: dict[str, str | bytes] = {
    "badger.md": chapters("badger", 5),
    "copies/badger.md": chapters("badger", 5),
    "otter.txt": chapters("otter", 3),
    "gone.md": chapters("weasel", 2),
    "broken.pdf": b"%PDF-1.4 broken",
    "box.zip": zipped({"lynx.md": chapters("lynx", 4), "in.zip": zipped({"deep.md": chapters("marten", 2)})}),
    "box.tar.gz": tarred({"one.md": chapters("walrus", 3), "two.md": chapters("seal", 2)}),
    "mail.mbox": mailbox("heron", "stork", "crane"),
    "letter.eml": letter("egret", BROKEN),
    "nested.eml": letter("bittern", forwarded(BROKEN), ("note.txt", b"The plover runs along the shore.")),
    "letters.zip": zipped({"in.eml": letter("spoonbill", forwarded(BROKEN)), "out.eml": letter("avocet", BROKEN)}),
    "untitled.txt": "The curlew has a long bill.",
}


def change(docs: Path) -> None:
    """Edits, moves, copies and deletes."""
    write(docs, {"badger.md": chapters("badger", 6).replace("number 2", "number two"), "new.md": chapters("wolf", 3)})
    (docs / "moved").mkdir()
    (docs / "otter.txt").rename(docs / "moved" / "otter.txt")
    shutil.copy2(docs / "box.zip", docs / "copies" / "box.zip")
    (docs / "box.tar.gz").rename(docs / "moved" / "crate.tar.gz")
    shutil.copy2(docs / "letters.zip", docs / "copies" / "letters.zip")
    (docs / "letter.eml").rename(docs / "moved" / "letter.eml")
    (docs / "nested.eml").rename(docs / "moved" / "nested.eml")
    (docs / "letters.zip").rename(docs / "moved" / "letters.zip")
    (docs / "untitled.txt").rename(docs / "moved" / "titled.txt")
    (docs / "gone.md").unlink()
    write(docs, {"mail.mbox": mailbox("heron", "crane", "swan")})


@dataclass(frozen=True, slots=True)
class Undisturbed:
    docs: Path
    base: Path | None  # the library that it began with
    commits: int
    embedded: int
    state: Any


class Child:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.ingesting"],
            env=harness.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ingest(self, library: Path, docs: Path, log: Path, *, kill_at: int = 0, when: str = "after") -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"library": str(library), "docs": str(docs), "log": str(log), "kill_at": kill_at, "when": when}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def embedded(log: Path) -> int:
    return sum(map(int, log.read_text().split())) if log.exists() else 0


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    started = Child()
    yield started
    started.close()


@pytest.fixture(scope="module")
def runs(child: Child, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Undisturbed]:
    """Each kind of ingest, undisturbed."""
    folder = tmp_path_factory.mktemp("runs")
    docs = {kind: folder / kind for kind in ("first", "later")}
    for each in docs.values():
        write(each, FIRST)
    done = {}
    first = child.ingest(folder / "library", docs["first"], folder / "log")
    done["first"] = Undisturbed(docs["first"], None, first["commits"], embedded(folder / "log"), first["state"])
    base = folder / "base"
    child.ingest(base, docs["later"], folder / "log-base")
    change(docs["later"])
    shutil.copytree(base, folder / "library-later")
    later = child.ingest(folder / "library-later", docs["later"], folder / "log-later")
    done["later"] = Undisturbed(docs["later"], base, later["commits"], embedded(folder / "log-later"), later["state"])
    return done


def test_what_is_disturbed_is_worth_it(runs: dict[str, Undisturbed]) -> None:
    for run in runs.values():
        assert run.commits > 2 * POINTS
        assert run.state["findings"] == []
        assert all(leg for legs in run.state["found"].values() for leg in legs.values())
    assert len(runs["first"].state["containers"]) == 6
    assert len(runs["first"].state["documents"]) > 10
    assert 0 < runs["later"].embedded < runs["first"].embedded / 2, "what moved and what was copied is not embedded"


@pytest.mark.parametrize("point", range(POINTS))
@pytest.mark.parametrize("kind", ["first", "later"])
def test_killed_at_a_commit_the_next_ingest_ends_as_an_undisturbed_one(
    child: Child, runs: dict[str, Undisturbed], tmp_path: Path, kind: str, point: int
) -> None:
    run = runs[kind]
    library, log = tmp_path / "library", tmp_path / "log"
    kill_at = 1 + point * (run.commits - 1) // (POINTS - 1)
    when = "after" if point % 2 else "before"
    killed = None
    while killed != -signal.SIGKILL:
        shutil.rmtree(library, ignore_errors=True)
        log.unlink(missing_ok=True)
        if run.base is not None:
            shutil.copytree(run.base, library)
        done = child.ingest(library, run.docs, log, kill_at=kill_at, when=when)
        killed = done["ended"]
        if killed == 0:  # how files fall into batches depends on time: this run had fewer commits
            assert done["commits"] < kill_at
            assert done["state"] == run.state
            kill_at = done["commits"]
    again = child.ingest(library, run.docs, log)
    assert again["ended"] == 0, again
    assert again["state"] == run.state
    assert embedded(log) <= run.embedded + BATCH
    left = [path.name for path in (library / "segments").iterdir() if path.suffix != ".hnsw"]
    assert left == []
