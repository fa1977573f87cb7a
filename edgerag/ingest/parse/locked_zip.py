"""Members of a ZIP that are encrypted: the old way (ZipCrypto) and with AES (AE-1 and AE-2 of WinZip).

What is decrypted is still packed, except the old way, which the standard library undoes as a whole. A wrong password
is told by the archive's own check, and at last by the checksum of what comes out.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import struct
import zipfile
import zlib
from dataclasses import dataclass

AES_METHOD = 99
_AES_FIELD = 0x9901
_SALT_BYTES = {1: 8, 2: 12, 3: 16}
_CHECK_BYTES, _CODE_BYTES = 2, 10
_ITERATIONS = 1000
_BLOCK = 16
_OLD_HEADER_BYTES = 12


@dataclass(frozen=True, slots=True)
class AesLock:
    """How a member is encrypted. ``has_crc`` is False where the checksum of the archive says nothing (AE-2)."""

    strength: int
    method: int  # by which it is packed, below the encryption
    has_crc: bool


def aes_lock(extra: bytes) -> AesLock | None:
    """What the extra field of a member says of its encryption; None without one that is known."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        if kind == _AES_FIELD and length >= 7 and position + 4 + length <= len(extra):
            version, strength, method = struct.unpack_from("<HxxBH", extra, position + 4)
            return AesLock(strength, method, has_crc=version == 1) if strength in _SALT_BYTES else None
        position += 4 + length
    return None


def open_aes(data: memoryview, lock: AesLock, password: str) -> bytes | None:
    """The packed content; None with a wrong password, or when it was changed."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    salt_bytes, key_bytes = _SALT_BYTES[lock.strength], 8 * (lock.strength + 1)
    if len(data) < salt_bytes + _CHECK_BYTES + _CODE_BYTES:
        return None
    salt, check = bytes(data[:salt_bytes]), bytes(data[salt_bytes : salt_bytes + _CHECK_BYTES])
    keys = hashlib.pbkdf2_hmac("sha1", password.encode("utf-8"), salt, _ITERATIONS, 2 * key_bytes + _CHECK_BYTES)
    if not hmac.compare_digest(keys[2 * key_bytes :], check):
        return None
    body, code = data[salt_bytes + _CHECK_BYTES : -_CODE_BYTES], bytes(data[-_CODE_BYTES:])
    if not hmac.compare_digest(hmac.digest(keys[key_bytes : 2 * key_bytes], body, "sha1")[:_CODE_BYTES], code):
        return None
    # Its counter is little-endian and begins at 1, which no ready-made mode does.
    blocks = -(-len(body) // _BLOCK)
    counters = b"".join(number.to_bytes(_BLOCK, "little") for number in range(1, blocks + 1))
    encryptor = Cipher(AES(keys[:key_bytes]), ECB()).encryptor()  # noqa: S305 - of a counter
    stream = encryptor.update(counters)[: len(body)]
    return (int.from_bytes(body, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(body), "big")


def open_old(data: bytes, header_offset: int, password: str, limit: int) -> bytes | None:
    """The content of the member whose header stands there, unpacked, at most one byte more than the limit; None with
    a wrong password."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = next((info for info in archive.infolist() if info.header_offset == header_offset), None)
        if info is None:
            return None
        for encoding in ("utf-8", "cp437"):
            try:
                with archive.open(info, pwd=password.encode(encoding, "replace")) as stream:
                    return stream.read(limit + 1)
            except (RuntimeError, zipfile.BadZipFile, zlib.error, EOFError, OSError):  # a check of one byte may pass
                continue
    return None
