from __future__ import annotations

import dataclasses
import json
import sqlite3
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.errors import LibraryOutdated, UsageError
from edgerag.index import filters, migrations
from edgerag.index.documents import Touched
from edgerag.index.library import Library
from edgerag.index.store import Store
from edgerag.types import Filter

TEXTS = [f"Paragraph number {i} tells of subject{i}." for i in range(12)]
LANGUAGES = ["en", "de", "en", "unknown", "unknown", "ru"]
PATHS = ["/docs/a/one", "/docs/a/two", "/docs/ab/three", "/docs/b%/four", "/docs/b_/\udcff", "/other/six"]


@pytest.fixture
def library(opened: Any, material: Any) -> Library:
    """Six documents: the first four sealed in graphs of 24 rows, the last two not sealed."""
    library = opened()
    for number, path in enumerate(PATHS):
        tags = ["even"] if number % 2 == 0 else ["odd", "Späte"]
        texts = [f"{text} in {number}" for text in TEXTS]
        material.put(library, path, texts, tags=tags, language=LANGUAGES[number])
        material.embed_pending(library)
        if number in (1, 3):
            library.seal(merge=False)
    assert [segment.vector_count for segment in library.status().segments] == [24, 24]
    return library


def documents_found(library: Library, where: Filter, *, material: Any, limit: int = 1000) -> list[set[int]]:
    """The documents found by words and by meaning; each leg must give as much as there is."""
    where = library.check_filter(where)
    legs = [
        library.search_keywords("paragraph", limit=limit, where=where),
        library.search_vectors(material.vector("q"), limit=limit, ef_search=8, where=where),
    ]
    found = []
    for hits in legs:
        chunks = library.chunks([hit.chunk_id for hit in hits])
        ids = {chunk.document_id for chunk in chunks}
        assert len(chunks) == min(limit, 12 * len(ids))
        found.append(ids)
    return found


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Filter(), [1, 2, 3, 4, 5, 6]),
        (Filter(document_ids=(2, 5)), [2, 5]),
        (Filter(paths=("/docs/a",)), [1, 2]),
        (Filter(paths=("/docs/a/",)), [1, 2]),
        (Filter(paths=("/docs/a/two",)), [2]),
        (Filter(paths=("/",)), [1, 2, 3, 4, 5, 6]),
        (Filter(paths=("/docs/b%",)), [4]),
        (Filter(paths=("/docs/b_",)), [5]),
        (Filter(paths=("/docs/b_/\udcff",)), [5]),
        (Filter(paths=("/docs/ab", "/other")), [3, 6]),
        (Filter(paths=(*PATHS[:3], "/docs/a", "/other")), [1, 2, 3, 6]),
        (Filter(paths=tuple(PATHS), tags=("odd",)), [2, 4, 6]),
        (Filter(tags=("even",)), [1, 3, 5]),
        (Filter(tags=("EVEN ", "odd")), [1, 2, 3, 4, 5, 6]),
        (Filter(tags=("spa\u0308te",)), [2, 4, 6]),
        (Filter(paths=("/docs",), tags=("odd",)), [2, 4]),
        (Filter(languages=("en",)), [1, 3]),
        (Filter(languages=(" DE", "ru", "de")), [2, 6]),
        (Filter(languages=("unknown",), tags=("odd",)), [4]),
        (Filter(document_ids=(1, 2, 6), paths=("/docs",), tags=("odd", "even")), [1, 2]),
    ],
)
def test_only_what_matches_is_found_and_all_of_it(
    library: Library, material: Any, where: Filter, expected: list[int]
) -> None:
    assert documents_found(library, where, material=material) == [set(expected)] * 2


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_a_filter_costs_no_hits(library: Library, material: Any, limit: int) -> None:
    """The best of what matches, as an exact search of those alone finds them."""
    where = Filter(tags=("odd",))
    query = material.vector("q")
    wanted = [hit for hit in library.search_vectors(query, limit=99, ef_search=99) if _document(library, hit) % 2 == 0]
    assert library.search_vectors(query, limit=limit, ef_search=1, where=where) == wanted[:limit]
    words = [hit for hit in library.search_keywords("subject5 paragraph", limit=99) if _document(library, hit) % 2 == 0]
    assert library.search_keywords("subject5 paragraph", limit=limit, where=where) == words[:limit]


def _document(library: Library, hit: Any) -> int:
    return library.chunks([hit.chunk_id])[0].document_id


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (Filter(tags=("urgent",)), ["'urgent'", "even, odd, späte"]),
        (Filter(tags=("",)), ["empty"]),
        (Filter(tags=("x" * 81,)), ["81 characters"]),
        (Filter(tags=("a\nb",)), ["cannot be shown"]),
        (Filter(paths=("/docs/c",)), ["'/docs/c'", "status --files"]),
        (Filter(paths=("/docs/", "/doc")), ["'/doc'"]),
        (Filter(document_ids=(1, 99)), ["#99"]),
        (Filter(document_ids=(1,), tags=("odd",)), ["all of the filters"]),
        (Filter(languages=("en", "fr")), ["'fr'", "de, en, ru, unknown"]),
        (Filter(languages=("",)), ["A language is empty"]),
        (Filter(languages=("de",), tags=("even",)), ["all of the filters"]),
        (Filter(paths=("/x",) * 201), ["200"]),
    ],
)
def test_a_filter_that_fits_nothing_says_why(library: Library, where: Filter, words: Sequence[str]) -> None:
    with pytest.raises(UsageError) as caught:
        library.check_filter(where)
    for word in words:
        assert word in str(caught.value)


def test_without_tags_an_unknown_tag_says_how_they_are_made(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", TEXTS)
    with pytest.raises(UsageError, match=r"ingest --tag"):
        library.check_filter(Filter(tags=("work",)))


def test_of_a_thousand_tags_a_message_names_a_few(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", TEXTS, tags=[f"tag {number:04}" for number in range(1000)])
    with pytest.raises(UsageError, match=r"Known: tag 0000, .* and 980 more\.") as caught:
        library.check_filter(Filter(tags=("work",)))
    assert len(str(caught.value)) < 500


def test_an_open_reader_follows_every_change_of_what_matches(library: Library, opened: Any, material: Any) -> None:
    """What is remembered of a filter is forgotten in time."""
    reader = opened("read")
    where = Filter(paths=("/docs",), tags=("odd",))

    def found() -> list[set[int]]:
        return documents_found(reader, where, material=material)

    assert found() == [{2, 4}] * 2
    assert found() == [{2, 4}] * 2
    library.tag_documents([1, 77], ["ODD"])
    assert found() == [{1, 2, 4}] * 2
    library.untag_documents([2], ["odd", "unknown"])
    assert found() == [{1, 4}] * 2
    library.remove_documents([4])
    assert found() == [{1}] * 2
    material.put(library, "/docs/new", [f"{text} anew" for text in TEXTS], tags=["odd"])
    material.embed_pending(library)
    assert found() == [{1, 7}] * 2
    library.seal()
    assert found() == [{1, 7}] * 2
    material.put(library, "/docs/ab/three", [f"{text} in 2" for text in TEXTS], tags=["odd"])
    assert found() == [{1, 3, 7}] * 2, "tagged as it was read again; its vectors are the old ones"


def test_a_document_in_another_language_leaves_a_filter_that_was_remembered(
    library: Library, opened: Any, material: Any
) -> None:
    reader = opened("read")
    where = Filter(languages=("en",))
    assert documents_found(reader, where, material=material) == [{1, 3}] * 2
    texts = [f"{text} in 0" for text in TEXTS]  # as before: the sealed vectors stay
    material.put(library, PATHS[0], texts, language="fr")
    assert documents_found(reader, where, material=material) == [{3}] * 2
    assert documents_found(reader, Filter(languages=("fr",)), material=material) == [{1}] * 2


def test_a_filter_is_read_once_while_nothing_changes(
    library: Library, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Filter] = []
    real = filters.sealed_rows

    def sealed_rows(db: sqlite3.Connection, where: Filter) -> Any:
        read.append(where)
        return real(db, where)

    monkeypatch.setattr(filters, "sealed_rows", sealed_rows)
    several = [Filter(document_ids=(number,)) for number in range(1, 7)]
    for where in [several[0]] * 3 + several * 2:
        library.search_vectors(material.vector("q"), limit=3, ef_search=8, where=where)
    assert read[:6] == several
    assert len(read) == 12, "only the last few are kept"


def test_tags_stay_with_a_document_that_changes_and_go_with_one_that_is_removed(
    library: Library, material: Any
) -> None:
    material.put(library, PATHS[1], ["changed altogether"], tags=["new"])
    assert [document.tags for document in library.documents()][1] == ("new", "odd", "späte")
    library.remove_documents([2, 4, 6])
    assert library.tags() == ["even"]


# ---------------------------------------------------------------- from the library before it


def test_a_library_without_tags_is_brought_up_and_keeps_everything(tmp_path: Path, opened: Any, material: Any) -> None:
    """Made with the first step alone, in SQL, as the program before this one left it."""
    folder = tmp_path / "lib"
    (folder / "segments").mkdir(parents=True)
    old = Store(folder, mode="write", steps=migrations.STEPS[:1])
    parsed, _ = material.document(["first words", "second words"])
    vector = material.vector("A title\nfirst words")
    with old.writing() as db:
        identity = {"name": "by-rule", "weights_sha256": "ab" * 32, "dimension": 16, "languages": ["*"]}
        db.execute("INSERT INTO meta VALUES ('embedder', ?)", (json.dumps(identity),))
        db.execute(
            "INSERT INTO documents VALUES (1, '/docs/a', '/docs', 'A title', 'text/plain', '0', 1, 2, ?,"
            " '[]', '[]', '[]')",
            (len(parsed.text),),
        )
        db.execute("INSERT INTO document_texts VALUES (1, 0, ?)", (zlib.compress(parsed.text.encode()),))
        for number, (start, end, state) in enumerate([(0, 11, 1), (13, 25, 0)]):
            db.execute(
                "INSERT INTO chunks VALUES (?, 1, ?, ?, ?, '[]', NULL, NULL, 1, 1, 2, '\"\"', x'00', ?, NULL, NULL)",
                (number + 1, number, start, end, state),
            )
            db.execute("INSERT INTO chunk_words (rowid, body) VALUES (?, ?)", (number + 1, parsed.text[start:end]))
        db.execute("INSERT INTO vectors VALUES (1, ?)", (vector.tobytes(),))
        db.execute("INSERT INTO failures VALUES ('/docs/bad', '/docs', 'no text', 3, 4)")
    old.close()
    with pytest.raises(LibraryOutdated, match="edgerag ingest"):
        opened("read")
    opened().close()
    library = opened("read")
    (document,) = library.documents()
    assert (document.path, document.tags, document.chunk_count, document.pending_count) == ("/docs/a", (), 2, 1)
    assert [(f.path, f.reason, f.size_bytes, f.mtime_ns) for f in library.failures()] == [
        ("/docs/bad", "no text", 3, 4)
    ]
    assert [hit.chunk_id for hit in library.search_keywords("words", limit=5)] == [1, 2]
    (hit,) = library.search_vectors(vector, limit=5, ef_search=5, where=Filter(paths=("/docs",)))
    assert (hit.chunk_id, np.round(hit.score, 5)) == (1, 1.0)
    assert {finding.severity for finding in library.verify()} == {"ok"}


# ---------------------------------------------------------------- types and dates

FILES = {
    "/docs/a.pdf": ("application/pdf", 100, None),
    "/docs/b.md": ("text/markdown", 200, None),
    "/docs/box.zip!/c.LOG": ("text/x-log", 300, 50),
    "/docs/d.py": ("text/x-python", 400, 5_000),
    "/docs/e.pptx": ("application/vnd.openxmlformats-officedocument.presentationml.presentation", 500, None),
    "/docs/f.odp": ("application/vnd.oasis.opendocument.presentation", 600, None),
}


@pytest.fixture
def shelves(opened: Any, material: Any) -> Library:
    """One document of each of FILES: (media type, time of the file, the date that it names), half of them sealed."""
    library = opened()
    for number, (path, (media_type, mtime_ns, dated_ns)) in enumerate(FILES.items()):
        put_typed(library, material, path, media_type, mtime_ns=mtime_ns, dated_ns=dated_ns)
        if number == 2:
            library.seal(merge=False)
    return library


def put_typed(
    library: Library, material: Any, path: str, media_type: str, *, mtime_ns: int, dated_ns: int | None
) -> None:
    parsed, chunks = material.document([f"{text} in {path}" for text in TEXTS])
    parsed = dataclasses.replace(parsed, media_type=media_type, dated_ns=dated_ns)
    library.put_document(parsed, chunks, path=path, root="/docs", content_sha256="0", size_bytes=1, mtime_ns=mtime_ns)
    material.embed_pending(library)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Filter(types=("pdf",)), [1]),
        (Filter(types=("PDFs", "md")), [1, 2]),
        (Filter(types=("slides",)), [5, 6]),
        (Filter(types=("pptx",)), [5]),
        (Filter(types=(".log",)), [3]),
        (Filter(types=(".LOG", "code")), [3, 4]),
        (Filter(types=("*.Log", " application/PDF ")), [1, 3]),
        (Filter(types=("application/vnd.openxmlformats-officedocument.presentationml.presentation",)), [5]),
        (Filter(types=("text",)), [3]),
        (Filter(types=("pdf", "slides"), paths=("/docs/a.pdf", "/docs/b.md")), [1]),
        (Filter(since_ns=400), [4, 5, 6]),
        (Filter(until_ns=200), [1, 3]),
        (Filter(since_ns=200, until_ns=501), [2, 5]),
        (Filter(since_ns=5_000), [4]),
        (Filter(types=("code", "slides"), since_ns=600), [4, 6]),
    ],
)
def test_types_and_dates_choose_documents(shelves: Library, material: Any, where: Filter, expected: list[int]) -> None:
    assert documents_found(shelves, where, material=material) == [set(expected)] * 2


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (Filter(types=("epub",)), ["no document of the type 'epub'", "code, markdown, odp, pdf, powerpoint, text"]),
        (Filter(types=("pdf", "pages")), ["'pages' is no type of file", "markdown", "'.pages'"]),
        (Filter(types=(".xyz",)), ["ends in '.xyz'"]),
        (Filter(types=("",)), ["A type is empty", "--type pdf"]),
        (Filter(types=(" ",)), ["A type is empty"]),
        (Filter(types=(".",)), ["'.' is no type of file", "'.log'"]),
        (Filter(types=("a/b",)), ["'a/b' is no type of file", "'.log'"]),
        (Filter(languages=("",)), ["A language is empty", "--lang en"]),
        (Filter(languages=("klingon",)), ["in the language 'klingon'"]),
        (Filter(since_ns=5_001), ["of that time", "1970-01-01"]),
        (Filter(since_ns=300, until_ns=300), ["of that time"]),
        (Filter(types=("pdf",), since_ns=400), ["all of the filters"]),
    ],
)
def test_a_type_or_date_that_fits_nothing_says_what_there_is(
    shelves: Library, where: Filter, words: Sequence[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        shelves.check_filter(where)
    for word in words:
        assert word in str(caught.value)


def test_an_empty_library_refuses_types_and_dates_in_a_sentence(opened: Any) -> None:
    library = opened()
    for where in (Filter(types=("pdf",)), Filter(since_ns=1)):
        with pytest.raises(UsageError, match="holds no document"):
            library.check_filter(where)


def test_an_open_reader_follows_new_types_and_dates(shelves: Library, opened: Any, material: Any) -> None:
    """What is remembered of a filter is forgotten when a document is read again or its file touched."""
    reader = opened("read")
    shelves.seal()
    late, markdown = Filter(since_ns=550), Filter(types=("markdown",))

    def found(where: Filter) -> list[set[int]]:
        return documents_found(reader, where, material=material)

    assert found(late) == [{4, 6}] * 2
    assert found(markdown) == [{2}] * 2
    shelves.touch_documents([Touched(1, size_bytes=1, mtime_ns=700)])
    assert found(late) == [{1, 4, 6}] * 2
    put_typed(shelves, material, "/docs/b.md", "text/plain", mtime_ns=200, dated_ns=800)
    assert found(late) == [{1, 2, 4, 6}] * 2
    assert found(Filter(types=("text",))) == [{2, 3}] * 2


def test_the_date_that_a_document_names_is_kept(shelves: Library) -> None:
    assert [document.dated_ns for document in shelves.documents()] == [None, None, 50, 5_000, None, None]
    assert [shelves.parsed_document(number).dated_ns for number in (1, 4)] == [None, 5_000]
