"""What injected_faults.py works on: two states of a folder of documents, ways to damage a file, what a job told."""

from __future__ import annotations

import os
import random
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from record import CHECKOUT

sys.path.append(str(CHECKOUT / "tests"))
from faults.children import EXPLAINED, FINISHED, RAW  # type: ignore[import-not-found]

_SHARED = ("pressure valve", "grease the shaft", "lid screws", "annual service report")
_DOCUMENTS = 20
Answers = dict[str, list[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class Truth:
    """A state of the library."""

    texts: dict[str, str]  # by path
    answers: Answers  # by query, the passages in order

    def holds(self, passage: list[Any]) -> bool:
        path, start, text, _ = passage
        return path in self.texts and self.texts[path][start : start + len(text)] == text


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that a fault comes into."""

    name: str
    job: str
    base: str  # the home that it begins with
    before: Truth | None  # None: there is no library yet
    after: Truth
    arguments: dict[str, Any] = field(default_factory=dict)


def write_documents(folder: Path, *, second: bool) -> None:
    """Twenty files and an archive; in the second state some are changed, two are new and two gone."""
    for number in range(_DOCUMENTS + 2):
        if (second and number in (3, 4)) or (not second and number >= _DOCUMENTS):
            continue
        version = 2 if second and number % 4 == 1 else 1
        paragraphs = [
            f"Paragraph {n} of mark{number:02}v{version}: {_SHARED[(number + n) % len(_SHARED)]} and number {n * 7}."
            + " More words that say little." * (n % 3)
            for n in range(9)
        ]
        path = folder / f"part-{number % 3}" / f"document-{number:02}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Document mark{number:02}v{version}\n\n" + "\n\n".join(paragraphs) + "\n", encoding="utf-8")
        os.utime(path, (1_700_000_000 + version, 1_700_000_000 + version))
    with zipfile.ZipFile(folder / "box.zip", "w") as archive:
        for name in ("one", "two"):
            archive.writestr(zipfile.ZipInfo(f"{name}.txt"), f"The member mark{name} lies in a box.\n")
    os.utime(folder / "box.zip", (1_700_000_000, 1_700_000_000))


def queries_for(texts: dict[str, str]) -> list[str]:
    """A word of each document that no other has, and some that many have."""
    marks = {word.strip(":,.\n") for text in texts.values() for word in text.split() if word.startswith("mark")}
    return [*sorted(mark for mark in marks if mark), *_SHARED]


def answers_of(told: dict[str, Any]) -> Answers:
    return {query: [(each[0], each[1]) for each in passages] for query, passages, _ in told.get("answer", [])}


def flip(path: Path, pick: random.Random, *, times: int = 1) -> str:
    data = bytearray(path.read_bytes())
    bits = [pick.randrange(len(data) * 8) for _ in range(times)]
    for bit in bits:
        data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    return f"bit {bits}"


def damage(path: Path, kind: str, pick: random.Random) -> str:
    if kind == "flipped bit":
        return flip(path, pick, times=pick.choice((1, 1, 1, 3)))
    if kind == "missing":
        path.unlink()
        return "gone"
    size = pick.choice((0, pick.randrange(path.stat().st_size), path.stat().st_size - 1))
    os.truncate(path, size)
    return f"{size} bytes left"


def ended_word(ended: dict[str, Any]) -> str:
    if ended["code"] < 0:
        return f"signal {-ended['code']}"
    words = {FINISHED: "finished", EXPLAINED: "explained", RAW: "raw"}
    word = words.get(ended["code"], str(ended["code"]))
    error = ended["told"].get("error")
    return f"{word}: {error[0][0]}" if error else word


def is_named(ended: dict[str, Any]) -> bool:
    """Whether a step said that something is wrong."""
    told = ended["told"]
    notes = any(notes for _, _, notes in told.get("answer", []))
    return ended["code"] == EXPLAINED or notes or any(told.get("findings", [])) or bool(told.get("unreadable"))


def named_by(steps: list[dict[str, Any]]) -> set[str]:
    """What repairs said that is lost."""
    return {loss[0] for step in steps for _, losses, _ in step["told"].get("repaired", []) for loss in losses}
