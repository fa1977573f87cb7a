"""The licence texts found in the wheels, and a list of what is under which."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from edgerag.bundle.wheel import Wheel

FOLDER = "licences"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.+-]+")


def licence_files(wheels: Iterable[Wheel]) -> dict[str, bytes]:
    """Names inside the bundle, and contents. A wheel that another one has the like of for another target adds only what
    differs."""
    files: dict[str, bytes] = {}
    lines = []
    listed = set()
    for wheel in sorted(wheels, key=lambda each: (each.name, each.version, each.path.name)):
        folder = f"{FOLDER}/{wheel.name}-{_plain(str(wheel.version))}"
        for name, text in wheel.licence_files:
            _put(files, folder, _plain("-".join(PurePosixPath(name).parts[1:]) or name), text)
        if folder not in listed:
            listed.add(folder)
            note = "" if wheel.licence_files else " (no licence text in its wheel)"
            lines.append(f"{wheel.name} {wheel.version}: {wheel.licence or 'not said'}{note}\n")
    files[f"{FOLDER}/LIST.txt"] = "".join(lines).encode("utf-8")
    return files


def _put(files: dict[str, bytes], folder: str, name: str, text: bytes) -> None:
    number, free = 1, f"{folder}/{name}"
    taken = {each.lower(): each for each in files}
    while free.lower() in taken:
        if files[taken[free.lower()]] == text:
            return
        number += 1
        free = f"{folder}/{number}-{name}"
    files[free] = text


def _plain(text: str) -> str:
    return _NOT_IN_A_NAME.sub("_", text).strip(".-")[-150:] or "licence"
