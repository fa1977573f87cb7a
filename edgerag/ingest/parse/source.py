"""What a parser is given: the bytes of one file, its name, and how it is made safe to cite."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath

from edgerag.types import OcrMode, ParsedDocument

OCR_DPI = 300  # of the pictures that are read by OCR: what Tesseract is trained on

# Control characters that mean nothing in a text (tab, line feed and form feed stay), and lone surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
_INVISIBLE = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_TITLE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Recognised:
    """What OCR read on one page; ``text`` may be empty."""

    page: int
    text: str
    confidence: float  # mean of its words, 0 to 100
    trouble: str = ""  # why it read nothing, in a sentence


@dataclass(frozen=True, slots=True)
class Unrecognised:
    """A file that cannot be told before OCR has read these pages; they are wanted in ``Source.recognised`` then."""

    pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One file, read whole. ``name`` is its file name, for its extension and as a title of last resort.

    ``passwords`` are tried one after the other and never stored. With ``ocr`` other than "off" a parser may give
    Unrecognised back.
    """

    data: bytes
    name: str
    passwords: tuple[str, ...] = field(default=(), repr=False)
    ocr: OcrMode = "off"
    recognised: tuple[Recognised, ...] = ()

    @property
    def extension(self) -> str:
        return PurePath(self.name).suffix.lower()

    @property
    def fallback_title(self) -> str:
        return clean_title(self.name)


@dataclass(frozen=True, slots=True)
class Container:
    """A file that holds others: an archive, a mail with attachments.

    ``members`` are their names in the order of the container, each once; ``read`` gives the bytes of one, raises
    DocumentError when it cannot, and stops with DocumentUnsupported beyond so many bytes. ``document`` is what the
    container says itself (a mail), None when it is nothing but a shell.
    """

    members: tuple[str, ...]
    read: Callable[[str, int], bytes]
    document: ParsedDocument | None = None
    # Of what is no archive but one text in parts: makes a document of a part's name and bytes.
    parse_part: Callable[[str, bytes], ParsedDocument] | None = None


def clean_title(title: str) -> str:
    """A title on one line, without control characters; "" if nothing is left of it."""
    return " ".join(_INVISIBLE.sub("", _CONTROLS.sub(" ", title)).split())[:_TITLE_LENGTH].rstrip()


def clean_text(text: str) -> str:
    """Text that a parser took out of a binary format: no control characters, line feeds as line ends."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
