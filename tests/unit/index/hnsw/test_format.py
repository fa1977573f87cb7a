from __future__ import annotations

import dataclasses
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgerag.errors import EdgeragError, EmbedderMismatch, LibraryDamaged, LibraryVersionUnknown, StorageFull
from edgerag.index.hnsw import codes
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.build import GraphSettings, build_graph
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.hnsw.view import HOT_SECTIONS
from edgerag.index.hnsw.write import VectorType, write_segment

ROWS = 120


@pytest.fixture
def segment_file(tmp_path: Path, material: Any) -> Path:
    return make_segment(tmp_path, material)


def make_segment(
    folder: Path, material: Any, *, rows: int = ROWS, block_bytes: int = 4096, vector_type: VectorType = "f16"
) -> Path:
    vectors = material.vectors(rows)
    graph = build_graph(vectors, scratch=folder / "scratch", settings=GraphSettings(m=4, ef_construction=40))
    path = folder / "00000001.hnsw"
    write_segment(
        path,
        labels=np.arange(rows) * 3 + 7,
        vectors=vectors,
        graph=graph,
        identity=material.identity,
        block_bytes=block_bytes,
        vector_type=vector_type,
    )
    return path


def open_segment(path: Path, material: Any, *, budget_bytes: int = 10**9, **changes: Any) -> Segment:
    identity = dataclasses.replace(material.identity, **changes)
    return Segment(path, identity=identity, residency=Residency(budget_bytes), flat_rows=10)


def search_everything(path: Path, material: Any) -> list[int]:
    """Chunk ids found by both walks, with and without excluded rows, and by reading every vector."""
    found = []
    for walk in ("nibbles", "bits"):
        segment = open_segment(path, material, budget_bytes=10**9 if walk == "nibbles" else hot_bytes(path, material))
        try:
            assert segment.walk_name == {"nibbles": "4-bit codes", "bits": "1-bit codes"}[walk]
            for excluded in (None, np.arange(segment.row_count) % 2 == 0):
                for seed in range(3):
                    query = material.vectors(1, seed=seed)[0]
                    hits = segment.search(query, limit=10, ef_search=60, excluded=excluded)
                    found += [hit.chunk_id for hit in hits]
            found += segment.labels(np.arange(segment.row_count)).tolist()
        finally:
            segment.close()
    return found


def hot_bytes(path: Path, material: Any) -> int:
    """What the walk over 1-bit codes needs."""
    header = layout.read_header(path, identity=material.identity)
    return sum(section.length for section in header.sections if section.kind in HOT_SECTIONS["bits"])


@pytest.mark.parametrize("vector_type", ["f16", "f32"])
def test_what_is_written_is_read_at_any_block_size(tmp_path: Path, material: Any, vector_type: VectorType) -> None:
    answers = []
    for block_bytes in (4096, 8192, 65536, layout.BLOCK_BYTES):
        path = make_segment(tmp_path, material, block_bytes=block_bytes, vector_type=vector_type)
        segment = open_segment(path, material)
        labels = segment.labels(np.arange(ROWS))
        assert sorted(labels.tolist()) == [row * 3 + 7 for row in range(ROWS)]
        stored = material.vectors(ROWS).astype(np.float16 if vector_type == "f16" else np.float32)
        assert np.array_equal(segment.vectors(np.arange(ROWS)), stored[(labels - 7) // 3])
        assert segment.damage() == []
        assert len(segment.header.block_crcs) == sum(section.block_count for section in segment.header.sections)
        segment.close()
        answers.append(search_everything(path, material))
    assert all(answer == answers[0] for answer in answers)


def test_no_row_lies_across_a_block(tmp_path: Path, material: Any) -> None:
    header = layout.read_header(make_segment(tmp_path, material, rows=500), identity=material.identity)
    assert len(header.block_crcs) > 10
    for section in header.sections:
        for row in range(section.row_count):
            group, slot = divmod(row, section.rows_per_group)
            start = group * section.group_bytes + slot * section.row_bytes
            assert start // header.block_bytes == (start + section.row_bytes - 1) // header.block_bytes


@pytest.mark.parametrize("dimension", [1, 16, 64, 384, 512, 768, 1024, 1536, 3072, 4096])
def test_grouping_wastes_little(dimension: int) -> None:
    for row_bytes in (4 * dimension + 12, 2 * dimension + 12, codes.bits_row_bytes(dimension), 132, 76):
        grouping = layout.group_rows(row_bytes, layout.BLOCK_BYTES)
        assert layout.BLOCK_BYTES % grouping.group_bytes == 0
        assert grouping.rows_per_group * row_bytes >= 15 / 16 * grouping.group_bytes


@pytest.mark.parametrize("row_count", [1, 2, 3, 256, 257, 70_000, 2**31 - 1])
@pytest.mark.parametrize("m0", [1, 7, 32, 64])
def test_packed_links_are_unpacked(row_count: int, m0: int) -> None:
    random = np.random.default_rng(row_count)
    links = random.integers(row_count, size=(50, 1 + m0), dtype=np.uint32)
    links[0, 1:], links[1, 1:] = 0, row_count - 1
    links[:, 0] = random.integers(m0 + 1, size=50)
    packed = codes.pack_links(links, row_count)
    assert packed.shape == (50, codes.links_row_bytes(row_count, m0))
    counts, unpacked = codes.unpack_links(packed, row_count, m0)
    assert np.array_equal(counts, links[:, 0])
    assert np.array_equal(unpacked, links[:, 1:])


def test_a_row_longer_than_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        layout.group_rows(8000, 4096)


def rewrite(path: Path, change: Callable[[bytearray], None], *, fix_checksum: bool = False) -> None:
    raw = bytearray(path.read_bytes())
    change(raw)
    if fix_checksum:
        (size,) = struct.unpack_from("<I", raw, 12)
        struct.pack_into("<I", raw, 16, 0)
        struct.pack_into("<I", raw, 16, zlib.crc32(raw[:size]))
    path.write_bytes(raw)


def test_each_fault_has_its_own_error(segment_file: Path, material: Any) -> None:
    kept = segment_file.read_bytes()
    name = segment_file.name

    def after(change: Callable[[bytearray], None], **options: Any) -> Path:
        segment_file.write_bytes(kept)
        rewrite(segment_file, change, **options)
        return segment_file

    def set_bytes(offset: int, value: bytes) -> Callable[[bytearray], None]:
        def change(raw: bytearray) -> None:
            raw[offset : offset + len(value)] = value

        return change

    with pytest.raises(LibraryDamaged, match=f"{name} is not a segment file"):
        open_segment(after(set_bytes(0, b"PK\x03\x04")), material)
    with pytest.raises(
        LibraryVersionUnknown, match=f"{name} has segment format 3 and this program knows formats 1 to 2"
    ):
        open_segment(after(set_bytes(8, b"\x03")), material)
    with pytest.raises(LibraryDamaged, match=f"{name} has a damaged header .checksum"):
        open_segment(after(set_bytes(48, b"\x99")), material)
    segment_file.write_bytes(kept)
    with pytest.raises(EmbedderMismatch, match=f"{name} was made with the embedder 'by-rule', not with 'other'"):
        open_segment(segment_file, material, name="other", weights_sha256="cd" * 32)
    with pytest.raises(EmbedderMismatch, match=f"{name} holds vectors of 16 dimensions, not of 32"):
        open_segment(segment_file, material, dimension=32)
    with pytest.raises(LibraryDamaged, match=f"{name} is longer than it should be"):
        open_segment(after(lambda raw: raw.extend(b"x")), material)
    with pytest.raises(LibraryDamaged, match=rf"{name} is cut short from block \d+ on"):
        open_segment(after(lambda raw: raw.__delitem__(slice(-5000, None))), material)
    for size in (0, 5, 50, 100, 4095):
        with pytest.raises(LibraryDamaged, match=f"{name} is cut short"):
            open_segment(after(lambda raw, size=size: raw.__delitem__(slice(size, None))), material)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_no_segment(tmp_path: Path, material: Any, kind: str) -> None:
    """Opening a pipe would wait for its writer, for ever."""
    path = tmp_path / "00000001.hnsw"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(LibraryDamaged, match="is not a segment file"):
        open_segment(path, material)
    assert not layout.is_outdated(path)


def test_a_header_that_contradicts_itself_is_refused_under_a_right_checksum(segment_file: Path, material: Any) -> None:
    """Every number of the fixed header and of the section table, set to what it cannot be."""
    header = layout.read_header(segment_file, identity=material.identity)
    kept = segment_file.read_bytes()
    table = layout.FIXED_BYTES + 4 * header.max_level
    fields = [("<I", offset) for offset in (20, 32, 36, 40, 44, 56, 60, 64, 68, 72, 76, 80)]
    fields += [("<Q", 24), ("<Q", 48), ("<I", layout.FIXED_BYTES)]
    for number in range(len(header.sections)):
        start = table + number * layout.SECTION_BYTES
        fields += [("<I", start + at) for at in (0, 4, 32, 36, 40, 44)] + [("<Q", start + at) for at in (8, 16, 24)]
    for kind, offset in fields:
        (value,) = struct.unpack_from(kind, kept, offset)
        for wrong in {0, value + 1, 2 * value + 1, 256 ** struct.calcsize(kind) - 1} - {value}:
            if offset == 80 and wrong < header.level_counts[-1]:
                continue  # another record of the highest level: the walk notices
            segment_file.write_bytes(kept)
            rewrite(
                segment_file,
                lambda raw, k=kind, o=offset, w=wrong: struct.pack_into(k, raw, o, w),
                fix_checksum=True,
            )
            with pytest.raises((LibraryDamaged, EmbedderMismatch), match=f"{segment_file.name} (has|is|holds|was)"):
                if offset in (56, 80):  # another entry point that there is: its record is of another row
                    search_everything(segment_file, material)
                else:
                    open_segment(segment_file, material).close()


def test_sections_in_another_order_are_refused(segment_file: Path, material: Any) -> None:
    """The kernel reads a little beyond the last row of links: with that section last, beyond the mapping."""
    raw, header = segment_file.read_bytes(), layout.read_header(segment_file, identity=material.identity)
    for moved in header.sections[:-1]:
        parts, crcs, sections, offset = [], [], [], header.sections[0].offset
        for section in [*(each for each in header.sections if each is not moved), moved]:
            parts.append(raw[section.offset : section.offset + section.length])
            crcs += [header.block_crcs[number] for number in header.blocks_of(section)]
            sections.append(dataclasses.replace(section, offset=offset))
            offset += section.length
        forged = dataclasses.replace(header, sections=tuple(sections), block_crcs=tuple(crcs))
        segment_file.write_bytes(layout.encode_header(forged) + b"".join(parts))
        with pytest.raises(LibraryDamaged, match="sections contradict"):
            layout.read_header(segment_file, identity=material.identity)


def test_a_damaged_block_is_named_when_it_is_touched_and_not_before(segment_file: Path, material: Any) -> None:
    header = layout.read_header(segment_file, identity=material.identity)
    kept = segment_file.read_bytes()
    kinds = set()
    for section in header.sections:
        for number, block in enumerate(header.blocks_of(section)):
            groups_per_block = header.block_bytes // section.group_bytes
            raw = bytearray(kept)
            raw[row_offset(section, number * groups_per_block * section.rows_per_group) + 5] ^= 1
            segment_file.write_bytes(raw)
            segment = open_segment(segment_file, material)  # opening reads no block
            expected = layout.block_name(header, block)
            assert [fault.split(" does")[0] for fault in segment.damage()] == [expected]
            segment.close()
            with pytest.raises(LibraryDamaged) as caught:
                search_everything(segment_file, material)
            assert segment_file.name in caught.value.message
            assert expected in caught.value.message
            kinds.add(section.kind)
    assert len(kinds) == 5


def row_offset(section: layout.Section, row: int) -> int:
    group, place = divmod(row, section.rows_per_group)
    return section.offset + group * section.group_bytes + place * section.row_bytes


def test_a_damaged_vector_is_named_when_it_is_compared_and_not_before(segment_file: Path, material: Any) -> None:
    """Full vectors are not verified by blocks: each row has its own checksum, looked at whenever it is read."""
    header = layout.read_header(segment_file, identity=material.identity)
    vectors = header.section(layout.SectionKind.VECTORS)
    assert vectors is not None
    raw = bytearray(segment_file.read_bytes())
    segment = open_segment(segment_file, material)
    query = segment.vectors(np.array([11]))[0]
    raw[row_offset(vectors, 11) + vectors.row_bytes - 12] ^= 1  # its chunk id
    segment_file.write_bytes(raw)
    far = segment.search(-query, limit=2, ef_search=2, excluded=None)
    assert len(far) == 2
    message = r"is damaged in block \d+ \(vectors\) \(checksum of row 11\)"
    with pytest.raises(LibraryDamaged, match=message):
        segment.search(query, limit=2, ef_search=20, excluded=None)
    with pytest.raises(LibraryDamaged, match=message):
        segment.vectors(np.array([3, 11]))
    segment.close()


@pytest.mark.parametrize("kernel", ["best", None])
def test_links_that_lead_nowhere_are_refused_even_under_a_right_checksum(
    segment_file: Path, material: Any, kernel: Any
) -> None:
    header = layout.read_header(segment_file, identity=material.identity)
    kept = segment_file.read_bytes()
    links, levels = (header.section(kind) for kind in (layout.SectionKind.LINKS, layout.SectionKind.LEVELS))
    assert links is not None
    assert levels is not None
    damages = [
        (links, 0, b"\x01\x00\xff", r"damaged link list \(row \d+, level 0, block \d+ \(links\)\)"),
        (links, 0, b"\xff\xff", r"damaged link list \(row \d+, level 0, block \d+ \(links\)\)"),
        (levels, 0, b"\xff\xff\xff\x7f", r"damaged link list \(row \d+, level [1-9]"),  # its row
        (levels, 4, b"\xff\xff\xff\x7f", r"damaged link list \(row \d+, level [1-9]"),  # its position below
        (levels, 8, b"\xff\xff\xff\x7f", r"damaged link list \(row \d+, level [1-9]"),  # its count
        (levels, 8, b"\x01\x00\x00\x00\xff\xff\xff\x7f", r"damaged link list \(row \d+, level [1-9]"),
    ]
    assert header.max_level > 1
    for section, at, value, message in damages:

        def damage(raw: bytearray, section: Any = section, at: int = at, value: bytes = value) -> None:
            for row in range(section.row_count):
                start = row_offset(section, row) + at
                raw[start : start + len(value)] = value
            _fix_block_checksums(raw, header)

        segment_file.write_bytes(kept)
        rewrite(segment_file, damage, fix_checksum=True)
        segment = Segment(
            segment_file, identity=material.identity, residency=Residency(10**9), flat_rows=10, kernel=kernel
        )
        with pytest.raises(LibraryDamaged, match=f"{segment_file.name} has a {message}"):
            segment.search(material.vectors(1)[0], limit=10, ef_search=60, excluded=None)
        assert "lead out of the segment" in segment.damage()[0] or "contradict each other" in segment.damage()[0]
        segment.close()


def _fix_block_checksums(raw: bytearray, header: layout.Header) -> None:
    table = layout.FIXED_BYTES + 4 * header.max_level + layout.SECTION_BYTES * len(header.sections)
    table += len(header.model_name.encode()) + len(header.weights_sha256)
    table = -(-table // 4) * 4
    crcs = [zlib.crc32(raw[start:end]) for start, end in layout.block_spans(header)]
    struct.pack_into(f"<{len(crcs)}I", raw, table, *crcs)


mutations = st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 255)), min_size=1, max_size=6)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(mutations, st.sampled_from(["header", "anywhere", "tail"]), st.booleans(), st.integers(0, 6000))
def test_no_damage_gets_past_the_checks(
    segment_file: Path, material: Any, changes: list[tuple[int, int]], where: str, forged: bool, cut: int
) -> None:
    kept = segment_file.read_bytes()
    allowed = {row * 3 + 7 for row in range(ROWS)}

    def damage(raw: bytearray) -> None:
        first = len(raw) - 5000 if where == "tail" else 0
        span = {"header": 700, "anywhere": len(raw), "tail": 5000}[where]
        for offset, value in changes:
            raw[first + offset % span] = value
        if where == "tail" and cut:
            del raw[-cut:]

    try:
        # Forged: a right header checksum over wrong content must not get through either.
        rewrite(segment_file, damage, fix_checksum=forged and where == "header")
        found = search_everything(segment_file, material)
    except (LibraryDamaged, LibraryVersionUnknown, EmbedderMismatch) as error:
        assert segment_file.name in error.message
    except (struct.error, EdgeragError) as error:
        if not isinstance(error, struct.error):
            raise
        assert forged, "only the test's own forging may fail to pack"
    else:
        assert set(found) <= allowed
    finally:
        segment_file.write_bytes(kept)


def test_a_disk_that_is_full_is_reported(tmp_path: Path, material: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.stat

    def shorter(self: Path, **options: Any) -> Any:
        stat = real(self, **options)
        return type("Stat", (), {"st_size": stat.st_size - 1})() if self.name == "short" else stat

    monkeypatch.setattr(Path, "stat", shorter)
    with pytest.raises(StorageFull, match="short has"):
        write_segment(
            tmp_path / "short",
            labels=np.arange(3),
            vectors=material.vectors(3),
            graph=None,
            identity=material.identity,
            block_bytes=4096,
        )
