"""Damages segment files in every part, forges the checksums over it, and searches them with a sanitized kernel.

Promises checked, for each input: no crash (the sanitizers end the process), no hang (a watchdog does), no chunk
id that is not in the file, none twice, a clear error or an answer, and the same as the numpy reference gives.
Each section is searched in a heap copy of its own, so that one byte too far is seen.

Run by sanitized.py: damaged_segments.py LIBRARY FOLDER FIRST COUNT. Input number n is the same in every run.
"""

from __future__ import annotations

import faulthandler
import json
import struct
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgerag.errors import EmbedderMismatch, LibraryDamaged, LibraryVersionUnknown
from edgerag.index.hnsw import format as layout
from edgerag.index.hnsw.format import Header, Section, SectionKind
from edgerag.index.hnsw.graph import Graph
from edgerag.index.hnsw.kernel import Kernel, KernelSearcher, load_kernel, supported_paths
from edgerag.index.hnsw.reference import ReferenceSearcher
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.hnsw.view import Found, SegmentView
from edgerag.index.hnsw.write import write_segment
from edgerag.types import EmbedderIdentity

# One input takes milliseconds; the reference, on the largest file, half a second on a busy machine.
HANG_SECONDS = 60
# One input in so many is searched by the reference, too.
COMPARED = 5
# And one in so many belongs to the large file, whose walk goes in real slices.
LARGE = 16


@dataclass(frozen=True)
class Base:
    """A whole file to be damaged."""

    path: Path
    identity: EmbedderIdentity
    header: Header
    raw: bytes
    labels: frozenset[int]


def make_bases(folder: Path) -> list[Base]:
    """Small ones of different shapes, and one of several megabytes at the end."""
    return [
        # 256 rows: every packed link is in range, so that a wrong count is not noticed by what it reads.
        make_base(folder / "small", rows=256, dimension=24, m=4, vector_type="f16", block_bytes=4096),
        make_base(folder / "odd", rows=257, dimension=101, m=4, vector_type="f32", block_bytes=8192),
        make_base(folder / "one", rows=1, dimension=1, m=2, vector_type="f16", block_bytes=4096),
        make_base(folder / "flat", rows=100, dimension=7, m=0, vector_type="f16", block_bytes=4096),
        make_base(folder / "large", rows=30_000, dimension=64, m=16, vector_type="f16", block_bytes=2**16),
    ]


def make_base(path: Path, *, rows: int, dimension: int, m: int, vector_type: Any, block_bytes: int) -> Base:
    random = np.random.default_rng(rows)
    vectors = random.normal(size=(rows, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    identity = EmbedderIdentity("fuzz", "22" * 32, dimension, ("*",))
    written = write_segment(
        path,
        labels=np.arange(rows) * 5 + 11,
        vectors=vectors,
        graph=drawn_graph(rows, m, random) if m else None,
        identity=identity,
        block_bytes=block_bytes,
        order="given",
        vector_type=vector_type,
    )
    return Base(path, identity, written.header, path.read_bytes(), frozenset(written.labels.tolist()))


def drawn_graph(rows: int, m: int, random: np.random.Generator) -> Graph:
    """Links by lot, on three levels where there are rows enough."""
    links = random.integers(rows, size=(rows, 1 + 2 * m), dtype=np.uint32)
    links[:, 0] = 2 * m
    links[:, 1] = (np.arange(rows) + 1) % rows  # everything is reachable
    parts, counts, above = [], [], np.arange(rows, dtype=np.uint32)
    while len(above) >= 8 * m and len(counts) < 3:
        above = np.sort(random.choice(above, size=len(above) // m, replace=False))
        records = np.zeros((len(above), 2 + m), dtype=np.uint32)
        records[:, 0], records[:, 1] = above, m
        records[:, 2:] = above[random.integers(len(above), size=(len(above), m))]
        parts.append(records)
        counts.append(len(above))
    levels = np.concatenate(parts) if parts else np.empty((0, 2 + m), dtype=np.uint32)
    return Graph(m, 2 * m, int(above[0]), tuple(counts), levels, links)


# ------------------------------------------------------------ damage

Damage = Callable[[bytearray, Base, np.random.Generator], None]
EXTREMES = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1)
FLOATS = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, -1.0, 1e38, -3e38, 1e-45)


def damage_header(raw: bytearray, base: Base, random: np.random.Generator) -> None:
    """Bytes of the header, or one of its numbers."""
    table = layout.FIXED_BYTES + 4 * base.header.max_level
    end = table + layout.SECTION_BYTES * len(base.header.sections)
    for _ in range(random.integers(1, 4)):
        if random.random() < 0.5:
            raw[random.integers(end + 150)] = random.integers(256)
        else:
            at = int(random.integers(20, end - 4)) // 4 * 4
            (value,) = struct.unpack_from("<I", raw, at)
            near = [max(0, value - 1), (value + 1) % 2**32, value * 2 % 2**32, value // 2]
            struct.pack_into("<I", raw, at, int(random.choice([*near, *EXTREMES])))


def damage_counts(raw: bytearray, base: Base, random: np.random.Generator) -> None:
    """Numbers that agree with each other and not with the rows: level counts, entry point, entry position."""
    header = base.header
    counts = list(header.level_counts)
    if len(counts) > 1:
        moved = int(random.integers(1, max(2, counts[-1])))
        counts[0] += moved
        counts[-1] -= moved
    entry = int(random.integers(header.row_count)) if header.has_graph else header.entry_point
    position = int(random.integers(max(1, counts[-1]))) if counts else 0
    changed = replace(header, level_counts=tuple(counts), entry_point=entry, entry_position=position)
    encoded = layout.encode_header(changed)
    raw[: len(encoded)] = encoded


def damage_rows(kind: SectionKind) -> Damage:
    """One row, some, or all of a section."""

    def damage(raw: bytearray, base: Base, random: np.random.Generator) -> None:
        section = base.header.section(kind)
        if section is None or not section.row_count:
            return
        most = section.row_count if section.row_count < 1000 else 200
        count = int(random.choice([1, 8, most, most]))
        rows = random.choice(section.row_count, size=min(count, section.row_count), replace=False)
        way = int(random.integers(4))
        for row in rows.tolist():
            at = row_offset(section, row)
            part = raw[at : at + section.row_bytes]
            change(part, kind, way, base, random)
            raw[at : at + section.row_bytes] = part

    return damage


def change(row: bytearray, kind: SectionKind, way: int, base: Base, random: np.random.Generator) -> None:
    size = len(row)
    if way == 0:
        row[:] = random.bytes(size)
    elif way == 1:
        row[:] = bytes([int(random.choice([0, 0xFF]))]) * size
    elif kind is SectionKind.LEVELS:
        # Mostly its position below and its count; of the links, any.
        field = int(random.choice([1, 2])) if way == 2 else int(random.integers(size // 4))
        near = [base.header.m, base.header.m + 1, *base.header.level_counts, base.header.row_count]
        struct.pack_into("<I", row, 4 * field, int(random.choice([*EXTREMES, *near])))
    elif kind is SectionKind.LINKS:
        if way == 2:
            struct.pack_into("<H", row, 0, int(random.choice([0, 1, base.header.m0, base.header.m0 + 1, 0xFFFF])))
        else:
            row[2:] = random.bytes(size - 2)
    elif kind in (SectionKind.BITS, SectionKind.NIBBLES):
        padded = -(-base.header.dimension // 64) * 64
        struct.pack_into("<f", row, padded // (8 if kind is SectionKind.BITS else 2), float(random.choice(FLOATS)))
    else:
        vector_bytes = size - layout.ROW_TAIL_BYTES
        wide = vector_bytes // base.header.dimension == 4
        at = int(random.integers(base.header.dimension))
        with np.errstate(over="ignore"):
            value = np.array([random.choice(FLOATS)], dtype="<f4" if wide else "<f2").tobytes()
        row[at * len(value) : (at + 1) * len(value)] = value


def damage_tail(raw: bytearray, base: Base, random: np.random.Generator) -> None:
    """Cut short, too long, or zero from somewhere on."""
    way, size = int(random.integers(3)), int(random.integers(1, min(len(raw), 9000)))
    if way == 0:
        del raw[-size:]
    elif way == 1:
        raw += random.bytes(size)
    else:
        raw[-size:] = bytes(size)


DAMAGES: dict[str, Damage] = {
    "header": damage_header,
    "counts": damage_counts,
    "levels": damage_rows(SectionKind.LEVELS),
    "links": damage_rows(SectionKind.LINKS),
    "bits": damage_rows(SectionKind.BITS),
    "nibbles": damage_rows(SectionKind.NIBBLES),
    "vectors": damage_rows(SectionKind.VECTORS),
    "tail": damage_tail,
}


def row_offset(section: Section, row: int) -> int:
    group, place = divmod(row, section.rows_per_group)
    return section.offset + group * section.group_bytes + place * section.row_bytes


def forge(raw: bytearray, base: Base, *, rows: bool) -> None:
    """Right checksums over whatever stands there now: of rows of vectors, of blocks, of the header."""
    header = base.header
    vectors = header.section(SectionKind.VECTORS)
    if rows and vectors and len(raw) >= header.file_bytes:
        for row in range(vectors.row_count):
            at = row_offset(vectors, row)
            end = at + vectors.row_bytes - 4
            if raw[at:end] != base.raw[at:end]:
                struct.pack_into("<I", raw, end, zlib.crc32(raw[at:end]))
    table = layout.FIXED_BYTES + 4 * header.max_level + layout.SECTION_BYTES * len(header.sections)
    table = -(-(table + len(header.model_name.encode()) + len(header.weights_sha256)) // 4) * 4
    for number, (start, end) in enumerate(layout.block_spans(header)):
        if raw[start:end] != base.raw[start:end]:
            struct.pack_into("<I", raw, table + 4 * number, zlib.crc32(raw[start:end]))
    if len(raw) >= 20:
        (size,) = struct.unpack_from("<I", raw, 12)
        struct.pack_into("<I", raw, 16, 0)
        struct.pack_into("<I", raw, 16, zlib.crc32(raw[:size]))


# ------------------------------------------------------------ searching


class GuardedSearcher(KernelSearcher):
    """Reads each section in a heap copy of its own, where the sanitizer sees a byte too far."""

    def __init__(self, segment: SegmentView, kernel: Kernel) -> None:
        self.copies: list[Any] = []
        super().__init__(segment, kernel)

    def _rows(self, section: Section) -> Any:
        struct = super()._rows(section)
        mapped = np.frombuffer(self._view.mapping, dtype=np.uint8)
        # Links are read eight bytes at a time, which is allowed to go seven bytes beyond them.
        beyond = 7 if section.kind is SectionKind.LINKS else 0
        self.copies.append(mapped[section.offset : section.offset + section.length + beyond].copy())
        struct.base = self.copies[-1].ctypes.data
        return struct


class Slices(Residency):
    """Room for one window of the file at a time, and what was read has gone again: a pause wherever one can be."""

    pauses = 0

    def admit(self, blocks: Any, numbers: Any) -> int | None:
        self.blocks = blocks
        return self.settle()

    def settle(self) -> int:
        self.pauses += 1
        self.blocks.absent[:] = 1
        return 1


class NarrowSlices(Slices):
    def walk(self) -> str:
        return "bits"


class Narrow(Residency):
    def walk(self) -> str:
        return "bits"


def open_guarded(base: Base, path: Path, residency: Residency, kernel: Kernel | None) -> Segment:
    segment = Segment(path, identity=base.identity, residency=residency, flat_rows=0, kernel=kernel)
    view = SegmentView(
        path,
        segment.header,
        segment.blocks.mapping,
        segment._source,
        False,
        segment.blocks.hits,
        segment.blocks.absent,
    )
    segment._searcher = GuardedSearcher(view, kernel) if kernel else ReferenceSearcher(view)
    return segment


@dataclass(frozen=True)
class Question:
    query: Any
    limit: int
    ef: int
    excluded: Any
    sliced: bool
    narrow: bool
    many: bool


def ask(base: Base, path: Path, kernel: Kernel | None, question: Question) -> tuple[str, list[int], list[float]]:
    """(what came of it, chunk ids, similarities)."""
    kinds = {(False, False): Residency, (False, True): Narrow, (True, False): Slices, (True, True): NarrowSlices}
    try:
        segment = open_guarded(base, path, kinds[question.sliced, question.narrow](10**9), kernel)
    except (LibraryDamaged, LibraryVersionUnknown, EmbedderMismatch) as error:
        assert path.name in error.message
        return f"not opened: {type(error).__name__}", [], []
    try:
        if question.ef == 0:
            segment.vectors(np.arange(0, segment.row_count, 1 + segment.row_count // 500)[::-1])
        if question.many and not question.sliced:
            labels, similarities = segment.search_many(
                question.query[None], limit=question.limit, ef_search=question.ef
            )
            # A gap has no chunk id and a similarity of -1.
            found = Found(labels[0], similarities[0])
            kept = ~((labels[0] == -1) & (similarities[0] == -1))
            return "answered", found.labels[kept].tolist(), found.similarities[kept].tolist()
        excluded = question.excluded
        if excluded is not None and len(excluded) != segment.row_count:
            excluded = None
        hits = segment.search(question.query, limit=question.limit, ef_search=question.ef, excluded=excluded)
        return "answered", [hit.chunk_id for hit in hits], [hit.score for hit in hits]
    except LibraryDamaged as error:
        assert path.name in error.message
        return "refused", [], []
    finally:
        segment.close()


def questions(base: Base, random: np.random.Generator, count: int) -> list[Question]:
    rows = base.header.row_count
    asked = []
    for _ in range(count):
        query = random.normal(size=base.header.dimension).astype(np.float32)
        share = float(random.choice([0, 0, 0.3, 0.9, 0.97]))
        asked.append(
            Question(
                query=query / np.float32(np.linalg.norm(query)),
                limit=int(random.choice([1, 5, 10, rows // 2, rows, rows + 7])),
                ef=int(random.choice([0, 1, 10, 40, 100])),
                excluded=random.random(rows) < share if share else None,
                sliced=bool(random.random() < 0.4),
                narrow=bool(random.random() < 0.5),
                many=bool(random.random() < 0.2),
            )
        )
    return asked


def run(number: int, bases: list[Base], kernels: list[Kernel], folder: Path, counts: Counter[str]) -> None:
    random = np.random.default_rng(number)
    base = bases[-1] if number % LARGE == 0 else bases[int(random.choice(4, p=[0.4, 0.3, 0.1, 0.2]))]
    kernel = kernels[number % len(kernels)]
    names = list(DAMAGES)
    chosen = [names[number % len(names)], *random.choice(names, size=int(random.random() < 0.3)).tolist()]
    raw = bytearray(base.raw)
    for name in chosen:
        if not (name == "header" and len(raw) < layout.FIXED_BYTES + 400):
            DAMAGES[name](raw, base, random)
        counts[f"damage: {name}"] += 1
    relabelled = "vectors" in chosen or "tail" in chosen or "header" in chosen
    # Mostly forged: checksums would keep the kernel from ever seeing it.
    if random.random() < 0.9 and len(raw) >= layout.FIXED_BYTES + 400:
        forge(raw, base, rows=random.random() < 0.8)
    path = folder / "damaged"
    path.write_bytes(raw)
    allowed = stored_labels(base, raw) if relabelled else base.labels
    for question in questions(base, random, 2):
        state, labels, similarities = ask(base, path, kernel, question)
        counts[state] += 1
        assert all(label in allowed for label in labels), "a chunk id that is not in the file"
        if not relabelled:
            assert len(set(labels)) == len(labels), "a chunk id twice"
        assert len(labels) <= max(question.limit, 0), "more than were asked for"
        assert not any(np.isnan(similarities)), "no number"
        assert similarities == sorted(similarities, reverse=True), "not the best first"
        if number % COMPARED == 0:
            counts["compared with the reference"] += 1
            assert ask(base, path, None, question) == (state, labels, similarities), "the reference says otherwise"


def stored_labels(base: Base, raw: bytearray) -> set[int]:
    """The chunk ids that stand in the rows of a file whose vectors were damaged, wherever its header puts them."""
    allowed = set(base.labels)
    vectors = base.header.section(SectionKind.VECTORS)
    assert vectors is not None
    for row in range(vectors.row_count):
        at = row_offset(vectors, row) + vectors.row_bytes - layout.ROW_TAIL_BYTES
        if at + 8 <= len(raw):
            allowed.add(struct.unpack_from("<q", raw, at)[0])
    return allowed


def main() -> None:
    library, folder = Path(sys.argv[1]), Path(sys.argv[2])
    first, count = int(sys.argv[3]), int(sys.argv[4])
    best = load_kernel(file=library)
    assert best is not None, "the sanitized kernel was not loaded"
    found = [load_kernel(name, library) for name in supported_paths(best.library)]
    kernels = [kernel for kernel in found if kernel is not None]
    folder.mkdir(parents=True, exist_ok=True)
    bases = make_bases(folder)
    counts: Counter[str] = Counter()
    started, slowest = time.monotonic(), 0.0
    for number in range(first, first + count):
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        before = time.monotonic()
        (folder / "number").write_text(str(number))  # a sanitizer ends the process at once
        run(number, bases, kernels, folder, counts)
        slowest = max(slowest, time.monotonic() - before)
    faulthandler.cancel_dump_traceback_later()
    result = {
        "inputs": count,
        "paths": [kernel.path_name for kernel in kernels],
        "counts": dict(sorted(counts.items())),
        "seconds": round(time.monotonic() - started, 1),
        "slowest_input_ms": round(1e3 * slowest, 1),
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
