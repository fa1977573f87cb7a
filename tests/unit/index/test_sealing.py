"""Sealing, merging and compacting, as the user of a library sees them."""

from __future__ import annotations

import dataclasses
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.errors import LibraryDamaged, StorageFull
from edgerag.index.hnsw import format as layout
from edgerag.index.library import Library
from edgerag.types import EmbedderIdentity, LegHit, MergeProgress

IDENTITY = EmbedderIdentity("by-rule", "ab" * 32, 16, ("*",))  # as the libraries of conftest.py
PARAGRAPHS = [f"Paragraph number {i} tells of subject{i}." for i in range(30)]


def files(library: Library) -> list[Path]:
    return sorted((library.folder / "segments").iterdir())


def facts(path: Path) -> tuple[bytes, int, int]:
    return path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns


def fill(library: Library, material: Any, segments: int, *, size: int = 30) -> None:
    """As many segments, none of them merged, each of one document ``/docs/NUMBER``."""
    for number in range(segments):
        material.put(library, f"/docs/{number}", [f"subject{i} of {number}" for i in range(size)])
        material.embed_pending(library)
        library.seal(merge=False)


def answers(library: Library, material: Any, *, limit: int = 25) -> list[list[LegHit]]:
    return [library.search_vectors(material.vector(f"q{i}"), limit=limit, ef_search=400) for i in range(6)]


def whole(library: Library) -> bool:
    return {finding.severity for finding in library.verify()} == {"ok"}


def flip(path: Path, offset: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[offset] ^= 0x10
    path.write_bytes(raw)


def flip_a_vector(path: Path) -> None:
    section = layout.read_header(path, identity=IDENTITY).section(layout.SectionKind.VECTORS)
    assert section is not None
    flip(path, section.offset + 3)


def flip_the_header(path: Path) -> None:
    flip(path, 70)


def cut(path: Path) -> None:
    os.truncate(path, 9_000)


# ---------------------------------------------------------------- sealing


def test_adding_a_little_rewrites_no_existing_block(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/large", [f"subject{i}" for i in range(400)])
    material.embed_pending(library)
    library.seal()
    (old,) = files(library)
    before = facts(old)
    for number in range(8):
        material.put(library, f"/docs/{number}", [f"new {number} {i}" for i in range(5)])
        material.embed_pending(library)
        library.seal()
    assert facts(old) == before
    assert len(files(library)) <= 4, "the small ones were joined among themselves"
    assert len(library.search_vectors(material.vector("q"), limit=1000, ef_search=10)) == 440


def test_sealing_is_due_when_enough_has_come_together(opened: Any, material: Any) -> None:
    library = opened(seal_settings=dataclasses.replace(material.small, unsealed_rows=30))
    material.put(library, "/docs/a", PARAGRAPHS[:29])
    material.embed_pending(library)
    assert not library.seal_is_due()
    assert library.status().unsealed_count == 29
    material.put(library, "/docs/b", PARAGRAPHS[29:])
    assert not library.seal_is_due(), "it has no vector yet"
    material.embed_pending(library)
    assert library.seal_is_due()
    report = library.seal()
    assert (report.rows_written, report.segments_before, report.segments_after) == (30, 0, 1)
    assert not library.seal_is_due()
    assert library.status().unsealed_count == 0


def test_the_size_of_segments_follows_the_free_memory(
    opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgerag.index import merging, sealing

    monkeypatch.setattr(merging, "MIN_SEGMENT_ROWS", 20)
    monkeypatch.setattr(sealing, "available_bytes", lambda: 40 * 2 * (4 + 128 + 64 + 8 + 100 + 64))
    library = opened(seal_settings=dataclasses.replace(material.small, max_rows=None))
    fill(library, material, 2, size=60)
    assert [segment.vector_count for segment in library.status().segments] == [30, 30, 30, 30]


class Stop:
    """Says stop at the n-th time of asking, and at every later one."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_a_seal_can_be_stopped_while_it_writes(opened: Any, material: Any) -> None:
    library = opened()
    fill(library, material, 2)
    material.put(library, "/docs/new", PARAGRAPHS)
    material.embed_pending(library)
    segments, stages = [facts(path) for path in files(library)], [""]
    report = library.seal(progress=lambda event: stages.append(event.stage), cancelled=lambda: stages[-1] == "writing")
    assert (report.cancelled, stages[-1], report.rows_written) == (True, "writing", 0)
    assert [facts(path) for path in files(library)] == segments
    assert library.status().unsealed_count == 30


def test_a_cancelled_seal_changes_nothing_and_is_made_up_for(opened: Any, material: Any) -> None:
    library = opened()
    fill(library, material, 2)
    material.put(library, "/docs/new", PARAGRAPHS)
    material.embed_pending(library)
    before, segments = answers(library, material), [facts(path) for path in files(library)]
    cancels = 0
    while (report := library.seal(cancelled=Stop(cancels))).cancelled:
        cancels += 1
        assert [facts(path) for path in files(library)] == segments
        assert library.status().unsealed_count == 30
        assert answers(library, material) == before
        assert cancels < 100
    assert cancels >= 4, "before, while the vectors are gathered, before the graph, while the file is written"
    assert (report.rows_written, library.status().unsealed_count) == (90, 0)
    assert answers(library, material) == before
    assert whole(library)


def test_progress_never_goes_back(opened: Any, material: Any) -> None:
    library = opened(seal_settings=dataclasses.replace(material.small, max_rows=100))
    fill(library, material, 5, size=40)
    seen: list[MergeProgress] = []
    library.compact(progress=seen.append)
    assert {progress.stage for progress in seen} == {"reading", "linking", "writing"}
    assert {progress.all_rows for progress in seen} == {200}
    done = [progress.done_rows for progress in seen]
    assert done == sorted(done)
    assert done[-1] == 200


@pytest.mark.parametrize("harm", [flip_a_vector, flip_the_header, cut, os.unlink])
def test_a_damaged_segment_stops_no_seal_and_is_reported(
    opened: Any, material: Any, harm: Callable[[Path], None]
) -> None:
    library = opened()
    fill(library, material, 3)
    library.close()
    bad = files(library)[1]
    harm(bad)
    library = opened()
    material.put(library, "/docs/new", PARAGRAPHS)
    material.embed_pending(library)
    report = library.seal()
    assert report.rows_written == 90, "the new ones and both whole segments"
    assert len(report.damaged) == 1
    assert bad.name in report.damaged[0]
    assert bad.exists() == (harm is not os.unlink), "nothing is given up"
    again = library.seal()
    assert (again.rows_written, again.damaged) == (0, ())
    with pytest.raises(LibraryDamaged, match=bad.name):
        library.search_vectors(material.vector("q"), limit=60, ef_search=60)


# ---------------------------------------------------------------- compacting


def test_compacting_makes_one_segment_of_twenty_and_finds_the_same(opened: Any, material: Any) -> None:
    library = opened()
    fill(library, material, 20)
    library.remove_documents([3])
    material.put(library, "/docs/4", [f"subject{i} of 4" for i in range(0, 30, 2)])
    material.put(library, "/docs/new", PARAGRAPHS)
    material.embed_pending(library)
    before = answers(library, material)
    size = sum(path.stat().st_size for path in files(library))
    report = library.compact()
    assert (report.segments_before, report.segments_after, report.cancelled) == (20, 1, False)
    assert (report.rows_written, report.rows_dropped) == (18 * 30 + 15 + 30, 45)
    assert report.bytes_before == size
    assert report.bytes_after == sum(path.stat().st_size for path in files(library)) < size
    assert [(s.vector_count, s.dead_count) for s in library.status().segments] == [(585, 0)]
    assert answers(library, material) == before
    assert whole(library)
    kept = facts(files(library)[0])
    again = library.compact()
    assert (again.rows_written, again.segments_after) == (0, 1)
    assert facts(files(library)[0]) == kept


def test_compacting_holds_the_bound_of_a_segment(opened: Any, material: Any) -> None:
    library = opened(seal_settings=dataclasses.replace(material.small, max_rows=100))
    fill(library, material, 7)
    before = answers(library, material)
    report = library.compact()
    assert [segment.vector_count for segment in library.status().segments] == [70, 70, 70]
    assert report.segments_after == 3
    assert answers(library, material) == before
    assert whole(library)


def test_what_a_cancelled_compaction_finished_stays(opened: Any, material: Any) -> None:
    """Wherever it stops, the library is whole, finds the same, and the next one comes to the end."""
    library = opened(seal_settings=dataclasses.replace(material.small, max_rows=100))
    fill(library, material, 7)
    before = answers(library, material)
    counts = set()
    for at in range(100):
        report = library.compact(cancelled=Stop(at))
        assert answers(library, material) == before
        assert whole(library)
        counts.add(report.rows_written)
        if not report.cancelled:
            break
    assert not report.cancelled
    assert len(counts) > 1, "it was stopped between segments too"
    assert len(library.status().segments) <= 4
    library.compact()
    assert len(library.status().segments) == 3
    assert answers(library, material) == before


def test_a_full_disk_while_compacting_loses_nothing(
    opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgerag.index import construction

    library = opened()
    fill(library, material, 4)
    before, segments = answers(library, material), [facts(path) for path in files(library)]

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(construction, "write_segment", full)
        with pytest.raises(StorageFull, match="disk is full"):
            library.compact()
    assert [facts(path) for path in files(library)] == segments, "and nothing half made is left"
    assert answers(library, material) == before
    assert library.compact().segments_after == 1


def test_a_segment_too_large_to_be_built_now_is_left_and_named(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/large", [f"subject{i}" for i in range(200)])
    material.embed_pending(library)
    library.seal()
    library.close()
    library = opened(seal_settings=dataclasses.replace(material.small, max_rows=50))
    fill(library, material, 3, size=10)
    material.put(library, "/docs/large", [f"subject{i}" for i in range(190)])
    (large, *_) = files(library)
    before = facts(large)
    report = library.compact()
    assert facts(large) == before
    assert report.segments_after == 2
    assert len(report.notes) == 1
    assert large.name in report.notes[0]
    assert "10 removed" in report.notes[0]


def test_asking_goes_on_while_segments_are_joined(opened: Any, material: Any) -> None:
    writer = opened(seal_settings=dataclasses.replace(material.small, max_rows=60))
    fill(writer, material, 13)
    reader = opened("read")
    before = answers(reader, material)
    given: list[object] = []
    finished = threading.Event()

    def ask() -> None:
        while not finished.is_set():
            try:
                given.append(answers(reader, material))
            except Exception as error:  # noqa: BLE001 - the assertion below shows it
                given.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        assert writer.compact().segments_after == 7
    finally:
        finished.set()
        thread.join(60)
    assert given and all(each == before for each in given)
    assert len(reader.status().segments) == 7


def test_vectors_go_through_unchanged(opened: Any, material: Any) -> None:
    library = opened()
    fill(library, material, 5)
    library.compact()
    ids = [chunk.id for chunk in library.chunks(range(1, 151))]
    for chunk in library.chunks(ids[::7]):
        (hit,) = library.search_vectors(material.vector(chunk.chunk.embedding_text), limit=1, ef_search=50)
        assert hit.chunk_id == chunk.id
        assert np.isclose(hit.score, 1.0, atol=1e-3)
