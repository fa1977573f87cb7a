"""Encrypting libraries: who opens them, and with what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.encryption.key_record import FILE_NAME, is_encrypted
from edgerag.encryption.keys import KeyFile, Passphrase
from edgerag.errors import LibraryBusy, LibraryError, LibraryLocked, UsageError
from edgerag.locations import is_there
from edgerag.private_database import make_private_folders
from edgerag.session.new_key_file import NewKeyFile
from edgerag.session.wiring import PRIVATE_FOLDER, Wiring
from edgerag.types import LockedLibrary

if TYPE_CHECKING:
    from edgerag.encryption.keys import LibraryKey, Opener
    from edgerag.index.encrypting import Encrypted, NewKey

Progress = Callable[[int, int], None]
NewOpener = Passphrase | KeyFile | NewKeyFile  # what a library is to be opened by


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

    def encrypt_library(self, name: str, opener: NewOpener, *, progress: Progress) -> Encrypted | None:
        """Encrypts the library called ``name``, whoever reads it meanwhile. One that is not there yet will be encrypted
        from its first document on; then None. A new key file is made when nothing else can fail. Raises
        EdgeragError."""
        from edgerag.index.encrypting import encrypt_anew

        self.check_can_encrypt(name)
        folder = self.locations.library_folder(name)
        done: Encrypted | None = None
        with _made_for(folder, opener):
            to = _new_key(opener)
            if not _has_library(folder):
                _prepare(folder, to)
            else:
                self._make_private(folder, None)
                self._let_go()
                done = encrypt_anew(folder, key=None, to=to, progress=progress)
        self._keys.put(folder, to.key)
        return done

    def decrypt_library(self, name: str, *, progress: Progress) -> Encrypted:
        """Writes it in plain. Raises EdgeragError."""
        from edgerag.index.encrypting import encrypt_anew

        folder, key = self._encrypted(name)
        self._make_private(folder, key)
        self._let_go()
        done = encrypt_anew(folder, key=key, to=None, progress=progress)
        self._keys.put(folder, None)
        return done

    def open_key(self, name: str) -> None:
        """Asks for what opens it, if it was not opened yet. Raises LibraryLocked, UsageError."""
        self._encrypted(name)

    def change_opener(self, name: str, opener: NewOpener) -> None:
        """It is opened by this from now on; what is encrypted stays as it is, and no database is opened for that.
        Raises EdgeragError."""
        from edgerag.encryption.key_record import wrap, write_record
        from edgerag.index.lock import WriterLock
        from edgerag.index.own_key import refuse_another
        from edgerag.index.store import translated

        folder, _ = self._encrypted(name)
        with _made_for(folder, opener), translated(folder):
            lock = WriterLock(folder, purpose="encryption")
            try:
                _, key = self._encrypted(name)  # another process may have given it another one
                refuse_another(folder, key)
                record = wrap(key, _opener_of(opener))
                if isinstance(opener, NewKeyFile):
                    opener.make()
                write_record(folder, record)
            finally:
                lock.close()

    def encrypt_library_anew(self, name: str, opener: NewOpener, *, progress: Progress) -> Encrypted:
        """Encrypts everything in it again, under another key. Raises EdgeragError."""
        from edgerag.index.encrypting import encrypt_anew

        folder, key = self._encrypted(name)
        with _made_for(folder, opener):
            to = _new_key(opener)
            self._make_private(folder, key)
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

    def _make_private(self, folder: Path, key: LibraryKey | None) -> None:
        """The file of conversations in a library that keeps them, where it is not there yet: what is not there cannot
        be held while it is replaced. Raises ThreadsError, StorageFull."""
        from edgerag.threads.store import ThreadStore

        file = folder / PRIVATE_FOLDER / self.locations.threads_file.name
        if key is None and not is_there(file.parent):
            return  # those of plain libraries lie in the home
        if not is_there(file):
            ThreadStore(file, key=key).close()

    def _let_go(self) -> None:
        """Of all that this session has open in a library: its files are replaced."""
        self._asking.close()
        self._browsing.close()
        if self._viewing is not None:
            self._viewing.close()
        for supplier in (self._states, self._tokens, self._threads):
            if (part := supplier.made()) is not None:
                part.close()


@contextmanager
def _made_for(folder: Path, opener: NewOpener) -> Iterator[None]:
    """Where the block fails, a key file that was made for it goes again, unless the library is opened by it."""
    try:
        yield
    except BaseException:
        if isinstance(opener, NewKeyFile) and not _may_be_opened(folder, opener.opener):
            with suppress(OSError):  # then it stays, and opens nothing
                opener.take_back()
        raise


def _may_be_opened(folder: Path, opener: Opener) -> bool:
    from edgerag.encryption.key_record import read_record, unwrap

    if not is_there(folder / FILE_NAME):
        return False
    try:
        record = read_record(folder)
    except LibraryError:
        return True  # nobody can tell
    try:
        unwrap(record, opener, where=str(folder))
    except LibraryLocked:
        return False
    return True


def _opener_of(opener: NewOpener) -> Opener:
    return opener.opener if isinstance(opener, NewKeyFile) else opener


def _new_key(opener: NewOpener) -> NewKey:
    from edgerag.encryption.key_record import wrap
    from edgerag.encryption.keys import new_library_key
    from edgerag.index.encrypting import NewKey
    from edgerag.machine.core_dumps import forbid_core_dumps

    forbid_core_dumps()
    key = new_library_key()
    record = wrap(key, _opener_of(opener))
    return NewKey(key, record, opener.make) if isinstance(opener, NewKeyFile) else NewKey(key, record)


def _has_library(folder: Path) -> bool:
    from edgerag.index.store import DATABASE_NAME

    return is_there(folder / DATABASE_NAME)


def _prepare(folder: Path, to: NewKey) -> None:
    """A folder for a library that is made by its first ingest. Raises LibraryError where something is in it."""
    from edgerag.encryption.key_record import forget_unfinished_record, write_record
    from edgerag.index.lock import LOCK_NAME, WriterLock
    from edgerag.index.store import translated

    with translated(folder):
        forget_unfinished_record(folder)
        if is_there(folder) and any(path.name != LOCK_NAME for path in folder.iterdir()):
            raise LibraryError(f"{folder} is not empty, and no library.", remedy="Name another one.")
        was_there = is_there(folder)
        make_private_folders(folder)
        try:
            lock = WriterLock(folder, purpose="encryption")
            try:
                if _has_library(folder) or is_encrypted(folder):
                    raise LibraryBusy(f"Another process made a library in {folder} just now.", remedy="Run it again.")
                to.ready()
                write_record(folder, to.record)
            finally:
                lock.close()
        except BaseException:
            if not was_there and not is_encrypted(folder) and not _has_library(folder):
                with suppress(OSError):  # somebody put something there
                    (folder / LOCK_NAME).unlink(missing_ok=True)
                    folder.rmdir()
            raise
