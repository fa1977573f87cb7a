"""``library.key``: the master key of a library, wrapped by a passphrase or a key file. docs/index-format.md has it.

A small JSON file in the library's folder. Everything in it but the wrapped key is authenticated with it, and a checksum
tells a damaged file from a wrong passphrase. Changing the passphrase writes this file alone, whole or not at all; who
has an old copy of it and the old passphrase still has the key, so after a leak the library is encrypted anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from edgerag.encryption.keys import KEY_BYTES, SALT_BYTES, KeyFile, LibraryKey, Opener, Passphrase, derived
from edgerag.errors import LibraryDamaged, LibraryLocked, LibraryVersionUnknown

FILE_NAME = "library.key"
_UNFINISHED = FILE_NAME + ".tmp"
_FORMAT = "edgerag library key"
_VERSION = 1
_NONCE_BYTES = 12
_TAG_BYTES = 16
_MOST_RECORD_BYTES = 65_536
# Percival, "Stronger key derivation via sequential memory-hard functions", 2009; parameters as OWASP recommends them:
# 128 MiB and a third of a second for each guess.
SCRYPT_N = 2**17
_SCRYPT: Mapping[str, int | str] = {"name": "scrypt", "n": SCRYPT_N, "r": 8, "p": 1}
# A record that asks for more would take all memory before anything could be told about it.
_MOST_SCRYPT_BYTES = 1 << 30

OpenerKind = Literal["passphrase", "key file"]


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What ``library.key`` says. The wrapped key is of no use without its opener."""

    kind: OpenerKind
    derivation: Mapping[str, int | str]
    salt: bytes
    nonce: bytes
    wrapped: bytes


def is_encrypted(folder: Path) -> bool:
    """Whether the library in ``folder`` has a key. Looks at one name, and opens nothing; False where it cannot look."""
    try:
        return (folder / FILE_NAME).is_file()
    except (OSError, ValueError):  # too long, a NUL in it: whoever opens it is told
        return False


def wrap(key: LibraryKey, opener: Opener, *, scrypt_n: int = SCRYPT_N) -> KeyRecord:
    """``scrypt_n``: the cost of a guess; tests make it small."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    kind: OpenerKind = "passphrase" if isinstance(opener, Passphrase) else "key file"
    derivation: Mapping[str, int | str] = {**_SCRYPT, "n": scrypt_n} if kind == "passphrase" else {"name": "hkdf"}
    salt, nonce = os.urandom(SALT_BYTES), os.urandom(_NONCE_BYTES)
    unwrapped = KeyRecord(kind, derivation, salt, nonce, b"")
    wrapped = AESGCM(_wrapping_key(unwrapped, opener)).encrypt(nonce, key.master, _authenticated(unwrapped))
    return KeyRecord(kind, derivation, salt, nonce, wrapped)


def unwrap(record: KeyRecord, opener: Opener, *, where: str) -> LibraryKey:
    """Raises LibraryLocked where it is not what the library was encrypted with."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    wanted = Passphrase if record.kind == "passphrase" else KeyFile
    if not isinstance(opener, wanted):
        raise LibraryLocked(f"The library in {where} is opened by a {record.kind}.", remedy=_how(record.kind))
    try:
        master = AESGCM(_wrapping_key(record, opener)).decrypt(record.nonce, record.wrapped, _authenticated(record))
    except InvalidTag:
        raise LibraryLocked(
            f"This {record.kind} does not open the library in {where}.",
            remedy="Without the right one nothing of it can be read by anybody. "
            + _how(record.kind)
            + f" If it is the right one, the {FILE_NAME} in that folder is another library's: put its own back.",
        ) from None
    return LibraryKey(master)


def _how(kind: OpenerKind) -> str:
    if kind == "passphrase":
        return "Type its passphrase in a terminal."
    return "Name its key file: --key-file FILE, or the setting library.key_file."


def needs_opener(record: KeyRecord, *, where: str) -> LibraryLocked:
    """The error where there is nobody to ask and no file is named."""
    return LibraryLocked(
        f"The library in {where} is encrypted, and its {record.kind} was not given.", remedy=_how(record.kind)
    )


def read_record(folder: Path) -> KeyRecord:
    """Raises LibraryDamaged for a file that is not what was written, LibraryVersionUnknown, LibraryLocked where it is
    not there."""
    path = folder / FILE_NAME
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MOST_RECORD_BYTES)
    except FileNotFoundError:
        raise key_is_gone(folder) from None
    except OSError as error:
        raise LibraryLocked(f"{path} cannot be read: {error.strerror or error}.", remedy="Check its rights.") from error
    return decoded(raw, str(path))


def key_is_gone(folder: Path) -> LibraryLocked:
    return LibraryLocked(
        f"The library in {folder} is encrypted, and its {FILE_NAME} is gone.",
        remedy=f"Put {FILE_NAME} back from a copy or a backup: without it nothing can be read of it by anybody.",
    )


def decoded(raw: bytes, where: str) -> KeyRecord:
    """As :func:`read_record`, of the bytes of such a file."""
    try:
        value: dict[str, Any] = json.loads(raw)
        checksum = value.pop("checksum")
        if value["format"] != _FORMAT or checksum != f"{zlib.crc32(_canonical(value)):08x}":
            raise ValueError("its checksum")
        if value["version"] != _VERSION:
            raise LibraryVersionUnknown(
                f"{where} has the version {value['version']}, and this program knows version {_VERSION}.",
                remedy="Use the newer edgerag that wrote it.",
            )
        record = KeyRecord(
            value["opened_by"],
            value["derivation"],
            bytes.fromhex(value["salt"]),
            bytes.fromhex(value["nonce"]),
            bytes.fromhex(value["wrapped"]),
        )
        _check(record)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LibraryDamaged(
            f"{where} is damaged ({error}): the key of the library cannot be had from it.",
            remedy="Put it back from a copy or a backup: without it nothing of the library can be read by anybody.",
        ) from error
    return record


def encoded(record: KeyRecord) -> bytes:
    value = {**_open_part(record), "wrapped": record.wrapped.hex()}
    value["checksum"] = f"{zlib.crc32(_canonical(value)):08x}"
    return json.dumps(value, indent=1).encode("ascii") + b"\n"


def write_record(folder: Path, record: KeyRecord) -> None:
    """Puts it in the place of the one that is there, durably: after a power loss it is the old or the new one, whole.
    Raises OSError."""
    path = folder / FILE_NAME
    unfinished = folder / _UNFINISHED
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(encoded(record))
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(path)
    except OSError:
        forget_unfinished_record(folder)
        raise
    folder_descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder_descriptor)
    finally:
        os.close(folder_descriptor)


def forget_unfinished_record(folder: Path) -> None:
    """Takes away what a :func:`write_record` left that was killed. To be called where nobody else writes one; what
    cannot be deleted now goes with the next."""
    with contextlib.suppress(OSError):
        (folder / _UNFINISHED).unlink(missing_ok=True)


def _check(record: KeyRecord) -> None:
    """Raises ValueError for numbers that nobody wrote, and those that would take all memory."""
    if record.kind not in ("passphrase", "key file"):
        raise ValueError(f"opened by {record.kind!r}")
    if (len(record.salt), len(record.nonce), len(record.wrapped)) != (
        SALT_BYTES,
        _NONCE_BYTES,
        KEY_BYTES + _TAG_BYTES,
    ):
        raise ValueError("its lengths")
    name = record.derivation["name"]
    if record.kind == "key file":
        if name != "hkdf":
            raise ValueError(f"derivation {name!r}")
        return
    n, r, p = (record.derivation[number] for number in "nrp")
    if name != "scrypt" or not all(isinstance(number, int) and number > 0 for number in (n, r, p)):
        raise ValueError(f"derivation {name!r}")
    assert isinstance(n, int) and isinstance(r, int) and isinstance(p, int)
    # What RFC 7914 allows, and what fits into memory.
    if n < 2 or n & (n - 1) or n.bit_length() > 16 * r or p > 64 or _scrypt_bytes(n, r, p) > _MOST_SCRYPT_BYTES:
        raise ValueError("a derivation that nobody wrote")


def _scrypt_bytes(n: int, r: int, p: int) -> int:
    """What OpenSSL asks to be allowed."""
    return 128 * r * (n + p + 2) + 2**20


def _wrapping_key(record: KeyRecord, opener: Opener) -> bytes:
    if isinstance(opener, KeyFile):
        return derived(opener.content, salt=record.salt, purpose="edgerag wrapping key")
    n, r, p = (int(record.derivation[number]) for number in "nrp")
    most = _scrypt_bytes(n, r, p)
    return hashlib.scrypt(opener.as_bytes(), salt=record.salt, n=n, r=r, p=p, maxmem=most, dklen=KEY_BYTES)


def _authenticated(record: KeyRecord) -> bytes:
    return _canonical(_open_part(record))


def _open_part(record: KeyRecord) -> dict[str, object]:
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "opened_by": record.kind,
        "derivation": dict(record.derivation),
        "salt": record.salt.hex(),
        "nonce": record.nonce.hex(),
    }


def _canonical(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")
