"""What the catalogue remembers about model files, so that a start neither hashes nor tries them again.

One JSON file in the models folder. It is a memory, not the truth: when it is lost or cannot be written
(a read-only folder), the files are looked at again; when it is damaged, the models in the folder are
found again, and the damaged file is kept beside it. Several processes may write: each reads, changes and
replaces the file under a lock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgerag.engine.files import whole_file
from edgerag.errors import ModelError, StorageFull
from edgerag.types import ModelKind

_VERSION = 1
_FILE_NAME = "state.json"
_REFOUND = "found in the models folder"  # the source of a model whose source is not known any more


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file as it was found. It holds for as long as size and time stay the same."""

    size_bytes: int
    mtime_ns: int
    sha256: str
    kind: ModelKind
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


def read_state(folder: Path, shipped: Collection[str] = ()) -> State:
    """The state as it stands, an empty one when there is none. Of a damaged one what can be known is
    found again: the model files in the folder, but for those called as in ``shipped``, are the added models.

    Raises ModelError when it cannot be read.
    """
    return _load(folder, shipped)[0]


def change_state(folder: Path, change: Callable[[State], None], shipped: Collection[str] = ()) -> None:
    """Applies ``change`` to the newest state and keeps it; a damaged one is kept aside.

    Raises StorageFull when it cannot be kept, ModelError when it cannot be read.
    """
    file = folder / _FILE_NAME
    with locked(folder / ".state.lock"):
        state, damaged = _load(folder, shipped)
        change(state)
        text = json.dumps({"version": _VERSION, **dataclasses.asdict(state)}, indent=1, ensure_ascii=False)
        if damaged:
            with whole_file(file.with_name(file.name + ".damaged")) as temporary:
                shutil.copyfile(file, temporary)
        with whole_file(file) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")


def _load(folder: Path, shipped: Collection[str]) -> tuple[State, bool]:
    """The state, and whether the file is damaged (or of another version) and had to be made up for."""
    file = folder / _FILE_NAME
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return State(), False
    except OSError as error:
        raise _unreadable(file, error) from error
    try:
        raw = json.loads(content)
        if raw["version"] != _VERSION:
            raise ValueError("another version")
        return State(
            files={key: _record(record) for key, record in raw["files"].items()},
            added={name: Added(**added) for name, added in raw["added"].items()},
        ), False
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return State(added=_found_again(folder, shipped)), True


def _found_again(folder: Path, shipped: Collection[str]) -> dict[str, Added]:
    """The models in the folder by the names they were added under, which are those of their files."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise _unreadable(folder, error) from error
    return {
        name.removesuffix(".gguf"): Added(file=name, source=_REFOUND)
        for name in names
        if name.endswith(".gguf") and not name.startswith(".") and name not in shipped
    }


def _unreadable(path: Path, error: OSError) -> ModelError:
    return ModelError(
        f"{path}, which says what models there are, cannot be read: {error.strerror or error}.",
        remedy="Check its rights and the disk. If it is lost, delete it and add your models again.",
    )


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
