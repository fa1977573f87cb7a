"""Whether a key is that of an encrypted database, told of single pages, without SQLCipher.

To SQLCipher a wrong key and a damaged first page are one thing. But it authenticates every page for itself
(HMAC-SHA512), so one page that holds says that the key is right, whatever became of the others. The format is that of
SQLCipher 4 with its defaults (zetetic.net/sqlcipher/design): pages of 4,096 bytes that end with 16 bytes of IV and 64
of HMAC, the salt in the first 16 bytes of the file.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

from edgerag.beside_sqlite import open_beside_sqlite
from edgerag.encryption.keys import LibraryKey

PAGE_BYTES = 4_096
_SALT_BYTES = 16
_HMAC_BYTES = 64
_HMAC_SALT_MASK = 0x3A
_HMAC_ROUNDS = 2
_HMAC_KEY_BYTES = 32
_MOST_PAGES = 256  # looked at where the first does not hold: a megabyte, spread over the whole file


def fits_some_page(database: Path, key: LibraryKey) -> bool:
    """Whether a page of it was written with that key; of many pages a sample is looked at, the first one first.
    Raises OSError."""
    with open_beside_sqlite(database) as stream:
        salt = stream.read(_SALT_BYTES)
        if len(salt) < _SALT_BYTES:
            return False
        masked = bytes(byte ^ _HMAC_SALT_MASK for byte in salt)
        hmac_key = hashlib.pbkdf2_hmac("sha512", key.for_database(), masked, _HMAC_ROUNDS, _HMAC_KEY_BYTES)
        for number in _sample(database.stat().st_size // PAGE_BYTES):
            stream.seek((number - 1) * PAGE_BYTES)
            page = stream.read(PAGE_BYTES)
            if len(page) == PAGE_BYTES and _holds(page, number, hmac_key):
                return True
    return False


def _sample(count: int) -> Iterator[int]:
    """Numbers of pages, from 1."""
    step = max(1, count // _MOST_PAGES)
    yield from range(1, count + 1, step)


def _holds(page: bytes, number: int, hmac_key: bytes) -> bool:
    begin = _SALT_BYTES if number == 1 else 0
    said = page[begin:-_HMAC_BYTES] + number.to_bytes(4, "little")
    return hmac.compare_digest(hmac.digest(hmac_key, said, "sha512"), page[-_HMAC_BYTES:])
