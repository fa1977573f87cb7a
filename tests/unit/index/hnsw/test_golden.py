"""A file of format version 1, written once, still opens and gives the same hits."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.types import EmbedderIdentity

GOLDEN = Path(__file__).parents[3] / "golden"
IDENTITY = EmbedderIdentity("golden-model", "0123456789abcdef" * 4, 24, ("en",))


@pytest.mark.parametrize("flat_rows", [0, 10_000])
def test_version_1_opens_and_gives_the_same_hits(flat_rows: int) -> None:
    path = GOLDEN / "segment-v1.hnsw"
    segment = Segment(path, identity=IDENTITY, residency=Residency(10**9), flat_rows=flat_rows)
    assert segment.damage() == []
    for each in json.loads((GOLDEN / "segment-v1.json").read_text()):
        query = segment.vectors(np.array([each["row"]]))[0]
        hits = segment.search(query, limit=5, ef_search=40, dead=None)
        assert [hit.chunk_id for hit in hits] == [chunk_id for chunk_id, _ in each["hits"]]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in each["hits"]], abs=1e-5)
    segment.close()


def test_the_description_of_the_format_is_true() -> None:
    """Reads the golden file by docs/index-format.md alone, without the program."""
    raw = (GOLDEN / "segment-v1.hnsw").read_bytes()
    assert raw[:8] == b"\x89ERAG\r\n\x1a"
    version, header_bytes, header_crc, block_bytes = struct.unpack_from("<4I", raw, 8)
    (file_bytes,) = struct.unpack_from("<Q", raw, 24)
    dimension, metric, m, m0 = struct.unpack_from("<4I", raw, 32)
    (row_count,) = struct.unpack_from("<Q", raw, 48)
    entry_point, level_count, section_count, block_count, name_bytes, weights_bytes = struct.unpack_from("<6I", raw, 56)
    assert (version, block_bytes, file_bytes, dimension, metric, m, m0) == (1, 16_384, len(raw), 24, 1, 8, 16)
    assert (row_count, section_count) == (400, 4)
    assert raw[80:96] == bytes(16)
    assert zlib.crc32(raw[:16] + bytes(4) + raw[20:header_bytes]) == header_crc

    at = 96
    level_counts = struct.unpack_from(f"<{level_count}I", raw, at)
    at += 4 * level_count
    sections = [struct.unpack_from("<2I3Q4I", raw, at + 48 * number) for number in range(section_count)]
    at += 48 * section_count
    assert raw[at : at + name_bytes] == b"golden-model"
    assert raw[at + name_bytes : at + name_bytes + weights_bytes] == b"0123456789abcdef" * 4
    at = -(-(at + name_bytes + weights_bytes) // 4) * 4
    crcs = struct.unpack_from(f"<{block_count}I", raw, at)

    blocks = []
    for _, _, _, offset, length, _, group_bytes, section_blocks, _ in sections:
        assert block_bytes % group_bytes == 0
        starts = range(offset, offset + length, block_bytes)
        assert len(starts) == section_blocks
        blocks += [raw[start : min(start + block_bytes, offset + length)] for start in starts]
    assert [zlib.crc32(block) for block in blocks] == list(crcs)

    def row(kind: int, number: int) -> bytes:
        (section,) = [section for section in sections if section[0] == kind]
        _, row_bytes, count, offset, _, rows_per_group, group_bytes, _, _ = section
        assert number < count
        start = offset + number // rows_per_group * group_bytes + number % rows_per_group * row_bytes
        return raw[start : start + row_bytes]

    assert [struct.unpack("<Q", row(1, number))[0] for number in range(400)] == list(range(1000, 3000, 5))
    vectors = np.array([np.frombuffer(row(4, number), dtype="<f4") for number in range(400)])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(400), abs=1e-6)
    for number in range(400):
        count, *links = struct.unpack("<17I", row(3, number))
        assert count <= 16
        assert all(link < 400 for link in links[:count])
        assert not any(links[count:])
    nodes = [struct.unpack("<10I", row(2, number))[:2] for number in range(sum(level_counts))]
    first_level = [node for node, _ in nodes[: level_counts[0]]]
    assert first_level == sorted(first_level)
    assert entry_point in {node for node, _ in nodes[-level_counts[-1] :]}
