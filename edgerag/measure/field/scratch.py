"""A small library of made-up documents in a folder for temporary files, which is gone when the bench ends.

It holds what a question needs and nothing of the user's; the models are those of the settings. Raising
KeyboardInterrupt removes it like any other end.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from edgerag.config import Settings
from edgerag.engine.catalog import Catalog
from edgerag.engine.embedder import LlamaEmbedder
from edgerag.engine.generator import GeneratorSettings, LlamaGenerator, open_generator
from edgerag.engine.opening import chat_model_settings, open_embedding_model, use_tuned_waiting
from edgerag.engine.states.store import StateStore
from edgerag.engine.tuning.record import Tunings
from edgerag.errors import ModelError
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.index.token_store import TokenStore
from edgerag.ingest.pipeline import ingest
from edgerag.machine.memory import available_bytes
from edgerag.measure.field.series import Turns
from edgerag.measure.questions import FactQuestion, synthetic_questions
from edgerag.types import EmbedderIdentity, ModelFile, Observation

_PASSAGE_TOKENS = 150
_SEED = 12
_STATES_BYTES = 500_000_000


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    rounds: int  # of what takes less than a second
    asked: int  # questions that are answered by a model
    documents: int
    rows: int  # of a made-up index
    answer_tokens: int
    passages: int  # that are embedded together
    part_s: float  # of one comparison: on a slow machine there are fewer rounds


QUICK = Effort(rounds=12, asked=6, documents=24, rows=6_000, answer_tokens=32, passages=8, part_s=6.0)
THOROUGH = Effort(rounds=20, asked=24, documents=60, rows=20_000, answer_tokens=96, passages=32, part_s=60.0)


class Scratch:
    """What the parts measure with. Each thing is opened when it is first asked for."""

    def __init__(self, folder: Path, catalog: Catalog, settings: Settings, effort: Effort, undo: ExitStack) -> None:
        self.folder = folder
        self.catalog = catalog
        # What is found must not depend on how busy the machine is.
        retrieval = dataclasses.replace(settings.retrieval, vector_deadline_ms=0, second_look="off")
        generation = dataclasses.replace(settings.generation, answer_tokens=effort.answer_tokens, reading_s=0)
        self.settings = dataclasses.replace(settings, retrieval=retrieval, generation=generation)
        self.effort = effort
        self.observations: list[Observation] = []  # of the answers that were made
        self._undo = undo

    @cached_property
    def questions(self) -> list[FactQuestion]:
        return synthetic_questions(self.effort.documents, passage_tokens=_PASSAGE_TOKENS, seed=_SEED)

    @cached_property
    def chat_model(self) -> ModelFile:
        """Raises ModelError."""
        return self.catalog.find("chat", self.settings.models.chat)

    @cached_property
    def embedder_model(self) -> ModelFile:
        """Raises ModelError."""
        return self.catalog.find("embedder", self.settings.models.embedder)

    @cached_property
    def embedder(self) -> LlamaEmbedder:
        return self.open_embedder(closes=True)

    @cached_property
    def tuned(self) -> tuple[ModelFile, GeneratorSettings]:
        """The chat model as the program would run it."""
        tunings = Tunings(self.catalog.folder)
        use_tuned_waiting(self.chat_model, tunings)
        return chat_model_settings(
            self.chat_model, tunings=tunings, machine=self.settings.machine, generation=self.settings.generation
        )

    @cached_property
    def generator(self) -> LlamaGenerator:
        return self.open_generator(closes=True)

    @cached_property
    def library(self) -> Library:
        """The documents, ingested as the program does it."""
        model = self.embedder_model
        identity = EmbedderIdentity(model.name, model.weights_sha256, model.dimension, model.languages)
        docs = self.folder / "documents"
        write_documents(docs, self.questions)
        residency = Residency(self.settings.memory.budget_bytes(available_bytes()))
        place = self.folder / "library"
        with open_library(place, mode="write", residency=residency, identity=identity) as library:
            for _ in ingest(
                [docs],
                library=library,
                embedder=lambda: self.embedder,
                settings=dataclasses.replace(self.settings.ingest, polite=False, max_cpu=100, nice=0),
                chunks=self.settings.chunks,
                cancelled=lambda: False,
            ):
                pass
        return self._undo.enter_context(open_library(place, mode="read", residency=residency))

    def open_embedder(self, *, closes: bool = False) -> LlamaEmbedder:
        embedder = open_embedding_model(self.embedder_model, machine=self.settings.machine)
        if closes:
            self._undo.callback(embedder.close)
        return embedder

    def open_generator(
        self,
        *,
        change: Callable[[GeneratorSettings], GeneratorSettings] = lambda settings: settings,
        file: ModelFile | None = None,
        closes: bool = False,
    ) -> LlamaGenerator:
        """The chat model, or ``file``, run as tuned but for ``change``; with states of its own."""
        model, settings = self.tuned
        number = len(list(self.folder.glob("states-*")))
        states = StateStore(self.folder / f"states-{number}", ram_bytes=_STATES_BYTES, disk_bytes=0)
        (self.folder / f"states-{number}").mkdir()
        generator = open_generator(
            file or model, change(settings), states=states, tokens=TokenStore(self.folder / f"states-{number}")
        )
        if closes:
            self._undo.callback(generator.close)
        return generator

    def turns(self) -> Turns:
        return Turns(most_s=self.effort.part_s)

    def missing_model(self, kind: str) -> str:
        """Why there is no model of that kind, with what to do about it; "" when there is one."""
        try:
            _ = self.chat_model if kind == "chat" else self.embedder_model
        except ModelError as error:
            return str(error)
        return ""


@contextmanager
def scratch(catalog: Catalog, settings: Settings, effort: Effort) -> Iterator[Scratch]:
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as folder, ExitStack() as undo:
        yield Scratch(Path(folder), catalog, settings, effort, undo)


def write_documents(folder: Path, questions: Sequence[FactQuestion]) -> None:
    """A page for each question: the passage that answers it, and those that do not, under their titles."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, question in enumerate(questions):
        sections = "\n\n".join(f"## {title}\n\n{text}" for title, text in question.passages)
        title = f"# {question.passages[0][0]}, page {number}"
        (folder / f"page-{number:03}.md").write_text(f"{title}\n\n{sections}\n", encoding="utf-8")
