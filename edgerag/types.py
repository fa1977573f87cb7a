"""The records that pass between the stages, and the seams where parts are exchanged.

Everything here is frozen; a stage takes one record and gives the next. Offsets are in characters
(Python string indices) of the stored document text, half open; pages and lines count from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]  # (n, dim) or (dim,), rows of unit length


VectorType = Literal["f16", "f32"]  # how a segment file stores its vectors


# ---------------------------------------------------------------- documents


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a paged format: its number and the span of its text."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading and the offset where it stands; it rules until the next of its level or above."""

    level: int  # 1 is the highest
    title: str
    start: int


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What a parser made of a file: its text and the structure found in it."""

    text: str
    title: str
    media_type: str
    pages: tuple[Page, ...] = ()
    headings: tuple[Heading, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A citable piece of a document: ``document.text[start:end] == text``, always."""

    ordinal: int  # position in its document, from 0
    start: int
    end: int
    text: str
    heading_path: tuple[str, ...]
    page_first: int | None
    page_last: int | None
    line_first: int
    line_last: int
    token_count: int  # of ``embedding_text``, by the embedder's tokenizer
    context: str = ""  # title and heading path as they are put before the text when it is embedded

    @property
    def embedding_text(self) -> str:
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True)
class Document:
    """One source file as it was ingested."""

    id: int
    path: str  # absolute, as found
    root: str  # the folder or file that was named on ingest
    title: str
    media_type: str
    content_sha256: str
    size_bytes: int
    mtime_ns: int
    page_count: int
    chunk_count: int
    pending_count: int  # chunks that have no vector yet
    warnings: tuple[str, ...]
    tags: tuple[str, ...] = ()  # in alphabetical order


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk together with the document it belongs to."""

    id: int
    document_id: int
    path: str
    title: str
    media_type: str
    chunk: Chunk


# ---------------------------------------------------------------- asking


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents a search may look into. A document must match one entry of every kind that has
    entries; a kind without entries asks nothing."""

    document_ids: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()  # absolute; the document itself, or a folder above it
    tags: tuple[str, ...] = ()  # as the library keeps them


@dataclass(frozen=True, slots=True)
class LegHit:
    """One line of one leg's answer, best first."""

    chunk_id: int
    score: float  # keyword: BM25, higher is better; vector: cosine


@dataclass(frozen=True, slots=True)
class Scores:
    """How a hit came about, leg by leg. Ranks count from 1; None means the leg did not find it."""

    keyword: float | None
    keyword_rank: int | None
    vector: float | None
    vector_rank: int | None
    fused: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk with its scores."""

    chunk: StoredChunk
    scores: Scores


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question will be answered."""

    question: str
    script: str  # the writing system that dominates: "latin", "han", "thai", ...
    terms: tuple[str, ...]  # content words of the question, as the keyword index folds them
    source_count: int  # most sources to show
    candidate_count: int  # hits asked of each leg
    keyword_weight: float
    vector_weight: float
    ef_search: int


@dataclass(frozen=True, slots=True)
class Source:
    """A hit that is shown, under the number that the answer cites."""

    number: int
    hit: Hit
    quote: str  # the words shown for it, verbatim from the document
    quote_start: int  # offset of the quote in the document text
    cited: bool


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a search, best first, and what went another way, in sentences."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation sent to the chat model. Every part is plain text and can never
    become a control token; parts are tokenised apart so that their tokens can be re-used."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is given, already in tokens."""

    tokens: tuple[int, ...]
    sources: tuple[Source, ...]  # by number; in the prompt the best one stands last, next to the question
    dropped: tuple[Hit, ...]  # hits that did not fit
    history_dropped: int  # turns of the conversation that did not fit
    answer_room: int  # tokens left for the answer
    question_cut: bool  # the question itself was longer than the context


@dataclass(frozen=True, slots=True)
class StageTime:
    """Wall time of one stage of one answer."""

    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TokenCounts:
    prompt: int
    answer: int


StopReason = Literal["end", "length", "cancelled", "no_sources", "no_model"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The finished answer. ``found`` is False when the documents hold nothing relevant."""

    question: str
    text: str
    found: bool
    sources: tuple[Source, ...]
    stop_reason: StopReason
    timings: tuple[StageTime, ...]
    tokens: TokenCounts
    model: str
    pending_count: int  # chunks not yet searchable by meaning
    notes: tuple[str, ...]  # what was left out or went another way, in sentences


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier question of the conversation and its answer."""

    question: str
    answer: str


# events of the ask flow, in the order in which they come


@dataclass(frozen=True, slots=True)
class PlanMade:
    plan: Plan


@dataclass(frozen=True, slots=True)
class HitsFound:
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class PromptReady:
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """The next piece of the answer; all of them joined are the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerDone:
    answer: Answer


AskEvent = PlanMade | HitsFound | PromptReady | AnswerDelta | AnswerDone


# ---------------------------------------------------------------- ingesting

Outcome = Literal["ingested", "unchanged", "skipped", "failed", "removed"]


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file."""

    path: str
    outcome: Outcome
    reason: str  # empty when there is nothing to explain
    chunk_count: int


@dataclass(frozen=True, slots=True)
class FilesDiscovered:
    file_count: int


@dataclass(frozen=True, slots=True)
class FileDone:
    report: FileReport


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """How far the run is. Files are parsed first, their chunks embedded as they come."""

    files_done: int
    files_total: int
    chunks_done: int  # embedded and committed in this run
    chunks_total: int  # known so far
    chunks_per_second: float
    seconds_left: float | None  # None until it can be told
    current: str  # file or stage at work


@dataclass(frozen=True, slots=True)
class IngestDone:
    reports: tuple[FileReport, ...]
    chunks_embedded: int
    seconds: float
    interrupted: bool
    notes: tuple[str, ...] = ()  # what the user should know of the index itself, in sentences

    def count(self, outcome: Outcome) -> int:
        return sum(1 for report in self.reports if report.outcome == outcome)


IngestEvent = FilesDiscovered | FileDone | IngestProgress | IngestDone


# ---------------------------------------------------------------- status


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a diagnosis."""

    name: str
    severity: Literal["ok", "info", "warning", "error"]
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class SegmentStatus:
    name: str
    vector_count: int
    dead_count: int  # vectors of removed chunks, still in the file
    size_bytes: int
    block_count: int
    resident_bytes: int  # of this process
    walk: str  # how it is searched: "exact scan", "1-bit codes", ...


@dataclass(frozen=True, slots=True)
class BlockHeat:
    """One block of a segment file, and how it was used since this process mapped it."""

    number: int  # in the file, from 0
    kind: str  # the section whose rows it holds: "levels", "links", "bits", "nibbles", "vectors"; "labels" in old files
    size_bytes: int
    resident_bytes: int  # mapped in this process
    cached_bytes: int  # held by the system's page cache, whoever read it
    hits: int
    idle_s: float | None  # seconds since the last use, or since it was mapped; None where that is not known


@dataclass(frozen=True, slots=True)
class SegmentBlocks:
    """The blocks of one segment file, in the order of the file."""

    name: str
    blocks: tuple[BlockHeat, ...]


@dataclass(frozen=True, slots=True)
class MergeProgress:
    """How far the making of segments is."""

    stage: Literal["reading", "linking", "writing"]  # of the segment under construction
    done_rows: int
    all_rows: int


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a seal or a compaction did. ``cancelled``: it stopped early, and what it had finished stays."""

    segments_before: int
    segments_after: int
    bytes_before: int  # of the segment files
    bytes_after: int
    rows_written: int  # into new segments
    rows_dropped: int  # vectors of removed chunks that are in no file any more
    damaged: tuple[str, ...]  # segments that were left as they are because they cannot be read, in sentences
    notes: tuple[str, ...]  # what was not done and why, in sentences
    cancelled: bool


@dataclass(frozen=True, slots=True)
class LibraryStatus:
    name: str
    folder: str
    embedder: str
    dimension: int
    document_count: int
    chunk_count: int
    pending_count: int
    size_bytes: int
    budget_bytes: int
    resident_bytes: int
    segments: tuple[SegmentStatus, ...]
    unsealed_count: int = 0  # vectors in the database, not yet in a segment
    limitation: str = ""  # why the budget cannot be enforced here; empty where it is


# ---------------------------------------------------------------- seams


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What a library must be searched with. Backends and quantisations of the same weights share it."""

    name: str
    weights_sha256: str
    dimension: int
    languages: tuple[str, ...]  # ISO 639-1 codes it was trained for; ("*",) for many


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


@dataclass(frozen=True, slots=True)
class Sampling:
    temperature: float  # 0 is greedy
    top_p: float
    repeat_penalty: float
    seed: int


@dataclass(frozen=True, slots=True)
class Generated:
    """One step of generation. ``text`` is whole characters only and may be empty."""

    text: str
    token_count: int  # tokens decoded so far
    stop: Literal["end", "length", "cancelled"] | None  # set on the last one


class Generator(Protocol):
    """A chat model."""

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int: ...

    def count_tokens(self, text: str) -> int: ...

    def encode_chat(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The conversation in the model's own chat format, opened for the assistant's reply.
        Parts are tokenised as plain text: whatever they hold, they yield no control token."""
        ...

    def generate(
        self, tokens: Sequence[int], *, max_tokens: int, sampling: Sampling, cancelled: CancelCheck
    ) -> Iterator[Generated]:
        """Decodes ``tokens`` (re-using what the context already holds of their beginning), then
        yields until the model ends, ``max_tokens`` are out or ``cancelled()`` says so."""
        ...


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model that is on this machine and was found whole."""

    name: str
    kind: Literal["chat", "embedder"]
    path: Path
    size_bytes: int
    sha256: str  # of the file at ``path``
    weights_sha256: str  # of the weights it was made from; equals sha256 when nothing was converted
    licence: str
    languages: tuple[str, ...]
    context_tokens: int  # trained context
    dimension: int  # of the hidden state; of the vectors for an embedder
