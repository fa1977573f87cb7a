"""What people call the types of files, and which media types a parser gives to those.

A name stands for what a person means by it: ``spreadsheet`` for every program's, ``excel`` for Excel's alone. An
extension with its dot (``.log``) is a type, too. The media types are those of edgerag/ingest/parse; a test holds that
each of them has a name here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_OPENXML = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."


@dataclass(frozen=True, slots=True)
class FileType:
    """``name`` is what messages call it; ``also`` are other words for it."""

    name: str
    also: tuple[str, ...]
    media_types: tuple[str, ...]


_XLSX = FileType(
    "excel",
    ("xlsx", "xls", "xlsm", "xlsb"),
    (
        _OPENXML + "spreadsheetml.sheet",
        "application/vnd.ms-excel",
        "application/vnd.ms-excel.sheet.macroEnabled.12",
        "application/vnd.ms-excel.sheet.binary.macroEnabled.12",
    ),
)
_ODS = FileType("ods", ("calc",), (_ODF + "spreadsheet",))
_PPTX = FileType(
    "powerpoint",
    ("pptx", "ppt"),
    (
        _OPENXML + "presentationml.presentation",
        _OPENXML + "presentationml.slideshow",
        _OPENXML + "presentationml.template",
        "application/vnd.ms-powerpoint",
        "application/vnd.ms-powerpoint.presentation.macroEnabled.12",
    ),
)
_ODP = FileType("odp", ("impress",), (_ODF + "presentation",))
_EML = FileType("eml", (), ("message/rfc822",))
_OUTLOOK = FileType("outlook", ("msg",), ("application/vnd.ms-outlook",))
_JSON = FileType("json", ("jsonl",), ("application/json", "application/jsonl"))

# Each media type is in one of these, and a message names them.
_SINGLE = (
    FileType("pdf", (), ("application/pdf",)),
    FileType("word", ("docx", "doc"), (_OPENXML + "wordprocessingml.document",)),
    FileType("odt", ("writer",), (_ODF + "text",)),
    FileType("rtf", (), ("application/rtf",)),
    _XLSX,
    _ODS,
    FileType("csv", ("tsv",), ("text/csv", "text/tab-separated-values")),
    _PPTX,
    _ODP,
    FileType("html", ("htm", "web", "webpage"), ("text/html", "multipart/related")),
    FileType("markdown", ("md",), ("text/markdown",)),
    FileType("text", ("txt", "plain"), ("text/plain", "text/x-log", "text/org")),
    FileType("rst", ("restructuredtext",), ("text/x-rst",)),
    FileType("asciidoc", ("adoc",), ("text/asciidoc",)),
    FileType("latex", ("tex",), ("text/x-tex",)),
    FileType("epub", ("ebook", "book"), ("application/epub+zip",)),
    FileType("notebook", ("ipynb", "jupyter"), ("application/x-ipynb+json",)),
    FileType(
        "code",
        ("source",),
        (
            *("text/x-python", "text/javascript", "text/x-typescript", "text/x-java", "text/x-c", "text/x-c++"),
            *("text/x-csharp", "text/x-rust", "text/x-go", "text/x-ruby", "text/x-php", "text/x-shellscript"),
            *("text/x-kotlin", "text/x-scala", "text/x-swift", "text/x-perl", "text/x-lua", "text/x-r"),
            *("text/x-sql", "text/css"),
        ),
    ),
    _JSON,
    FileType("yaml", ("yml",), ("application/yaml",)),
    FileType("toml", (), ("application/toml",)),
    FileType("xml", (), ("application/xml", "text/xml")),
    _EML,
    _OUTLOOK,
    FileType("image", ("picture", "photo", "scan"), ("image/png", "image/jpeg", "image/tiff", "image/webp")),
)
# Words for several of them.
_GROUPS = (
    FileType("spreadsheet", ("sheet",), (*_XLSX.media_types, *_ODS.media_types)),
    FileType("slides", ("slide", "presentation"), (*_PPTX.media_types, *_ODP.media_types)),
    FileType("mail", ("email", "e-mail"), (*_EML.media_types, *_OUTLOOK.media_types)),
)
_BY_WORD = {word: type_ for type_ in (*_SINGLE, *_GROUPS) for word in (type_.name, *type_.also)}
_BY_MEDIA_TYPE = {media_type: type_.name for type_ in _SINGLE for media_type in type_.media_types}
_NAMES_IN_SMALL_LETTERS = {media_type.lower(): name for media_type, name in _BY_MEDIA_TYPE.items()}


def normal_type(text: str) -> str:
    """The name that is used for a type, whichever word was said for it, in the plural too, or its media type; an
    extension in small letters, also where it is written as a pattern (``*.log``); any other word as it is."""
    word = text.strip().lower().removeprefix("*")
    if word in _NAMES_IN_SMALL_LETTERS:
        return _NAMES_IN_SMALL_LETTERS[word]
    found = _BY_WORD.get(word) or _BY_WORD.get(word.removesuffix("s"))
    return word if found is None else found.name


def is_extension(name: str) -> bool:
    """Whether a type is an extension: a dot, and a word behind it."""
    return name.startswith(".") and any(map(str.isalnum, name))


def media_types_of(name: str) -> tuple[str, ...]:
    """The media types of a type in its normal spelling; none of a word that is no type, and of an extension."""
    found = _BY_WORD.get(name)
    return () if found is None else found.media_types


def types_of(media_types: Iterable[str]) -> list[str]:
    """What a person calls them, each once, in alphabetical order; a media type without a name is its own."""
    return sorted({_BY_MEDIA_TYPE.get(media_type, media_type) for media_type in media_types})
