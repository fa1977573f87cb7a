"""Files of each format version, written once, still open, give the same hits, and are as docs/index-format.md says."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from edgerag.errors import LibraryDamaged
from edgerag.index.hnsw.format import block_name, block_spans, read_header
from edgerag.index.hnsw.kernel import load_kernel
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.hnsw.view import HOT_SECTIONS
from edgerag.types import EmbedderIdentity

GOLDEN = Path(__file__).parents[3] / "golden"
IDENTITY = EmbedderIdentity("golden-model", "0123456789abcdef" * 4, 24, ("en",))
IDENTITY_2 = EmbedderIdentity("golden-model", "0123456789abcdef" * 4, 80, ("en",))


def assert_hits(segment: Segment, expected: list[dict[str, Any]]) -> None:
    assert segment.damage() == []
    for each in expected:
        query = segment.vectors(np.array([each["row"]]))[0]
        hits = segment.search(query, limit=5, ef_search=40, excluded=None)
        assert [hit.chunk_id for hit in hits] == [chunk_id for chunk_id, _ in each["hits"]]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in each["hits"]], abs=1e-5)


@pytest.mark.parametrize("flat_rows", [0, 10_000])
@pytest.mark.parametrize("kernel", ["best", None])
def test_version_1_opens_and_gives_the_same_hits(flat_rows: int, kernel: Literal["best"] | None) -> None:
    segment = Segment(
        GOLDEN / "segment-v1.hnsw", identity=IDENTITY, residency=Residency(10**9), flat_rows=flat_rows, kernel=kernel
    )
    assert_hits(segment, json.loads((GOLDEN / "segment-v1.json").read_text()))
    assert segment.walk_name == "exact scan"
    many = segment.search_many(segment.vectors(np.arange(3)), limit=1, ef_search=10)
    assert many[0].tolist() == segment.labels(np.arange(3)).reshape(3, 1).tolist()
    excluded = np.ones(400, dtype=np.bool_)
    excluded[[3, 5]] = False
    hits = segment.search(segment.vectors(np.array([3]))[0], limit=5, ef_search=40, excluded=excluded)
    assert [hit.chunk_id for hit in hits] == [1015, 1025]
    segment.close()


def test_a_damaged_file_of_version_1_is_named_by_its_block(tmp_path: Path) -> None:
    header = read_header(GOLDEN / "segment-v1.hnsw", identity=IDENTITY)
    for block, (start, _) in enumerate(block_spans(header)):
        raw = bytearray((GOLDEN / "segment-v1.hnsw").read_bytes())
        raw[start + 1] ^= 4
        (tmp_path / "old").write_bytes(raw)
        segment = Segment(tmp_path / "old", identity=IDENTITY, residency=Residency(10**9))
        assert segment.damage() == [f"{block_name(header, block)} does not match its checksum"]
        with pytest.raises(LibraryDamaged, match=r"old is damaged in block \d+ \((labels|levels|links|vectors)\)"):
            segment.search(np.ones(24, dtype=np.float32), limit=1, ef_search=1, excluded=None)
        segment.close()


@pytest.mark.parametrize("walk", ["nibbles", "bits"])
def test_version_2_opens_and_gives_the_same_hits(searcher: str, walk: str) -> None:
    path = GOLDEN / "segment-v2.hnsw"
    header = read_header(path, identity=IDENTITY_2)
    hot = sum(section.length for section in header.sections if section.kind in HOT_SECTIONS["bits"])
    kernel = None if searcher == "reference" else load_kernel(searcher)
    residency = Residency(hot if walk == "bits" else 10**9)
    segment = Segment(path, identity=IDENTITY_2, residency=residency, flat_rows=0, kernel=kernel)
    assert segment.walk_name == {"nibbles": "4-bit codes", "bits": "1-bit codes"}[walk]
    assert_hits(segment, json.loads((GOLDEN / "segment-v2.json").read_text())[walk])
    segment.close()


# ------------------------------------------------------------ by docs/index-format.md alone, without the program


@dataclass
class Read:
    """A segment file, read as the page says."""

    raw: bytes
    numbers: dict[str, int]
    level_counts: tuple[int, ...]
    sections: list[tuple[int, ...]]

    def row(self, kind: int, number: int) -> bytes:
        (section,) = [section for section in self.sections if section[0] == kind]
        _, row_bytes, count, offset, _, rows_per_group, group_bytes, _, _ = section
        assert number < count
        start = offset + number // rows_per_group * group_bytes + number % rows_per_group * row_bytes
        return self.raw[start : start + row_bytes]


def read_by_the_page(path: Path) -> Read:
    raw = path.read_bytes()
    assert raw[:8] == b"\x89ERAG\r\n\x1a"
    names = ["version", "header_bytes", "crc", "block_bytes", "file_bytes", "dimension", "metric", "m", "m0", "n"]
    names += ["entry_point", "levels", "sections", "blocks", "name_bytes", "weights_bytes", "entry_position"]
    numbers = dict(zip(names, struct.unpack_from("<4IQ4IQ7I", raw, 8), strict=True))
    assert raw[84:96] == bytes(12)
    assert numbers["file_bytes"] == len(raw)
    assert numbers["metric"] == 1
    assert zlib.crc32(raw[:16] + bytes(4) + raw[20 : numbers["header_bytes"]]) == numbers["crc"]

    at = 96
    level_counts = struct.unpack_from(f"<{numbers['levels']}I", raw, at)
    at += 4 * numbers["levels"]
    sections = [struct.unpack_from("<2I3Q4I", raw, at + 48 * number) for number in range(numbers["sections"])]
    at += 48 * numbers["sections"]
    assert raw[at : at + numbers["name_bytes"]] == b"golden-model"
    at += numbers["name_bytes"]
    assert raw[at : at + numbers["weights_bytes"]] == b"0123456789abcdef" * 4
    at = -(-(at + numbers["weights_bytes"]) // 4) * 4
    crcs = struct.unpack_from(f"<{numbers['blocks']}I", raw, at)
    assert not any(raw[at + 4 * len(crcs) : numbers["header_bytes"]])

    blocks, position = [], numbers["header_bytes"]
    for _, row_bytes, _, offset, length, rows_per_group, group_bytes, section_blocks, _ in sections:
        assert offset == position
        assert numbers["block_bytes"] % group_bytes == 0
        starts = range(offset, offset + length, numbers["block_bytes"])
        assert len(starts) == section_blocks
        blocks += [raw[start : min(start + numbers["block_bytes"], offset + length)] for start in starts]
        for group in range(offset, offset + length, group_bytes):
            assert not any(raw[group + rows_per_group * row_bytes : group + group_bytes])
        position = offset + length
    assert position == len(raw)
    assert [zlib.crc32(block) for block in blocks] == list(crcs)
    return Read(raw, numbers, level_counts, sections)


def test_the_description_of_version_1_is_true() -> None:
    read = read_by_the_page(GOLDEN / "segment-v1.hnsw")
    fixed = [read.numbers[name] for name in ("version", "block_bytes", "dimension", "m", "m0", "n", "entry_position")]
    assert fixed == [1, 16_384, 24, 8, 16, 400, 0]
    assert [(section[0], section[8]) for section in read.sections] == [(1, 3), (2, 2), (3, 2), (4, 1)]
    assert [struct.unpack("<Q", read.row(1, number))[0] for number in range(400)] == list(range(1000, 3000, 5))
    vectors = np.array([np.frombuffer(read.row(4, number), dtype="<f4") for number in range(400)])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(400), abs=1e-6)
    for number in range(400):
        count, *links = struct.unpack("<17I", read.row(3, number))
        assert count <= 16
        assert all(link < 400 for link in links[:count])
        assert not any(links[count:])
    nodes = [struct.unpack("<10I", read.row(2, number))[:2] for number in range(sum(read.level_counts))]
    first_level = [node for node, _ in nodes[: read.level_counts[0]]]
    assert first_level == sorted(first_level)
    assert read.numbers["entry_point"] in {node for node, _ in nodes[-read.level_counts[-1] :]}


def rotated(vector: Any, size: int) -> Any:
    """As the page has it, in f32."""
    mask = 2**64 - 1

    def sign(number: int) -> int:
        z = (0x65646765726167 + (number + 1) * 0x9E3779B97F4A7C15) & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        z ^= z >> 31
        return -1 if z >> 63 else 1

    values = [np.float32(0)] * size
    values[: len(vector)] = list(vector)
    half = 2 ** (size.bit_length() - 1)
    for turn in range(4):
        values = [value * np.float32(sign(turn * size + i)) for i, value in enumerate(values)]
        start = size - half if turn % 2 else 0
        step = 1
        while step < half:
            for run in range(start, start + half, 2 * step):
                for i in range(run, run + step):
                    values[i], values[i + step] = values[i] + values[i + step], values[i] - values[i + step]
            step *= 2
        for i in range(start, start + half):
            values[i] *= np.float32(1 / half**0.5)
    return np.array(values)


def test_the_description_of_version_2_is_true() -> None:
    read = read_by_the_page(GOLDEN / "segment-v2.hnsw")
    fixed = [read.numbers[name] for name in ("version", "block_bytes", "dimension", "m", "m0", "n")]
    assert fixed == [2, 16_384, 80, 8, 16, 400]
    assert [(section[0], section[8]) for section in read.sections] == [(5, 2), (6, 5), (7, 5), (8, 5), (9, 4)]
    padded = 128
    assert [section[1] for section in read.sections] == [
        4 * (3 + 8), 2 + (16 * 9 + 7) // 8, padded // 8 + 4, padded // 2 + 4, 2 * 80 + 12
    ]  # fmt: skip

    vectors, labels = [], []
    for number in range(400):
        row = read.row(9, number)
        assert zlib.crc32(row[:-4]) == struct.unpack("<I", row[-4:])[0]
        vectors.append(np.frombuffer(row[:160], dtype="<f2").astype(np.float32))
        labels.append(struct.unpack("<Q", row[160:168])[0])
    assert sorted(labels) == list(range(1000, 3000, 5))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(400), abs=1e-3)

    linked = np.zeros((400, 400), dtype=np.bool_)
    for number in range(400):
        bits = int.from_bytes(read.row(6, number), "little")
        count = bits & 0xFFFF
        links = [bits >> (16 + 9 * i) & 511 for i in range(16)]
        assert 0 < count <= 16
        assert len(set(links[:count]) - {number}) == count
        assert not any(links[count:])
        assert max(links) < 400
        linked[number, links[:count]] = True
    products = np.array(vectors) @ np.array(vectors).T
    assert products[linked].mean() > products.mean() + 0.2, "links lead to similar rows"

    records = [struct.unpack("<11I", read.row(5, number)) for number in range(sum(read.level_counts))]
    below, start = list(range(400)), 0
    for count in read.level_counts:
        level = records[start : start + count]
        rows = [record[0] for record in level]
        assert rows == sorted(set(rows))
        for row, position, links_count, *links in level:
            assert below[position] == row
            assert links_count <= 8
            assert all(link < count for link in links[:links_count])
            assert not any(links[links_count:])
        below, start = rows, start + count
    assert below[read.numbers["entry_position"]] == read.numbers["entry_point"]

    query = rotated(vectors[7], padded)
    assert np.linalg.norm(query) == pytest.approx(1, abs=1e-3)
    errors = {7: [], 8: []}  # type: dict[int, list[float]]
    for number in range(0, 400, 20):
        turned = rotated(vectors[number], padded)
        for kind in (7, 8):
            row = read.row(kind, number)
            if kind == 7:
                code = [1 if row[i // 8] >> i % 8 & 1 else -1 for i in range(padded)]
                (factor,) = struct.unpack_from("<f", row, padded // 8)
                expected = [1 if value > 0 else -1 for value in turned]
            else:
                code = []
                for i in range(padded):
                    byte = row[32 * (i // 64) + i % 32]
                    code.append(2 * (byte >> 4 if i % 64 >= 32 else byte & 15) - 15)
                (factor,) = struct.unpack_from("<f", row, padded // 2)
                step = 2 * 2.6 / 15 / padded**0.5
                expected = [2 * min(15, max(0, int(np.floor(value / step)) + 8)) - 15 for value in turned]
            # The vector in the file is rounded: a number at the border of two levels may be on the other side.
            assert np.count_nonzero(np.array(code) != expected) <= 3
            assert factor == pytest.approx(1 / np.dot(code, turned), rel=0.01)
            errors[kind].append(float(factor * np.dot(code, query) - vectors[number] @ vectors[7]))
    assert np.abs(errors[8]).max() < 0.04
    assert np.abs(errors[7]).max() < 0.25
    assert abs(np.mean(errors[7])) < 0.06
