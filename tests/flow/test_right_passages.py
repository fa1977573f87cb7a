"""The right passage among the sources, and none when there is none: real models, a small text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edgerag.ask.pipeline import NOT_FOUND, ask
from edgerag.config import ChunkSettings, GenerationSettings, IngestSettings, RetrievalSettings
from edgerag.engine.catalog import Catalog
from edgerag.engine.embedder import LlamaEmbedder, open_embedder
from edgerag.engine.generator import LlamaGenerator, open_generator, plain_settings
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.ingest.pipeline import ingest
from edgerag.types import Answer, AnswerDone, Turn

TEXTS = Path(__file__).parents[1] / "data" / "ask"
THREADS = 2

ANSWERABLE = [
    ("How do I change to the channel that is built every night?", "01-installing.md"),
    ("Which error do I get when I assign to a constant?", "02-bindings.md"),
    ("How large can an integer get?", "03-numbers.md"),
    ("Is the length of a string counted in bytes?", "04-text.md"),
    ("How do I give a default value when an operation fails?", "05-errors.md"),
    ("How often is a crashed task restarted?", "06-tasks.md"),
    ("Does garbage collection stop the whole program?", "07-memory.md"),
    ("Which version of a dependency is chosen?", "08-modules.md"),
    ("Who created the language?", "12-history.md"),
    ("What does QUILL_FOREIGN_THREADS do?", "11-foreign.md"),
    ("任务连续运行的时间最多是多少？", "13-zh-调度器.md"),
    ("Wie lange dauert die Prüfung eines Vorschlags?", "14-de-lizenz.md"),
]
UNANSWERABLE = [
    "Who won the football world cup in 1998?",
    "What is the boiling point of mercury?",
    "Welche Medikamente helfen gegen Migräne?",
    "长城有多长？",
]


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def embedder(catalog: Catalog) -> Iterator[LlamaEmbedder]:
    opened = open_embedder(catalog.find("embedder"), threads=THREADS)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def generator(catalog: Catalog) -> Iterator[LlamaGenerator]:
    settings = plain_settings(context_tokens=GenerationSettings().context_tokens, threads=THREADS)
    opened = open_generator(catalog.find("chat"), settings)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, embedder: LlamaEmbedder) -> Iterator[Library]:
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
    question: str,
    library: Library,
    embedder: LlamaEmbedder,
    generator: LlamaGenerator,
    *,
    history: tuple[Turn, ...] = (),
) -> Answer:
    *_, last = ask(
        question,
        library=library,
        embedder=lambda: embedder,
        generator=lambda: generator,
        retrieval=RetrievalSettings(),
        # A few words are enough to see the flow through.
        generation=GenerationSettings(answer_tokens=16),
        history=history,
        cancelled=never,
    )
    assert isinstance(last, AnswerDone)
    return last.answer


@pytest.mark.parametrize(("question", "file"), ANSWERABLE)
def test_the_right_file_is_among_the_sources(
    question: str, file: str, library: Library, embedder: LlamaEmbedder, generator: LlamaGenerator
) -> None:
    answer = answered(question, library, embedder, generator)
    assert answer.found, f"refused: {question}"
    assert file in [Path(source.hit.chunk.path).name for source in answer.sources]
    assert answer.text.strip()


@pytest.mark.parametrize("question", UNANSWERABLE)
def test_what_is_not_there_is_refused(
    question: str, library: Library, embedder: LlamaEmbedder, generator: LlamaGenerator
) -> None:
    answer = answered(question, library, embedder, generator)
    assert answer.text == NOT_FOUND
    assert not answer.found and answer.sources == ()


@pytest.mark.parametrize(
    ("first", "question", "file"),
    [
        ("How often is a crashed task restarted?", "And how long does it run?", "06-tasks.md"),
        ("Who created the language?", "why?", "12-history.md"),
        ("Does garbage collection stop the whole program?", "How often does it run?", "07-memory.md"),
    ],
)
def test_a_follow_up_finds_what_was_spoken_of(
    first: str, question: str, file: str, library: Library, embedder: LlamaEmbedder, generator: LlamaGenerator
) -> None:
    before = answered(first, library, embedder, generator)
    history = (Turn(first, before.text, messages=before.messages),)
    answer = answered(question, library, embedder, generator, history=history)
    assert answer.plan is not None and answer.plan.added_words
    assert file in [Path(source.hit.chunk.path).name for source in answer.sources]


def test_documents_are_counted_without_the_model(
    library: Library, embedder: LlamaEmbedder, generator: LlamaGenerator
) -> None:
    answer = answered("How many documents mention QUILL_FOREIGN_THREADS?", library, embedder, generator)
    holding = {path.name for path in TEXTS.iterdir() if "QUILL_FOREIGN_THREADS" in path.read_text(encoding="utf-8")}
    assert (answer.stop_reason, answer.model) == ("counted", "")
    assert answer.text.startswith(f"{len(holding)} of {len(library.documents())} documents")
    assert {Path(source.hit.chunk.path).name for source in answer.sources} == holding
