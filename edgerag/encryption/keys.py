"""The key of a library, and what opens it: a passphrase or a key file.

A library has 32 random bytes of its own, its master key. What encrypts a file or a database is derived from it
(HKDF-SHA256, RFC 5869), each for one use. The master key never lies on the disk as it is: ``library.key`` holds it
wrapped (key_record.py). No secret here shows itself in a ``repr``, can be pickled into another process, or stands in an
error's message.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from edgerag.errors import LibraryLocked, UsageError

KEY_BYTES = 32
SALT_BYTES = 32
# Fewer are guessed in a moment whatever the derivation costs.
LEAST_PASSPHRASE_CHARACTERS = 8
LEAST_KEY_FILE_BYTES = 32
_NEW_KEY_FILE_BYTES = 64
_OPEN_PIPES = ("/dev/fd/", "/proc/")  # what a command prints, given as a file by a shell: somebody writes to them
_MOST_KEY_FILE_BYTES = 1_000_000  # more is a file that was named by mistake


class _Secret:
    """What must not be shown or leave the process."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} does not leave its process")


@dataclass(frozen=True, slots=True, repr=False)
class Passphrase(_Secret):
    """Typed by a person. Spelled the same whatever the keyboard composes accents of (NFC)."""

    text: str

    def as_bytes(self) -> bytes:
        return unicodedata.normalize("NFC", self.text).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, repr=False)
class KeyFile(_Secret):
    """The bytes of a file that is kept somewhere else."""

    content: bytes


Opener = Passphrase | KeyFile


@dataclass(frozen=True, slots=True, repr=False)
class LibraryKey(_Secret):
    """The master key of one library, in memory."""

    master: bytes

    def for_database(self) -> bytes:
        """32 bytes for SQLCipher, which derives the rest from them and the salt of the file."""
        return derived(self.master, salt=b"", purpose="edgerag database")

    def for_file(self, role: str, salt: bytes) -> bytes:
        """32 bytes for one file: ``role`` says which of the library it is, ``salt`` is its own and random."""
        return derived(self.master, salt=salt, purpose=f"edgerag file {role}")


def new_library_key() -> LibraryKey:
    return LibraryKey(os.urandom(KEY_BYTES))


def derived(secret: bytes, *, salt: bytes, purpose: str) -> bytes:
    """32 bytes by HKDF-SHA256 (RFC 5869), one block."""
    extracted = hmac.digest(salt or bytes(hashlib.sha256().digest_size), secret, "sha256")
    return hmac.digest(extracted, purpose.encode() + b"\x01", "sha256")


def checked_new_passphrase(text: str) -> Passphrase:
    """Raises UsageError for one that is too short to protect anything."""
    if len(text) < LEAST_PASSPHRASE_CHARACTERS:
        raise UsageError(
            f"A passphrase has {LEAST_PASSPHRASE_CHARACTERS} characters or more.",
            remedy="Take several words that nobody would guess together.",
        )
    return Passphrase(text)


def can_be_read_once(path: Path) -> bool:
    """Whether it is a pipe, such as a shell makes of what a command prints: who reads it again finds nothing."""
    try:
        return path.is_fifo()
    except (OSError, ValueError):
        return False


def read_key_file(path: Path) -> KeyFile:
    """Raises LibraryLocked for one that is not there, cannot be read or holds too little."""
    try:
        if can_be_read_once(path) and not str(path).startswith(_OPEN_PIPES):
            raise OSError(errno.EINVAL, "it is a pipe, and nobody may ever write to it")
        with path.open("rb") as stream:
            content = stream.read(_MOST_KEY_FILE_BYTES + 1)
    except OSError as error:
        raise LibraryLocked(
            f"The key file {path} cannot be read: {error.strerror or error}.",
            remedy="Name the file that the library was encrypted with: --key-file FILE.",
        ) from error
    if not LEAST_KEY_FILE_BYTES <= len(content) <= _MOST_KEY_FILE_BYTES:
        raise LibraryLocked(
            f"{path} is no key file: it has {LEAST_KEY_FILE_BYTES} to {_MOST_KEY_FILE_BYTES:,} bytes.",
            remedy="Name the file that the library was encrypted with: --key-file FILE.",
        )
    return KeyFile(content)


def new_key_file() -> KeyFile:
    """The random bytes of one that is not made yet."""
    return KeyFile(os.urandom(_NEW_KEY_FILE_BYTES))
