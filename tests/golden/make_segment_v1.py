"""Made segment-v1.hnsw and segment-v1.json, once, with the program of that time; today's writes version 2.
Not to be run again: that the old file still opens is the point.

Run from the checkout: python tests/golden/make_segment_v1.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from edgerag.index.hnsw.build import GraphSettings, build_graph
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.hnsw.write import write_segment
from edgerag.types import EmbedderIdentity

ROWS, DIMENSION = 400, 24
FOLDER = Path(__file__).parent


def main() -> None:
    rows = np.random.default_rng(20_240_601).normal(size=(ROWS, DIMENSION)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    identity = EmbedderIdentity("golden-model", "0123456789abcdef" * 4, DIMENSION, ("en",))
    graph = build_graph(rows, scratch=FOLDER / "scratch", settings=GraphSettings(m=8, ef_construction=100))
    labels = 1000 + 5 * np.arange(ROWS)
    write_segment(
        FOLDER / "segment-v1.hnsw", labels=labels, vectors=rows, graph=graph, identity=identity, block_bytes=16_384
    )
    segment = Segment(FOLDER / "segment-v1.hnsw", identity=identity, residency=Residency(10**9), flat_rows=0)
    expected = []
    for row in range(0, ROWS, 40):
        query = segment.vectors(np.array([row]))[0]
        hits = segment.search(query, limit=5, ef_search=40, dead=None)
        expected.append({"row": row, "hits": [[hit.chunk_id, round(hit.score, 5)] for hit in hits]})
    segment.close()
    (FOLDER / "segment-v1.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
