from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fakes import HashingEmbedder

from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.types import UNKNOWN_LANGUAGE, Chunk, ParsedDocument

EMBEDDER = HashingEmbedder(dimension=16)


def put(library: Library, path: str, text: str, *, title: str = "", language: str = UNKNOWN_LANGUAGE) -> int:
    chunk = Chunk(
        ordinal=0,
        start=0,
        end=len(text),
        text=text,
        heading_path=("Care",),
        page_first=None,
        page_last=None,
        line_first=1,
        line_last=1,
        token_count=5,
        context=title,
    )
    parsed = ParsedDocument(text=text, title=title, media_type="text/plain", language=language)
    document = library.put_document(parsed, [chunk], path=path, root="/", content_sha256=path, size_bytes=1, mtime_ns=0)
    (chunk_id,) = library.pending_of(document)
    return chunk_id


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    folder = tmp_path / "library"
    with open_library(folder, mode="write", residency=Residency(10_000_000), identity=EMBEDDER.identity) as opened:
        yield opened


def test_question_and_passage_meet_in_the_words_of_the_index(library: Library) -> None:
    english = put(library, "/pump.txt", "Grease the screws of both pumps.", title="Pumps", language="en")
    german = put(library, "/de.txt", "Die Häuser der Stadt.", language="de")
    evidence = library.word_evidence("pump screws Haus", [english, german, 999])
    assert set(evidence.passages) == {english, german}
    forms = [set(term.forms) for term in evidence.terms]
    assert len(forms) == 3

    def held(chunk_id: int, part: str) -> list[bool]:
        words = getattr(evidence.passages[chunk_id], part)
        return [any(form[0] in words for form in each) for each in forms]

    assert held(english, "body") == [True, True, False]
    assert held(english, "title") == [True, False, False]
    assert held(german, "body") == [False, False, True]
    assert evidence.passages[english].headings == ("care",)
    assert evidence.mean_words > 0
    assert all(term.idf > 0 for term in evidence.terms)


def test_characters_of_scripts_without_spaces_are_phrases(library: Library) -> None:
    chunk = put(library, "/zh.txt", "水泵每六个月更换机油。", language="zh")
    evidence = library.word_evidence("水泵", [chunk])
    assert [term.forms for term in evidence.terms] == [(("水", "泵"),)]
    assert evidence.passages[chunk].body[:2] == ("水", "泵")


def test_words_kept_for_typing_without_accents_are_no_words_of_the_passage(library: Library) -> None:
    chunk = put(library, "/vi.txt", "Máy bơm nước", language="vi")
    assert len(library.word_evidence("máy bơm", [chunk]).passages[chunk].body) == 3


def test_rarer_words_weigh_more(library: Library) -> None:
    ids = [put(library, f"/{n}.txt", "common" + (" rare" if n == 0 else "")) for n in range(5)]
    common, rare = library.word_evidence("common rare", ids).terms
    assert rare.idf > common.idf


def test_vectors_are_the_same_before_and_after_they_are_sealed(library: Library) -> None:
    ids = [put(library, f"/{n}.txt", f"text number {n}") for n in range(4)]
    assert library.vectors_of(ids) == {}
    library.put_vectors(ids[:3], EMBEDDER.embed_passages([f"text number {n}" for n in range(3)]))
    before = library.vectors_of(ids)
    assert sorted(before) == ids[:3]
    library.seal()
    after = library.vectors_of([*ids, 12345])
    assert sorted(after) == ids[:3]
    for chunk_id in before:
        assert np.allclose(before[chunk_id], after[chunk_id], atol=1e-3)
        assert np.linalg.norm(after[chunk_id]) == pytest.approx(1, abs=1e-5)


def test_the_passages_of_a_library_are_counted_through_changes_and_removals(library: Library) -> None:
    assert library.term_counts("pump").chunks == 0
    put(library, "/pump.txt", "Grease the screws of both pumps.")
    put(library, "/lid.txt", "Close the lid.")
    assert library.term_counts("pump").chunks == 2
    put(library, "/lid.txt", "Open the lid of the pump.")
    assert library.term_counts("pump").chunks == 2
    library.remove_documents([document.id for document in library.documents() if document.path == "/pump.txt"])
    counts = library.term_counts("pump")
    assert (counts.chunks, counts.holders) == (1, (1,))
