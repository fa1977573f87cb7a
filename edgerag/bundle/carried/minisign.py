"""Minisign's files: a public key, and the signature beside what is signed.

    signature   untrusted comment: ...        key      untrusted comment: ...
                base64("ED" key-id signature)          base64("Ed" key-id public-key)
                trusted comment: ...
                base64(signature of signature and trusted comment)

What is signed is the BLAKE2b-512 of the file ("ED"). https://jedisct1.github.io/minisign/ has the formats.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from .ed25519 import is_signed
from .refused import Refused

_TRUSTED = b"trusted comment: "
_UNTRUSTED = b"untrusted comment: "
_KEY_BYTES, _SIGNATURE_BYTES = 42, 74
LONGEST_FILE_BYTES = 16_384  # minisign's own comments end at 8 KiB


@dataclass(frozen=True, slots=True)
class PublicKey:
    key_id: bytes  # 8 bytes, little-endian: shown the other way round, as minisign does
    point: bytes  # 32 bytes

    @property
    def name(self) -> str:
        return shown_id(self.key_id)


@dataclass(frozen=True, slots=True)
class Signature:
    key_id: bytes
    signature: bytes  # 64 bytes
    comment: bytes  # trusted: it is signed, too
    whole: bytes  # 64 bytes, over signature and comment


def shown_id(key_id: bytes) -> str:
    return f"{int.from_bytes(key_id, 'little'):016X}"


def public_key(data: bytes, where: str) -> PublicKey:
    """Raises Refused for what is no public key."""
    lines = [line for line in data[:LONGEST_FILE_BYTES].split(b"\n") if line.strip()]
    text = lines[1] if len(lines) > 1 and lines[0].startswith(_UNTRUSTED) else lines[0] if lines else b""
    raw = _decoded(text)
    if len(raw) != _KEY_BYTES or raw[:2] != b"Ed":
        raise Refused(f"{where} holds no public key of minisign.", remedy="It begins: untrusted comment: ...")
    return PublicKey(raw[2:10], raw[10:])


def signature(data: bytes, where: str) -> Signature:
    """Raises Refused for what is no signature."""
    lines = data[:LONGEST_FILE_BYTES].replace(b"\r\n", b"\n").split(b"\n")
    if len(lines) >= 4 and lines[0].startswith(_UNTRUSTED) and lines[2].startswith(_TRUSTED):
        raw, whole = _decoded(lines[1]), _decoded(lines[3])
        if len(raw) == _SIGNATURE_BYTES and raw[:2] == b"ED" and len(whole) == 64:
            return Signature(raw[2:10], raw[10:], lines[2][len(_TRUSTED) :], whole)
    raise Refused(f"{where} holds no signature of minisign.", remedy="Get the bundle again from who made it.")


def check(message: bytes, signed: Signature, key: PublicKey, what: str) -> None:
    """Raises Refused unless the owner of ``key`` signed ``message``, and the comment with it."""
    if signed.key_id != key.key_id:
        raise Refused(
            f"{what} was signed with the key {shown_id(signed.key_id)}, and the key {key.name} was asked for.",
            remedy="Do not use it, unless you know that other key: then name it with --public-key.",
        )
    digest = hashlib.blake2b(message).digest()
    if not is_signed(digest, signed.signature, key.point) or not is_signed(
        signed.signature + signed.comment, signed.whole, key.point
    ):
        raise Refused(
            f"{what} is not what the owner of the key {key.name} signed.",
            remedy="Do not use it: it was changed or damaged on its way. Get it again from who made it.",
        )


def _decoded(line: bytes) -> bytes:
    try:
        return base64.b64decode(line.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""  # of no length that is asked for
