from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fakes import HashingEmbedder
from hypothesis import given
from hypothesis import strategies as st

from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.types import UNKNOWN_LANGUAGE, Chunk, Filter, ParsedDocument, WordQuery

TEXTS = {
    "/a/manual.md": ("The pump has lid screws.", "Error E-1042: the pumps are blocked.", "Grease the screws."),
    "/a/codes.md": ("Error E-1042 means a blocked filter.", "Error E 1043 is another."),
    "/b/Pump.md": ("A valve.", "A hose."),
    "/b/水泵.md": ("水泵每六个月换机油。", "电池的水用泵抽。"),
    "/b/odd.md": ('NEAR("pump" OR *) AND body: x', "The lid. Screws."),
}


def put(library: Library, path: str, passages: tuple[str, ...], *, language: str = UNKNOWN_LANGUAGE) -> None:
    chunks, text = [], ""
    for ordinal, passage in enumerate(passages):
        start, text = len(text), f"{text}{passage}\n"
        chunks.append(
            Chunk(
                ordinal=ordinal,
                start=start,
                end=start + len(passage),
                text=passage,
                heading_path=(),
                page_first=None,
                page_last=None,
                line_first=ordinal + 1,
                line_last=ordinal + 1,
                token_count=5,
            )
        )
    parsed = ParsedDocument(text=text, title=Path(path).stem, media_type="text/markdown", language=language)
    library.put_document(parsed, chunks, path=path, root="/", content_sha256="0" * 64, size_bytes=1, mtime_ns=0)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("scan") / "library"
    identity = HashingEmbedder(dimension=8).identity
    with open_library(folder, mode="write", residency=Residency(10_000_000), identity=identity) as library:
        for path, passages in TEXTS.items():
            put(library, path, passages)
        library.tag_documents([library.documents()[0].id], ["codes"])
        yield library


def names(library: Library, *pieces: str, limit: int = 20, where: Filter | None = None) -> list[tuple[str, int]]:
    scan = library.scan_keywords(WordQuery.all_of(pieces), document_limit=limit, where=where)
    return [(Path(match.path).name, match.passage_count) for match in scan.documents]


def test_every_passage_is_counted_with_other_endings_too(filled: Library) -> None:
    scan = filled.scan_keywords(WordQuery.all_of(["pump"]), document_limit=20)
    assert (scan.document_total, scan.passage_total) == (5, 11)
    assert (scan.document_count, scan.passage_count, scan.joint_document_count) == (3, 3, 2)
    # A title holds it for its document and for no passage.
    assert names(filled, "pump") == [("manual.md", 2), ("odd.md", 1), ("Pump.md", 0)]


def test_words_of_every_language_are_counted_by_its_rules(tmp_path: Path) -> None:
    identity = HashingEmbedder(dimension=8).identity
    with open_library(tmp_path / "l", mode="write", residency=Residency(10_000_000), identity=identity) as library:
        put(library, "/de.md", ("Die Häuser stehen.", "Ein Haus."), language="de")
        put(library, "/ru.md", ("Новые насосы.", "Старого насоса нет."), language="ru")
        put(library, "/x.md", ("Pump 7.",))
        assert names(library, "Haus") == [("de.md", 2)]
        assert names(library, "насос") == [("ru.md", 2)]
        assert names(library, "pumps") == [("x.md", 1)]
        assert library.term_weights("насосами")["насосами"] > 0


def test_an_identifier_is_one(filled: Library) -> None:
    assert names(filled, "E-1042") == [("codes.md", 1), ("manual.md", 1)]
    assert names(filled, "e-1043") == [("codes.md", 1)]


def test_all_words_must_stand_in_the_document_and_together_count_apart(filled: Library) -> None:
    assert names(filled, "screws", "blocked") == [("manual.md", 0)]
    assert names(filled, "pump", "screws") == [("manual.md", 1), ("odd.md", 0)]
    scan = filled.scan_keywords(WordQuery.all_of(["screws", "zeppelin"]), document_limit=5)
    assert scan.document_count == scan.passage_count == 0
    assert [(count.piece, count.document_count, count.passage_count) for count in scan.pieces] == [
        ("screws", 2, 3),
        ("zeppelin", 0, 0),
    ]


def test_a_phrase_stands_in_a_row(filled: Library) -> None:
    assert names(filled, "lid screws") == [("manual.md", 1), ("odd.md", 1)]  # signs between words are none
    assert names(filled, "screws lid") == []
    assert names(filled, "水泵") == [("水泵.md", 1)]


def test_a_filter_holds_for_every_count(filled: Library) -> None:
    scan = filled.scan_keywords(WordQuery.all_of(["E-1042"]), document_limit=5, where=Filter(paths=("/b",)))
    assert (scan.document_total, scan.document_count) == (3, 0)
    assert names(filled, "E-1042", where=filled.check_filter(Filter(tags=("codes",)))) == [("codes.md", 1)]


def test_what_is_named_is_bounded_what_is_counted_is_not(filled: Library) -> None:
    scan = filled.scan_keywords(WordQuery.all_of([]), document_limit=2)
    assert scan.document_count == 5 and [match.path for match in scan.documents] == ["/a/codes.md", "/a/manual.md"]
    scan = filled.scan_keywords(WordQuery.all_of(["pump"]), document_limit=1)
    assert scan.document_count == 3 and len(scan.documents) == 1


def test_the_passage_named_is_the_first_that_holds_the_words(filled: Library) -> None:
    for pieces, text in (
        (["blocked"], "Error E-1042: the pumps are blocked."),
        (["screws", "blocked"], TEXTS["/a/manual.md"][1]),
    ):
        match = next(
            m
            for m in filled.scan_keywords(WordQuery.all_of(pieces), document_limit=9).documents
            if m.path == "/a/manual.md"
        )
        assert filled.chunks([match.chunk_id])[0].chunk.text == text


def test_words_weigh_by_rarity_and_unknown_ones_nothing(filled: Library) -> None:
    weights = filled.term_weights("screws valve zeppelin")
    assert weights["valve"] > weights["screws"] > weights["zeppelin"] == 0.0


@given(st.lists(st.text(min_size=1, max_size=40), max_size=20))
def test_any_words_can_be_counted(filled: Library, pieces: list[str]) -> None:
    scan = filled.scan_keywords(WordQuery.all_of(pieces), document_limit=3)
    assert len(scan.documents) <= 3 and scan.document_count <= scan.document_total


@pytest.mark.parametrize(
    "piece", ['"', "NEAR(a b)", "body: x", "*", "a OR b", "'; DROP TABLE chunks; --", "😀", "\x00"]
)
def test_nothing_in_a_word_is_syntax(filled: Library, piece: str) -> None:
    filled.scan_keywords(WordQuery.all_of([piece, "pump"]), document_limit=3)


def found(library: Library, any_of: Sequence[Sequence[str]] = (), none_of: Sequence[Sequence[str]] = ()) -> list[str]:
    words = WordQuery(tuple(map(tuple, any_of)), tuple(map(tuple, none_of)))
    scan = library.scan_keywords(words, document_limit=20)
    assert scan.document_count == len(scan.documents) and scan.words == words
    return sorted(Path(match.path).name for match in scan.documents)


def test_either_of_two_words_is_enough(filled: Library) -> None:
    assert found(filled, [["E-1043"], ["水泵"]]) == ["codes.md", "水泵.md"]
    assert found(filled, [["screws", "blocked"], ["水泵"]]) == ["manual.md", "水泵.md"]
    scan = filled.scan_keywords(WordQuery((("E-1043",), ("zeppelin",))), document_limit=5)
    assert (scan.document_count, scan.passage_count) == (1, 1)
    assert [count.document_count for count in scan.pieces] == [1, 0]


def test_what_must_not_stand_there_is_left_out(filled: Library) -> None:
    names_of_all = found(filled)
    with_pump = found(filled, [["pump"]])
    assert found(filled, none_of=[["pump"]]) == [name for name in names_of_all if name not in with_pump]
    assert found(filled, [["pump"]], [["screws"]]) == ["Pump.md"], "in a title, too, it stands there"
    assert found(filled, none_of=[["screws", "blocked"]]) == [name for name in names_of_all if name != "manual.md"]
    assert found(filled, none_of=[["screws"], ["E-1042"], ["水泵"]]) == ["Pump.md"]
    scan = filled.scan_keywords(WordQuery((("pump",),), (("screws",),)), document_limit=5)
    assert scan.passage_count == sum(match.passage_count for match in scan.documents)
    assert all(filled.chunks([match.chunk_id]) for match in scan.documents)


def test_a_filter_holds_for_what_is_left_out(filled: Library) -> None:
    scan = filled.scan_keywords(WordQuery(none_of=(("pump",),)), document_limit=9, where=Filter(paths=("/a",)))
    assert scan.document_count + len(names(filled, "pump", where=Filter(paths=("/a",)))) == scan.document_total


@given(
    st.lists(
        st.lists(st.sampled_from(["pump", "screws", "E-1042", "blocked", "水泵", "zeppelin", "?!"]), max_size=3),
        max_size=3,
    ),
    st.lists(st.lists(st.sampled_from(["pump", "screws", "E-1042", "lid screws", "..."]), max_size=3), max_size=3),
)
def test_sets_of_documents_are_those_of_the_single_words(
    filled: Library, any_of: list[list[str]], none_of: list[list[str]]
) -> None:
    everything = set(found(filled))

    def holding(group: Sequence[str]) -> set[str]:
        return set.intersection(everything, *({name for name, _ in names(filled, word)} for word in group))

    words = WordQuery(tuple(map(tuple, any_of)), tuple(map(tuple, none_of)))
    scan = filled.scan_keywords(words, document_limit=20)
    wanted = scan.words  # without what is no word
    expected = set().union(*map(holding, wanted.any_of)) if wanted.any_of else everything
    expected = expected.difference(*map(holding, wanted.none_of))
    assert {Path(match.path).name for match in scan.documents} == expected
    assert scan.document_count == len(expected)
