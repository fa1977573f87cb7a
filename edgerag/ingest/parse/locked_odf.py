"""OpenDocument files whose parts are encrypted (ODF 1.3 part 2, 3.8 and 4.8), opened with one of the given passwords.

Read are AES-256 and the Blowfish of older programs, with keys derived by PBKDF2. The newest LibreOffice can also write
one encrypted package with a key derived by Argon2: that is named, not read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from edgerag.errors import DocumentDamaged, DocumentEncrypted
from edgerag.ingest.parse.package import xml_root
from edgerag.ingest.parse.passwords import refused

_M = "{urn:oasis:names:tc:opendocument:xmlns:manifest:1.0}"
_MANIFEST = "META-INF/manifest.xml"
_WHAT = "The OpenDocument file"
_CHECKED_BYTES = 1024
_BLOCK = 16
_MOST_ITERATIONS = 10_000_000  # LibreOffice writes 100,000; more would only keep the machine busy
_MOST_BYTES = 500_000_000  # unpacked, of all parts together
# Parts with words; pictures stay as they are.
_READ = (".xml",)


@dataclass(frozen=True, slots=True)
class _Lock:
    """How one part is encrypted."""

    cipher: str
    vector: bytes
    salt: bytes
    iterations: int
    key_bytes: int
    start: str  # the hash that makes the first key of the password
    checksum: bytes
    checksum_kind: str

    def key(self, password: str) -> bytes:
        first = hashlib.new(self.start, password.encode("utf-8")).digest()
        return hashlib.pbkdf2_hmac("sha1", first, self.salt, self.iterations, self.key_bytes)

    def opened(self, data: bytes, key: bytes) -> bytes | None:
        """The part, still packed; None with a wrong key."""
        from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
        from cryptography.hazmat.decrepit.ciphers.modes import CFB
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CBC

        if self.cipher == "aes":
            decryptor = Cipher(AES(key), CBC(self.vector)).decryptor()
            plain = decryptor.update(data) + decryptor.finalize()
            if plain and 0 < plain[-1] <= _BLOCK:
                plain = plain[: -plain[-1]]
        else:
            stream = Cipher(Blowfish(key), CFB(self.vector)).decryptor()
            plain = stream.update(data) + stream.finalize()
        checked = plain[:_CHECKED_BYTES] if self.checksum_kind.endswith("1k") else plain
        kind = "sha256" if "256" in self.checksum_kind else "sha1"
        return plain if hashlib.new(kind, checked).digest() == self.checksum else None


def is_locked(data: bytes) -> bool:
    """Whether this is an OpenDocument file of which parts are encrypted."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return b"encryption-data" in _part(archive, _MANIFEST)
    except _DAMAGES:
        return False


def unlocked(data: bytes, passwords: Sequence[str]) -> bytes:
    """The same file in the clear. Raises DocumentEncrypted without the right password, DocumentDamaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            locks = _locks(xml_root(_part(archive, _MANIFEST), kind=_WHAT, name=_MANIFEST))
            if not passwords:
                raise refused(_WHAT, tried=False)
            for password in passwords:
                parts = _opened(archive, locks, password)
                if parts is not None:
                    return _packed(parts)
    except _DAMAGES as error:
        raise DocumentDamaged(f"{_WHAT} is encrypted, and damaged: {error}.") from error
    raise refused(_WHAT, tried=True)


def _opened(archive: zipfile.ZipFile, locks: dict[str, _Lock], password: str) -> dict[str, bytes] | None:
    """The parts with words in the clear; None with a wrong password."""
    parts: dict[str, bytes] = {}
    keys: dict[tuple[bytes, int], bytes] = {}
    left = _MOST_BYTES
    for name in archive.namelist():
        if name == _MANIFEST or not (name.endswith(_READ) or name == "mimetype"):
            continue
        content = _part(archive, name)
        if (lock := locks.get(name)) is not None:
            known = (lock.salt, lock.iterations)
            keys[known] = keys.get(known) or lock.key(password)
            packed = lock.opened(content, keys[known])
            if packed is None:
                return None
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            content = inflater.decompress(packed, left)
        left -= len(content)
        if left <= 0:
            raise DocumentDamaged(f"{_WHAT} unpacks to more than {_MOST_BYTES // 1_000_000} MB.")
        parts[name] = content
    return parts


def _packed(parts: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.file_size > _MOST_BYTES:
        raise DocumentDamaged(f"{name} unpacks to more than {_MOST_BYTES // 1_000_000} MB.")
    with archive.open(info) as stream:
        return stream.read(_MOST_BYTES)


def _locks(manifest: ElementTree.Element) -> dict[str, _Lock]:
    """Raises DocumentEncrypted for an encryption that is not known here."""
    locks: dict[str, _Lock] = {}
    for entry in manifest.iter(_M + "file-entry"):
        found = entry.find(_M + "encryption-data")
        if found is not None:
            locks[entry.get(_M + "full-path", "")] = _lock(found)
    return locks


def _lock(data: ElementTree.Element) -> _Lock:
    def said(element: str, attribute: str, default: str = "") -> str:
        found = data.find(_M + element) if element else data
        return default if found is None else found.get(_M + attribute, default)

    cipher, derivation = (
        said("algorithm", "algorithm-name").lower(),
        said("key-derivation", "key-derivation-name").lower(),
    )
    kind = "aes" if cipher.endswith("aes256-cbc") else "blowfish" if "blowfish" in cipher else ""
    if "argon2" in derivation:
        raise DocumentEncrypted(
            f"{_WHAT} is protected by a password in the newest way of LibreOffice (Argon2), which is not read here.",
            remedy="Open it in LibreOffice and save a copy without the password.",
        )
    iterations = int(said("key-derivation", "iteration-count", "0"))
    if not kind or "pbkdf2" not in derivation or not 0 < iterations <= _MOST_ITERATIONS:
        raise DocumentEncrypted(
            f"{_WHAT} is protected by a password, and encrypted in a way that is not read.",
            remedy="Save a copy without the password.",
        )
    return _Lock(
        cipher=kind,
        vector=_bytes(said("algorithm", "initialisation-vector")),
        salt=_bytes(said("key-derivation", "salt")),
        iterations=iterations,
        key_bytes=min(int(said("key-derivation", "key-size", "16")), 64),
        start="sha256" if "256" in said("start-key-generation", "start-key-generation-name") else "sha1",
        checksum=_bytes(said("", "checksum")),
        checksum_kind=said("", "checksum-type").lower(),
    )


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=False)


_DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError),
    *(ValueError, LookupError, struct.error, binascii.Error),
)
