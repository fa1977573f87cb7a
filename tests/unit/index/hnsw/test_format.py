from __future__ import annotations

import dataclasses
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
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.build import GraphSettings, build_graph
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.hnsw.write import write_segment

ROWS = 120


@pytest.fixture
def segment_file(tmp_path: Path, material: Any) -> Path:
    return make_segment(tmp_path, material)


def make_segment(folder: Path, material: Any, *, rows: int = ROWS, block_bytes: int = 4096) -> Path:
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
    )
    return path


def open_segment(path: Path, material: Any, **changes: Any) -> Segment:
    identity = dataclasses.replace(material.identity, **changes)
    return Segment(path, identity=identity, residency=Residency(10**9), flat_rows=10)


def search_everything(path: Path, material: Any) -> list[int]:
    segment = open_segment(path, material)
    try:
        found = []
        for dead in (None, np.arange(segment.row_count) % 2 == 0):
            for seed in range(3):
                hits = segment.search(material.vectors(1, seed=seed)[0], limit=10, ef_search=60, dead=dead)
                found += [hit.chunk_id for hit in hits]
        return found
    finally:
        segment.close()


def test_what_is_written_is_read_at_any_block_size(tmp_path: Path, material: Any) -> None:
    answers = []
    for block_bytes in (4096, 8192, 65536, layout.BLOCK_BYTES):
        path = make_segment(tmp_path, material, block_bytes=block_bytes)
        segment = open_segment(path, material)
        assert np.array_equal(segment.vectors(np.arange(ROWS)), material.vectors(ROWS))
        assert segment.labels(np.arange(ROWS)).tolist() == [row * 3 + 7 for row in range(ROWS)]
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
    grouping = layout.group_rows(4 * dimension, layout.BLOCK_BYTES)
    assert layout.BLOCK_BYTES % grouping.group_bytes == 0
    assert grouping.rows_per_group * 4 * dimension >= 15 / 16 * grouping.group_bytes


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
    with pytest.raises(LibraryVersionUnknown, match=f"{name} has segment format 2"):
        open_segment(after(set_bytes(8, b"\x02")), material)
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


def test_a_damaged_block_is_named_when_it_is_touched_and_not_before(segment_file: Path, material: Any) -> None:
    header = layout.read_header(segment_file, identity=material.identity)
    kept = segment_file.read_bytes()
    for block, (start, end) in enumerate(layout.block_spans(header)):
        raw = bytearray(kept)
        raw[(start + end) // 2] ^= 1
        segment_file.write_bytes(raw)
        segment = open_segment(segment_file, material)  # opening reads no block
        expected = layout.block_name(header, block)
        assert [fault.split(" does")[0] for fault in segment.damage()] == [expected]
        segment.close()
        with pytest.raises(LibraryDamaged) as caught:
            search_everything(segment_file, material)
        assert segment_file.name in caught.value.message
        assert expected in caught.value.message


def test_links_that_lead_nowhere_are_refused_even_under_a_right_checksum(segment_file: Path, material: Any) -> None:
    header = layout.read_header(segment_file, identity=material.identity)
    links = next(section for section in header.sections if section.kind is layout.SectionKind.LINKS)
    for value in (struct.pack("<II", 4, 2**32 - 1), struct.pack("<I", 2**31)):

        def damage(raw: bytearray, value: bytes = value) -> None:
            for row in range(links.row_count):
                group, slot = divmod(row, links.rows_per_group)
                at = links.offset + group * links.group_bytes + slot * links.row_bytes
                raw[at : at + len(value)] = value
            _fix_block_checksums(raw, header)

        rewrite(segment_file, damage, fix_checksum=True)
        with pytest.raises(LibraryDamaged, match="damaged link list"):
            search_everything(segment_file, material)
        segment = open_segment(segment_file, material)
        assert "lead out of the segment" in segment.damage()[0]
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
