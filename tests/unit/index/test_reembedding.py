"""A library is changed over to another embedder: the old index serves until the new one takes its place at once."""

from __future__ import annotations

import dataclasses
import errno
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from edgerag.errors import EmbedderMismatch, LibraryDamaged, StorageFull, UsageError
from edgerag.index import reembedding
from edgerag.index.library import Library
from edgerag.index.reembedding import Reembedding
from edgerag.types import EmbedderIdentity

if TYPE_CHECKING:
    from edgerag.types import Vectors

# Of the same dimension, so that nothing but its name tells its vectors from the library's.
OTHER = EmbedderIdentity("other", "cd" * 32, 16, ("*",))
WIDER = EmbedderIdentity("wider", "ef" * 32, 24, ("*",))


def other_vector(text: str, identity: EmbedderIdentity) -> Vectors:
    seed = int.from_bytes(text.encode()[-64:], "little") ^ identity.dimension ^ 0x5EED
    row = np.random.default_rng(seed).normal(size=identity.dimension).astype(np.float32)
    return row / np.linalg.norm(row)


def embed(begun: Reembedding, *, most: int = 10**9, batch: int = 7) -> int:
    done = 0
    while done < most and (pending := begun.pending_chunks(min(batch, most - done))):
        begun.put_vectors(
            [chunk.id for chunk in pending],
            np.stack([other_vector(chunk.chunk.embedding_text, begun.identity) for chunk in pending]),
        )
        done += len(pending)
        if begun.seal_is_due():
            seal(begun, merge=False)
    return done


def seal(begun: Reembedding, *, merge: bool = True) -> None:
    report = begun.seal(merge=merge, progress=lambda _: None, cancelled=lambda: False)
    assert not report.damaged and not report.cancelled


def change_over(library: Library, identity: EmbedderIdentity) -> None:
    with library.reembedding(identity) as begun:
        embed(begun)
        seal(begun)
        library.switch(begun)


@pytest.fixture
def filled(opened: Any, material: Any) -> Library:
    """Sealed segments, unsealed vectors, removed rows, pending chunks, and one text that stands there twice."""
    library: Library = opened(seal_settings=dataclasses.replace(material.small, unsealed_rows=25))
    for number in range(3):
        material.put(library, f"/docs/{number}", [f"subject{i} of {number}" for i in range(30)])
        material.embed_pending(library)
        library.seal(merge=False)
    material.put(library, "/docs/unsealed", [f"loose {i}" for i in range(10)] + ["subject1 of 1"])
    material.embed_pending(library)
    library.remove_documents([library.documents()[0].id])
    material.put(library, "/docs/pending", ["not embedded yet"])
    return library


def nearest(library: Library, query: Vectors) -> list[tuple[int, float]]:
    return [(hit.chunk_id, round(hit.score, 6)) for hit in library.search_vectors(query, limit=500, ef_search=500)]


def texts(library: Library, query: Vectors) -> set[str]:
    ids = [chunk_id for chunk_id, _ in nearest(library, query)]
    return {chunk.chunk.text for chunk in library.chunks(ids)}


def all_texts(library: Library) -> set[str]:
    return {chunk.chunk.text for chunk in library.sample(1000)}


def whole(library: Library) -> bool:
    return {finding.severity for finding in library.verify()} == {"ok"}


def facts(library: Library) -> list[Any]:
    """All that has nothing to do with vectors."""
    words = [(hit.chunk_id, hit.score) for hit in library.search_keywords("subject7 loose", limit=50)]
    documents = [dataclasses.replace(document, pending_count=0) for document in library.documents()]
    return [documents, library.sample(1000), words]


@pytest.mark.parametrize("identity", [OTHER, WIDER], ids=lambda identity: identity.name)
def test_afterwards_everything_is_found_with_the_new_embedder(
    filled: Library, opened: Any, identity: EmbedderIdentity
) -> None:
    before = facts(filled)
    change_over(filled, identity)
    for library in (filled, opened("read")):
        assert library.identity == identity
        assert facts(library) == before
        query = other_vector("x", identity)
        assert texts(library, query) == all_texts(library)
        target = next(chunk for chunk in library.sample(1000) if chunk.chunk.text == "loose 4")
        best = nearest(library, other_vector(target.chunk.embedding_text, identity))[0]
        assert best == (target.id, pytest.approx(1.0, abs=1e-3))
        assert whole(library)
        assert library.pending_count() == 0
    listed = {segment.name for segment in filled.status().segments}
    assert {path.name for path in (filled.folder / "segments").iterdir()} == listed, "the old files are gone"
    assert not (filled.folder / "reembedding").exists()
    report = filled.compact()
    assert not report.damaged
    assert whole(filled)
    assert texts(filled, other_vector("x", identity)) == all_texts(filled)


def test_until_then_the_library_is_as_it_was(filled: Library, opened: Any, material: Any) -> None:
    reader = opened("read")
    query = material.vector("q")
    before = nearest(reader, query)
    with filled.reembedding(OTHER) as begun:
        embed(begun)
        seal(begun)
        assert nearest(reader, query) == before == nearest(opened("read"), query)
        assert reader.is_current()
        assert whole(reader)
        filled.switch(begun)
    assert not reader.is_current()
    with pytest.raises(EmbedderMismatch, match="'other', no longer with 'by-rule'"):
        reader.search_vectors(query, limit=3, ef_search=10)
    assert reader.search_keywords("subject7", limit=5), "words have nothing to do with it"


def test_a_search_at_that_moment_sees_the_old_or_the_new_and_never_a_mix(
    filled: Library, opened: Any, material: Any
) -> None:
    old = dict(nearest(filled, material.vector("q")))
    seen, wrong, stop = set(), [], threading.Event()
    query = other_vector("q", OTHER)

    def ask() -> None:
        while not stop.is_set():
            with opened("read") as reader:
                for _ in range(20):
                    is_new = reader.identity == OTHER
                    try:
                        found = dict(nearest(reader, query if is_new else material.vector("q")))
                    except EmbedderMismatch:
                        break
                    seen.add(reader.identity.name)
                    if not is_new and found != old:
                        wrong.append(found)
                    if is_new:
                        answers.append(found)

    answers: list[dict[int, float]] = []
    thread = threading.Thread(target=ask)
    thread.start()
    try:
        with filled.reembedding(OTHER) as begun:
            embed(begun)
            seal(begun)
            filled.switch(begun)
        expected = dict(nearest(filled, query))
        for _ in range(200):
            if "other" in seen:
                break
            stop.wait(0.05)
    finally:
        stop.set()
        thread.join()
    assert wrong == []
    assert seen == {"by-rule", "other"}
    assert all(answer == expected for answer in answers)


def test_it_goes_on_where_it_stopped_though_documents_came_and_went(opened: Any, material: Any) -> None:
    settings = dataclasses.replace(material.small, unsealed_rows=25)
    library = opened(seal_settings=settings)
    for number in range(3):
        material.put(library, f"/docs/{number}", [f"subject{i} of {number}" for i in range(30)])
    material.embed_pending(library)
    with library.reembedding(OTHER) as begun:
        assert begun.counts() == (0, 90)
        embed(begun, most=64)
    library.close()
    library = opened(seal_settings=settings)
    assert library.identity.name == "by-rule"
    assert library.reembedding_counts(OTHER) == (64, 90)
    assert library.reembedding_counts(WIDER) == (0, 90)
    library.remove_documents([library.documents()[0].id])
    material.put(library, "/docs/new", ["something new", "and more"])
    with library.reembedding(OTHER) as begun:
        assert begun.counts() == (34, 62)
        assert embed(begun) == 28
        seal(begun)
        library.switch(begun)
    assert whole(library)
    assert texts(library, other_vector("x", OTHER)) == all_texts(library)
    assert "something new" in all_texts(library)


def test_vectors_for_yet_another_embedder_are_thrown_away(filled: Library) -> None:
    with filled.reembedding(OTHER) as begun:
        embed(begun, most=40)
    with filled.reembedding(WIDER) as begun:
        assert begun.counts()[0] == 0
        embed(begun)
        seal(begun)
        filled.switch(begun)
    assert filled.identity == WIDER
    assert whole(filled)


def test_what_was_begun_can_be_thrown_away(filled: Library) -> None:
    assert filled.discard_reembedding() is False
    with filled.reembedding(OTHER) as begun:
        embed(begun, most=40)
    assert filled.discard_reembedding() is True
    assert not (filled.folder / "reembedding").exists()
    assert whole(filled)


def test_a_damaged_beginning_is_made_anew(filled: Library) -> None:
    with filled.reembedding(OTHER) as begun:
        embed(begun, most=40)
    database = filled.folder / "reembedding" / "library.sqlite"
    database.write_bytes(b"no database" * 1000)
    with filled.reembedding(OTHER) as begun:
        assert begun.counts()[0] == 0
        embed(begun)
        seal(begun)
        filled.switch(begun)
    assert whole(filled)


def test_half_of_the_vectors_cannot_take_the_place_of_all(filled: Library, material: Any) -> None:
    query = material.vector("q")
    before = nearest(filled, query)
    with filled.reembedding(OTHER) as begun:
        embed(begun, most=40)
        with pytest.raises(LibraryDamaged, match="no new vector"):
            filled.switch(begun)
        embed(begun)
        with pytest.raises(LibraryDamaged, match="no new vector"):  # not sealed
            filled.switch(begun)
    assert nearest(filled, query) == before
    assert whole(filled)


@pytest.mark.parametrize("vectors", [np.zeros((1, 16)), np.ones((1, 24)), np.full((1, 16), np.nan)])
def test_what_is_no_vector_of_the_new_embedder_is_refused(filled: Library, vectors: Any) -> None:
    with filled.reembedding(OTHER) as begun:
        (chunk,) = begun.pending_chunks(1)
        with pytest.raises(UsageError):
            begun.put_vectors([chunk.id], vectors.astype(np.float32))
        assert begun.counts()[0] == 0


def test_a_text_that_comes_again_need_not_be_embedded_again(filled: Library) -> None:
    twins = [chunk.id for chunk in filled.sample(1000) if chunk.chunk.text == "subject1 of 1"]
    assert len(twins) == 2
    with filled.reembedding(OTHER) as begun:
        vector = other_vector("any", OTHER)
        begun.put_vectors(twins[:1], vector[None])
        (known,) = begun.known_vectors(twins).values()
        assert np.allclose(known, vector, atol=1e-3)


# ------------------------------------------------------------ what goes wrong


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def test_where_a_file_system_has_no_links_files_are_copied(filled: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", no_links)
    change_over(filled, OTHER)
    assert whole(filled)
    assert texts(filled, other_vector("x", OTHER)) == all_texts(filled)


def breaks_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(reembedding.shutil, "copyfileobj", full)


def breaks_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembedding, "sync_folder", full)


def breaks_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembedding, "replace_identity", full)


@pytest.mark.parametrize("breaks", [breaks_copy, breaks_sync, breaks_commit])
def test_a_full_disk_leaves_the_old_index_and_the_work_that_was_done(
    filled: Library, material: Any, breaks: Callable[[pytest.MonkeyPatch], None]
) -> None:
    query = material.vector("q")
    before, files = nearest(filled, query), sorted((filled.folder / "segments").iterdir())
    with filled.reembedding(OTHER) as begun:
        embed(begun)
        seal(begun)
        with pytest.MonkeyPatch.context() as patch:
            breaks(patch)
            with pytest.raises(StorageFull):
                filled.switch(begun)
        assert filled.identity.name == "by-rule"
        assert nearest(filled, query) == before
        assert sorted((filled.folder / "segments").iterdir()) == files, "what was begun there is gone"
    with filled.reembedding(OTHER) as begun:
        assert embed(begun) == 0, "nothing is embedded twice"
        filled.switch(begun)
    assert whole(filled)
    assert filled.identity == OTHER


def test_killed_behind_the_change_the_rest_is_tidied_up(
    filled: Library, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled.reembedding(OTHER) as begun:
        embed(begun)
        seal(begun)
        begun.switch()
    filled.close()  # as far as a process came that was killed there
    assert (filled.folder / "reembedding").exists()
    old_files = set((filled.folder / "segments").iterdir())
    library = opened(identity=None)
    assert library.identity == OTHER
    assert whole(library)
    assert not (library.folder / "reembedding").exists()
    assert set((library.folder / "segments").iterdir()) < old_files


def test_a_segment_that_is_gone_is_named(filled: Library) -> None:
    with filled.reembedding(OTHER) as begun:
        embed(begun)
        seal(begun)
        victim = next((filled.folder / "reembedding" / "segments").iterdir())
        victim.unlink()
        with pytest.raises(LibraryDamaged, match=victim.name):
            filled.switch(begun)
    assert filled.identity.name == "by-rule"
    assert whole(filled)


def test_the_room_that_is_needed_grows_with_the_library(filled: Library, material: Any) -> None:
    small = filled.reembedding_bytes(OTHER)
    material.put(filled, "/docs/more", [f"more {i}" for i in range(100)])
    assert small < filled.reembedding_bytes(OTHER) < filled.reembedding_bytes(WIDER)


@pytest.mark.parametrize("rows", [40, 700])
def test_no_more_room_is_taken_than_was_said(opened: Any, material: Any, rows: int) -> None:
    library: Library = opened()
    material.put(library, "/docs/a", [f"subject {i}" for i in range(rows)])
    wide = EmbedderIdentity("wide", "ab" * 32, 384, ("*",))

    def taken() -> int:
        inodes = {file.stat().st_ino: file.stat().st_size for file in library.folder.rglob("*") if file.is_file()}
        return sum(inodes.values())

    before, said = taken(), library.reembedding_bytes(wide)
    highest = before
    with library.reembedding(wide) as begun:
        while pending := begun.pending_chunks(16):
            begun.put_vectors(
                [chunk.id for chunk in pending],
                np.stack([other_vector(chunk.chunk.embedding_text, wide) for chunk in pending]),
            )
            highest = max(highest, taken())

        def progress(_: object) -> None:
            nonlocal highest
            highest = max(highest, taken())

        begun.seal(merge=True, progress=progress, cancelled=lambda: False)
        progress(None)
        library.switch(begun)
    assert before < highest <= before + said


def test_an_empty_library_changes_over_too(opened: Any) -> None:
    library = opened()
    change_over(library, WIDER)
    assert library.identity == WIDER
    assert opened("read").identity == WIDER
    assert whole(library)


def test_the_mean_of_the_vectors_is_that_of_the_embedder_in_use(filled: Library, opened: Any, material: Any) -> None:
    def expected(of: Callable[[str], Vectors]) -> Vectors:
        chunks = filled.sample(128)
        found = [of(chunk.chunk.embedding_text) for chunk in chunks if chunk.chunk.text != "not embedded yet"]
        mean: Vectors = np.mean(found, axis=0)
        return mean

    mean, count = filled.mean_vector()
    assert count == filled.chunk_count() - 1, "what is pending has none"
    assert np.allclose(mean, expected(material.vector), atol=1e-3)
    filled.remove_documents([filled.documents()[0].id])
    assert np.allclose(filled.mean_vector()[0], expected(material.vector), atol=1e-3)
    change_over(filled, WIDER)
    for library in (filled, opened("read")):
        mean, count = library.mean_vector()
        assert (mean.shape, count) == ((24,), library.chunk_count())
