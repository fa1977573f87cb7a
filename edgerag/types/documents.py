"""Documents as they are read and as the library keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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


PICTURED = "application/pdf"  # the media type of documents whose pages can be drawn


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
    around_sha256: str = ""  # of the archive or mail on the disk that it was read from; "" of a file itself
    ocr: str = ""  # mode and languages of the OCR that was at hand when it was read, as in "auto eng+deu"; "": none

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


def text_share(character_count: int, size_bytes: int) -> float | None:
    """Characters per byte; None without either."""
    return character_count / size_bytes if character_count and size_bytes else None
