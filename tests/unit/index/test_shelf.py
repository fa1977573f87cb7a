"""Several libraries asked as one must find what one library with all of their documents finds."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgerag.errors import LibraryDamaged, LibraryError, LibraryMissing, UsageError
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.index.shelf import Shelf, merged
from edgerag.types import EmbedderIdentity, Filter, LegHit, WordEvidence, own_id

ANIMALS = ["The badger sleeps by day.", "A heron waits for fish in the water.", "Foxes hunt at night."]
PUMPS = ["The pump moves water.", "The pump needs oil.", "The pump is loud at night.", "A heron sat on the pump."]
EVERYTHING = 1000


class Libraries:
    """Makes libraries under one folder, and shelves of them."""

    def __init__(self, folder: Path, material: Any) -> None:
        self.folder = folder
        self.material = material
        self.closing: list[Library | Shelf] = []

    def make(self, name: str, documents: Mapping[str, Sequence[str]], **facts: Any) -> None:
        identity = facts.pop("identity", self.material.identity)
        with open_library(self.folder / name, mode="write", residency=Residency(10**9), identity=identity) as library:
            for path, paragraphs in documents.items():
                self.material.put(library, path, paragraphs, **facts)
            if identity == self.material.identity:
                self.material.embed_pending(library)

    def read(self, name: str) -> Library:
        library = open_library(self.folder / name, mode="read", residency=Residency(10**9))
        self.closing.append(library)
        return library

    def shelf(self, *names: str, in_use: EmbedderIdentity | None = None) -> Shelf:
        identity = in_use or self.material.identity
        shelf = Shelf({name: partial(self.read, name) for name in names}, in_use=lambda: identity)
        self.closing.append(shelf)
        shelf.begin()
        return shelf


@pytest.fixture
def libraries(tmp_path: Path, material: Any) -> Iterator[Libraries]:
    made = Libraries(tmp_path, material)
    yield made
    for each in made.closing:
        each.close()


@pytest.fixture
def animals_and_pumps(libraries: Libraries) -> Libraries:
    libraries.make("animals", {"/docs/animals": ANIMALS}, tags=["wild"])
    libraries.make("pumps", {"/docs/pumps": PUMPS}, tags=["works"])
    libraries.make("both", {"/docs/animals": ANIMALS, "/docs/pumps": PUMPS})
    return libraries


def texts(library: Library | Shelf, hits: Sequence[LegHit]) -> list[str]:
    return [chunk.chunk.text for chunk in library.chunks([hit.chunk_id for hit in hits])]


@pytest.mark.parametrize(
    "query", ["heron pump", "water", "the pump at night", "heron", "badger", "unicorn", "PUMP-1 oil"]
)
def test_words_are_as_rare_as_in_one_library(animals_and_pumps: Libraries, query: str) -> None:
    shelf, both = animals_and_pumps.shelf("animals", "pumps"), animals_and_pumps.read("both")
    found = shelf.search_keywords(query, limit=EVERYTHING)
    wanted = both.search_keywords(query, limit=EVERYTHING)
    scored = {text: hit.score for text, hit in zip(texts(shelf, found), found, strict=True)}
    assert scored == pytest.approx({text: hit.score for text, hit in zip(texts(both, wanted), wanted, strict=True)})
    one, other = _evidence(shelf, query, found), _evidence(both, query, wanted)
    assert one.mean_words == pytest.approx(other.mean_words)
    assert {t.forms: t.idf for t in one.terms} == pytest.approx({t.forms: t.idf for t in other.terms})
    words = {text: one.passages[hit.chunk_id] for text, hit in zip(texts(shelf, found), found, strict=True)}
    assert words == {text: other.passages[hit.chunk_id] for text, hit in zip(texts(both, wanted), wanted, strict=True)}
    if wanted:
        assert texts(shelf, found)[0] == texts(both, wanted)[0]


def _evidence(library: Library | Shelf, query: str, hits: Sequence[LegHit]) -> WordEvidence:
    return library.word_evidence(query, [hit.chunk_id for hit in hits])


def test_the_nearest_are_the_nearest_of_all(animals_and_pumps: Libraries, material: Any) -> None:
    shelf, both = animals_and_pumps.shelf("animals", "pumps"), animals_and_pumps.read("both")
    for number in range(10):
        vector = material.vector(f"question {number}")
        found = shelf.search_vectors(vector, limit=4, ef_search=9)
        wanted = both.search_vectors(vector, limit=4, ef_search=9)
        assert texts(shelf, found) == texts(both, wanted)
        assert [hit.score for hit in found] == [hit.score for hit in wanted]


def test_scores_of_equal_libraries_are_those_of_one_of_twice_the_size(libraries: Libraries) -> None:
    libraries.make("a", {"/a": PUMPS})
    libraries.make("b", {"/b": PUMPS})
    libraries.make("both", {"/a": PUMPS, "/b": PUMPS})
    shelf, both = libraries.shelf("a", "b"), libraries.read("both")
    found = shelf.search_keywords("heron oil water", limit=EVERYTHING)
    assert [hit.score for hit in found] == pytest.approx(
        [hit.score for hit in both.search_keywords("heron oil water", limit=EVERYTHING)]
    )


def test_a_small_library_gets_its_due_beside_a_large_one(libraries: Libraries) -> None:
    libraries.make("large", {f"/l/{n}": [f"Pump {n} of series {n % 7} moves water."] for n in range(300)})
    libraries.make("small", {"/s": ["The badger keeps a pump."]})
    shelf = libraries.shelf("large", "small")
    assert texts(shelf, shelf.search_keywords("badger pump", limit=5))[0] == "The badger keeps a pump."
    assert len(shelf.search_keywords("badger pump", limit=5)) == 5


def test_chunks_and_documents_name_their_library(animals_and_pumps: Libraries) -> None:
    shelf = animals_and_pumps.shelf("animals", "pumps")
    hits = shelf.search_keywords("heron", limit=EVERYTHING)
    chunks = shelf.chunks([hit.chunk_id for hit in hits])
    assert [chunk.id for chunk in chunks] == [hit.chunk_id for hit in hits]
    assert {chunk.library: chunk.path for chunk in chunks} == {"animals": "/docs/animals", "pumps": "/docs/pumps"}
    for chunk in chunks:
        document = shelf.parsed_document(chunk.document_id)
        assert document.text[chunk.chunk.start : chunk.chunk.end] == chunk.chunk.text
        alone = animals_and_pumps.read(chunk.library)
        (own,) = alone.chunks([own_id(chunk.id)])
        assert (own.document_id, own.chunk) == (own_id(chunk.document_id), chunk.chunk)
        assert shelf.text_around(chunk.id, 40) == alone.text_around(own_id(chunk.id), 40)
    assert shelf.text_around(7 << 60, 40) == ("", "")
    assert len({chunk.id for chunk in chunks}) == 2, "both libraries count from 1"
    assert shelf.chunks([9999, chunks[0].id, 7 << 60]) == [chunks[0]]


def test_the_same_twice(animals_and_pumps: Libraries, material: Any) -> None:
    one, other = (animals_and_pumps.shelf("animals", "pumps") for _ in range(2))
    assert one.search_keywords("pump heron", limit=9) == other.search_keywords("pump heron", limit=9)
    vector = material.vector("q")
    assert one.search_vectors(vector, limit=9, ef_search=9) == other.search_vectors(vector, limit=9, ef_search=9)


# ---------------------------------------------------------------- filters


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (Filter(paths=("/docs",)), {"animals", "pumps"}),
        (Filter(paths=("/docs/pumps",)), {"pumps"}),
        (Filter(tags=("WILD",)), {"animals"}),
        (Filter(tags=("wild", "works")), {"animals", "pumps"}),
        (Filter(tags=("wild", "works"), paths=("/docs/pumps",)), {"pumps"}),
        (Filter(types=("txt",)), {"animals", "pumps"}),
    ],
)
def test_a_filter_looks_into_every_library(
    animals_and_pumps: Libraries, material: Any, where: Filter, found: set[str]
) -> None:
    shelf = animals_and_pumps.shelf("animals", "pumps")
    where = shelf.check_filter(where)
    for hits in (
        shelf.search_keywords("heron night", limit=EVERYTHING, where=where),
        shelf.search_vectors(material.vector("q"), limit=EVERYTHING, ef_search=9, where=where),
    ):
        assert {chunk.library for chunk in shelf.chunks([hit.chunk_id for hit in hits])} == found


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (Filter(tags=("wild", "tame")), ["animals: ", "'tame'", "Known: wild.", "pumps: ", "Known: works."]),
        (Filter(paths=("/x",)), ["'/x'"]),
        (Filter(types=("pdf",)), ["'pdf'", "text"]),
        (Filter(tags=("wild",), paths=("/docs/pumps",)), []),
        (Filter(since_ns=10**18), ["of that time"]),
        (Filter(document_ids=(1,)), ["#1", "--library NAME"]),
    ],
)
def test_a_filter_that_fits_nowhere_says_why(animals_and_pumps: Libraries, where: Filter, words: Sequence[str]) -> None:
    with pytest.raises(UsageError) as caught:
        animals_and_pumps.shelf("animals", "pumps").check_filter(where)
    for word in words:
        assert word in str(caught.value)


# ---------------------------------------------------------------- when one of them is not as it should be


def test_a_library_that_is_missing_is_named_and_the_others_go_on(animals_and_pumps: Libraries) -> None:
    shelf = animals_and_pumps.shelf("animals", "gone", "pumps")
    assert len(shelf.left_out) == 1 and "'gone'" in shelf.left_out[0] and "ingest" in shelf.left_out[0]
    assert {chunk.library for chunk in _found(shelf, "heron")} == {"animals", "pumps"}
    ids = [chunk.id for chunk in _found(shelf, "heron")]
    animals_and_pumps.make("gone", {"/g": ["Another heron."]})
    shelf.begin()
    assert shelf.left_out == ()
    assert {chunk.library for chunk in _found(shelf, "heron")} == {"animals", "gone", "pumps"}
    assert {chunk.id for chunk in _found(shelf, "heron")} > set(ids), "ids stay while a library comes and goes"


def _found(shelf: Shelf, query: str) -> list[Any]:
    return shelf.chunks([hit.chunk_id for hit in shelf.search_keywords(query, limit=EVERYTHING)])


def test_without_any_library_the_first_is_named(libraries: Libraries) -> None:
    with pytest.raises(LibraryMissing, match="one"):
        libraries.shelf("one", "two")


def test_a_library_that_breaks_in_the_middle_is_left_out_and_tried_again(
    animals_and_pumps: Libraries, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = animals_and_pumps.shelf("animals", "pumps")
    real = Library.search_keywords

    def broken(library: Library, *arguments: Any, **options: Any) -> list[LegHit]:
        if library.folder.name == "pumps":
            raise LibraryDamaged("Block 3 of 00000001.hnsw is damaged.")
        return real(library, *arguments, **options)

    ids = [chunk.id for chunk in _found(shelf, "heron")]
    with monkeypatch.context() as patch:
        patch.setattr(Library, "search_keywords", broken)
        assert {chunk.library for chunk in _found(shelf, "heron")} == {"animals"}
    assert shelf.left_out == ("Library 'pumps' was left out: Block 3 of 00000001.hnsw is damaged.",)
    assert [chunk.library for chunk in shelf.chunks(ids)] == ["animals"]
    shelf.begin()
    assert shelf.left_out == () and len(shelf.chunks(ids)) == 2


def test_when_the_last_one_breaks_that_is_an_error(libraries: Libraries) -> None:
    libraries.make("a", {"/a": PUMPS})
    shelf = libraries.shelf("a", "b")
    with sqlite3.connect(libraries.folder / "a" / "library.sqlite") as db:
        db.execute("DROP TABLE chunk_words")
    with pytest.raises(LibraryError):
        shelf.search_keywords("pump", limit=3)


def test_a_library_of_another_embedder_is_searched_by_words(animals_and_pumps: Libraries, material: Any) -> None:
    other = dataclasses.replace(material.identity, name="other", weights_sha256="cd" * 32, dimension=8)
    animals_and_pumps.make("other", {"/o": ["A heron elsewhere."]}, identity=other)
    shelf = animals_and_pumps.shelf("other", "animals")
    assert shelf.identity == material.identity, "that of the embedder in use"
    assert [note for note in shelf.left_out if "'other'" in note and "words" in note]
    assert {chunk.library for chunk in _found(shelf, "heron")} == {"animals", "other"}
    hits = shelf.search_vectors(material.vector("q"), limit=EVERYTHING, ef_search=9)
    assert {chunk.library for chunk in shelf.chunks([hit.chunk_id for hit in hits])} == {"animals"}
    assert shelf.pending_count() == 1, "its passages are not found by meaning"
    assert shelf.chunk_count() == 4


def test_counts_are_those_of_all(animals_and_pumps: Libraries) -> None:
    shelf = animals_and_pumps.shelf("animals", "pumps")
    assert (shelf.chunk_count(), shelf.pending_count()) == (7, 0)
    assert shelf.query_terms("Where is the heron?") == animals_and_pumps.read("both").query_terms("Where is the heron?")


# ---------------------------------------------------------------- rules

WORDS = ["pump", "heron", "the", "water.", "night", "oil-pump", "E-1042", "sat on"]
HITS = st.lists(st.tuples(st.integers(0, 50), st.floats(0, 9).map(lambda x: round(x, 1))), max_size=12)


@given(legs=st.lists(HITS, max_size=4), limit=st.integers(0, 20))
def test_merging_is_sorting(legs: list[list[tuple[int, float]]], limit: int) -> None:
    hits = [[LegHit(100 * place + number, score) for number, score in leg] for place, leg in enumerate(legs)]
    everything = sorted((hit for leg in hits for hit in leg), key=lambda hit: (-hit.score, hit.chunk_id))
    assert merged(hits, limit=limit) == everything[:limit]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.lists(st.sampled_from(WORDS) | st.text(max_size=9), max_size=6).map(" ".join))
def test_any_query_gives_what_one_library_gives(animals_and_pumps: Libraries, query: str) -> None:
    shelf, both = animals_and_pumps.shelf("animals", "pumps"), animals_and_pumps.read("both")
    try:
        found, wanted = (each.search_keywords(query, limit=EVERYTHING) for each in (shelf, both))
        assert sorted(texts(shelf, found)) == sorted(texts(both, wanted))
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in wanted])
    finally:
        shelf.close()


def test_each_library_has_a_latent_space_of_its_own(libraries: Libraries) -> None:
    texts_of = {
        "a": ["wing lift drag", "foil lift drag"],
        "b": ["boiler steam valve", "kettle steam lift"],
        "c": ["lift"],
    }
    for name, lines in texts_of.items():
        libraries.make(name, {f"/{name}{n}": [lines[n % len(lines)]] for n in range(20 if name != "c" else 1)})
    for name in ("a", "b"):
        with open_library(libraries.folder / name, mode="write", residency=Residency(10**9)) as library:
            library.make_latent_space()
    shelf = libraries.shelf("a", "b", "c")
    ids = [hit.chunk_id for hit in shelf.search_keywords("lift steam", limit=EVERYTHING)]
    found = shelf.latent_evidence(shelf.word_evidence("wing", ids), ids)
    assert found is not None
    for name in ("a", "b", "c"):
        alone = libraries.shelf(name)
        own = [hit.chunk_id for hit in alone.search_keywords("lift steam", limit=EVERYTHING)]
        there = {text: place for place, text in enumerate(texts_by_id(shelf, ids))}
        wanted = alone.latent_evidence(alone.word_evidence("wing", own), own)
        rows = [there[text] for text in texts_by_id(alone, own)]
        if wanted is None:
            assert name == "c"
            assert not found.cosines[rows].any() and not found.alike[rows].any()
        else:
            assert found.cosines[rows] == pytest.approx(wanted.cosines, abs=1e-6)
            others = sorted(set(range(len(ids))) - set(rows))
            assert not found.alike[rows][:, others].any()
    nowhere = libraries.shelf("c")
    (only,) = [hit.chunk_id for hit in nowhere.search_keywords("lift", limit=1)]
    assert nowhere.latent_evidence(nowhere.word_evidence("wing", [only]), [only]) is None


def texts_by_id(shelf: Shelf, ids: Sequence[int]) -> list[tuple[str, str]]:
    return [(chunk.path, chunk.chunk.text) for chunk in shelf.chunks(ids)]
