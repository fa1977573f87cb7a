from __future__ import annotations

import dataclasses
import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.errors import EmbedderMismatch, LibraryDamaged, LibraryMissing, UsageError
from edgerag.index.documents import Touched
from edgerag.index.hnsw.residency import Residency
from edgerag.index.unpacked import UnpackedParts
from edgerag.types import EmbedderIdentity, ParsedDocument

PARAGRAPHS = [f"Paragraph number {i} tells of subject{i}." for i in range(30)]


def test_reading_a_library_that_is_not_there_says_so(opened: Any, tmp_path: Path) -> None:
    with pytest.raises(LibraryMissing, match="no library in"):
        opened("read")
    with pytest.raises(LibraryMissing):
        opened("write", identity=None)
    assert not (tmp_path / "lib").exists()


def test_another_embedder_is_refused_by_both_names(opened: Any, material: Any) -> None:
    opened().close()
    other = EmbedderIdentity("other", "cd" * 32, 16, ("en",))
    for mode in ("read", "write"):
        with pytest.raises(EmbedderMismatch, match=r"'by-rule'.*'other'"):
            opened(mode, identity=other)
    wider = dataclasses.replace(material.identity, dimension=32)
    with pytest.raises(EmbedderMismatch, match="32 dimensions"):
        opened("read", identity=wider)
    renamed = dataclasses.replace(material.identity, name="by-rule-q8")
    assert opened("read", identity=renamed).identity == material.identity


def test_a_document_comes_back_as_it_was_put(opened: Any, material: Any) -> None:
    library = opened()
    paragraphs = ["Ünïcödé 𝔘 text with a lone \ud800 surrogate and NUL \x00", "x" * 200_000, "the end"]
    parsed, chunks = material.document(paragraphs, title="Tïtle")
    path = "/docs/bad-\udcff-name.txt"
    document_id = library.put_document(
        parsed, chunks, path=path, root="/docs", content_sha256="abc", size_bytes=5, mtime_ns=7
    )
    assert library.parsed_document(document_id) == parsed
    document = library.document(document_id)
    assert library.documents() == [document] == [library.document_by_path(path)]
    assert (document.path, document.root, document.content_sha256) == (path, "/docs", "abc")
    assert (document.size_bytes, document.mtime_ns, document.page_count) == (5, 7, 1)
    assert (document.chunk_count, document.pending_count, document.warnings) == (3, 3, ("one warning",))
    stored = library.pending_chunks(10)
    assert [each.chunk for each in stored] == chunks
    assert {(each.document_id, each.path, each.title) for each in stored} == {(document_id, path, "Tïtle")}
    assert library.chunks_of(document_id) == stored
    assert library.chunks_of(document_id + 1) == []


def test_the_text_around_a_chunk_is_that_of_its_document(opened: Any, material: Any) -> None:
    library = opened()
    parsed, _ = material.document(PARAGRAPHS)
    material.put(library, "/a", PARAGRAPHS)
    for stored in library.pending_chunks(30):
        before, behind = library.text_around(stored.id, 50)
        chunk = stored.chunk
        assert before == parsed.text[max(0, chunk.start - 50) : chunk.start]
        assert behind == parsed.text[chunk.end : chunk.end + 50]
    assert library.text_around(999, 50) == ("", "")


def test_what_was_unpacked_is_forgotten_when_anything_changes(opened: Any, material: Any) -> None:
    writer = opened()
    document_id = material.put(writer, "/a", ["The pump is red.", "The lid is blue."])
    reader = opened("read")
    ids = [each.id for each in writer.pending_chunks(9)]
    for library in (writer, reader, reader):
        assert [each.chunk.text for each in library.chunks(ids)] == ["The pump is red.", "The lid is blue."]
    assert material.put(writer, "/a", ["It is new.", "The pump is red.", "The lid is blue."], content_sha256="1") == (
        document_id
    )
    for library in (writer, reader):
        assert [each.chunk.text for each in library.chunks(ids)] == ["The pump is red.", "The lid is blue."]
    writer.remove_documents([document_id])
    assert writer.chunks(ids) == reader.chunks(ids) == []


def test_no_more_is_held_than_there_is_room_for() -> None:
    parts = UnpackedParts(most_bytes=1_000)
    with closing(sqlite3.connect(":memory:")) as db:
        parts.look_at(db)
        for number in range(20):
            parts.keep((1, number), "x" * 100)
        held = [number for number in range(20) if parts.find((1, number)) is not None]
        assert held and held[-1] == 19 and len(held) < 10
        parts.keep((2, 0), "y" * 5_000)
        assert all(parts.find((1, number)) is None for number in range(20))


def test_an_empty_document_is_kept(opened: Any) -> None:
    library = opened()
    parsed = ParsedDocument(text="", title="", media_type="text/plain")
    document_id = library.put_document(parsed, [], path="/e", root="/", content_sha256="", size_bytes=0, mtime_ns=0)
    assert library.parsed_document(document_id) == parsed


def test_a_chunk_that_is_not_its_text_is_refused_and_nothing_changes(opened: Any, material: Any) -> None:
    library = opened()
    parsed, chunks = material.document(PARAGRAPHS)
    wrong = [*chunks[:-1], dataclasses.replace(chunks[-1], start=0)]
    with pytest.raises(UsageError, match="Chunk 29"):
        library.put_document(parsed, wrong, path="/a", root="/", content_sha256="", size_bytes=0, mtime_ns=0)
    assert library.documents() == []
    assert library.chunk_count() == 0


def test_unchanged_chunks_keep_id_and_vector_when_a_document_is_replaced(opened: Any, material: Any) -> None:
    library = opened()
    document_id = material.put(library, "/docs/a", PARAGRAPHS)
    material.put(library, "/docs/b", ["another document"])
    material.embed_pending(library)
    library.seal()
    before = {each.chunk.text: each.id for each in library.chunks(range(1, 31))}
    # One changed, one new in front, one said twice, the rest moved.
    changed = ["brand new", *PARAGRAPHS[:10], "paragraph ten is different", *PARAGRAPHS[11:], PARAGRAPHS[0]]
    assert material.put(library, "/docs/a", changed, content_sha256="1") == document_id
    assert library.pending_count() == 3
    assert library.document(document_id).pending_count == 3
    pending = library.pending_chunks(10)
    assert [each.chunk.text for each in pending] == ["brand new", "paragraph ten is different", PARAGRAPHS[0]]
    assert all(each.id not in before.values() for each in pending), "ids are never used again"
    hits = library.search_vectors(material.vector(f"A title\n{PARAGRAPHS[20]}"), limit=1, ef_search=80)
    assert [hit.chunk_id for hit in hits] == [before[PARAGRAPHS[20]]]
    assert library.chunks([hits[0].chunk_id])[0].chunk.ordinal == 21
    gone = library.search_vectors(material.vector(f"A title\n{PARAGRAPHS[10]}"), limit=40, ef_search=80)
    assert before[PARAGRAPHS[10]] not in {hit.chunk_id for hit in gone}
    assert library.search_keywords("subject10", limit=5) == []
    assert len(library.search_keywords("subject20", limit=5)) == 1
    assert [finding.severity for finding in library.verify()] == ["ok", "ok"]


def test_removed_documents_are_found_by_nothing(opened: Any, material: Any) -> None:
    library = opened()
    ids = [material.put(library, f"/docs/{i}", [f"{text} {i}" for text in PARAGRAPHS]) for i in range(3)]
    material.embed_pending(library)
    library.seal()
    assert library.remove_documents([ids[0], ids[2], 99]) == 2
    assert [document.id for document in library.documents()] == [ids[1]]
    hits = library.search_vectors(material.vector("any"), limit=30, ef_search=10)
    assert {hit.chunk_id for hit in hits} == set(range(31, 61)), "all that live, though most of the graph is dead"
    assert {hit.chunk_id for hit in library.search_keywords("subject7 paragraph", limit=90)} == set(range(31, 61))
    with pytest.raises(UsageError, match=f"#{ids[0]}"):
        library.document(ids[0])
    with pytest.raises(UsageError):
        library.parsed_document(ids[0])
    assert library.chunks([1, 31]) == library.chunks([31])
    library.seal()  # mostly dead: rewritten without a fresh vector
    assert [(s.vector_count, s.dead_count) for s in library.status().segments] == [(30, 0)]
    assert library.search_vectors(material.vector("any"), limit=30, ef_search=10) == hits
    library.remove_documents([ids[1]])
    library.seal()
    assert library.status().segments == ()
    assert library.search_vectors(material.vector("any"), limit=30, ef_search=10) == []
    assert {finding.severity for finding in library.verify()} == {"ok"}


def test_sealing_does_not_change_what_is_found(opened: Any, material: Any) -> None:
    library = opened()
    queries = [material.vector(f"q{i}") for i in range(5)]
    for round_number in range(6):
        material.put(library, f"/docs/{round_number}", [f"{text} {round_number}" for text in PARAGRAPHS])
        material.embed_pending(library)
        before = [library.search_vectors(query, limit=12, ef_search=200) for query in queries]
        library.seal()
        after = [library.search_vectors(query, limit=12, ef_search=200) for query in queries]
        assert after == before
    assert sum(segment.vector_count for segment in library.status().segments) == 180
    assert len(library.status().segments) <= 3
    files = sorted((library.folder / "segments").iterdir())
    assert [file.name for file in files] == [segment.name for segment in library.status().segments]


def test_a_seal_with_nothing_to_do_touches_nothing(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", PARAGRAPHS)
    material.embed_pending(library)
    library.seal()
    names = [(file.name, file.stat().st_mtime_ns) for file in (library.folder / "segments").iterdir()]
    library.seal()
    assert [(file.name, file.stat().st_mtime_ns) for file in (library.folder / "segments").iterdir()] == names


def test_large_seals_are_cut_into_segments_of_bounded_size(opened: Any, material: Any) -> None:
    library = opened(seal_settings=dataclasses.replace(material.small, max_rows=25))
    material.put(library, "/docs/a", PARAGRAPHS)
    material.embed_pending(library)
    expected = library.search_vectors(material.vector("q"), limit=30, ef_search=80)
    library.seal()
    assert [segment.vector_count for segment in library.status().segments] == [15, 15]
    assert library.search_vectors(material.vector("q"), limit=30, ef_search=80) == expected


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.full((1, 16), np.nan, dtype=np.float32), "length nan"),
        (np.zeros((1, 16), dtype=np.float32), "length 0"),
        (np.full((1, 16), 1.0, dtype=np.float32), "length 4"),
        (np.full((1, 16), np.inf, dtype=np.float32), "length inf"),
        (np.full((1, 8), 8**-0.5, dtype=np.float32), r"\(1, 8\)"),
        (np.full((2, 16), 0.25, dtype=np.float32), r"\(2, 16\)"),
    ],
)
def test_vectors_that_are_none_are_refused(opened: Any, material: Any, vectors: Any, message: str) -> None:
    library = opened()
    material.put(library, "/docs/a", ["one"])
    with pytest.raises(UsageError, match=message):
        library.put_vectors([1], vectors)
    assert library.pending_count() == 1
    with pytest.raises(UsageError):
        library.search_vectors(vectors[0] if len(vectors) == 1 else vectors, limit=3, ef_search=10)


def test_a_vector_for_a_chunk_that_has_one_is_refused_with_its_whole_batch(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", ["one", "two"])
    library.put_vectors([1], material.vectors(1))
    with pytest.raises(UsageError, match="Chunk 1"):
        library.put_vectors([2, 1], material.vectors(2))
    assert [chunk.id for chunk in library.pending_chunks(5)] == [2]


def test_odd_requests_get_right_answers(opened: Any, material: Any) -> None:
    library = opened()
    query = material.vector("q")
    assert library.search_vectors(query, limit=5, ef_search=10) == []
    assert library.search_keywords("anything", limit=5) == []
    assert not library.word_evidence("anything", []).passages
    material.put(library, "/docs/a", PARAGRAPHS)
    material.embed_pending(library)
    library.seal()
    assert library.search_vectors(query, limit=0, ef_search=10) == []
    assert len(library.search_vectors(query, limit=1000, ef_search=1)) == 30
    assert len(library.search_vectors(query, limit=10, ef_search=1)) == 10
    assert library.search_keywords("paragraph", limit=0) == []
    assert library.chunks([]) == []
    assert library.pending_chunks(-1) == []


def test_equal_vectors_are_given_by_id(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", [f"same {i}" for i in range(37)])
    library.put_vectors(range(1, 38), np.repeat(material.vectors(1), 37, axis=0))
    before = library.search_vectors(material.vector("q"), limit=9, ef_search=80)
    library.seal()
    assert [hit.chunk_id for hit in before] == list(range(1, 10))
    assert library.search_vectors(material.vector("q"), limit=9, ef_search=80)[0].score == before[0].score
    assert len({hit.score for hit in before}) == 1


def test_a_reader_follows_the_writer(opened: Any, material: Any) -> None:
    writer = opened()
    reader = opened("read")
    query = material.vector(f"A title\n{PARAGRAPHS[3]}")
    assert reader.search_vectors(query, limit=1, ef_search=10) == []
    material.put(writer, "/docs/a", PARAGRAPHS)
    assert reader.chunk_count() == 30
    assert reader.search_keywords("subject3", limit=1)[0].chunk_id == 4
    material.embed_pending(writer)
    assert reader.search_vectors(query, limit=1, ef_search=10)[0].chunk_id == 4
    writer.seal()
    assert reader.search_vectors(query, limit=1, ef_search=10)[0].chunk_id == 4
    assert len(reader.status().segments) == 1
    material.put(writer, "/docs/b", [text + " again" for text in PARAGRAPHS])
    material.embed_pending(writer)
    writer.seal()  # merges the segment that the reader has mapped
    assert reader.search_vectors(query, limit=1, ef_search=10)[0].chunk_id == 4
    assert [segment.vector_count for segment in reader.status().segments] == [60]
    writer.remove_documents([1])
    assert reader.search_vectors(query, limit=1, ef_search=10)[0].chunk_id > 30
    writer.close()
    assert reader.chunk_count() == 30


def test_a_segment_merged_away_between_reading_the_catalogue_and_opening_it(
    opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened()
    material.put(writer, "/docs/a", PARAGRAPHS)
    material.embed_pending(writer)
    writer.seal()
    reader = opened("read")
    from edgerag.index import catalogue

    real = catalogue.segments
    merged = []

    def segments_then_merge(db: Any) -> Any:
        entries = real(db)
        if not merged:
            merged.append(True)
            material.put(writer, "/docs/b", [text + " again" for text in PARAGRAPHS])
            material.embed_pending(writer)
            writer.seal()
        return entries

    monkeypatch.setattr(catalogue, "segments", segments_then_merge)
    assert len(reader.search_vectors(material.vector("q"), limit=60, ef_search=100)) == 60


def test_a_missing_segment_file_is_named(opened: Any, material: Any) -> None:
    writer = opened()
    material.put(writer, "/docs/a", PARAGRAPHS)
    material.embed_pending(writer)
    writer.seal()
    (file,) = (writer.folder / "segments").iterdir()
    kept = file.read_bytes()
    assert writer.search_vectors(material.vector("q"), limit=3, ef_search=10)
    file.unlink()
    # The writer has it mapped and still answers.
    assert len(writer.search_vectors(material.vector("q"), limit=3, ef_search=10)) == 3
    reader = opened("read")
    with pytest.raises(LibraryDamaged, match=f"{file.name} is missing"):
        reader.search_vectors(material.vector("q"), limit=3, ef_search=10)
    assert [f.severity for f in reader.verify()] == ["ok", "error"]
    file.write_bytes(kept)
    assert len(reader.search_vectors(material.vector("q"), limit=3, ef_search=10)) == 3


def test_damage_is_found_by_verify_and_named(opened: Any, material: Any) -> None:
    writer = opened()
    material.put(writer, "/docs/a", PARAGRAPHS)
    material.embed_pending(writer)
    writer.seal()
    (file,) = (writer.folder / "segments").iterdir()
    raw = bytearray(file.read_bytes())
    raw[-100] ^= 0x10
    file.write_bytes(raw)
    finding = writer.verify()[1]
    assert finding.severity == "error"
    assert file.name in finding.message
    assert "(vectors)" in finding.message
    assert finding.remedy


def test_failures_are_remembered_until_the_file_is_read(opened: Any, material: Any) -> None:
    library = opened()
    library.record_failure("/docs/a", reason="no text", size_bytes=1, mtime_ns=2)
    library.record_failure("/docs/a", reason="no text at all", size_bytes=1, mtime_ns=3)
    library.record_failure("/docs/\udcfe", reason="password", size_bytes=1, mtime_ns=2)
    assert [(f.path, f.reason, f.mtime_ns) for f in library.failures()] == [
        ("/docs/a", "no text at all", 3),
        ("/docs/\udcfe", "password", 2),
    ]
    material.put(library, "/docs/a", ["text"])
    library.clear_failure("/docs/\udcfe")
    assert library.failures() == []


def test_touching_a_document_changes_its_stat_only(opened: Any, material: Any) -> None:
    library = opened()
    document_id = material.put(library, "/docs/a", ["text"])
    before = library.document(document_id)
    library.touch_documents([Touched(document_id, 99, 100)])
    assert library.document(document_id) == dataclasses.replace(before, size_bytes=99, mtime_ns=100)


def test_status_counts(opened: Any, material: Any) -> None:
    library = opened(residency=Residency(12_345_678))
    material.put(library, "/docs/a", PARAGRAPHS)
    material.embed_pending(library)
    library.seal()
    material.put(library, "/docs/b", ["one more"])
    status = library.status()
    assert (status.name, status.embedder, status.dimension) == ("lib", "by-rule", 16)
    assert (status.document_count, status.chunk_count, status.pending_count) == (2, 31, 1)
    assert status.budget_bytes == 12_345_678
    assert status.segments[0].block_count > 1
    assert status.size_bytes > status.segments[0].size_bytes


def test_the_library_can_be_used_from_another_thread(opened: Any, material: Any) -> None:
    import threading

    library = opened()
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(material.put(library, "/docs/a", ["text"])))
    thread.start()
    thread.join()
    assert [document.id for document in library.documents()] == seen


def test_a_segment_is_on_the_disk_before_the_catalogue_knows_it(
    opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 2, the order: file synced, renamed, folder synced, committed, old file deleted."""
    library = opened()
    material.put(library, "/docs/a", PARAGRAPHS)
    material.embed_pending(library)
    library.seal()
    material.put(library, "/docs/b", [text + " again" for text in PARAGRAPHS])
    material.embed_pending(library)
    steps: list[str] = []
    real_fsync, real_replace, real_unlink = os.fsync, os.replace, os.unlink
    from edgerag.index import catalogue

    real_add = catalogue.add_segment

    def fsync(descriptor: int) -> None:
        steps.append("sync " + Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real_fsync(descriptor)

    def replace(source: Any, target: Any, **options: Any) -> None:
        steps.append(f"rename {Path(source).name}")
        real_replace(source, target, **options)

    def unlink(path: Any, **options: Any) -> None:
        steps.append(f"delete {Path(path).name}")
        real_unlink(path, **options)

    def add_segment(db: Any, **values: Any) -> int:
        steps.append(f"commit {values['file']}")
        return real_add(db, **values)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "unlink", unlink)
    monkeypatch.setattr(catalogue, "add_segment", add_segment)
    library.seal()
    assert [step for step in steps if "graph" not in step and "vectors" not in step] == [
        "sync 00000002.hnsw.tmp",
        "rename 00000002.hnsw.tmp",
        "sync segments",
        "commit 00000002.hnsw",
        "delete 00000001.hnsw",
    ]


def test_what_a_crash_left_behind_is_removed_by_the_next_writer_only(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", PARAGRAPHS)
    material.embed_pending(library)
    library.seal()
    library.close()
    for name in ("00000002.hnsw", "00000002.hnsw.tmp", "00000003.hnsw.graph.tmp"):
        (library.folder / "segments" / name).write_bytes(b"half")
    opened("read").close()
    assert len(list((library.folder / "segments").iterdir())) == 4
    opened("write").close()
    assert [file.name for file in (library.folder / "segments").iterdir()] == ["00000001.hnsw"]


def test_a_segment_cut_short_while_it_is_open_is_named(opened: Any, material: Any) -> None:
    """Reading beyond the end of a mapped file would kill the process."""
    library = opened()
    material.put(library, "/docs/a", PARAGRAPHS)
    material.embed_pending(library)
    library.seal()
    query = material.vector("q")
    assert len(library.search_vectors(query, limit=3, ef_search=10)) == 3
    (file,) = (library.folder / "segments").iterdir()
    os.truncate(file, 4096)
    with pytest.raises(LibraryDamaged, match=rf"{file.name} was cut short .*4096 of"):
        library.search_vectors(query, limit=3, ef_search=10)
    assert len(library.search_keywords("paragraph", limit=3)) == 3
    assert [finding.severity for finding in library.verify()] == ["ok", "error"]


def test_a_segment_deleted_or_replaced_while_it_is_open_is_searched_as_it_was(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", PARAGRAPHS)
    material.embed_pending(library)
    library.seal()
    query = material.vector("q")
    before = library.search_vectors(query, limit=3, ef_search=10)
    (file,) = (library.folder / "segments").iterdir()
    other = file.with_name("other")
    other.write_bytes(b"shorter than a segment")
    other.replace(file)
    assert library.search_vectors(query, limit=3, ef_search=10) == before
    file.unlink()
    assert library.search_vectors(query, limit=3, ef_search=10) == before
    assert [finding.severity for finding in library.verify()] == ["ok", "error"]


def test_a_block_that_the_disk_cannot_give_is_named(
    opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened() as library:
        material.put(library, "/docs/a", PARAGRAPHS)
        material.embed_pending(library)
        library.seal()
    reader = opened("read")

    def fails(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "preadv", fails)
    with pytest.raises(LibraryDamaged, match=r"block 0 .*Input/output error"):
        reader.search_vectors(material.vector("q"), limit=3, ef_search=10)
    (_, finding) = reader.verify()
    assert "block 0" in finding.message
    assert "Input/output error" in finding.message


def test_a_file_that_cannot_be_opened_now_is_not_called_lost(
    opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many open files, or no right to read it: whoever deletes the library then deletes a whole one."""
    with opened() as library:
        material.put(library, "/docs/a", PARAGRAPHS)
        material.embed_pending(library)
        library.seal()
    reader = opened("read")
    real = os.open

    def fails(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path).endswith(".hnsw"):
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", fails)
    with pytest.raises(LibraryDamaged, match="Too many open files") as caught:
        reader.search_vectors(material.vector("q"), limit=3, ef_search=10)
    assert caught.value.remedy.startswith("Check the rights")
    assert reader.verify()[1].remedy.startswith("Check the rights")


@pytest.mark.parametrize("limit", [-1, 0, 1, 29, 30, 31, 10_000])
@pytest.mark.parametrize("ef_search", [0, 1, 500])
def test_any_number_of_hits_may_be_asked_for(opened: Any, material: Any, limit: int, ef_search: int) -> None:
    library = opened()
    material.put(library, "/docs/a", PARAGRAPHS[:24])
    material.embed_pending(library)
    library.seal()
    material.put(library, "/docs/b", PARAGRAPHS[24:])
    material.embed_pending(library)
    hits = library.search_vectors(material.vector("q"), limit=limit, ef_search=ef_search)
    assert len({hit.chunk_id for hit in hits}) == len(hits) == min(max(limit, 0), 30)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert {hit.chunk_id for hit in hits} <= set(range(1, 31))


def test_a_library_may_lie_in_a_folder_whose_name_is_no_text(opened: Any, material: Any, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"b\xff?#%") / "lib"
    parsed, chunks = material.document(PARAGRAPHS[:2])
    facts = {"path": "/docs/a.txt", "root": "/docs", "content_sha256": "0", "size_bytes": 1, "mtime_ns": 1}
    library = opened(folder=folder)
    library.put_document(parsed, chunks, **facts)
    library.close()
    assert [document.path for document in opened("read", folder=folder).documents()] == ["/docs/a.txt"]
