"""What was measured, in one JSON file in the models folder.

It is a memory, not the truth: when it is lost or damaged, it is measured again (a damaged one is kept beside it);
where it cannot be written, only this process knows. What was found for another machine stays, up to a number, for when
that comes back. Several processes may write.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

from edgerag.engine.files import whole_file
from edgerag.engine.state import locked
from edgerag.errors import StorageFull

_VERSION = 1

T = TypeVar("T")


class Kept(Generic[T]):
    """Records of one kind by their keys. Making one reads nothing."""

    def __init__(self, folder: Path, *, name: str, kind: type[T], most: int) -> None:
        """``name``: of the file and of what is in it. ``kind``: a dataclass of numbers, texts, tuples and dataclasses.
        ``most``: the oldest go."""
        self._file = folder / f"{name}.json"
        self._lock_file = folder / f".{name}.lock"
        self._member = f"{name}s"
        self._kind = kind
        self._most = most
        self._own: dict[str, T] = {}  # all there is where nothing can be written

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever kept here. Reads nothing."""
        return not self._own and not self._file.exists()

    def find(self, key: str) -> T | None:
        """What was kept under that key, finished or not."""
        return self._read()[0].get(key) or self._own.get(key)

    def all(self) -> dict[str, T]:
        """What is kept in the file, oldest first."""
        return self._read()[0]

    def keep(self, key: str, record: T) -> bool:
        """Keeps it as the newest. False when the folder cannot be written: then only this object knows."""
        self._own[key] = record
        with contextlib.suppress(StorageFull), locked(self._lock_file):
            kept, damaged = self._read()
            kept.pop(key, None)
            kept[key] = record
            while len(kept) > self._most:
                del kept[next(iter(kept))]
            values = {name: dataclasses.asdict(one) for name, one in kept.items()}  # type: ignore[call-overload]
            text = json.dumps({"version": _VERSION, self._member: values}, indent=1, ensure_ascii=False)
            if damaged:
                with whole_file(self._file.with_name(f"{self._file.name}.damaged")) as temporary:
                    shutil.copyfile(self._file, temporary)
            with whole_file(self._file) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")
            return True
        return False

    def _read(self) -> tuple[dict[str, T], bool]:
        """What is kept, oldest first, and whether the file is there but cannot be understood."""
        try:
            if not self._file.is_file():  # a pipe would be waited for
                return {}, False
            content = self._file.read_bytes()
        except FileNotFoundError:
            return {}, False
        except OSError:
            return {}, False  # measured again; writing will say what is wrong with the folder
        try:
            raw = json.loads(content)
            if raw["version"] != _VERSION:
                raise ValueError("another version")
            return {str(key): _typed(self._kind, value) for key, value in raw[self._member].items()}, False
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}, True


def _typed(kind: Any, value: Any) -> Any:
    """``value`` out of JSON as ``kind``. Raises TypeError or ValueError for what is not."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _typed(hints[name], part) for name, part in value.items()})  # type: ignore[operator]
    arguments = get_args(kind)
    if get_origin(kind) is Literal:
        if value not in arguments:
            raise ValueError(f"{value!r} is none of {arguments}")
        return value
    if get_origin(kind) is tuple:
        return tuple(_typed(arguments[0], part) for part in value)
    if arguments:  # a record or nothing
        return None if value is None else _typed(arguments[0], value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value
