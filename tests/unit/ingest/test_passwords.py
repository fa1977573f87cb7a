"""Protected files of every kind: without a password, with a wrong one, with several of which one is right."""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC, ECB
from msoffcrypto.format.ooxml import OOXMLFile
from unit.ingest.craft import archive, docx, paragraph
from unit.ingest.sheet_craft import Made, xlsx
from unit.ingest.test_opendocument import content

from edgerag.errors import DocumentDamaged, DocumentEncrypted
from edgerag.ingest.parse.reader import Reader
from edgerag.ingest.parse.wire import Failed, Parsed, Request

RIGHT = "Öffne dich"
WORDS = "The harbour of Bergen was built in 1070."


def office(plain: bytes, password: str = RIGHT) -> bytes:
    with zipfile.ZipFile(
        padded := io.BytesIO(plain), "a"
    ) as package:  # small ones the library does not encrypt rightly
        package.writestr("padding.bin", random.Random(1).randbytes(6000))
    plain = padded.getvalue()
    out = io.BytesIO()
    OOXMLFile(io.BytesIO(plain)).encrypt(password, out)
    return out.getvalue()


def odf(password: str = RIGHT, *, start: str = "sha256", derivation: str = "PBKDF2") -> bytes:
    """An ODT whose content is encrypted as LibreOffice does it (AES-256)."""
    deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = deflater.compress(content(f"<text:p>{WORDS}</text:p>").encode()) + deflater.flush()
    salt, vector = b"s" * 16, b"v" * 16
    first = hashlib.new(start, password.encode()).digest()
    key = hashlib.pbkdf2_hmac("sha1", first, salt, 100, 32)
    padding = 16 - len(packed) % 16
    encryptor = Cipher(AES(key), CBC(vector)).encryptor()
    locked = encryptor.update(packed + bytes(padding - 1) + bytes([padding])) + encryptor.finalize()

    def said(data: bytes) -> str:
        return base64.b64encode(data).decode()

    names = 'xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"'
    kind = "http://www.w3.org/2000/09/xmldsig#sha256" if start == "sha256" else "SHA1"
    manifest = (
        f'<m:manifest {names}><m:file-entry m:full-path="content.xml"><m:encryption-data'
        f' m:checksum-type="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0#sha256-1k"'
        f' m:checksum="{said(hashlib.sha256(packed[:1024]).digest())}">'
        f'<m:algorithm m:algorithm-name="http://www.w3.org/2001/04/xmlenc#aes256-cbc"'
        f' m:initialisation-vector="{said(vector)}"/>'
        f'<m:key-derivation m:key-derivation-name="{derivation}" m:key-size="32" m:iteration-count="100"'
        f' m:salt="{said(salt)}"/><m:start-key-generation m:start-key-generation-name="{kind}" m:key-size="32"/>'
        "</m:encryption-data></m:file-entry></m:manifest>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        package.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        package.writestr("content.xml", locked)
        package.writestr("META-INF/manifest.xml", manifest)
    return file.getvalue()


def old_zip(password: str = RIGHT) -> bytes:
    """One member, encrypted with the cipher of PKWARE (APPNOTE 6.1)."""
    keys = [0x12345678, 0x23456789, 0x34567890]

    def crc(value: int, byte: int) -> int:
        return zlib.crc32(bytes([byte]), value ^ 0xFFFFFFFF) ^ 0xFFFFFFFF

    def update(byte: int) -> None:
        keys[0] = crc(keys[0], byte)
        keys[1] = ((keys[1] + (keys[0] & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        keys[2] = crc(keys[2], keys[1] >> 24)

    for byte in password.encode():
        update(byte)
    plain = WORDS.encode()
    out = bytearray()
    for byte in bytes(11) + bytes([zlib.crc32(plain) >> 24]) + plain:
        number = (keys[2] & 0xFFFF) | 2
        out.append(byte ^ ((number * (number ^ 1) >> 8) & 0xFF))
        update(byte)
    return _zip_of(bytes(out), method=0, crc=zlib.crc32(plain), extra=b"")


def aes_zip(password: str = RIGHT, *, strength: int = 3, version: int = 2) -> bytes:
    """One member, encrypted as WinZip does it."""
    deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = deflater.compress(WORDS.encode() * 100) + deflater.flush()
    key_bytes = 8 * (strength + 1)
    salt = b"s" * (4 * (strength + 1))
    keys = hashlib.pbkdf2_hmac("sha1", password.encode(), salt, 1000, 2 * key_bytes + 2)
    encryptor = Cipher(AES(keys[:key_bytes]), ECB()).encryptor()
    stream = encryptor.update(b"".join((n + 1).to_bytes(16, "little") for n in range(len(packed) // 16 + 1)))
    locked = bytes(a ^ b for a, b in zip(packed, stream, strict=False))
    code = hmac.digest(keys[key_bytes : 2 * key_bytes], locked, "sha1")[:10]
    extra = struct.pack("<HHHccBH", 0x9901, 7, version, b"A", b"E", strength, 8)
    crc = zlib.crc32(WORDS.encode() * 100) if version == 1 else 0
    return _zip_of(salt + keys[2 * key_bytes :] + locked + code, method=99, crc=crc, extra=extra, size=len(WORDS) * 100)


def _zip_of(body: bytes, *, method: int, crc: int, extra: bytes, size: int = len(WORDS)) -> bytes:
    name, flags = b"note.txt", 1
    facts = struct.pack("<HHIIIIHH", flags, method, 0, crc, len(body), size, len(name), len(extra))
    local = b"PK\x03\x04" + struct.pack("<H", 51) + facts + name + extra + body
    entry = b"PK\x01\x02" + struct.pack("<HH", 51, 51) + facts + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name + extra
    return local + entry + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0)


FILES: dict[str, Callable[[], bytes]] = {
    "letter.docx": lambda: office(docx(paragraph(WORDS))),
    "table.xlsx": lambda: office(xlsx(Made("S", [[WORDS]]))),
    "letter.odt": odf,
    "old.zip": old_zip,
    "new.zip": aes_zip,
    "small.zip": lambda: aes_zip(strength=1, version=1),
}


@pytest.fixture
def ask(tmp_path):  # type: ignore[no-untyped-def]
    reader = Reader()

    def ask(name: str, data: bytes, *passwords: str, member: tuple[str, ...] = ()) -> object:
        file = tmp_path / name
        file.write_bytes(data)
        return reader.read(Request(str(file), "", 10**8, 30.0, member, passwords=passwords))

    return ask


def said(reply: object) -> str:
    assert isinstance(reply, Failed) and isinstance(reply.error, DocumentEncrypted)
    assert not reply.lasting  # with a password the next run reads it
    return str(reply.error)


@pytest.mark.parametrize("name", FILES)
def test_a_protected_file(name: str, ask) -> None:  # type: ignore[no-untyped-def]
    data = FILES[name]()
    missing = said(ask(name, data))
    assert "is protected by a password. Give it with --password" in missing
    wrong = said(ask(name, data, "wrong", ""))
    assert "none of the given passwords opens it" in wrong and "wrong" not in wrong.replace("the right one", "")
    reply = ask(name, data, "wrong", RIGHT, "other")
    assert isinstance(reply, Parsed)
    if name.endswith(".zip"):
        assert reply.members == ("note.txt",)
        reply = ask(name, data, "wrong", RIGHT, member=("note.txt",))
    assert isinstance(reply, Parsed) and reply.document is not None
    assert WORDS in reply.document.text


def test_what_excel_opens_by_itself_needs_no_password(ask) -> None:  # type: ignore[no-untyped-def]
    reply = ask("a.xlsx", office(xlsx(Made("S", [[WORDS]])), "VelvetSweatshop"))
    assert isinstance(reply, Parsed) and reply.document is not None and WORDS in reply.document.text


def test_other_encryptions_of_opendocument(ask) -> None:  # type: ignore[no-untyped-def]
    assert isinstance(ask("a.odt", odf(start="sha1"), RIGHT), Parsed)
    argon = said(ask("b.odt", odf(derivation="urn:org:documentfoundation:names:experimental:office:argon2id"), RIGHT))
    assert "Argon2" in argon and "not read here" in argon and "copy without the password" in argon
    assert "Argon2" in said(
        ask("c.odt", odf(derivation="urn:org:documentfoundation:names:experimental:office:argon2id"))
    )
    assert "encrypted in a way that is not read" in said(ask("d.odt", odf(derivation="scrypt"), RIGHT))


SLOW = ("letter.docx", "table.xlsx")  # a hundred thousand rounds of a hash for each password


@pytest.mark.parametrize(
    ("name", "places"),
    [
        *((name, 8 if name in SLOW else 60) for name in FILES),
        *(pytest.param(name, 60, marks=pytest.mark.long) for name in SLOW),
    ],
)
def test_damaged_ones_are_named(name: str, places: int, ask) -> None:  # type: ignore[no-untyped-def]
    data = FILES[name]()
    for position in range(0, len(data), max(1, len(data) // places)):
        changed = data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]
        for piece in (changed, data[:position]):
            reply = ask(name, piece, RIGHT)
            assert isinstance(reply, Parsed | Failed)
            if isinstance(reply, Failed):
                assert isinstance(reply.error, Exception) and "crashed" not in str(reply.error)
            elif reply.members:
                inner = ask(name, piece, RIGHT, member=(reply.members[0],))
                assert isinstance(inner, Parsed | Failed)


def test_a_changed_member_with_aes_is_not_read(ask) -> None:  # type: ignore[no-untyped-def]
    data = bytearray(aes_zip())
    data[100] ^= 1  # in the encrypted text
    assert "none of the given passwords" in said(ask("a.zip", bytes(data), RIGHT))


def test_a_zip_with_one_protected_member_names_it_and_reads_the_others(ask) -> None:  # type: ignore[no-untyped-def]
    locked = zipfile.ZipFile(io.BytesIO(archive({"open.txt": WORDS})))
    assert locked.namelist() == ["open.txt"]
    data = bytearray(archive({"open.txt": WORDS, "shut.txt": WORDS}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.rfind(signature) + offset] |= 1
    reply = ask("a.zip", bytes(data))
    assert isinstance(reply, Parsed) and reply.document is not None
    assert reply.document.warnings == ("A file in it is protected by a password: shut.txt.",)
    assert isinstance(ask("a.zip", bytes(data), member=("open.txt",)), Parsed)
    assert "protected by a password" in said(ask("a.zip", bytes(data), member=("shut.txt",)))


def test_a_shell_without_anything_in_it_is_damaged(ask) -> None:  # type: ignore[no-untyped-def]
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le")
    reply = ask("a.docx", data, RIGHT)
    assert isinstance(reply, Failed) and isinstance(reply.error, DocumentDamaged)
