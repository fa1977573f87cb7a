"""Signatures are checked with Python alone, as RFC 8032 says and as minisign writes them."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.bundle import keys
from edgerag.bundle.carried import minisign
from edgerag.bundle.carried.ed25519 import is_signed
from edgerag.bundle.carried.refused import Refused
from edgerag.errors import UsageError

# RFC 8032, section 7.1: public key, message, signature (TEST 1, 2, 3 and SHA(abc)).
RFC_8032 = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
        "4a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e030"
        "3dca179c138ac17ad9bef1177331a704",
    ),
]
ORDER = 2**252 + 27742317777372353535851937790883648493
# Written by minisign 0.11.
TEXT = b"what is carried is what was tried\n"
SIGNATURE = b"""untrusted comment: signature from minisign secret key
RUQ+6ZZVgxJmxNnvMOZnGD082rDFeBMg18E6HxMAE2nFT6aGCIDIvzUqnKNaxgKLimiwsAPCPbj8/50JoSK+BifKOiZWBcBkqgI=
trusted comment: a comment that is signed
BRk0yQE3dr7kZq7eK8G8ju+BVL4rQzGn85ppgJPrztnTg2TPWiF/Z5EQ0m6f0QHraTai3XTxcbncXIEZ/fUgDg==
"""
PUBLIC = b"""untrusted comment: minisign public key C46612835596E93E
RWQ+6ZZVgxJmxPgkswfy1J0mO5sQ7jRm9j2m0Myp+DvEuS4h28REzMFl
"""


@pytest.mark.parametrize(("key", "message", "signature"), RFC_8032)
def test_the_vectors_of_the_rfc(key: str, message: str, signature: str) -> None:
    point, text, signed = bytes.fromhex(key), bytes.fromhex(message), bytes.fromhex(signature)
    assert is_signed(text, signed, point)
    assert not is_signed(text + b"\0", signed, point)
    for place in range(0, 64, 7):
        changed = bytearray(signed)
        changed[place] ^= 1
        assert not is_signed(text, bytes(changed), point)
    longer = (int.from_bytes(signed[32:], "little") + ORDER).to_bytes(32, "little")
    assert not is_signed(text, signed[:32] + longer, point), "a number has one form"
    assert not is_signed(text, signed[:63], point)


@settings(max_examples=20)
@given(seed=st.binary(min_size=32, max_size=32), message=st.binary(max_size=200))
def test_what_openssl_signs_is_signed(seed: bytes, message: bytes) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = private.public_key().public_bytes_raw(), private.sign(message)
    assert is_signed(message, signature, public)
    assert not is_signed(message + b"x", signature, public)


@settings(max_examples=50)
@given(signature=st.binary(min_size=64, max_size=64), key=st.binary(min_size=32, max_size=32))
def test_noise_is_no_signature(signature: bytes, key: bytes) -> None:
    assert not is_signed(b"message", signature, key)


@pytest.mark.parametrize("key", [(1).to_bytes(32, "little"), bytes(32), (2**255 - 20).to_bytes(32, "little")])
def test_keys_that_would_accept_everything_are_none(key: bytes) -> None:
    nothing = (1).to_bytes(32, "little") + bytes(32)  # R neutral, S zero
    assert not is_signed(b"message", nothing, key)


def test_what_minisign_wrote_is_accepted() -> None:
    key, signed = minisign.public_key(PUBLIC, "key"), minisign.signature(SIGNATURE, "signature")
    assert key.name == "C46612835596E93E"
    minisign.check(TEXT, signed, key, "text")
    with pytest.raises(Refused, match="not what the owner of the key C46612835596E93E signed"):
        minisign.check(TEXT + b" ", signed, key, "text")
    comment = minisign.signature(SIGNATURE.replace(b"is signed", b"was added"), "signature")
    with pytest.raises(Refused, match="not what the owner"):
        minisign.check(TEXT, comment, key, "text")


def test_a_signature_by_somebody_else_names_both_keys(tmp_path: Path) -> None:
    other = keys.make_key(tmp_path / "key")
    signed = minisign.signature(keys.sign(TEXT, other, comment="c"), "signature")
    with pytest.raises(Refused, match=f"signed with the key {other.name}, and the key C46612835596E93E"):
        minisign.check(TEXT, signed, minisign.public_key(PUBLIC, "key"), "text")


@pytest.mark.parametrize("data", [b"", b"\n\n\n\n", SIGNATURE[:-60], SIGNATURE.replace(b"RUQ", b"RWQ"), b"\xff" * 500])
def test_what_is_no_signature_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        minisign.signature(data, "x")
    with pytest.raises(Refused):
        minisign.public_key(data, "x")


def test_a_key_that_is_made_signs_and_is_written_over_by_nothing(tmp_path: Path) -> None:
    made = keys.make_key(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    read = keys.read_key(tmp_path / "key", password=lambda: pytest.fail("it has none"))
    assert read == made
    public = minisign.public_key(keys.public_path(tmp_path / "key").read_bytes(), "key")
    minisign.check(TEXT, minisign.signature(keys.sign(TEXT, read, comment="c"), "s"), public, "text")
    with pytest.raises(UsageError, match="there already"):
        keys.make_key(tmp_path / "key")
    with pytest.raises(UsageError, match="no secret key"):
        keys.read_key(keys.public_path(tmp_path / "key"), password=str)
    with pytest.raises(UsageError, match="cannot be read"):
        keys.read_key(tmp_path / "none", password=str)


def test_a_key_with_a_password_opens_with_that_alone(tmp_path: Path) -> None:
    seed, key_id, salt = bytes(range(32)), b"12345678", bytes(32)
    point = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    checksum = hashlib.blake2b(b"Ed" + key_id + seed + point, digest_size=32).digest()
    cover = hashlib.scrypt(b"word", salt=salt, n=1024, r=8, p=1, dklen=104)
    secret = bytes(a ^ b for a, b in zip(key_id + seed + point + checksum, cover, strict=True))
    head = b"EdScB2" + salt + (32768).to_bytes(8, "little") + (1 << 24).to_bytes(8, "little")
    (tmp_path / "key").write_bytes(b"untrusted comment: c\n" + base64.b64encode(head + secret) + b"\n")
    assert keys.read_key(tmp_path / "key", password=lambda: "word").seed == seed
    with pytest.raises(UsageError, match=r"password of .* is wrong"):
        keys.read_key(tmp_path / "key", password=lambda: "Word")


def test_the_cost_of_minisigns_own_keys_is_read_rightly() -> None:
    assert keys.scrypt_cost(33554432, 1 << 30) == (1 << 20, 1)
    assert keys.scrypt_cost(524288, 1 << 24) == (1 << 14, 1)
