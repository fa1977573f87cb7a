"""Any bit of any file of a library may turn over: it is found, nothing wrong is shown, what is mended is as it was."""

from __future__ import annotations

import random
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.errors import EdgeragError, LibraryDamaged
from edgerag.index import at_rest
from edgerag.index.bits import flipped_bit
from edgerag.index.library import Library
from edgerag.index.repair import repair_database

FLIPS_AT_REST = 210
FLIPS_WITHOUT_SUMS = 60
WORDS = [f"subject{n}" for n in range(40)]


@pytest.fixture
def made(opened: Any, material: Any) -> Path:
    """A library with sealed, removed and unsealed vectors, at rest."""
    library = opened()
    for name in "abc":
        material.put(library, f"/docs/{name}", [f"{word} of {name}" for word in WORDS], tags=[name])
    material.embed_pending(library)
    library.seal()
    removed = material.put(library, "/docs/gone", ["this one goes"])
    material.embed_pending(library)
    library.seal()
    library.remove_documents([removed])
    material.put(library, "/docs/late", ["not sealed", "nor this"])
    material.embed_pending(library)
    library.close()
    return Path(library.folder)


Truth = dict[str, Any]


def shown(library: Library, *, most: int = 200) -> Truth:
    """What an answer could be made of, by path and place."""
    documents = {document.path: library.parsed_document(document.id) for document in library.documents()}
    hits = {}
    for chunk in library.chunks(list(range(1, most))):
        place = (chunk.path, chunk.chunk.ordinal)
        hits[place] = (chunk.title, chunk.chunk.text, chunk.chunk.start, chunk.chunk.line_first, chunk.chunk.page_first)
    return {"documents": documents, "passages": hits}


def found(library: Library, material: Any) -> list[list[tuple[int, float]]]:
    """By words, and by vectors."""
    words = [library.search_keywords(word, limit=5) for word in ("subject3", "subject39", "sealed")]
    vectors = [library.search_vectors(material.vector(text), limit=5, ef_search=50) for text in ("q", "r")]
    return [[(hit.chunk_id, round(hit.score, 6)) for hit in hits] for hits in [*words, *vectors]]


def files_of(folder: Path) -> dict[str, bytes]:
    names = ["library.sqlite", "library.sums", *(f"segments/{path.name}" for path in (folder / "segments").iterdir())]
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def put_back(folder: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(folder)
    (folder / "segments").mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def is_found(opened: Any) -> bool:
    try:
        reader = opened(mode="read")
    except EdgeragError:
        return True
    try:
        return "error" in {finding.severity for finding in reader.verify()}
    finally:
        reader.close()


def wrongly_shown(opened: Any, truth: Truth) -> list[Any]:
    """What is given out as if it were right, and is not."""
    wrong: list[Any] = []
    try:
        reader = opened(mode="read")
    except EdgeragError:
        return wrong
    try:
        for number in range(1, 200):
            try:
                for chunk in reader.chunks([number]):
                    place = (chunk.path, chunk.chunk.ordinal)
                    one = chunk.chunk
                    seen = (chunk.title, one.text, one.start, one.line_first, one.page_first)
                    if truth["passages"].get(place) != seen:
                        wrong.append((place, seen))
            except EdgeragError:
                continue
    finally:
        reader.close()
    return wrong


def mend(opened: Any, folder: Path) -> tuple[Any, int, bytes]:
    """(what was done to the database, passages whose vector is lost, the database before segments were looked at)"""
    done = repair_database(folder)
    database = (folder / "library.sqlite").read_bytes()
    with opened() as library:
        rescued = library.rescue()
        library.seal()
    return done, sum(segment.lost for segment in rescued), database


@pytest.mark.long
def test_every_flipped_bit_at_rest_is_found_and_mended(made: Path, opened: Any, material: Any) -> None:
    with opened(mode="read") as reader:
        truth, hits = shown(reader), found(reader, material)
    files = files_of(made)
    chosen = random.Random(7)
    names = sorted(files)
    for number in range(FLIPS_AT_REST):
        name = names[number % len(names)]
        bit = chosen.randrange(len(files[name]) * 8)
        put_back(made, files)
        flip(made / name, bit)
        where = (name, bit)
        assert is_found(opened), where
        assert wrongly_shown(opened, truth) == [], where
        done, lost, database = mend(opened, made)
        assert done.losses == (), where
        if name == "library.sqlite":
            assert done.bits == 1, where
            assert database == files[name], where
        with opened() as library:
            assert material.embed_pending(library) == lost, where
            library.seal()
            assert {finding.severity for finding in library.verify()} == {"ok"}, where
            assert shown(library) == truth, where
            # A vector that was in f16 and one that is made again differ by less than a thousandth.
            places = [[hit for hit, _ in each] for each in found(library, material)]
            assert [sorted(each) for each in places[:3]] == [sorted(hit for hit, _ in each) for each in hits[:3]], where


def test_without_checksums_of_the_file_nothing_wrong_is_shown(made: Path, opened: Any, material: Any) -> None:
    """As after a kill: rows have their own checksums, and SQLite and FTS5 their checks."""
    with opened(mode="read") as reader:
        truth = shown(reader)
    files = files_of(made)
    del files["library.sums"]
    chosen = random.Random(8)
    outcomes = {"unnoticed": 0, "mended": 0, "lost": 0, "hopeless": 0}
    for _ in range(FLIPS_WITHOUT_SUMS):
        bit = chosen.randrange(len(files["library.sqlite"]) * 8)
        put_back(made, files)
        flip(made / "library.sqlite", bit)
        assert wrongly_shown(opened, truth) == [], bit
        if not is_found(opened):
            outcomes["unnoticed"] += 1  # where nothing is kept, or what no answer is made of
            with opened(mode="read") as reader:
                assert shown(reader)["passages"] == truth["passages"], bit
            continue
        try:
            done, _, _ = mend(opened, made)
        except EdgeragError:
            outcomes["hopeless"] += 1  # its head, or the list of its tables: said, and left as it was
            continue
        with opened() as library:
            material.embed_pending(library)
            library.seal()
            assert {finding.severity for finding in library.verify()} == {"ok"}, bit
            now = shown(library)
        named = {loss.path for loss in done.losses}
        for place, seen in truth["passages"].items():
            if place[0] not in named and not any(path.startswith("document #") for path in named):
                assert now["passages"].get(place) == seen, (bit, place, done)
        for place, seen in now["passages"].items():
            assert truth["passages"][place] == seen, (bit, place)
        outcomes["lost" if named else "mended"] += 1
    assert outcomes["mended"], outcomes


@pytest.mark.long
def test_a_whole_lost_page_costs_its_own_rows_and_names_them(made: Path, opened: Any, material: Any) -> None:
    with opened(mode="read") as reader:
        truth = shown(reader)
    files = files_of(made)
    pages = len(files["library.sqlite"]) // 4096
    refused: dict[int, str] = {}
    for page in range(1, pages):
        put_back(made, files)
        with (made / "library.sqlite").open("r+b") as stream:
            stream.seek(page * 4096)
            stream.write(bytes(range(256)) * 16)
        assert is_found(opened), page
        assert wrongly_shown(opened, truth) == [], page
        try:
            done, _, _ = mend(opened, made)
        except EdgeragError as error:
            refused[page] = error.message
            continue
        with opened() as library:
            material.embed_pending(library)
            now = shown(library)
        named = {loss.path for loss in done.losses}
        gone = {place[0] for place in truth["passages"] if place not in now["passages"]}
        assert gone <= named or any(path.startswith("document #") for path in named), (page, gone, named)
        for place, seen in now["passages"].items():
            if place[0] not in named:
                assert truth["passages"][place] == seen, (page, place)
            else:  # its title went with its record, or it was cut anew: its lines are those that it has
                lines = {
                    line
                    for at, known in truth["passages"].items()
                    if at[0] == place[0]
                    for line in known[1].splitlines()
                }
                assert set(seen[1].splitlines()) <= {"", *lines}, (page, place)
    # The page that names the embedder, and those of the schema.
    assert all("which embedder" in said or "cannot be opened" in said for said in refused.values()), refused


def test_a_lost_page_of_passages_costs_no_others_and_their_documents_are_named(opened: Any, material: Any) -> None:
    library = opened()
    for name in "abcdefgh":
        material.put(library, f"/docs/{name}", [f"{word} of {name}, {'and more ' * 10}" for word in WORDS])
    material.embed_pending(library)
    library.close()
    folder = Path(library.folder)
    with opened(mode="read") as reader:
        truth = set(shown(reader, most=1 + 8 * len(WORDS))["passages"])
    files = files_of(folder)
    database = files["library.sqlite"]
    # Leaves of a table with a heading in every row.
    leaves = [
        at
        for at in range(0, len(database), 4096)
        if database[at] == 0x0D and database[at : at + 4096].count(b"Top") > 9
    ]
    assert len(leaves) > 3
    for at in leaves:
        put_back(folder, files)
        (folder / "library.sqlite").write_bytes(database[:at] + bytes(range(256)) * 16 + database[at + 4096 :])
        done, _, _ = mend(opened, folder)
        with opened(mode="read") as reader:
            now = set(shown(reader, most=1 + 8 * len(WORDS))["passages"])
        assert len(now) > len(truth) // 2, at
        assert {path for path, _ in truth - now} == {loss.path for loss in done.losses}, at


def test_nothing_is_written_onto_a_damaged_library(made: Path, opened: Any, material: Any) -> None:
    flip(made / "library.sqlite", (made / "library.sqlite").stat().st_size * 8 - 1)
    before = (made / "library.sqlite").read_bytes()
    with pytest.raises(EdgeragError, match="library repair"), opened() as library:
        material.put(library, "/docs/new", ["more"])
    assert (made / "library.sqlite").read_bytes() == before


@pytest.mark.parametrize("harm", ["missing", "cut", "no segment"])
def test_a_segment_that_is_no_more_is_mended_by_what_is_advised(
    made: Path, opened: Any, material: Any, harm: str
) -> None:
    segment = sorted((made / "segments").glob("*.hnsw"))[0]
    if harm == "missing":
        segment.unlink()
    else:
        segment.write_bytes(segment.read_bytes()[:3000] if harm == "cut" else b"notes" * 1000)
    with opened(mode="read") as reader:
        (finding,) = (finding for finding in reader.verify() if finding.severity == "error")
        assert segment.name in finding.message
        assert "library repair" in finding.remedy
    _, waiting, _ = mend(opened, made)
    assert waiting
    with opened() as library:
        material.embed_pending(library)
        assert len(library.search_vectors(material.vector("q"), limit=5, ef_search=50)) == 5
    assert not is_found(opened)


def test_what_cannot_be_mended_is_not_to_be_mended_again(made: Path) -> None:
    (made / "library.sqlite").write_bytes(b"notes" * 1000)
    (made / at_rest.NAME).unlink()
    with pytest.raises(LibraryDamaged) as refused:
        repair_database(made)
    assert "from a copy" in refused.value.remedy


def test_a_document_that_is_touched_is_named(made: Path, opened: Any) -> None:
    import sqlite3

    (made / at_rest.NAME).unlink()
    with sqlite3.connect(made / "library.sqlite") as db:
        db.execute("UPDATE chunks SET start = start + 1 WHERE id = 7")
        db.execute("UPDATE documents SET title = 'another' WHERE path = '/docs/late'")
    with opened(mode="read") as reader:
        told = " ".join(finding.message for finding in reader.verify() if finding.severity == "error")
        assert "/docs/a" in told
        assert "/docs/late" in told
        with pytest.raises(EdgeragError, match="library repair"):
            reader.chunks([7])


@given(data=st.binary(min_size=1, max_size=300), at=st.integers(0, 10**6))
def test_the_flipped_bit_is_found_from_the_checksum(data: bytes, at: int) -> None:
    bit = at % (len(data) * 8)
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    assert flipped_bit(zlib.crc32(data) ^ zlib.crc32(changed), len(data)) == bit


def test_no_bit_is_made_up() -> None:
    assert flipped_bit(0, 100) is None
    assert flipped_bit(zlib.crc32(b"abcd" * 9) ^ zlib.crc32(b"abcd" * 8 + b"zzzz"), 36) is None
