"""The records that pass between the stages, and the seams where parts are exchanged.

Everything here is frozen; a stage takes one record and gives the next. Offsets are in characters
(Python string indices) of the stored document text, half open; pages and lines count from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]  # (n, dim) or (dim,), rows of unit length


GenerationMode = Literal["model", "instant"]  # what answers: a chat model, or the documents' own sentences
# How computed passages are used again: only where they stand as they were computed, anywhere, or as tuning found.
KvMode = Literal["exact", "spliced", "auto"]
TuneMode = Literal["idle", "off"]
EmbedBackend = Literal["auto", "llama.cpp", "torch"]  # what embeds passages; "auto": the fastest here
OcrMode = Literal["auto", "off", "force"]  # what OCR reads: pages without text, none, all
VectorType = Literal["f16", "f32"]  # how a segment file stores its vectors

# What to do when the context of the chat model does not fit into the free memory.
WhenTight = Literal["shrink", "refuse"]


# ---------------------------------------------------------------- documents


# Between an archive or a mail and what lies in it, in the path of a document.
MEMBER_MARK = "!/"
# In place of a language's code: numbers, code, too few words to tell, or not looked at yet.
UNKNOWN_LANGUAGE = "unknown"


@dataclass(frozen=True, slots=True)
class Page:
    """One page, slide or row (see ``page_unit``): its number as a person knows it and the span of its text."""

    number: int
    start: int
    end: int


PageUnit = Literal["page", "slide", "row"]  # what the pages of a document are to a person

_SLIDES = frozenset(
    {
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
        "application/vnd.openxmlformats-officedocument.presentationml.template",
        "application/vnd.ms-powerpoint",
        "application/vnd.ms-powerpoint.presentation.macroEnabled.12",
        "application/vnd.oasis.opendocument.presentation",
    }
)
_ROWS = frozenset(
    {
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.ms-excel",
        "application/vnd.ms-excel.sheet.macroEnabled.12",
        "application/vnd.ms-excel.sheet.binary.macroEnabled.12",
        "application/vnd.oasis.opendocument.spreadsheet",
    }
)


def page_unit(media_type: str) -> PageUnit:
    """What the pages of a document of this type are. Rows are numbered sheet by sheet, the others all through."""
    if media_type in _SLIDES:
        return "slide"
    return "row" if media_type in _ROWS else "page"


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
    hidden: tuple[tuple[int, int], ...] = ()  # spans that a person does not see in the file, in order
    first_line: int = 1  # the number that its first line has in the file, of which it may be a part
    language: str = UNKNOWN_LANGUAGE  # the one that most of it is in: ISO 639-1, or 639-3 where that has none
    dated_ns: int | None = None  # when it was written as it says itself, nanoseconds since 1970; None: it does not


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
    hidden: bool = False  # some of it cannot be seen in the file

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
    character_count: int = 0  # of its text
    content_bytes: int = 0  # of the file, or of the member of an archive or a mail, itself; 0 where not known
    seconds: float = 0.0  # that parsing and chunking it took
    language: str = UNKNOWN_LANGUAGE  # the one that most of it is in
    dated_ns: int | None = None  # when it was written as it says itself; None: it does not, and mtime_ns stands for it

    @property
    def text_share(self) -> float | None:
        """Characters of text per byte of what it was read from; None where that says nothing."""
        return text_share(self.character_count, self.content_bytes)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that was found and not read, and why."""

    path: str
    reason: str


# Where several libraries are asked at once, which one an id is of stands above these bits of it.
OWN_ID_BITS = 48


def own_id(identity: int) -> int:
    """The id of a chunk or document in its own library."""
    return identity & ((1 << OWN_ID_BITS) - 1)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk together with the document it belongs to."""

    id: int
    document_id: int
    path: str
    title: str
    media_type: str
    chunk: Chunk
    kv_key: str = ""  # name under which the model's state of this text may be kept; "" when it has none
    also_in: tuple[str, ...] = ()  # other files with the same content, twenty at most
    library: str = ""  # which of several it is in; "" where one is asked


# ---------------------------------------------------------------- asking


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents a search may look into. A document must match one entry of every kind that has
    entries; a kind without entries asks nothing."""

    document_ids: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()  # absolute; the document itself, or a folder above it
    tags: tuple[str, ...] = ()  # as the library keeps them
    languages: tuple[str, ...] = ()  # codes, or UNKNOWN_LANGUAGE
    types: tuple[str, ...] = ()  # of files, as file_types.py has them: "pdf", "slides", ".log"
    # The date that a document itself gives, else that of its file, in nanoseconds since 1970.
    since_ns: int | None = None
    until_ns: int | None = None  # the first moment that is too late


@dataclass(frozen=True, slots=True)
class LegHit:
    """One line of one leg's answer, best first."""

    chunk_id: int
    score: float  # keyword: BM25, higher is better; vector: cosine


@dataclass(frozen=True, slots=True)
class AskedTerm:
    """A term of a question as the keyword index compares it: any of ``forms``, each a row of words."""

    forms: tuple[tuple[str, ...], ...]
    idf: float


@dataclass(frozen=True, slots=True)
class PassageWords:
    """A passage as the keyword index compares it, word by word."""

    title: tuple[str, ...]
    headings: tuple[str, ...]
    body: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WordEvidence:
    """The words of a question and of passages, by chunk id; ``mean_words`` is how many a passage has."""

    terms: tuple[AskedTerm, ...]
    passages: Mapping[int, PassageWords]
    mean_words: float


@dataclass(frozen=True, slots=True)
class Scores:
    """How a hit came about, leg by leg. Ranks count from 1; None means the leg did not find it."""

    keyword: float | None
    keyword_rank: int | None
    vector: float | None
    vector_rank: int | None
    fused: float
    reranked: float | None = None  # probability among the candidates; None for those that were not reranked
    covered: float = 0.0  # share of the question's content words in it, by rarity; those inside other words for a part
    together: float = 0.0  # the share of them that stands in one run of words
    nearness: float | None = None  # above that of any passage, 1 is the question itself; None: vectors do not tell


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk with its scores."""

    chunk: StoredChunk
    scores: Scores


# What kind of question: an exact string, words alone, a whole question, one that leans on the conversation, or one
# about the documents as a collection ("how many documents mention ...").
QuestionKind = Literal["identifier", "keywords", "question", "follow_up", "aggregate"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question will be answered."""

    question: str  # as it is searched: a follow-up with the words that the conversation lent it
    script: str  # the writing system that dominates: "latin", "han", "thai", ...
    terms: tuple[str, ...]  # content words of the question, as the keyword index folds them
    source_count: int  # most sources to show
    candidate_count: int  # hits asked of each leg
    keyword_weight: float
    vector_weight: float
    ef_search: int
    kind: QuestionKind = "question"
    broad: bool = False  # asks for more than one place: a comparison, an overview
    entropy_bits: float = 0.0  # how many words the question is spread over, by their rarity: 2 ** bits of equal weight
    words_first: bool = False  # the vector leg runs only where the keyword leg is not sure
    added_words: tuple[str, ...] = ()  # those of ``question`` that the conversation lent, at its end

    @property
    def own_question(self) -> str:
        """The question without what was lent."""
        lent = " ".join(self.added_words)
        return self.question.removesuffix(lent).rstrip() if lent else self.question


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
class PieceCount:
    """How often a word or phrase stands in the documents looked at, titles and headings included."""

    piece: str
    document_count: int
    passage_count: int


@dataclass(frozen=True, slots=True)
class DocumentMatch:
    """A document that holds all the words of a scan."""

    document_id: int
    path: str
    passage_count: int  # passages in which they stand together; may be 0
    chunk_id: int  # the first of those, or the first with the rarest of the words


@dataclass(frozen=True, slots=True)
class KeywordScan:
    """What an exhaustive look for some words found. The counts are of everything, the documents named are some."""

    pieces: tuple[PieceCount, ...]
    document_total: int  # that were looked at
    passage_total: int
    document_count: int  # that hold all the words
    passage_count: int  # that hold all of them together
    joint_document_count: int  # that have such a passage
    documents: tuple[DocumentMatch, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a message whose computed state is worth keeping: a chunk behind the line that introduces it."""

    header: str  # as it stands in this prompt: its number and title
    home_header: str  # as it would stand if it were the first of the first message
    text: str
    key: str  # names its state; "" keeps none
    chunk_id: int = 0

    def __str__(self) -> str:
        return self.header + self.text


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation sent to the chat model. Every part is plain text and can never
    become a control token; parts are tokenised apart so that their tokens can be re-used."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | Passage, ...]


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """Where the text of a passage lies in a prompt, and what stands before it at home: behind the system message,
    as the first passage. Its state is computed there, and exact there; anywhere else it is an approximation."""

    key: str
    start: int  # of its text, in tokens; the header is before
    end: int
    home: tuple[int, ...]  # the tokens before it at home
    home_header_tokens: int = 0  # the last of them, which are kept with its state


@dataclass(frozen=True, slots=True)
class EncodedChat:
    """A conversation in a model's tokens."""

    tokens: tuple[int, ...]
    passages: tuple[PassageSpan, ...] = ()  # in their order
    opening: str = ""  # what the format writes last, before the reply; it may open a thought there


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is given, already in tokens."""

    tokens: tuple[int, ...]
    passages: tuple[PassageSpan, ...]
    messages: tuple[Message, ...]  # what the tokens say
    sources: tuple[Source, ...]  # by number; in the prompt the best one stands last, next to the question
    marks: tuple[tuple[int, int], ...]  # (number that a source has in the prompt, number of the source)
    dropped: tuple[Hit, ...]  # hits that did not fit
    history_dropped: int  # turns of the conversation that did not fit
    answer_room: int  # tokens left for the answer
    question_cut: bool  # the question itself was longer than the context
    opening: str = ""  # what the chat format writes last, before the reply


@dataclass(frozen=True, slots=True)
class StageTime:
    """Wall time of one stage of one answer."""

    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TokenCounts:
    prompt: int
    answer: int


StopReason = Literal["end", "length", "cancelled", "no_sources", "no_model", "instant", "counted"]


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
    instant: tuple[InstantSentence, ...] = ()  # shown while the model was at work, or all there is
    sentences: tuple[AnswerSentence, ...] = ()  # of what a model wrote, in order; none for what it did not write
    thought: str = ""  # of a reasoning model; no part of the text
    messages: tuple[Message, ...] = ()  # the conversation as the model has it: what a Turn goes on from
    prefill: Prefill | None = None
    plan: Plan | None = None  # None of an answer that was cancelled before there was one
    probability: float | None = None  # that there is anything about the question; None where that was not judged
    exited_early: bool = False  # the words were sure, so that no vectors were searched
    nearest: tuple[Hit, ...] = ()  # where nothing was found: what is nearest to it, and answers nothing


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier question of the conversation and its answer. ``messages`` is the conversation as the model has it,
    this answer included: what is asked next is put behind it, so that nothing of it is computed again."""

    question: str
    answer: str
    messages: tuple[Message, ...] = ()
    cited_chunks: tuple[int, ...] = ()  # ids of the chunks that the answer rests on


@dataclass(frozen=True, slots=True)
class InstantSentence:
    """A sentence of a source, word for word: ``text`` stands in the document at ``start`` to ``end``."""

    text: str
    source: int  # number of the source
    start: int
    end: int


Support = Literal["supported", "unsupported", "not_checked"]


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """What code found out about one sentence of an answer, ``answer.text[start:end]``."""

    start: int
    end: int
    sources: tuple[int, ...]  # numbers of the sources that it rests on, best first
    support: Support
    reason: str  # why it is unsupported or was not checked, in a sentence; "" when it is supported


# events of the ask flow, in the order in which they come


@dataclass(frozen=True, slots=True)
class PlanMade:
    plan: Plan


@dataclass(frozen=True, slots=True)
class HitsFound:
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class InstantAnswer:
    """What the documents themselves say: there before the chat model has read anything."""

    sentences: tuple[InstantSentence, ...]  # best first
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class PromptReady:
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """The next piece of the answer; all of them joined are the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """The next piece of what a reasoning model thinks before it answers; no part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerDone:
    answer: Answer


AskEvent = PlanMade | HitsFound | InstantAnswer | PromptReady | ThoughtDelta | AnswerDelta | AnswerDone


# ---------------------------------------------------------------- ingesting

Outcome = Literal["ingested", "unchanged", "skipped", "failed", "removed"]


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file."""

    path: str
    outcome: Outcome
    reason: str  # empty when there is nothing to explain
    chunk_count: int
    media_type: str = ""
    page_count: int = 0
    character_count: int = 0  # of the text
    size_bytes: int = 0  # of the file, or of the member itself; 0 where not known
    seconds: float = 0.0  # spent on parsing, chunking and storing it; embedding goes over all files together
    warnings: tuple[str, ...] = ()
    moved_from: str = ""  # the path that it had before, when it was found to have moved
    language: str = ""  # of a document; "" of a file that is none

    @property
    def text_share(self) -> float | None:
        """Characters of text per byte of the file; None where that says nothing."""
        return text_share(self.character_count, self.size_bytes)


def text_share(character_count: int, size_bytes: int) -> float | None:
    """Characters per byte; None without either."""
    return character_count / size_bytes if character_count and size_bytes else None


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


@dataclass(frozen=True, slots=True)
class WatchNote:
    """What someone who follows a folder should know, in a sentence."""

    kind: Literal["watching", "root_gone", "root_back", "busy", "looking"]
    message: str


IngestEvent = FilesDiscovered | FileDone | IngestProgress | IngestDone
WatchEvent = IngestEvent | WatchNote


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
class ReembedPrice:
    """What changing a library over to another embedder would take."""

    embedder: str
    chunks_left: int  # not embedded by an earlier run
    chunks_total: int
    seconds: float  # about, by the speed measured on this machine
    room_bytes: int  # on the disk at its highest, beside the index in use
    free_bytes: int


@dataclass(frozen=True, slots=True)
class ReembedProgress:
    """How far the change to another embedder is."""

    chunks_done: int  # those of earlier runs among them
    chunks_total: int
    chunks_per_second: float
    seconds_left: float | None  # None until it can be told
    current: str  # what else is going on


@dataclass(frozen=True, slots=True)
class ReembedDone:
    """``interrupted``: the library is searched with its old embedder as before, and what was made is kept."""

    embedder: str
    chunks_embedded: int  # in this run
    chunks_total: int
    seconds: float
    interrupted: bool


ReembedEvent = ReembedProgress | ReembedDone


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


@dataclass(frozen=True, slots=True)
class KvChanges:
    """Which states of the model are those of a text that was edited or is gone."""

    through: int  # number of the last change in it, or what was asked for if there is none
    deprecated: tuple[str, ...] = ()  # names of states whose chunk was edited or left its document
    dropped: tuple[str, ...] = ()  # names of removed documents: every state of theirs has to go
    everything: bool = False  # more changes than are remembered one by one: every state of this library has to go

    def __bool__(self) -> bool:
        return bool(self.deprecated or self.dropped or self.everything)


class KvSink(Protocol):
    """Where a library's changes of states go."""

    def __call__(self, changes: KvChanges, /) -> bool:
        """Carries them out; whether that is done and need not be told again. May be told twice."""
        ...


# ---------------------------------------------------------------- seams


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
    ) -> list[LegHit]: ...

    def chunks(self, chunk_ids: Sequence[int]) -> list[StoredChunk]: ...

    def term_weights(self, query: str) -> dict[str, float]: ...

    def scan_keywords(
        self, pieces: Sequence[str], *, document_limit: int, where: Filter | None = None
    ) -> KeywordScan: ...

    def vectors_of(self, chunk_ids: Sequence[int]) -> dict[int, Vectors]: ...

    def mean_vector(self) -> tuple[Vectors, int]: ...

    def word_evidence(self, query: str, chunk_ids: Sequence[int]) -> WordEvidence: ...


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
    """How tokens are chosen; None leaves it to the model's file, and where that says nothing to the engine."""

    temperature: float | None  # 0 is greedy
    top_p: float | None
    repeat_penalty: float | None
    seed: int
    top_k: int | None = None  # 0 is all
    min_p: float | None = None


@dataclass(frozen=True, slots=True)
class Prefill:
    """How the prompt came into the model: what was there, what was restored, what had to be computed."""

    kept_tokens: int  # of the question before
    restored_tokens: int  # exactly as they would have been computed
    approximate_tokens: int  # in another place than they were computed in, whenever that was
    computed_tokens: int
    seconds: float
    notes: tuple[str, ...] = ()  # what went another way, in sentences


@dataclass(frozen=True, slots=True)
class Generated:
    """One step of generation. ``text`` is whole characters only and may be empty."""

    text: str
    token_count: int  # tokens decoded so far
    stop: Literal["end", "length", "cancelled"] | None  # set on the last one
    prefill: Prefill | None = None  # set on the first one


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
class ModelFile:
    """A model that is on this machine and was found whole."""

    name: str
    kind: Literal["chat", "embedder"]
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
