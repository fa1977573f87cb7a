"""The ask flow over a real library that the real ingest filled; the models are stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import HashingEmbedder, ScriptedGenerator

from edgerag.ask.chat_judges import Likelihood, YesNo
from edgerag.ask.pipeline import ask, search
from edgerag.ask.second_look import SecondLook
from edgerag.config import ChunkSettings, GenerationSettings, IngestSettings, RetrievalSettings
from edgerag.engine.catalog import Catalog
from edgerag.engine.generator import open_generator, plain_settings
from edgerag.engine.tuning.passage_cost import PassageCosts
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.ingest.pipeline import ingest
from edgerag.types import Answer, AnswerDone, SearchResult, SecondLookBy, Turn

TEXTS = Path(__file__).parents[1] / "data" / "ask"


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def embedder() -> HashingEmbedder:
    return HashingEmbedder(dimension=384)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, embedder: HashingEmbedder) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("library") / "handbook"
    with open_library(folder, mode="write", residency=Residency(50_000_000), identity=embedder.identity) as writer:
        for _ in ingest(
            [TEXTS],
            library=writer,
            embedder=lambda: embedder,
            settings=IngestSettings(),
            chunks=ChunkSettings(),
            cancelled=never,
        ):
            pass
    with open_library(folder, mode="read", residency=Residency(50_000_000)) as reader:
        yield reader


def answered(
    question: str, library: Library, embedder: HashingEmbedder, *, reply: str, history: tuple[Turn, ...] = ()
) -> Answer:
    *_, last = ask(
        question,
        library=library,
        embedder=lambda: embedder,
        generator=lambda: ScriptedGenerator(reply),
        retrieval=RetrievalSettings(),
        generation=GenerationSettings(),
        history=history,
        cancelled=never,
    )
    assert isinstance(last, AnswerDone)
    return last.answer


def test_every_source_opens_where_its_words_stand(library: Library, embedder: HashingEmbedder) -> None:
    answer = answered("How often does a supervisor restart a task?", library, embedder, reply="Five times [1].")
    assert answer.sources
    for source in answer.sources:
        chunk = source.hit.chunk
        document = library.parsed_document(chunk.document_id)
        end = source.quote_start + len(source.quote)
        assert document.text[source.quote_start : end] == source.quote
        assert chunk.chunk.start <= source.quote_start and end <= chunk.chunk.end
        lines = Path(chunk.path).read_text(encoding="utf-8").split("\n")
        cited = "\n".join(lines[chunk.chunk.line_first - 1 : chunk.chunk.line_last])
        assert source.quote in cited


def test_a_sentence_of_the_answer_is_attributed_to_its_source(library: Library, embedder: HashingEmbedder) -> None:
    answer = answered(
        "At how many columns are lines broken?", library, embedder, reply="Lines are broken at 96 columns."
    )
    (cited,) = [source for source in answer.sources if source.cited]
    assert Path(cited.hit.chunk.path).name == "10-formatting.md"
    assert answer.text == f"Lines are broken at 96 columns [{cited.number}]."


def test_an_invented_number_is_not_attributed(library: Library, embedder: HashingEmbedder) -> None:
    answer = answered(
        "At how many columns are lines broken?", library, embedder, reply="Lines are broken at 80 columns."
    )
    assert answer.text == "Lines are broken at 80 columns."
    assert not any(source.cited for source in answer.sources)


def test_error_codes_are_found_letter_by_letter(library: Library, embedder: HashingEmbedder) -> None:
    for code, file in (("Q0117", "02-bindings.md"), ("Q0340", "08-modules.md")):
        hits = search(
            f"error {code}", library=library, embedder=lambda: embedder, settings=RetrievalSettings(), limit=3
        ).hits
        assert Path(hits[0].chunk.path).name == file


def test_the_answer_does_not_depend_on_the_run(library: Library, embedder: HashingEmbedder) -> None:
    first, second = (answered("What is a mishap?", library, embedder, reply="A mishap is expected.") for _ in range(2))
    assert (first.text, first.sources, first.notes, first.tokens) == (
        second.text,
        second.sources,
        second.notes,
        second.tokens,
    )


def test_a_real_chat_model_looks_again_and_finds_the_same_whatever_it_read_before(
    library: Library, embedder: HashingEmbedder, catalog: Catalog, tmp_path: Path
) -> None:
    generator = open_generator(
        catalog.find("chat", "smollm2-135m-instruct"), plain_settings(context_tokens=1024, threads=2)
    )
    settings = RetrievalSettings(second_look_ms=0, second_look_count=3, vector_deadline_ms=0)
    costs = PassageCosts(tmp_path, threads=2)

    def found(question: str, by: SecondLookBy) -> SearchResult:
        judge = Likelihood(generator) if by == "likelihood" else YesNo(generator)
        return search(
            question,
            library=library,
            embedder=lambda: embedder,
            settings=settings,
            limit=5,
            second_look=SecondLook(by, lambda: judge, costs),
        )

    question = "How often does a supervisor restart a task?"
    first = found(question, "likelihood")
    shares = [hit.scores.second_look for hit in first.hits if hit.scores.second_look is not None]
    assert len(shares) == 3
    assert sum(shares) == pytest.approx(1)
    assert "all of the first 3 passages were read by smollm2-135m-instruct" in first.notes[-1]
    found("What is a queue?", "yes_no")
    assert found(question, "likelihood").hits == first.hits
    generator.close()
