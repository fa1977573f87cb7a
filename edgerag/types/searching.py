"""From a question to hits: what is looked for and what was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from edgerag.types.arrays import Vectors
    from edgerag.types.documents import StoredChunk
    from edgerag.types.latency import Forecast


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


@dataclass(slots=True)
class SearchWork:
    """What a search by vectors took, added up as it goes over the segments."""

    segments: int = 0
    blocks: int = 0  # of the mapped files, that were read from
    distances: int = 0  # rows compared with the query, by codes or by full vectors


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
class LatentEvidence:
    """How near passages are to a question, (n,), and to each other, (n, n) with 0 for themselves: cosines in the latent
    space of their library's words. 0 where it says nothing of one, and between passages of different libraries."""

    cosines: Vectors
    alike: Vectors


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
    second_look: float | None = None  # probability among those that a model read with the question, by its word alone


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
    source_count: int  # sources of the usual length that it gets
    candidate_count: int  # hits asked of each leg
    keyword_weight: float
    vector_weight: float
    ef_search: int
    kind: QuestionKind = "question"
    broad: bool = False  # asks for more than one place: a comparison, an overview
    entropy_bits: float = 0.0  # how many words the question is spread over, by their rarity: 2 ** bits of equal weight
    words_first: bool = False  # the vector leg runs only where the keyword leg is not sure
    most_sources: int = 0  # however short they are
    room_tokens: int | None = None  # that the sources may take of the prompt; None where there is no prompt
    forecast: Forecast | None = None  # None while the latency model was not calibrated
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
    # The sentences of it that the model is given, by their offsets in the chunk's text; () is all of it.
    spans: tuple[tuple[int, int], ...] = ()


# Why a hit did not become a source: too little to do with the question, the words of a chosen one, nearly its vector,
# more than there is room for, more than were wanted.
LeftOutWhy = Literal["irrelevant", "copy", "alike", "no_room", "enough"]


@dataclass(frozen=True, slots=True)
class HitLeftOut:
    hit: Hit
    why: LeftOutWhy


@dataclass(frozen=True, slots=True)
class SelectionReport:
    """How the sources were chosen. Tokens are the embedder's."""

    budget_tokens: int
    relevant_tokens: int  # of all that might have become a source
    used_tokens: int
    redundancy: float  # mean overlap of the sources (Jaccard over pairs of words), 0 to 1
    left_out: tuple[HitLeftOut, ...]

    @property
    def fill(self) -> float:
        """The share of the budget that is used, as far as there is so much to use; 1.0 where there is nothing."""
        possible = min(self.budget_tokens, self.relevant_tokens)
        return min(1.0, self.used_tokens / possible) if possible else 1.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a search, best first, and what went another way, in sentences."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WordQuery:
    """Which documents are meant: those that hold every word of one of ``any_of`` and no ``none_of`` whole. Without
    ``any_of`` all of them, without those. Words may be phrases."""

    any_of: tuple[tuple[str, ...], ...] = ()
    none_of: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def all_of(cls, words: Iterable[str]) -> WordQuery:
        held = tuple(words)
        return cls((held,) if held else ())

    @property
    def held(self) -> tuple[str, ...]:
        """The words that may be found in the documents, each once."""
        return tuple(dict.fromkeys(word for words in self.any_of for word in words))

    @property
    def words(self) -> tuple[str, ...]:
        """All words, each once."""
        return tuple(dict.fromkeys(word for words in (*self.any_of, *self.none_of) for word in words))


@dataclass(frozen=True, slots=True)
class PieceCount:
    """How often a word or phrase stands in the documents looked at, titles and headings included."""

    piece: str
    document_count: int
    passage_count: int


@dataclass(frozen=True, slots=True)
class DocumentMatch:
    """A document that a scan was for."""

    document_id: int
    path: str
    passage_count: int  # passages in which they stand together; may be 0
    chunk_id: int  # the first of those, or the first with one of the words, or with none


@dataclass(frozen=True, slots=True)
class KeywordScan:
    """What an exhaustive look for some words found. The counts are of everything, the documents named are some."""

    pieces: tuple[PieceCount, ...]  # each word, also of those that must not stand there
    document_total: int  # that were looked at
    passage_total: int
    document_count: int  # that were meant
    passage_count: int  # of those, that hold the words together
    joint_document_count: int  # that have such a passage
    documents: tuple[DocumentMatch, ...]
    words: WordQuery = WordQuery()  # as they were looked for
