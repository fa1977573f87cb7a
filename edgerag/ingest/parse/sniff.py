"""Which parser reads a file: its content decides, its extension only tells kinds of text apart.

Whatever nothing here reads is refused in a sentence, so that a file is never "ingested" as noise.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from typing import Literal

from edgerag.errors import DocumentDamaged, DocumentEncrypted, DocumentUnsupported
from edgerag.ingest.parse.encoding import looks_like_text
from edgerag.ingest.parse.own_report import is_own_report
from edgerag.ingest.parse.source import Source

Format = Literal[
    "pdf",
    "docx",
    "pptx",
    "spreadsheet",
    "opendocument",
    "rtf",
    "epub",
    "html",
    "markdown",
    "rst",
    "asciidoc",
    "latex",
    "notebook",
    "csv",
    "structured",
    "code",
    "text",
    "mail",
    "mailbox",
    "outlook",
    "archive",
    "image",
]

# Enough for every signature below and for telling text from binary.
HEAD_BYTES = 65_536

_PDF_SEARCH = 1024  # readers accept a header that stands somewhere in the first kilobyte (ISO 32000, annex H)

_BINARY_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"8BPS", "a Photoshop image"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"\xca\xfe\xba\xbe", "a compiled program"),
    (b"\x00asm", "a WebAssembly program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"GGUF", "a GGUF model"),
    (b"\x78\x9f\x3e\x22", "an attachment of Outlook (winmail.dat)"),
    (b"PAR1", "a Parquet table"),
    (b"OggS", "an Ogg recording"),
    (b"ID3", "an MP3 recording"),
    (b"fLaC", "a FLAC recording"),
    (b"\x1aE\xdf\xa3", "a Matroska video"),
    (b"wOFF", "a font"),
    (b"wOF2", "a font"),
    (b"OTTO", "a font"),
    (b"\x00\x01\x00\x00\x00", "a font"),
)
# Pictures that OCR reads.
_IMAGE_STARTS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*")
# Read with their functions and classes as headings where a grammar is at hand: see code.py.
CODE_EXTENSIONS = frozenset(
    {
        *(
            ".py",
            ".pyi",
            ".js",
            ".mjs",
            ".cjs",
            ".jsx",
            ".ts",
            ".tsx",
            ".java",
            ".kt",
            ".scala",
            ".go",
            ".rs",
            ".swift",
        ),
        *(".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".cs", ".rb", ".php", ".pl", ".lua", ".r", ".sh", ".bash"),
    }
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")
# The streams of an OLE file that tell what it is; those without a parser are named.
_OLE_FORMATS: tuple[tuple[str, Format], ...] = (
    ("Workbook", "spreadsheet"),
    ("__properties_version", "outlook"),
)
_OLD_WORKBOOK = "Book"  # of Excel 5 and 95
_OLE_KINDS: tuple[tuple[str, str], ...] = (
    ("WordDocument", "a Word 97-2003 document (.doc)"),
    ("PowerPoint Document", "a PowerPoint 97-2003 presentation (.ppt)"),
)
_ZIP_FORMATS: tuple[tuple[str, Format], ...] = (
    ("word/document.xml", "docx"),
    ("ppt/", "pptx"),
    ("xl/", "spreadsheet"),
    ("META-INF/container.xml", "epub"),
)
_OPENDOCUMENT_TEXTS = ("text", "presentation")
# Formats that are text on the outside, but whose text is not what a person reads in them.
_TEXT_UNSUPPORTED = {
    ".svg": "an SVG drawing",
    ".ps": "a PostScript file",
    ".eps": "a PostScript file",
    ".pem": "a key or certificate",
    ".key": "a key or certificate",
}
_READ_BY_OCR = "Install Tesseract to read the text in pictures: see --ocr."
_REMEDIES = {
    **dict.fromkeys(("a PNG image", "a JPEG image", "a TIFF image"), _READ_BY_OCR),
    "a Word 97-2003 document (.doc)": "Save it as .docx or PDF.",
    "a PowerPoint 97-2003 presentation (.ppt)": "Save it as PDF.",
    "an OpenDocument drawing, formula or database": "Save it as PDF.",
}
_EXTENSIONS: dict[str, Format] = {
    **dict.fromkeys((".html", ".htm", ".xhtml", ".shtml"), "html"),
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"), "markdown"),
    **dict.fromkeys((".rst", ".rest"), "rst"),
    **dict.fromkeys((".adoc", ".asciidoc"), "asciidoc"),
    **dict.fromkeys((".tex", ".latex", ".ltx"), "latex"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".toml", ".xml"), "structured"),
    **dict.fromkeys((".eml", ".emlx", ".mht", ".mhtml"), "mail"),
    ".mbox": "mailbox",
    **dict.fromkeys((".fodt", ".fodp"), "opendocument"),
    ".ipynb": "notebook",
    **dict.fromkeys(CODE_EXTENSIONS, "code"),
}
_HTML_STARTS = (b"<!doctype html", b"<html")
_PGP_START = b"-----begin pgp message"
_HEADER_START = re.compile(rb"(?:From |[A-Za-z][A-Za-z-]{1,40}:[ \t])")
# Names in a zip that is a document: of a damaged one nothing can be saved.
_OFFICE_PARTS = (b"[Content_Types].xml", b"META-INF/", b"mimetype", b"content.xml")


def sniff(source: Source) -> Format:
    """The parser for a file, from its first ``HEAD_BYTES`` or more.

    Raises DocumentUnsupported, DocumentEncrypted or DocumentDamaged for what no parser here reads.
    """
    data = source.data
    head = data[:HEAD_BYTES]
    if b"%PDF-" in head[:_PDF_SEARCH]:
        return "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(data)
    if head.startswith(_OLE):
        return _ole_kind(data)
    if head.startswith(b"{\\rtf"):
        return "rtf"
    if head.startswith(_COMPRESSED) or head[257:262] == b"ustar" or _is_old_tar(source, head):
        return "archive"
    is_webp = head.startswith(b"RIFF") and head[8:12] == b"WEBP"
    if source.ocr != "off" and (is_webp or head.startswith(_IMAGE_STARTS)):
        return "image"
    for signature, kind in _BINARY_SIGNATURES:
        if head.startswith(signature):
            raise unsupported(kind)
    if head[4:8] == b"ftyp":
        raise unsupported("a video or recording")
    if head.startswith(b"RIFF"):
        raise unsupported("an image, video or recording")
    if not looks_like_text(head):
        raise unsupported("a binary file")
    if is_own_report(head):
        raise unsupported("a report of this program (ingest --report)")
    return _text_kind(source, head)


def _is_old_tar(source: Source, head: bytes) -> bool:
    """A tar from before there was a signature; told by its name, and by the checksum of its first header."""
    if source.extension != ".tar":
        return False
    from edgerag.ingest.parse.archive import is_tar

    return is_tar(head)


def needs_whole_file(head: bytes) -> bool:
    """True when the first bytes alone cannot tell what is in the file (an archive lists its parts at the end)."""
    return head.startswith((b"PK\x03\x04", _OLE))


def unsupported(kind: str) -> DocumentUnsupported:
    return DocumentUnsupported(f"It is {kind}, which is not read.", remedy=_REMEDIES.get(kind, ""))


def _text_kind(source: Source, head: bytes) -> Format:
    kind = _TEXT_UNSUPPORTED.get(source.extension)
    if kind is not None and head.strip():
        raise unsupported(kind)
    known = _EXTENSIONS.get(source.extension)
    if known is not None:
        return known
    start = head[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(_PGP_START):
        raise DocumentEncrypted("It is a message encrypted with PGP.", remedy="Decrypt it and ingest the result.")
    if start.startswith(_HTML_STARTS):
        return "html"
    return _mail_kind(head) if _HEADER_START.match(head) else "text"


def _mail_kind(head: bytes) -> Format:
    # Imported here: few files come this far.
    from edgerag.ingest.parse.mailbox import looks_like_mailbox
    from edgerag.ingest.parse.mime import looks_like_mail

    if looks_like_mailbox(head):
        return "mailbox"
    return "mail" if looks_like_mail(head) else "text"


def _zip_kind(data: bytes) -> Format:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            office = b""
            if "mimetype" in names:
                with archive.open("mimetype") as stream:
                    office = stream.read(200)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, RuntimeError, zlib.error) as error:
        if not any(part in data for part in _OFFICE_PARTS):
            return "archive"  # what is whole in it can be saved
        raise DocumentDamaged(
            f"It is a damaged zip-based document ({error}).", remedy="Copy it again from where it came from."
        ) from error
    for start, format_ in _ZIP_FORMATS:
        if any(name.startswith(start) for name in names):
            return format_
    if "content.xml" in names:
        return _opendocument_kind(office.decode("ascii", "replace"))
    if "[Content_Types].xml" in names and any(name.startswith("word/") for name in names):
        return "docx"  # the main part has another name; the parser looks for it
    if "META-INF/MANIFEST.MF" in names:
        raise unsupported("a Java archive")
    return "archive"


def _opendocument_kind(media_type: str) -> Format:
    kind = media_type.removeprefix("application/vnd.oasis.opendocument.").strip()
    if kind.startswith("spreadsheet"):
        return "spreadsheet"
    if not media_type or kind.startswith(_OPENDOCUMENT_TEXTS):
        return "opendocument"
    raise unsupported("an OpenDocument drawing, formula or database")


def _ole_kind(data: bytes) -> Format:
    if _stream("EncryptedPackage") in data:
        raise DocumentEncrypted(
            "It is an Office document protected by a password.", remedy="Save it without the password."
        )
    for marker, format_ in _OLE_FORMATS:
        if _stream(marker) in data:
            return format_
    for marker, kind in _OLE_KINDS:
        if _stream(marker) in data:
            raise unsupported(kind)
    if _stream(_OLD_WORKBOOK) + b"\x00\x00" in data:  # last, and whole: others have bookmarks
        return "spreadsheet"
    raise unsupported("an old Office file")


def _stream(name: str) -> bytes:
    return name.encode("utf-16-le")
