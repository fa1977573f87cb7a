"""Encrypting libraries: who opens them, and with what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.encryption.key_record import is_encrypted
from edgerag.errors import LibraryError, UsageError
from edgerag.locations import is_there
from edgerag.private_database import make_private_folders
from edgerag.session.wiring import Wiring
from edgerag.types import LockedLibrary

if TYPE_CHECKING:
    from edgerag.encryption.key_record import KeyRecord
    from edgerag.encryption.keys import LibraryKey, Opener
    from edgerag.index.encrypting import Encrypted, NewKey

Progress = Callable[[int, int], None]


class Encrypting(Wiring):
    """What changes how a library is encrypted."""

    def check_can_encrypt(self, name: str) -> None:
        """Raises LibraryLocked where a package is missing, UsageError where it is encrypted already."""
        from edgerag.encryption.database import require_available

        require_available()
        if is_encrypted(self.locations.library_folder(name)):
            raise UsageError(
                f"Library {name!r} is encrypted already.", remedy=f"Give it another key: edgerag library rekey {name}"
            )

    def encrypt_library(self, name: str, opener: Opener, *, progress: Progress) -> Encrypted | None:
        """Encrypts the library called ``name``, whoever reads it meanwhile. One that is not there yet will be encrypted
        from its first document on; then None. Raises EdgeragError."""
        from edgerag.index.encrypting import encrypt_anew

        self.check_can_encrypt(name)
        folder = self.locations.library_folder(name)
        to = _new_key(opener)
        if not _has_library(folder):
            _prepare(folder, to.record)
            done = None
        else:
            self._let_go()
            done = encrypt_anew(folder, key=None, to=to, progress=progress)
        self._keys.put(folder, to.key)
        return done

    def decrypt_library(self, name: str, *, progress: Progress) -> Encrypted:
        """Writes it in plain. Raises EdgeragError."""
        from edgerag.index.encrypting import encrypt_anew

        folder, key = self._encrypted(name)
        self._let_go()
        done = encrypt_anew(folder, key=key, to=None, progress=progress)
        self._keys.put(folder, None)
        return done

    def open_key(self, name: str) -> None:
        """Asks for what opens it, if it was not opened yet. Raises LibraryLocked, UsageError."""
        self._encrypted(name)

    def change_opener(self, name: str, opener: Opener) -> None:
        """It is opened by this from now on; what is encrypted stays as it is. Raises EdgeragError."""
        from edgerag.encryption.key_record import wrap, write_record
        from edgerag.index.lock import WriterLock
        from edgerag.index.store import translated

        folder, key = self._encrypted(name)
        with translated(folder):
            lock = WriterLock(folder)
            try:
                write_record(folder, wrap(key, opener))
            finally:
                lock.close()

    def encrypt_library_anew(self, name: str, opener: Opener, *, progress: Progress) -> Encrypted:
        """Encrypts everything in it again, under another key. Raises EdgeragError."""
        from edgerag.index.encrypting import encrypt_anew

        folder, key = self._encrypted(name)
        to = _new_key(opener)
        self._let_go()
        done = encrypt_anew(folder, key=key, to=to, progress=progress)
        self._keys.put(folder, to.key)
        return done

    def locked_library(self) -> LockedLibrary | None:
        """What can be said of the library in use where it would have to be asked for its key; None where it is not
        encrypted, or open already. Asks nobody."""
        from edgerag.encryption.key_record import read_record
        from edgerag.index.health import size_bytes

        folder = self._library_folder
        if not self._keys.is_locked(folder):
            return None
        return LockedLibrary(folder.name, str(folder), read_record(folder).kind, size_bytes(folder))

    def _encrypted(self, name: str) -> tuple[Path, LibraryKey]:
        folder = self.locations.library_folder(name)
        if not is_there(folder):
            raise self._missing(name)
        key = self._keys.of(folder, name=name)
        if key is None:
            raise UsageError(
                f"Library {name!r} is not encrypted.", remedy=f"Encrypt it first: edgerag library encrypt {name}"
            )
        return folder, key

    def _let_go(self) -> None:
        """Of all that this session has open in a library: its files are replaced."""
        self._asking.close()
        self._browsing.close()
        if self._viewing is not None:
            self._viewing.close()
        for supplier in (self._states, self._tokens, self._threads):
            if (part := supplier.made()) is not None:
                part.close()


def _new_key(opener: Opener) -> NewKey:
    from edgerag.encryption.key_record import wrap
    from edgerag.encryption.keys import new_library_key
    from edgerag.index.encrypting import NewKey
    from edgerag.machine.core_dumps import forbid_core_dumps

    forbid_core_dumps()
    key = new_library_key()
    return NewKey(key, wrap(key, opener))


def _has_library(folder: Path) -> bool:
    from edgerag.index.store import DATABASE_NAME

    return is_there(folder / DATABASE_NAME)


def _prepare(folder: Path, record: KeyRecord) -> None:
    """A folder for a library that is made by its first ingest. Raises LibraryError where something is in it."""
    from edgerag.encryption.key_record import write_record
    from edgerag.index.store import translated

    with translated(folder):
        if is_there(folder) and any(folder.iterdir()):
            raise LibraryError(f"{folder} is not empty, and no library.", remedy="Name another one.")
        make_private_folders(folder)
        write_record(folder, record)
