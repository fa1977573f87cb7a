"""The keys of the libraries of a session: each is asked for once, when its library is first opened, and kept in memory.

Where another process gave a library another key, the one in memory is forgotten, and the new one asked for.
A library that is opened by a key file takes the one of ``library.key_file``; one that is opened by a passphrase asks
whoever can be asked. Where nobody can, LibraryLocked says what is missing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.encryption.key_record import FILE_NAME, is_encrypted
from edgerag.errors import LibraryError, LibraryLocked

if TYPE_CHECKING:
    from edgerag.encryption.key_record import KeyRecord
    from edgerag.encryption.keys import KeyFile, LibraryKey, Opener

_TRIES = 3  # of a person who types a passphrase

AskPassphrase = Callable[[str], str]  # told what is opened; "" for a person who gives up


@dataclass(frozen=True, slots=True, repr=False)
class _Known:
    key: LibraryKey
    stamp: tuple[int, ...]  # of the record that it was had from


class Keys:
    """For any thread."""

    def __init__(self, key_file: Callable[[], str], ask: AskPassphrase | None = None) -> None:
        """``key_file``: the path of the one that is set, "" for none."""
        self._key_file = key_file
        self._ask = ask
        self._known: dict[Path, _Known] = {}
        self._read_once: dict[Path, KeyFile] = {}
        self._lock = threading.RLock()

    def of(self, folder: Path, *, name: str = "") -> LibraryKey | None:
        """Of the library in ``folder``; None where it is not encrypted. ``name``: how people call it.

        Raises LibraryLocked, also where the record in the folder is not the library's own; LibraryDamaged,
        LibraryVersionUnknown.
        """
        with self._lock:
            while is_encrypted(folder):
                known = self._kept(folder)
                if known is not None:
                    return known
                stamp = _stamp(folder)
                try:
                    key = self._opened(folder, name or folder.name)
                except LibraryError:
                    if _stamp(folder) == stamp:
                        raise
                    continue  # another process gave it another key meanwhile, or took that away
                self._known[folder] = _Known(key, stamp)
            return None

    def known(self, folder: Path) -> LibraryKey | None:
        """As :meth:`of`, without asking anybody. Raises LibraryLocked where it was not opened before."""
        from edgerag.encryption.key_record import needs_opener, read_record

        if not is_encrypted(folder):
            return None
        with self._lock:
            known = self._kept(folder)
            if known is None:
                raise needs_opener(read_record(folder), where=str(folder))
            return known

    def is_locked(self, folder: Path) -> bool:
        """Whether opening it would ask somebody."""
        from edgerag.encryption.key_record import read_record

        if not is_encrypted(folder):
            return False
        with self._lock:
            if self._kept(folder) is not None:
                return False
        return read_record(folder).kind == "passphrase" or not self._key_file()

    def ask_nobody(self) -> None:
        """From now on what was not opened yet raises LibraryLocked."""
        with self._lock:
            self._ask = None

    def put(self, folder: Path, key: LibraryKey | None) -> None:
        """What opens it from now on."""
        with self._lock:
            self._known.pop(folder, None)
            if key is not None:
                self._known[folder] = _Known(key, _stamp(folder))

    def _kept(self, folder: Path) -> LibraryKey | None:
        """The key in memory, if it is still that of the library."""
        known = self._known.get(folder)
        if known is None:
            return None
        if (stamp := _stamp(folder)) != known.stamp:
            from edgerag.index.own_key import refuse_another

            try:
                refuse_another(folder, known.key)
            except LibraryLocked:
                del self._known[folder]
                return None
            self._known[folder] = _Known(known.key, stamp)  # it is opened by something else, and is the same key
        return known.key

    def _opened(self, folder: Path, name: str) -> LibraryKey:
        from edgerag.encryption.key_record import read_record
        from edgerag.index.own_key import refuse_another, refuse_beside_plain
        from edgerag.machine.core_dumps import forbid_core_dumps

        forbid_core_dumps()
        refuse_beside_plain(folder)
        key = self._unwrapped(read_record(folder), folder, name)
        refuse_another(folder, key)
        return key

    def _unwrapped(self, record: KeyRecord, folder: Path, name: str) -> LibraryKey:
        from edgerag.encryption.key_record import needs_opener, unwrap
        from edgerag.encryption.keys import Passphrase

        if record.kind == "key file":
            if not self._key_file():
                raise needs_opener(record, where=str(folder))
            return unwrap(record, self._read_key_file(), where=str(folder))
        if self._ask is None:
            raise needs_opener(record, where=str(folder))
        for left in reversed(range(_TRIES)):
            text = self._ask(name)
            if not text:
                raise needs_opener(record, where=str(folder))
            opener: Opener = Passphrase(text)
            try:
                return unwrap(record, opener, where=str(folder))
            except LibraryLocked:
                if not left:
                    raise
        raise AssertionError("the last try raises")

    def _read_key_file(self) -> KeyFile:
        """Of what can be read once all libraries are given what it said then."""
        from edgerag.encryption.keys import can_be_read_once, read_key_file
        from edgerag.locations import user_path

        path = user_path(self._key_file())
        if not can_be_read_once(path):
            return read_key_file(path)
        if path not in self._read_once:
            self._read_once[path] = read_key_file(path)
        return self._read_once[path]


def _stamp(folder: Path) -> tuple[int, ...]:
    """Another one for every record that is written; () for none."""
    try:
        stat = (folder / FILE_NAME).stat()
    except OSError:
        return ()
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns
