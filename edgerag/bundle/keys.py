"""Secret keys and signing, in minisign's formats: ``minisign`` itself reads and writes the same files.

    "Ed" kdf "B2" salt(32) opslimit(8) memlimit(8) | key-id(8) seed(32) public-key(32) checksum(32)

With a password what stands behind the bar is covered by a stream that scrypt makes of it (kdf "Sc").
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from edgerag.bundle.carried.minisign import LONGEST_FILE_BYTES, shown_id
from edgerag.errors import UsageError

_HEAD = struct.Struct("<2s2s2s32sQQ")
_SECRET = struct.Struct("<8s32s32s32s")
_NO_PASSWORD, _SCRYPT = b"\0\0", b"Sc"
_MOST_MEMORY_BYTES = 1 << 31  # minisign asks for 1 GiB; a key that asks for more would only take the machine down
_BLOCK_SIZE = 8  # "r" of scrypt, in libsodium


@dataclass(frozen=True, slots=True)
class SecretKey:
    key_id: bytes
    seed: bytes

    @property
    def name(self) -> str:
        return shown_id(self.key_id)

    @property
    def point(self) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw()


def sign(data: bytes, key: SecretKey, *, comment: str) -> bytes:
    """The contents of the ``.minisig`` file of ``data``."""
    private = Ed25519PrivateKey.from_private_bytes(key.seed)
    signature = private.sign(hashlib.blake2b(data).digest())
    trusted = comment.encode("ascii")
    whole = private.sign(signature + trusted)
    lines = [
        b"untrusted comment: signature from edgerag",
        base64.b64encode(b"ED" + key.key_id + signature),
        b"trusted comment: " + trusted,
        base64.b64encode(whole),
    ]
    return b"\n".join(lines) + b"\n"


def make_key(path: Path) -> SecretKey:
    """Writes a new secret key without a password to ``path``, and the public one beside it. Raises UsageError where
    either is there, OSError."""
    public = public_path(path)
    for each in (path, public):
        if os.path.lexists(each):
            raise UsageError(f"{each} is there already.", remedy="Name another file: a key is never written over.")
    key = SecretKey(os.urandom(8), os.urandom(32))
    secret = _SECRET.pack(key.key_id, key.seed, key.point, _checksum(key))
    head = _HEAD.pack(b"Ed", _NO_PASSWORD, b"B2", bytes(32), 0, 0)
    _write(path, b"minisign secret key of edgerag, without a password", head + secret, mode=0o600)
    _write(public, f"minisign public key {key.name}".encode(), b"Ed" + key.key_id + key.point, mode=0o644)
    return key


def public_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.pub")


def read_key(path: Path, *, password: Callable[[], str]) -> SecretKey:
    """``password`` is asked where the key has one. Raises UsageError for what is no key, or a wrong password."""
    try:
        with path.open("rb") as stream:
            lines = stream.read(LONGEST_FILE_BYTES).splitlines()
    except OSError as error:
        raise UsageError(f"The key {path} cannot be read: {error.strerror}.") from error
    try:
        raw = base64.b64decode(lines[1].strip(), validate=True) if len(lines) > 1 else b""
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != _HEAD.size + _SECRET.size:
        raise _no_key(path)
    algorithm, kdf, _, salt, operations, memory_bytes = _HEAD.unpack(raw[: _HEAD.size])
    secret = raw[_HEAD.size :]
    if algorithm != b"Ed" or kdf not in (_NO_PASSWORD, _SCRYPT):
        raise _no_key(path)
    if kdf == _SCRYPT:
        cover = _scrypt(password(), salt, operations, memory_bytes, path)
        secret = bytes(a ^ b for a, b in zip(secret, cover, strict=True))
    key_id, seed, point, checksum = _SECRET.unpack(secret)
    key = SecretKey(key_id, seed)
    # minisign leaves the checksum empty where there is no password; the public key tells as well.
    if point != key.point or (kdf == _SCRYPT and checksum != _checksum(key)):
        raise UsageError(
            f"The password of {path} is wrong." if kdf == _SCRYPT else f"The key {path} is damaged.",
            remedy="Try again." if kdf == _SCRYPT else "Take it from a copy.",
        )
    return key


def _scrypt(password: str, salt: bytes, operations: int, memory_bytes: int, path: Path) -> bytes:
    if memory_bytes > _MOST_MEMORY_BYTES:
        raise UsageError(f"The key {path} asks for {memory_bytes / 1e9:,.1f} GB to be opened.", remedy="Make another.")
    rounds, parallel = scrypt_cost(operations, memory_bytes)
    try:
        return hashlib.scrypt(
            password.encode(),
            salt=salt,
            n=rounds,
            r=_BLOCK_SIZE,
            p=parallel,
            maxmem=_MOST_MEMORY_BYTES - 1,
            dklen=_SECRET.size,
        )
    except (ValueError, MemoryError) as error:
        raise UsageError(f"The key {path} cannot be opened here: {error}.") from error


def scrypt_cost(operations: int, memory_bytes: int) -> tuple[int, int]:
    """N and p, as libsodium's crypto_pwhash_scryptsalsa208sha256 takes them from its limits."""
    operations = max(operations, 32768)
    if operations < memory_bytes // 32:
        return 1 << max(1, (operations // (_BLOCK_SIZE * 8)).bit_length()), 1
    power = max(1, (memory_bytes // (_BLOCK_SIZE * 256)).bit_length())
    return 1 << power, max(1, min((operations // 4) >> power, 0x3FFFFFFF) // _BLOCK_SIZE)


def _checksum(key: SecretKey) -> bytes:
    return hashlib.blake2b(b"Ed" + key.key_id + key.seed + key.point, digest_size=32).digest()


def _write(path: Path, comment: bytes, raw: bytes, *, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(b"untrusted comment: " + comment + b"\n" + base64.b64encode(raw) + b"\n")


def _no_key(path: Path) -> UsageError:
    return UsageError(f"{path} is no secret key of minisign.", remedy="Make one: edgerag bundle key FILE")
