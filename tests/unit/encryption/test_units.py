"""Encrypted files: any part is read as it was written, and nothing that was changed, moved or cut opens."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.encryption.keys import LibraryKey, new_library_key
from edgerag.encryption.units import (
    HEADER_BYTES,
    TAG_BYTES,
    UNIT_BYTES,
    UnitDamaged,
    UnitReader,
    UnitWriter,
    copy_units,
    is_unit_file,
    stored_bytes,
)

KEY = new_library_key()
ROLE = "segments/00000001.hnsw"
STORED = UNIT_BYTES + TAG_BYTES
sizes = st.sampled_from([0, 1, UNIT_BYTES - 1, UNIT_BYTES, UNIT_BYTES + 1, 2 * UNIT_BYTES, 5 * UNIT_BYTES + 77])


def content(size_bytes: int) -> bytes:
    return (b"%d the quick brown fox " * (size_bytes // 20 + 1) % tuple(range(size_bytes // 20 + 1)))[:size_bytes]


def written(path: Path, data: bytes, *, key: LibraryKey = KEY, role: str = ROLE, pieces: int = 7000) -> Path:
    with UnitWriter(path, key, role) as writer:
        for start in range(0, len(data), pieces):
            writer.write(data[start : start + pieces])
        writer.finish()
    return path


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@settings(max_examples=60, deadline=None)
@given(size=sizes, pieces=st.integers(1, 3 * UNIT_BYTES), data=st.data())
def test_any_part_reads_as_it_was_written(size: int, pieces: int, data: st.DataObject) -> None:
    plain = content(size)
    with tempfile.TemporaryDirectory() as name:
        path = written(Path(name) / "file", plain, pieces=max(pieces, size // 50 + 1))
        assert path.stat().st_size == stored_bytes(size)
        reader = UnitReader(path, KEY, ROLE)
        assert reader.size_bytes == size
        for _ in range(5):
            start = data.draw(st.integers(0, size))
            target = bytearray(data.draw(st.integers(0, size - start)))
            reader.read_into(memoryview(target), start)
            assert bytes(target) == plain[start : start + len(target)]
        reader.close()


@settings(max_examples=60, deadline=None)
@given(size=sizes, place=st.floats(0, 1), bit=st.integers(0, 7))
def test_no_flipped_bit_is_read_over(size: int, place: float, bit: int) -> None:
    plain = content(size)
    with tempfile.TemporaryDirectory() as name:
        path = written(Path(name) / "file", plain)
        raw = bytearray(path.read_bytes())
        raw[int(place * (len(raw) - 1))] ^= 1 << bit
        path.write_bytes(raw)
        with pytest.raises(UnitDamaged):
            reader = UnitReader(path, KEY, ROLE)
            try:
                reader.read_into(memoryview(bytearray(size)), 0)
            finally:
                reader.close()


@pytest.mark.parametrize("cut", [1, TAG_BYTES, 77 + TAG_BYTES, STORED, 2 * STORED, STORED + 100, 10**9])
def test_a_file_that_was_cut_off_does_not_open(folder: Path, cut: int) -> None:
    path = written(folder / "file", content(3 * UNIT_BYTES + 77))
    raw = path.read_bytes()
    path.write_bytes(raw[: max(0, len(raw) - cut)])
    with pytest.raises(UnitDamaged):
        UnitReader(path, KEY, ROLE)


def test_units_cannot_change_places_or_be_added(folder: Path) -> None:
    path = written(folder / "file", content(3 * UNIT_BYTES + 77))
    raw = path.read_bytes()
    first, second = raw[HEADER_BYTES : HEADER_BYTES + STORED], raw[HEADER_BYTES + STORED : HEADER_BYTES + 2 * STORED]
    path.write_bytes(raw[:HEADER_BYTES] + second + first + raw[HEADER_BYTES + 2 * STORED :])
    reader = UnitReader(path, KEY, ROLE)
    with pytest.raises(UnitDamaged, match="unit 0"):
        reader.unit(0)
    reader.close()
    path.write_bytes(raw + first)
    with pytest.raises(UnitDamaged):
        UnitReader(path, KEY, ROLE)


def test_units_of_another_file_do_not_open(folder: Path) -> None:
    """Of the same library, the same place and the same name: an older version of the file, say."""
    plain = content(3 * UNIT_BYTES)
    path, older = written(folder / "file", plain), written(folder / "older", plain)
    raw, other = bytearray(path.read_bytes()), older.read_bytes()
    raw[HEADER_BYTES : HEADER_BYTES + STORED] = other[HEADER_BYTES : HEADER_BYTES + STORED]
    path.write_bytes(raw)
    reader = UnitReader(path, KEY, ROLE)
    with pytest.raises(UnitDamaged, match="unit 0"):
        reader.unit(0)
    reader.close()


def test_another_key_and_another_name_do_not_open_it(folder: Path) -> None:
    path = written(folder / "file", content(100))
    with pytest.raises(UnitDamaged):
        UnitReader(path, new_library_key(), ROLE)
    with pytest.raises(UnitDamaged):
        UnitReader(path, KEY, "segments/00000002.hnsw")


def test_nothing_of_the_content_is_in_the_file_and_no_two_are_alike(folder: Path) -> None:
    plain = b"canary" * 20_000
    first, second = written(folder / "a", plain).read_bytes(), written(folder / "b", plain).read_bytes()
    assert b"canary" not in first
    assert first[HEADER_BYTES : HEADER_BYTES + STORED] != second[HEADER_BYTES : HEADER_BYTES + STORED]
    units = [first[HEADER_BYTES + n * STORED : HEADER_BYTES + (n + 1) * STORED] for n in range(7)]
    assert len(set(units)) == len(units)


@pytest.mark.parametrize("head_bytes", [100, UNIT_BYTES, UNIT_BYTES + 5, 3 * UNIT_BYTES])
@pytest.mark.parametrize("size", [UNIT_BYTES // 2, UNIT_BYTES, 2 * UNIT_BYTES + 9, 5 * UNIT_BYTES])
def test_the_head_is_written_last(folder: Path, head_bytes: int, size: int) -> None:
    """As a segment's header is, which holds the checksums of what follows."""
    head_bytes = min(head_bytes, size)
    plain = content(size)
    with UnitWriter(folder / "file", KEY, ROLE, head_bytes=head_bytes) as writer:
        writer.write(bytes(head_bytes))
        writer.write(plain[head_bytes:])
        writer.rewrite_head(plain[:head_bytes])
        writer.finish()
    reader = UnitReader(folder / "file", KEY, ROLE)
    target = bytearray(size)
    reader.read_into(memoryview(target), 0)
    reader.close()
    assert bytes(target) == plain


def test_a_file_whose_writer_was_stopped_does_not_open(folder: Path) -> None:
    with UnitWriter(folder / "file", KEY, ROLE, head_bytes=100) as writer:
        writer.write(content(5 * UNIT_BYTES))
    with pytest.raises(UnitDamaged):
        UnitReader(folder / "file", KEY, ROLE)


def test_it_is_the_owners_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        assert written(folder / "file", b"text").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("size", [0, 5, UNIT_BYTES, 70 * UNIT_BYTES + 3])
def test_a_copy_under_another_key_and_one_without(folder: Path, size: int) -> None:
    plain, other = content(size), new_library_key()
    (folder / "plain").write_bytes(plain)
    copy_units(folder / "plain", ROLE, folder / "a", ROLE, source_key=None, target_key=KEY)
    copy_units(folder / "a", ROLE, folder / "b", "another", source_key=KEY, target_key=other)
    copy_units(folder / "b", "another", folder / "c", ROLE, source_key=other, target_key=None)
    assert (folder / "c").read_bytes() == plain
    assert is_unit_file(folder / "a") and is_unit_file(folder / "b") and not is_unit_file(folder / "c")
