"""What the catalogue remembers about model files, so that a start neither hashes nor tries them again.

One JSON file in the models folder. It is a memory, not the truth: when it is lost or cannot be written
(a read-only folder), the files are looked at again. Several processes may write: each reads, changes
and replaces the file under a lock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from edgerag.engine.files import whole_file
from edgerag.errors import StorageFull

_VERSION = 1


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file as it was found. It holds for as long as size and time stay the same."""

    size_bytes: int
    mtime_ns: int
    sha256: str
    kind: Literal["chat", "embedder"]
    weights_sha256: str
    weight_type: str
    licence: str
    languages: tuple[str, ...]
    context_tokens: int
    dimension: int
    engine: str  # what it was tried with: see probe.engine_fingerprint
    trouble: str = ""  # why it cannot be used; "" when it was loaded and worked
    trouble_kind: str = ""  # the name of the error


@dataclass(frozen=True, slots=True)
class Added:
    """A model that the user added."""

    file: str  # in the models folder
    source: str  # where it came from


@dataclass(frozen=True, slots=True)
class State:
    files: dict[str, FileRecord] = field(default_factory=dict)  # by path: relative inside the models folder
    added: dict[str, Added] = field(default_factory=dict)  # by name


def read_state(folder: Path) -> State:
    """The state as it stands; an empty one when there is none or it is not readable."""
    try:
        raw = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        if raw["version"] != _VERSION:
            return State()
        return State(
            files={key: _record(record) for key, record in raw["files"].items()},
            added={name: Added(**added) for name, added in raw["added"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return State()  # lost or damaged: what it knew is found out again


def change_state(folder: Path, change: Callable[[State], None]) -> None:
    """Applies ``change`` to the newest state and keeps it. Raises StorageFull when it cannot be kept."""
    with locked(folder / ".state.lock"):
        state = read_state(folder)
        change(state)
        text = json.dumps({"version": _VERSION, **dataclasses.asdict(state)}, indent=1, ensure_ascii=False)
        with whole_file(folder / "state.json") as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")


@contextlib.contextmanager
def locked(lock_file: Path) -> Iterator[None]:
    """Waits for and holds a lock between processes; it ends with the process. Raises StorageFull."""
    try:
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        stream = lock_file.open("w", encoding="ascii")
    except OSError as error:
        raise StorageFull(f"{lock_file.parent} cannot be written: {error.strerror}.") from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _record(raw: dict[str, Any]) -> FileRecord:
    return FileRecord(**{**raw, "languages": tuple(raw["languages"])})
