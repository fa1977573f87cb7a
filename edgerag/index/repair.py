"""Mends a damaged library: what is left of it is put right, made anew or named.

In order: single bits of a database at rest are put right by their checksums; one that was damaged while it was brought
up to a newer version is made again what the copy beside it holds; a database that is damaged otherwise is written anew
out of the rows that can be read and match their sums, its keyword index out of the texts (salvage.py); segments that
are damaged give the vectors that they still have to new ones, and passages whose vector is lost wait to be embedded
again (rescue.py). What cannot be had again is named by document. The old database is replaced by one rename, when the
new one is whole.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgerag.encryption.database import connect
from edgerag.encryption.key_record import forget_unfinished_record
from edgerag.encryption.keys import LibraryKey
from edgerag.errors import (
    REPAIR_LIBRARY,
    RESTORE_LIBRARY,
    EdgeragError,
    LibraryDamaged,
    LibraryMissing,
    LibraryOutdated,
    LibraryVersionUnknown,
    StorageFull,
)
from edgerag.index import at_rest, bringing_up, health
from edgerag.index.bits import flipped_bit
from edgerag.index.identity import read_identity
from edgerag.index.lock import WriterLock
from edgerag.index.losses import Loss
from edgerag.index.salvage import MENDING, salvage
from edgerag.index.scratch import ENCRYPTING_PREFIX, remove_left
from edgerag.index.store import DATABASE_NAME, Store, is_damage, refuse_emptied, refuse_locked, translated
from edgerag.machine.disk import put_in_place
from edgerag.types import EmbedderIdentity

_WORKSHOP = ".repair"  # inside the library's folder


@dataclass(frozen=True, slots=True)
class DatabaseRepair:
    """What was done to the database file."""

    # "sums": rows, texts and words are whole, and the checksums of the file were what did not match.
    # "put back": it is what it was before it began to be brought up to a newer version.
    state: Literal["whole", "bits", "sums", "put back", "rebuilt"]
    bits: int  # that were put right
    losses: tuple[Loss, ...]


def repair_database(
    folder: Path, *, key: LibraryKey | None = None, wanted: EmbedderIdentity | None = None
) -> DatabaseRepair:
    """``wanted``: the embedder that it gets where nothing says any more which one it had.

    Raises LibraryLocked, LibraryBusy, StorageFull, LibraryMissing, LibraryVersionUnknown, and LibraryDamaged where too
    little of it can be read; then it is as it was.
    """
    if key is None:
        refuse_locked(folder)
    lock = WriterLock(folder)
    try:
        with translated(folder):
            shutil.rmtree(folder / _WORKSHOP, ignore_errors=True)  # of a run that was stopped
            forget_unfinished_record(folder)
            remove_left(folder.parent, ENCRYPTING_PREFIX)
            return _repair(folder, key, wanted)
    except LibraryDamaged as error:  # elsewhere the remedy is what has just failed
        remedy = error.remedy if error.remedy not in ("", REPAIR_LIBRARY) else RESTORE_LIBRARY
        raise LibraryDamaged(_of_the_user(error.message, folder), remedy=remedy) from error
    except StorageFull as error:
        raise StorageFull(_of_the_user(error.message, folder), remedy=error.remedy) from error
    finally:
        shutil.rmtree(folder / _WORKSHOP, ignore_errors=True)
        lock.close()


def _repair(folder: Path, key: LibraryKey | None, wanted: EmbedderIdentity | None) -> DatabaseRepair:
    database = folder / DATABASE_NAME
    if not database.is_file():
        refuse_emptied(folder)
        raise LibraryMissing(f"There is no library database {database}.", remedy=RESTORE_LIBRARY)
    bits, fit = _mend_bits(folder, database)
    # Checksums that match say that nothing changed since they were made, which may have been of a damaged file.
    if _is_sound(folder, key, refuses_newer=fit is not False):
        if fit is False:
            # What does not match lies where nothing is kept, or the checksums themselves are what is damaged.
            at_rest.forget(folder)
            return DatabaseRepair("sums", bits, ())
        return DatabaseRepair("bits" if bits else "whole", bits, ())
    if bringing_up.put_back(database, key=key):
        at_rest.forget(folder)
        return DatabaseRepair("put back", bits, ())
    _fold_journal(database, key)
    workshop = folder / _WORKSHOP
    workshop.mkdir(mode=0o700)
    losses = salvage(database, workshop, key=key, wanted=wanted)
    at_rest.forget(folder)
    for name in ("-wal", "-shm", "-journal"):
        database.with_name(database.name + name).unlink(missing_ok=True)
    put_in_place(workshop / DATABASE_NAME, database)
    return DatabaseRepair("rebuilt", bits, tuple(losses))


def _of_the_user(message: str, folder: Path) -> str:
    """What happened to the new database, said of the one that the user has."""
    return message.replace(str(folder / _WORKSHOP / DATABASE_NAME), str(folder / DATABASE_NAME))


def _mend_bits(folder: Path, database: Path) -> tuple[int, bool | None]:
    """(bits put right, whether the file is now what its checksums say; None where there are none)."""
    try:
        sums = at_rest.read_sums(folder)
        blocks = at_rest.damaged_blocks(folder, database)
    except LibraryDamaged:
        return 0, False
    if sums is None or blocks is None:
        return 0, None
    if database.stat().st_size != sums.size_bytes:
        return 0, False
    mended = 0
    descriptor = os.open(database, os.O_RDWR)
    try:
        for block in blocks:
            data = bytearray(os.pread(descriptor, at_rest.BLOCK_BYTES, block * at_rest.BLOCK_BYTES))
            expected = sums.blocks[block]
            bit = flipped_bit(expected.crc32 ^ at_rest.block_sum(data).crc32, len(data))
            if bit is None:
                continue
            data[bit // 8] ^= 1 << bit % 8
            if at_rest.block_sum(data) == expected:
                os.pwrite(descriptor, data[bit // 8 : bit // 8 + 1], block * at_rest.BLOCK_BYTES + bit // 8)
                mended += 1
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return mended, mended == len(blocks)


def _is_sound(folder: Path, key: LibraryKey | None, *, refuses_newer: bool) -> bool:
    """Whether all checks that need no checksums of the file find nothing. Raises LibraryVersionUnknown for one of a
    newer version, where that number is not known to be what is damaged."""
    try:
        store = Store(folder, mode="read", as_copy=True, key=key)  # as one of the newest version, whatever its own
    except LibraryOutdated:
        return False
    except LibraryVersionUnknown:
        if refuses_newer:
            raise
        return False
    except EdgeragError:
        return False
    try:
        return health.database_is_sound(store) and read_identity(store) is not None
    except EdgeragError:
        return False
    finally:
        store.close()


def _fold_journal(database: Path, key: LibraryKey | None) -> None:
    """A journal that lay beside another database would be written into that. Raises LibraryDamaged where there is one
    that cannot be folded; a database that does not open and has none is looked into page by page."""
    try:
        connection = connect(database, key=key)
        try:
            connection.execute(MENDING)  # also where the file was cut short
            connection.execute("PRAGMA user_version").fetchone()  # undoes what was not finished
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not is_damage(error) or _has_journal(database):
            raise LibraryDamaged(f"{database} cannot be opened: {error}.", remedy=RESTORE_LIBRARY) from error
    if _has_journal(database):
        journal = database.with_name(database.name + "-wal")
        raise LibraryDamaged(f"The journal {journal} cannot be folded into it.", remedy=RESTORE_LIBRARY)


def _has_journal(database: Path) -> bool:
    journals = (database.with_name(f"{database.name}-{kind}") for kind in ("wal", "journal"))
    return any(journal.exists() and journal.stat().st_size for journal in journals)
