"""Keys: what opens a library and what does not, and that no secret shows itself."""

from __future__ import annotations

import json
import pickle
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.encryption.key_record import (
    FILE_NAME,
    decoded,
    encoded,
    is_encrypted,
    read_record,
    unwrap,
    wrap,
    write_record,
)
from edgerag.encryption.keys import (
    KeyFile,
    LibraryKey,
    Opener,
    Passphrase,
    checked_new_passphrase,
    derived,
    new_library_key,
    read_key_file,
)
from edgerag.errors import LibraryDamaged, LibraryLocked, LibraryVersionUnknown, UsageError

CHEAP = 2**4  # scrypt with this costs nothing, and protects nothing
OPENERS = [Passphrase("correct horse battery"), KeyFile(b"k" * 64)]


@pytest.mark.parametrize("opener", OPENERS, ids=["passphrase", "key file"])
def test_what_wrapped_a_key_opens_it_and_nothing_else_does(opener: Opener, tmp_path: Path) -> None:
    key = new_library_key()
    write_record(tmp_path, wrap(key, opener, scrypt_n=CHEAP))
    assert is_encrypted(tmp_path)
    assert unwrap(read_record(tmp_path), opener, where="here") == key
    for wrong in (Passphrase("another one"), KeyFile(b"x" * 64)):
        with pytest.raises(LibraryLocked, match=r"library in here"):
            unwrap(read_record(tmp_path), wrong, where="here")


def test_an_accent_is_the_same_however_it_is_typed() -> None:
    key = new_library_key()
    record = wrap(key, Passphrase("caf\u00e9 au lait"), scrypt_n=CHEAP)
    assert unwrap(record, Passphrase("cafe\u0301 au lait"), where="") == key


def test_the_record_holds_no_secret_and_is_its_owners_alone(tmp_path: Path) -> None:
    key, opener = new_library_key(), Passphrase("correct horse battery")
    write_record(tmp_path, wrap(key, opener, scrypt_n=CHEAP))
    text = (tmp_path / FILE_NAME).read_text()
    assert key.master.hex() not in text
    assert opener.text not in text
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize("secret", [LibraryKey(b"m" * 32), *OPENERS])
def test_secrets_do_not_show_themselves_and_do_not_leave(secret: object) -> None:
    assert repr(secret) == f"{type(secret).__name__}(...)" == str(secret)
    with pytest.raises(TypeError, match="does not leave"):
        pickle.dumps(secret)


@settings(max_examples=80, deadline=None)
@given(place=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_damaged_record_is_told_from_a_wrong_passphrase(place: float, bit: int) -> None:
    key = new_library_key()
    raw = bytearray(encoded(wrap(key, OPENERS[0], scrypt_n=CHEAP)))
    raw[int(place * (len(raw) - 1))] ^= 1 << bit
    try:
        record = decoded(bytes(raw), "library.key")
    except (LibraryDamaged, LibraryVersionUnknown):
        return
    assert unwrap(record, OPENERS[0], where="") == key  # a space, or a letter of another case: it says the same


def test_changed_parameters_under_a_right_checksum_do_not_open_it() -> None:
    """Somebody who can write the file cannot make the next guess cheap, nor this one take all memory."""
    key = new_library_key()
    record = wrap(key, OPENERS[0], scrypt_n=CHEAP)
    cheaper = type(record)(record.kind, {**record.derivation, "n": 2}, record.salt, record.nonce, record.wrapped)
    with pytest.raises(LibraryLocked):
        unwrap(decoded(encoded(cheaper), ""), OPENERS[0], where="")
    huge = type(record)(record.kind, {**record.derivation, "n": 2**40}, record.salt, record.nonce, record.wrapped)
    with pytest.raises(LibraryDamaged, match="nobody wrote"):
        decoded(encoded(huge), "")


def test_a_newer_record_is_refused_politely() -> None:
    import zlib

    value = json.loads(encoded(wrap(new_library_key(), OPENERS[0], scrypt_n=CHEAP)))
    value["version"] = 2
    del value["checksum"]
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(LibraryVersionUnknown, match="version 2"):
        decoded(json.dumps(value | {"checksum": f"{zlib.crc32(canonical):08x}"}).encode(), "library.key")


def test_a_record_that_is_gone_is_said_honestly(tmp_path: Path) -> None:
    with pytest.raises(LibraryLocked, match="is gone") as caught:
        read_record(tmp_path)
    assert "backup" in str(caught.value) and "by anybody" in str(caught.value)


def test_derivation_is_that_of_the_standard() -> None:
    """RFC 5869, A.1 has 42 bytes; the first block of 32 is ours."""
    found = derived(b"\x0b" * 22, salt=bytes(range(13)), purpose=bytes(range(0xF0, 0xFA)).decode("latin-1"))
    # "latin-1" becomes UTF-8 on the way, so only the construction is compared, with what the library says.
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    info = bytes(range(0xF0, 0xFA)).decode("latin-1").encode()
    assert found == HKDF(SHA256(), 32, bytes(range(13)), info).derive(b"\x0b" * 22)


def test_keys_of_different_uses_differ() -> None:
    key = new_library_key()
    made = {
        key.for_database(),
        key.for_file("a", b"s" * 32),
        key.for_file("b", b"s" * 32),
        key.for_file("a", b"t" * 32),
    }
    assert len(made) == 4
    assert key.master not in made


def test_what_is_no_key_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"x" * 31)
    for name in ("short", "none", "."):
        with pytest.raises(LibraryLocked):
            read_key_file(tmp_path / name)


def test_a_short_passphrase_is_refused() -> None:
    with pytest.raises(UsageError, match="8 characters"):
        checked_new_passphrase("1234567")
    assert checked_new_passphrase("12345678").text == "12345678"


@pytest.mark.parametrize(("n", "r", "p"), [(2**17, 1, 1), (2**18, 1, 64), (2, 2**22, 64), (3, 8, 1), (2**30, 8, 1)])
def test_a_derivation_that_nobody_wrote_is_damage_whatever_its_checksum(n: int, r: int, p: int) -> None:
    record = wrap(new_library_key(), Passphrase("correct horse battery"), scrypt_n=CHEAP)
    forged = replace(record, derivation={"name": "scrypt", "n": n, "r": r, "p": p})
    with pytest.raises(LibraryDamaged, match="nobody wrote"):
        decoded(encoded(forged), "here")
