"""Reads segments of format version 1, which had no codes: every search compares all vectors.

The next seal rewrites them; until then this is right, and fast enough for the sizes of that time (ten
milliseconds for 30,000 rows).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.format import SectionKind
from edgerag.index.hnsw.reference import fixed_products
from edgerag.index.hnsw.view import Found, Rows, SegmentView

if TYPE_CHECKING:
    from edgerag.types import Vectors

SCAN_ROWS = 4096  # compared at a time: 6 MB at 384 dimensions


class OldRows:
    """Chunk ids and vectors of a file of version 1. Its blocks must be verified before they are read."""

    def __init__(self, segment: SegmentView) -> None:
        self._labels = _rows(segment, SectionKind.LABELS_1)
        self._vectors = _rows(segment, SectionKind.VECTORS_1)

    def labels(self, rows: Rows) -> Rows:
        found: Rows = self._labels[rows // self._labels.shape[1], rows % self._labels.shape[1], 0].astype(np.int64)
        return found

    def vectors(self, rows: Rows) -> Vectors:
        """(n, dim) float32, copied."""
        found: Vectors = self._vectors[rows // self._vectors.shape[1], rows % self._vectors.shape[1]]
        return found

    def score(self, query: Vectors, *, limit: int, rows: Rows) -> Found:
        """The exactly best of some rows."""
        labels, similarities = self.labels(rows), fixed_products(self.vectors(rows), query)
        order = np.lexsort((labels, -similarities))[:limit]
        return Found(labels[order], similarities[order])


def _rows(segment: SegmentView, kind: SectionKind) -> NDArray[Any]:
    section = segment.header.section(kind)
    if section is None:
        raise layout.damaged(segment.path, f"has no {kind.title}")
    dtype: np.dtype[Any] = np.dtype(layout.ENCODING_DTYPE[section.encoding])
    return np.ndarray(
        shape=(section.length // section.group_bytes, section.rows_per_group, section.row_bytes // dtype.itemsize),
        dtype=dtype,
        buffer=segment.mapping,
        offset=section.offset,
        strides=(section.group_bytes, section.row_bytes, dtype.itemsize),
    )
