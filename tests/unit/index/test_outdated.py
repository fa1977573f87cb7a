"""A library whose segments are of format version 1: searched as it is, rewritten by the next seal."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.index import construction
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.format import Encoding, Header, Section, SectionKind
from edgerag.index.hnsw.write import Written
from edgerag.index.library import Library


def write_version_1(path: Path, *, labels: Any, vectors: Any, identity: Any, block_bytes: int, **_: Any) -> Written:
    """A scanned segment as the program wrote it before there were codes."""
    parts = [
        (SectionKind.LABELS_1, Encoding.U64, labels.astype("<u8").view(np.uint8).reshape(len(labels), -1)),
        (SectionKind.VECTORS_1, Encoding.F32, np.ascontiguousarray(vectors, "<f4").view(np.uint8)),
    ]
    sections: list[Section] = []
    pieces: list[bytes] = []
    header = Header(
        1, block_bytes, 0, vectors.shape[1], 0, 0, len(labels), layout.NO_ENTRY, 0, (), identity.name,
        identity.weights_sha256, (), (),
    )  # fmt: skip
    for kind, encoding, rows in parts:
        grouping = layout.group_rows(rows.shape[1], block_bytes)
        groups = -(-len(rows) // grouping.rows_per_group)
        padded = np.zeros((groups, grouping.group_bytes), dtype=np.uint8)
        flat = np.zeros((groups * grouping.rows_per_group, rows.shape[1]), dtype=np.uint8)
        flat[: len(rows)] = rows
        padded[:, : flat.size // groups] = flat.reshape(groups, -1)
        sections.append(
            Section(
                kind,
                encoding,
                rows.shape[1],
                len(rows),
                0,
                padded.size,
                grouping.rows_per_group,
                grouping.group_bytes,
                -(-padded.size // block_bytes),
            )
        )
        pieces.append(padded.tobytes())
    crcs = [
        zlib.crc32(piece[start : start + block_bytes])
        for piece in pieces
        for start in range(0, len(piece), block_bytes)
    ]
    header = replace(header, sections=tuple(sections), block_crcs=tuple(crcs))
    position = layout.header_size(
        section_count=2,
        level_count=0,
        name_bytes=len(identity.name.encode()),
        weights_bytes=len(identity.weights_sha256),
        block_count=len(crcs),
    )
    placed = []
    for section in sections:
        placed.append(replace(section, offset=position))
        position += section.length
    header = replace(header, sections=tuple(placed), file_bytes=position)
    path.write_bytes(layout.encode_header(header) + b"".join(pieces))
    return Written(header, labels)


def versions(library: Library) -> list[int]:
    paths = sorted((library.folder / "segments").iterdir())
    return [layout.read_header(path, identity=library.identity).version for path in paths]


@pytest.mark.parametrize("way", ["seal", "compact"])
def test_old_segments_are_searched_and_then_rewritten(
    opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    library = opened()
    texts = [f"subject {number}" for number in range(60)]
    queries = [material.vector(text) for text in (*texts[:5], "something else")]
    material.put(library, "/docs/a", texts)
    material.embed_pending(library)
    with monkeypatch.context() as patched:
        patched.setattr(construction, "write_segment", write_version_1)
        library.seal()
    assert versions(library) == [1]
    before = [library.search_vectors(query, limit=7, ef_search=400) for query in queries]
    assert {finding.severity for finding in library.verify()} == {"ok"}
    assert library.status().segments[0].walk == "exact scan"

    library.seal() if way == "seal" else library.compact()
    assert versions(library) == [2]
    after = [library.search_vectors(query, limit=7, ef_search=400) for query in queries]
    assert [[hit.chunk_id for hit in hits] for hits in after] == [[hit.chunk_id for hit in hits] for hits in before]
    assert np.allclose(
        [[h.score for h in hits] for hits in after], [[h.score for h in hits] for hits in before], atol=1e-3
    )
    kept = sorted((library.folder / "segments").iterdir())
    library.seal()
    assert sorted((library.folder / "segments").iterdir()) == kept, "rewritten once"


def test_old_segments_can_lose_documents(opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = opened()
    first = material.put(library, "/docs/a", [f"subject {number}" for number in range(30)])
    material.put(library, "/docs/b", [f"other {number}" for number in range(30)])
    material.embed_pending(library)
    with monkeypatch.context() as patched:
        patched.setattr(construction, "write_segment", write_version_1)
        library.seal()
    library.remove_documents([first])
    hits = library.search_vectors(material.vector("subject 3"), limit=100, ef_search=10)
    assert len(hits) == 30
    assert first not in {chunk.document_id for chunk in library.chunks([hit.chunk_id for hit in hits])}
