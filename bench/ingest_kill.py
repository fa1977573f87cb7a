"""An ingest of real files that is killed at random moments, or whose disk is full, and what the next run makes of it.

    python bench/ingest_kill.py --docs FOLDER [--points 20] [--full 5] [--seed 1] [--json FILE]

The folder is copied, packed once more into a ZIP, a TAR.GZ and an MBOX, and part of it doubled; half of the points find
files that were moved, edited and removed since. Each point: `kill -9` after a random part of the time that an
undisturbed run takes (one that is at its end by then does not count), or a library on a file system with a random rest
of room (a tmpfs; needs root); then a run to the end. Counted: passages embedded again, and how many points end with
other documents, archives, failures or hits than undisturbed. Passages are embedded by words (tests/fakes.py), so that a
point takes seconds and not minutes.
"""

from __future__ import annotations

import argparse
import json
import mailbox
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record import CHECKOUT, record

sys.path.append(str(CHECKOUT / "tests"))
from faults.ingesting import BATCH, run  # type: ignore[import-not-found]

_LEAST_ROOM, _MOST_ROOM = 0.05, 0.9  # of what the whole library takes


@dataclass(frozen=True, slots=True)
class Case:
    """What is ingested, on top of which library, and how it ends when nothing happens."""

    name: str
    docs: Path
    base: Path | None
    seconds: float
    embedded: int
    size_bytes: int
    state: Any


def main() -> None:
    if sys.argv[1:2] == ["run"]:
        library, docs, log, answer = sys.argv[2:]
        run(library, docs, log, kill_at=0, when="after", answer=os.open(answer, os.O_WRONLY | os.O_CREAT, 0o600))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--full", type=int, default=5, help="points of a full disk")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    pick = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        cases = prepare(arguments.docs, scratch)
        points: list[dict[str, Any]] = []
        while sum(point["killed"] for point in points) < arguments.points:  # others came to their end before
            points.append(killed(cases[len(points) % 2], scratch, pick))
        full = [on_a_full_disk(cases[number % 2], scratch, pick) for number in range(arguments.full)]
    figures = {
        "points": len(points),
        "killed_in_time": sum(point["killed"] for point in points),
        "different": sum(not point["same"] for point in points),
        "most_embedded_again": max((point["embedded_again"] for point in points), default=0),
        "batch": BATCH,
        "full_disk_points": len(full),
        "full_disk_refused": sum(point["refused"] for point in full),
        "full_disk_different": sum(not point["same"] for point in full),
        "full_disk_most_embedded_again": max((point["embedded_again"] for point in full), default=0),
        "documents": [len(case.state["documents"]) for case in cases],
        "chunks": [case.state["chunks"] for case in cases],
        "undisturbed_seconds": [round(case.seconds, 1) for case in cases],
        "each": points + full,
    }
    print(json.dumps({key: value for key, value in figures.items() if key != "each"}, indent=2))
    print(record("ingest-kill", figures, parameters={"seed": arguments.seed}, file=arguments.json))


def prepare(docs: Path, scratch: Path) -> tuple[Case, Case]:
    first, later = scratch / "docs", scratch / "later" / "docs"
    files = copy(docs, first)
    shutil.copytree(first, later)
    base = scratch / "base"
    ingest(base, later, scratch / "log-base")
    change(later, files)
    return undisturbed("first", first, None, scratch), undisturbed("later", later, base, scratch)


def copy(docs: Path, target: Path) -> list[str]:
    """The folder, archives of parts of it, and copies; gives the names of the plain files."""
    shutil.copytree(docs, target / "plain")
    files = sorted(str(path.relative_to(target)) for path in (target / "plain").rglob("*") if path.is_file())
    with zipfile.ZipFile(target / "some.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in files[::7]:
            archive.write(target / name, name)
    with tarfile.open(target / "some.tar.gz", "w:gz") as tar:
        for name in files[3::11]:
            tar.add(target / name, name)
    box = mailbox.mbox(target / "mail.mbox")
    for number, name in enumerate(name for name in files if name.endswith((".md", ".txt", ".py"))):
        if number < 20:
            message = mailbox.mboxMessage()
            message["From"], message["Subject"] = "a@example.org", Path(name).name
            message.set_payload((target / name).read_bytes()[:20_000].decode("latin-1").encode("ascii", "replace"))
            box.add(message)
    box.close()
    for name in files[::9]:
        copied = target / "copies" / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(target / name, copied)
    return files


def change(docs: Path, files: list[str]) -> None:
    for name in files[::5]:
        moved = docs / "moved" / name
        moved.parent.mkdir(parents=True, exist_ok=True)
        (docs / name).rename(moved)
    for name in files[1::5]:
        if name.endswith((".md", ".txt")):
            with (docs / name).open("ab") as file:
                file.write(b"\n\nA paragraph that is new.\n")
    for name in files[2::25]:
        (docs / name).unlink()
    (docs / "some.zip").rename(docs / "moved" / "same.zip")
    shutil.copy2(docs / "some.tar.gz", docs / "copies" / "again.tar.gz")


def undisturbed(name: str, docs: Path, base: Path | None, scratch: Path) -> Case:
    library, log = scratch / f"whole-{name}", scratch / f"log-{name}"
    if base is not None:
        shutil.copytree(base, library)
    began = time.monotonic()
    state = ingest(library, docs, log)
    size = sum(path.stat().st_size for path in library.rglob("*") if path.is_file())
    return Case(name, docs, base, time.monotonic() - began, embedded(log), size, state)


def start(library: Path, docs: Path, log: Path) -> tuple[subprocess.Popen[bytes], Path]:
    answer = log.with_suffix(".answer")
    answer.unlink(missing_ok=True)
    command = [sys.executable, __file__, "run", str(library), str(docs), str(log), str(answer)]
    return subprocess.Popen(command, stderr=subprocess.PIPE), answer


def ingest(library: Path, docs: Path, log: Path) -> Any:
    process, answer = start(library, docs, log)
    _, said = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(said.decode())
    return json.loads(answer.read_text())["state"]


def embedded(log: Path) -> int:
    return sum(map(int, log.read_text().split())) if log.exists() else 0


def killed(case: Case, scratch: Path, pick: random.Random) -> dict[str, Any]:
    library, log = scratch / "killed", scratch / "log-killed"
    with clean(library, log, case):
        process, _ = start(library, case.docs, log)
        after_s = pick.uniform(0.2, case.seconds)
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        _, said = process.communicate()
        if process.returncode not in (0, -signal.SIGKILL):
            raise RuntimeError(said.decode())
        state = ingest(library, case.docs, log)
        point = {
            "case": case.name,
            "after_s": round(after_s, 2),
            "killed": process.returncode != 0,
            "same": state == case.state,
            "embedded_again": embedded(log) - case.embedded,
        }
    print(json.dumps(point), flush=True)
    return point


def on_a_full_disk(case: Case, scratch: Path, pick: random.Random) -> dict[str, Any]:
    disk, log = scratch / "disk", scratch / "log-full"
    disk.mkdir(exist_ok=True)
    base_bytes = sum(path.stat().st_size for path in case.base.rglob("*")) if case.base is not None else 0
    room = base_bytes + int(pick.uniform(_LEAST_ROOM, _MOST_ROOM) * max(case.size_bytes - base_bytes, 2_000_000))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "none", str(disk)], check=True)
    try:
        with clean(disk / "library", log, case):
            process, _ = start(disk / "library", case.docs, log)
            _, said = process.communicate()
            refused = process.returncode != 0
            if refused and b"StorageFull" not in said:
                raise RuntimeError(said.decode())
            subprocess.run(["mount", "-o", "remount,size=4g", str(disk)], check=True)
            state = ingest(disk / "library", case.docs, log)
            point = {
                "case": f"{case.name}, full disk",
                "room_bytes": room,
                "refused": refused,
                "same": state == case.state,
                "embedded_again": embedded(log) - case.embedded,
            }
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    print(json.dumps(point), flush=True)
    return point


@contextmanager
def clean(library: Path, log: Path, case: Case) -> Iterator[None]:
    shutil.rmtree(library, ignore_errors=True)
    log.unlink(missing_ok=True)
    if case.base is not None:
        shutil.copytree(case.base, library)
    yield
    shutil.rmtree(library, ignore_errors=True)


if __name__ == "__main__":
    main()
