"""After the repair of any damage each passage is there as it was, or its document is named and is read again."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from unit.index import golden_libraries as golden

from edgerag.errors import EdgeragError, LibraryDamaged
from edgerag.index import at_rest
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library
from edgerag.index.repair import repair_database
from edgerag.types import EmbedderIdentity

DOCUMENTS = 30
PAGE = 4096
# Where nothing else tells what stood there: the library is refused, and left as it was.
_REFUSALS = ("what it holds",)

Passages = dict[tuple[str, int], str]


@dataclass(frozen=True)
class Base:
    """A whole library without checksums of its file, as after a kill, and what it holds."""

    folder: Path
    database: bytes
    passages: Passages
    ids: dict[str, int]
    tags: set[Any]
    rows: dict[str, int]  # of tables that no row of another one tells of

    def text(self, path: str) -> str:
        """Of a whole document."""
        return "\n\n".join(text for (each, _), text in sorted(self.passages.items()) if each == path)


@pytest.fixture
def base(opened: Any, material: Any) -> Base:
    library = opened()
    for number in range(DOCUMENTS):
        words = [f"passage {each} of {number}, {'and so on ' * (number % 5)}" for each in range(1 + number % 7)]
        material.put(library, f"/docs/{number:03}-{'name ' * 6}", words, tags=["all", f"tag{number}"])
    material.embed_pending(library)
    library.seal()
    material.put(library, "/docs/late", ["not sealed", "nor this"])
    material.embed_pending(library)
    library.close()
    folder = Path(library.folder)
    db = sqlite3.connect(folder / "library.sqlite")
    with db:
        for number in range(40):
            path = f"/docs/other-{number:03}-{'x' * 80}"
            db.execute("INSERT INTO failures (path, reason, size_bytes, mtime_ns) VALUES (?, 'why not', 1, 2)", (path,))
            db.execute("INSERT INTO left_out (path, reason) VALUES (?, 'why not')", (path,))
    db.close()
    (folder / at_rest.NAME).unlink()
    tags, rows = _others(folder)
    return Base(folder, (folder / "library.sqlite").read_bytes(), *_shown(folder), tags, rows)


def _shown(folder: Path) -> tuple[Passages, dict[str, int]]:
    db = sqlite3.connect(folder / "library.sqlite")
    numbers = [number for (number,) in db.execute("SELECT id FROM chunks ORDER BY id")]
    db.close()
    library = open_library(folder, mode="read", residency=Residency(10**9))
    try:
        chunks = library.chunks(numbers)
        return {(each.path, each.chunk.ordinal): each.chunk.text for each in chunks}, {
            document.path: document.id for document in library.documents()
        }
    finally:
        library.close()


def _others(folder: Path) -> tuple[set[Any], dict[str, int]]:
    db = sqlite3.connect(folder / "library.sqlite")
    tags = set(db.execute("SELECT d.path, t.tag FROM document_tags t JOIN documents d ON d.id = t.document_id"))
    rows = {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("failures", "left_out")}
    db.close()
    return tags, rows


def _spoil(base: Base, change: Callable[[bytearray], None]) -> None:
    for name in (".repair", "library.sums"):
        path = base.folder / name
        assert not path.is_dir()
        path.unlink(missing_ok=True)
    data = bytearray(base.database)
    change(data)
    (base.folder / "library.sqlite").write_bytes(data)


def _stands_in(text: str, shown: Sequence[str]) -> bool:
    """What is cut anew has no white space at its ends."""
    return any(text.strip() in each for each in shown)


def _check(base: Base, where: object) -> str:
    """What came of it."""
    spoiled = (base.folder / "library.sqlite").read_bytes()
    try:
        done = repair_database(base.folder)
    except EdgeragError as error:
        assert any(words in error.message for words in _REFUSALS), (where, error.message)
        assert ".repair" not in error.message and not (base.folder / ".repair").exists(), where
        assert (base.folder / "library.sqlite").read_bytes() == spoiled, where
        return "refused"
    assert not (base.folder / ".repair").exists(), where
    passages, ids = _shown(base.folder)
    named = {loss.path for loss in done.losses}
    assert {path: text for (path, _), text in passages.items() if text not in base.text(path)} == {}, where
    shown = {path: [text for (each, _), text in passages.items() if each == path] for path, _ in passages}
    changed = {path for (path, ordinal), text in base.passages.items() if passages.get((path, ordinal)) != text}
    # What was cut anew is there as well.
    gone = {path for (path, _), text in base.passages.items() if not _stands_in(text, shown.get(path, ()))}
    # Without its record and its line in the index, a document has a number only.
    unnamed = {path for path in (gone | changed) - named if f"document #{base.ids[path]}" not in named}
    assert "documents" in named or not unnamed, (where, unnamed, named)
    db = sqlite3.connect(base.folder / "library.sqlite")
    unread = {path for (path,) in db.execute("SELECT path FROM documents WHERE mtime_ns = -1 AND content_sha256 = ''")}
    db.close()
    assert (gone | changed) & ids.keys() <= unread, (where, "not read again")
    assert gone <= base.ids.keys() - ids.keys(), (where, "where a text is there, all that stands in it is found")
    tags, rows = _others(base.folder)
    lost_tags = {path for path, _ in base.tags - tags}
    assert "tags" in named or lost_tags <= {path for path in base.ids if path not in ids}, (where, lost_tags)
    for table, name in (("failures", "files that failed"), ("left_out", "files that were left out")):
        assert rows[table] == base.rows[table] or name in named, (where, table)
    return "named" if named else done.state


def _damages(kind: str, random_: random.Random, size: int, page: int) -> Callable[[bytearray], None]:
    """One page of a database is changed in a way that a broken program or disk may change it."""
    at = page * PAGE

    def change(data: bytearray) -> None:
        head = 12 if data[at] in (2, 5) else 8
        cells = int.from_bytes(data[at + 3 : at + 5], "big")
        pointers = slice(at + head, at + head + 2 * cells)
        if kind == "byte":
            data[at + random_.choice([random_.randrange(PAGE), random_.randrange(8 + 2 * min(cells, 400))])] = (
                random_.choice([0, 1, 255, random_.randrange(256)])
            )
        elif kind == "zeros":
            data[at : at + PAGE] = bytes(PAGE)
        elif kind == "half":
            data[at + PAGE // 2 : at + PAGE] = bytes(PAGE // 2)
        elif kind == "no cells":
            data[at + 3 : at + 5] = b"\0\0"
        elif kind == "fewer cells":
            data[at + 3 : at + 5] = (cells // 2).to_bytes(2, "big")
        elif kind == "content":
            data[pointers.stop : at + PAGE] = bytes(at + PAGE - pointers.stop)
        elif kind == "pointers":
            data[pointers] = bytes(2 * cells)
        elif kind == "another page":
            other = random_.randrange(1, size // PAGE) * PAGE
            data[at : at + PAGE] = data[other : other + PAGE]
        else:
            data[at + 100 : at + 4000] = random_.randbytes(3900)
        del data[size:]

    return change


KINDS = ("zeros", "half", "no cells", "fewer cells", "content", "pointers", "another page", "noise")


def _sweep(base: Base, *, bytes_: int, pages: int, seed: int) -> dict[str, int]:
    random_ = random.Random(seed)
    size = len(base.database)
    outcomes: dict[str, int] = {}
    kinds = ["byte"] * bytes_ + [KINDS[each % len(KINDS)] for each in range(pages)]
    for number, kind in enumerate(kinds):
        page = random_.randrange(1, size // PAGE)
        _spoil(base, _damages(kind, random_, size, page))
        came = _check(base, (seed, number, kind, page))
        outcomes[came] = outcomes.get(came, 0) + 1
    return outcomes


def test_after_any_damage_every_passage_is_found_or_named(base: Base) -> None:
    outcomes = _sweep(base, bytes_=24, pages=24, seed=1)
    assert {"rebuilt", "named"} <= outcomes.keys(), outcomes


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
def test_after_many_damages_every_passage_is_found_or_named(base: Base, seed: int) -> None:
    _sweep(base, bytes_=200, pages=160, seed=seed)


@pytest.mark.parametrize("table", ["chunks", "documents", "document_texts"])
def test_a_wrong_number_on_a_row_costs_nothing(base: Base, table: str) -> None:
    """The number of the last row becomes that of the first."""
    db = sqlite3.connect(base.folder / "library.sqlite")
    (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    db.close()

    def change(data: bytearray) -> None:
        at = (page - 1) * PAGE
        while data[at] == 5:  # an inner page: down to the right
            at = (int.from_bytes(data[at + 8 : at + 12], "big") - 1) * PAGE
        assert data[at] == 13
        cells = int.from_bytes(data[at + 3 : at + 5], "big")
        place = at + int.from_bytes(data[at + 8 + 2 * (cells - 1) : at + 10 + 2 * (cells - 1)], "big")
        while data[place] & 0x80:  # the length of the row
            place += 1
        place += 1
        if data[place] & 0x80:  # two bytes of a number
            data[place], data[place + 1] = 0x80, 1
        else:
            data[place] = 1

    _spoil(base, change)
    done = repair_database(base.folder)
    assert (done.state, done.losses) == ("rebuilt", ())
    assert _shown(base.folder)[0] == base.passages


def test_of_a_lost_page_of_documents_each_is_named_by_its_path(base: Base) -> None:
    pages = [
        at
        for at in range(PAGE, len(base.database), PAGE)
        if base.database[at] == 13 and base.database[at : at + PAGE].count(b"one warning") > 2
    ]
    assert len(pages) > 1
    for at in pages:

        def change(data: bytearray, at: int = at) -> None:
            data[at + PAGE // 2 : at + PAGE] = bytes(PAGE // 2)

        _spoil(base, change)
        done = repair_database(base.folder)
        passages, ids = _shown(base.folder)
        assert 0 < len(done.losses) < len(base.ids) // 2, at
        assert {loss.path for loss in done.losses} < base.ids.keys(), at
        assert passages == base.passages and ids == base.ids, "their texts are there, and so they are"


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8, 0.99])
def test_of_a_database_that_was_cut_short_what_is_left_is_read(base: Base, share: float) -> None:
    def change(data: bytearray) -> None:
        del data[int(len(data) * share) :]

    _spoil(base, change)
    assert _check(base, share) in ("named", "rebuilt")
    if share > 0.9:
        passages, _ = _shown(base.folder)
        assert len(passages) > len(base.passages) // 4


@pytest.mark.parametrize("version", [version for version in golden.VERSIONS if version in (1, 6, 11)])
def test_without_the_list_of_its_tables_documents_and_passages_are_found(tmp_path: Path, version: int) -> None:
    """Its second part lies behind the first trees; with the file cut there, all that it named is there."""
    folder = golden.unpack(tmp_path, version)
    (folder / at_rest.NAME).unlink(missing_ok=True)
    with (folder / "library.sqlite").open("r+b") as stream:
        pages = len(stream.read()) // PAGE
        for page in range(22, pages):
            stream.seek(page * PAGE)
            kind = stream.read(1)
            stream.seek(page * PAGE)
            if b"CREATE " in stream.read(PAGE) and kind == b"\r":
                stream.seek(page * PAGE)
                stream.write(bytes(PAGE))
    done = repair_database(folder)
    expected = golden.expected(version)
    with golden.session(tmp_path) as session, session._browsing.use() as library:
        assert {document.path for document in library.documents()} == set(expected["documents"])
        for search in expected["searches"]:
            words, _ = golden.answers(library, search["query"])
            assert [place for place in search["words"] if place not in words] == []
    # What began elsewhere in a library that grew is said to be gone.
    assert {"tags", "files that failed"} <= {loss.path for loss in done.losses} or version == 1


def test_of_a_database_that_cannot_be_mended_nothing_is_changed(base: Base) -> None:
    _spoil(base, lambda data: data.__setitem__(slice(0, 9 * PAGE), bytes(9 * PAGE)))
    before = (base.folder / "library.sqlite").read_bytes()
    with pytest.raises(LibraryDamaged, match="what it holds"):
        repair_database(base.folder)
    assert (base.folder / "library.sqlite").read_bytes() == before


@pytest.mark.parametrize("place", [slice(0, 16), slice(16, 18), slice(60, 72), slice(0, 100), slice(0, PAGE)])
def test_without_the_head_of_the_file_every_passage_is_found(base: Base, place: slice) -> None:
    """What it is, how long its pages are, of which version it is, all of it, and the list of its tables with it."""
    _spoil(base, lambda data: data.__setitem__(place, bytes(place.stop - place.start)))
    assert _check(base, place) in ("named", "rebuilt")
    assert _shown(base.folder)[0] == base.passages


@pytest.mark.parametrize("kind", ["head", "zeros", *(pytest.param(each, marks=pytest.mark.long) for each in KINDS[1:])])
def test_of_each_page_that_is_lost_every_passage_is_found_or_named(base: Base, kind: str) -> None:
    """All of them with the long tests; else the first ones, in which everything begins."""
    pages = len(base.database) // PAGE
    for page in range(min(pages, 12) if kind == "head" else pages):
        if kind == "head":
            _spoil(base, lambda data, at=page * PAGE: data.__setitem__(slice(at, at + 100), bytes(100)))  # type: ignore[misc]
        elif page or kind == "zeros":
            _spoil(base, _damages(kind, random.Random(page), len(base.database), page))
        assert _check(base, (kind, page)) != "refused", (kind, page)


def _without_meta(base: Base) -> None:
    db = sqlite3.connect(f"file:{base.folder / 'library.sqlite'}?mode=ro", uri=True)
    (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'meta'").fetchone()
    db.close()
    _spoil(base, lambda data: data.__setitem__(slice((page - 1) * PAGE, page * PAGE), bytes(PAGE)))


@pytest.mark.parametrize("wanted", [None, "the same", "another"])
def test_which_embedder_made_it_its_segments_tell(base: Base, material: Any, wanted: str | None) -> None:
    named = {
        None: None,
        "the same": replace(material.identity, languages=("en",)),
        "another": EmbedderIdentity("another", "cd" * 32, 24, ("*",)),
    }[wanted]
    _without_meta(base)
    done = repair_database(base.folder, wanted=named)
    assert (done.state, done.losses) == ("rebuilt", ())
    with open_library(base.folder, mode="read", residency=Residency(10**9)) as library:
        assert library.identity.is_same_as(material.identity)
        assert library.identity.languages == (("en",) if wanted == "the same" else ("*",))
        assert library.pending_count() == 0
        assert library.search_vectors(material.vector("x"), limit=5, ef_search=50)
        assert {finding.severity for finding in library.verify()} == {"ok"}
    assert _shown(base.folder)[0] == base.passages


def test_where_no_segment_tells_it_the_passages_wait_for_another_one(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", ["one passage", "another passage"])
    material.embed_pending(library)
    library.close()
    folder = Path(library.folder)
    (folder / at_rest.NAME).unlink()
    base = Base(folder, (folder / "library.sqlite").read_bytes(), *_shown(folder), *_others(folder))
    _without_meta(base)
    before = (folder / "library.sqlite").read_bytes()
    with pytest.raises(LibraryDamaged, match="Its texts can be had again") as caught:
        repair_database(folder)
    assert "Provide an embedder" in caught.value.remedy
    assert (folder / "library.sqlite").read_bytes() == before
    another = EmbedderIdentity("another", "cd" * 32, 24, ("*",))
    done = repair_database(folder, wanted=another)
    assert [(loss.path, "'another'" in loss.what) for loss in done.losses] == [("vectors", True)]
    assert _shown(folder)[0] == base.passages
    with open_library(folder, mode="write", residency=Residency(10**9), identity=another) as mended:
        assert mended.pending_count() == 2
        assert len(mended.search_keywords("passage", limit=9)) == 2
        assert {finding.severity for finding in mended.verify()} == {"ok"}
