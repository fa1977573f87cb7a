"""Where parts are exchanged: each with the few methods that the others ask of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from edgerag.types.arrays import Vectors
    from edgerag.types.choices import ModelKind
    from edgerag.types.documents import StoredChunk
    from edgerag.types.prompting import EncodedChat, Generated, Message, PassageSpan, Sampling
    from edgerag.types.searching import Filter, KeywordScan, LatentEvidence, LegHit, SearchWork, WordEvidence, WordQuery


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What a library must be searched with. Backends and quantisations of the same weights share it."""

    name: str
    weights_sha256: str  # and of the texts that are put before what is embedded, where there are any
    dimension: int
    languages: tuple[str, ...]  # ISO 639-1 codes it was trained for; ("*",) for many

    def is_same_as(self, other: EmbedderIdentity) -> bool:
        """Whether both give the same vectors: the weights decide, whatever their file is called."""
        return (self.weights_sha256, self.dimension) == (other.weights_sha256, other.dimension)


class Library(Protocol):
    """What asking needs of a library, or of several at once: index/library.py says what each promises."""

    @property
    def identity(self) -> EmbedderIdentity: ...

    def query_terms(self, query: str) -> tuple[str, ...]: ...

    def chunk_count(self) -> int: ...

    def is_empty(self) -> bool: ...

    def pending_count(self) -> int: ...

    def check_filter(self, where: Filter) -> Filter: ...

    def search_keywords(self, query: str, *, limit: int, where: Filter | None = None) -> list[LegHit]: ...

    def search_vectors(
        self,
        vector: Vectors,
        *,
        limit: int,
        ef_search: int,
        where: Filter | None = None,
        out_of_time: CancelCheck | None = None,
        work: SearchWork | None = None,
    ) -> list[LegHit]: ...

    def chunks(self, chunk_ids: Sequence[int]) -> list[StoredChunk]: ...

    def text_around(self, chunk_id: int, characters: int) -> tuple[str, str]: ...

    def term_weights(self, query: str) -> dict[str, float]: ...

    def scan_keywords(self, words: WordQuery, *, document_limit: int, where: Filter | None = None) -> KeywordScan: ...

    def vectors_of(self, chunk_ids: Sequence[int]) -> dict[int, Vectors]: ...

    def mean_vector(self) -> tuple[Vectors, int]: ...

    def word_evidence(self, query: str, chunk_ids: Sequence[int]) -> WordEvidence: ...

    def latent_evidence(self, words: WordEvidence, chunk_ids: Sequence[int]) -> LatentEvidence | None: ...


class Embedder(Protocol):
    """Turns text into unit vectors."""

    @property
    def identity(self) -> EmbedderIdentity: ...

    @property
    def max_tokens(self) -> int:
        """Longest passage in tokens, special tokens not counted; the rest would be cut."""
        ...

    def count_tokens(self, text: str) -> int: ...

    def embed_query(self, text: str) -> Vectors:
        """(dim,) float32, unit length."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, dim) float32, unit rows, in the order of ``texts``."""
        ...


class CancelCheck(Protocol):
    def __call__(self) -> bool:
        """True once the user has asked to stop."""
        ...


class Generator(Protocol):
    """A chat model."""

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int: ...

    def count_tokens(self, text: str) -> int: ...

    def encode_chat(self, messages: Sequence[Message]) -> EncodedChat:
        """The conversation in the model's own chat format, opened for the assistant's reply.
        Parts are tokenised as plain text: whatever they hold, they yield no control token."""
        ...

    def reading_s(self, chat: EncodedChat) -> float | None:
        """How long it takes until the first word of a reply to ``chat``, with what of it is computed already; None
        while the speed of this model on this machine is not known."""
        ...

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Plain text in tokens, as it stands behind other text."""
        ...

    def prepare(self, messages: Sequence[Message]) -> None:
        """Computes the beginning of a conversation ahead of its question, up to the first passage; returns at once
        where an answer is being made."""
        ...

    def generate(
        self,
        tokens: Sequence[int],
        *,
        passages: Sequence[PassageSpan] = (),
        max_tokens: int,
        sampling: Sampling,
        cancelled: CancelCheck,
    ) -> Iterator[Generated]:
        """Decodes ``tokens`` (re-using what the context already holds of their beginning, and the states of
        ``passages``), then yields until the model ends, ``max_tokens`` are out or ``cancelled()`` says so."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a model says of one passage, read together with the question."""

    log_odds: float  # that it answers; for some models up to what is the same for all passages of a question
    is_whole: bool = True  # nothing of it had been computed before, so its time is that of any passage


@dataclass(frozen=True, slots=True)
class PassageCost:
    """What a model takes to judge one passage, as far as it is known."""

    seconds: float
    questions: int  # that it was learned from

    def __post_init__(self) -> None:
        if not 0 < self.seconds < float("inf") or self.questions < 1:
            raise ValueError(f"{self} cannot be")


class Reranker(Protocol):
    """A model that reads a question and a passage together."""

    @property
    def name(self) -> str: ...

    def judge(self, question: str, passage: StoredChunk, *, cancelled: CancelCheck) -> Judgement:
        """Raises Cancelled soon after ``cancelled()`` says so, ModelError."""
        ...


@dataclass(frozen=True, slots=True)
class ChunkTokens:
    """A chunk's text, or the line that introduces it, in the tokens of a chat model. ``name``: of the chunk's state
    (index/kv_names.py)."""

    name: str
    text: str
    tokens: tuple[int, ...]


class TokenStore(Protocol):
    """Where the tokens of chunks are kept: index/token_store.py says what each promises."""

    def moment(self) -> tuple[int, int]: ...

    def begun(self) -> tuple[int, int]: ...

    def read(self, scope: str, wanted: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, ...]]: ...

    def keep(self, scope: str, chunks: Sequence[ChunkTokens], *, since: tuple[int, int]) -> None: ...


class Weighing(Generator, Protocol):
    """A chat model that tells what it would say next without saying it."""

    def weigh(
        self,
        tokens: Sequence[int],
        *,
        passages: Sequence[PassageSpan] = (),
        words: Sequence[str],
        others: Sequence[str],
        cancelled: CancelCheck,
    ) -> Judgement:
        """Log odds of a reply that begins with one of ``words`` against one that begins with one of ``others``.
        Raises Cancelled, ModelError; UsageError for a prompt that does not fit the context."""
        ...

    def likelihood(
        self,
        tokens: Sequence[int],
        text: str,
        *,
        passages: Sequence[PassageSpan] = (),
        cancelled: CancelCheck,
    ) -> Judgement:
        """The logarithm of how likely the reply is to begin with ``text``, or with the beginning of it where it is
        long. Raises as :meth:`weigh` does."""
        ...


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model that is on this machine and was found whole."""

    name: str
    kind: ModelKind
    path: Path
    size_bytes: int
    sha256: str  # of the file at ``path``
    # Of the weights it was made from; equals sha256 when nothing was converted. An embedder that has texts put before
    # what it reads counts them in.
    weights_sha256: str
    licence: str
    languages: tuple[str, ...]
    context_tokens: int  # trained context
    dimension: int  # of the hidden state; of the vectors for an embedder
