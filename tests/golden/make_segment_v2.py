"""Made segment-v2.hnsw and segment-v2.json, once. Not to be run again: that the old file still opens is the point.

Run from the checkout: python tests/golden/make_segment_v2.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from edgerag.index.hnsw.build import GraphSettings, build_graph
from edgerag.index.hnsw.format import Header
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.hnsw.view import HOT_SECTIONS, WALK_TITLES
from edgerag.index.hnsw.write import write_segment
from edgerag.types import EmbedderIdentity

ROWS, DIMENSION = 400, 80
FOLDER = Path(__file__).parent


def main() -> None:
    random = np.random.default_rng(20_261_129)
    rows = random.normal(size=(20, DIMENSION))[random.integers(20, size=ROWS)] + random.normal(size=(ROWS, DIMENSION))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    identity = EmbedderIdentity("golden-model", "0123456789abcdef" * 4, DIMENSION, ("en",))
    graph = build_graph(rows, scratch=FOLDER / "scratch", settings=GraphSettings(m=8, ef_construction=100))
    path = FOLDER / "segment-v2.hnsw"
    written = write_segment(
        path, labels=1000 + 5 * np.arange(ROWS), vectors=rows, graph=graph, identity=identity, block_bytes=16_384
    )
    (FOLDER / "segment-v2.json").write_text(
        json.dumps({walk: expected(path, identity, written.header, walk) for walk in WALK_TITLES}, indent=1) + "\n"
    )


def expected(path: Path, identity: EmbedderIdentity, header: Header, walk: str) -> list[dict[str, object]]:
    """Ten of the rows and what they find over these codes."""
    hot = sum(s.length for s in header.sections if walk == "bits" and s.kind in HOT_SECTIONS["bits"])
    segment = Segment(path, identity=identity, residency=Residency(hot or 10**9), flat_rows=0)
    found: list[dict[str, object]] = []
    for row in range(0, ROWS, 40):
        query = segment.vectors(np.array([row]))[0]
        hits = segment.search(query, limit=5, ef_search=40, excluded=None)
        found.append({"row": row, "hits": [[hit.chunk_id, round(hit.score, 5)] for hit in hits]})
    segment.close()
    return found


if __name__ == "__main__":
    main()
