"""Which parser reads a file: its content decides, its extension only tells kinds of text apart.

Whatever nothing here reads is refused in a sentence, so that a file is never "ingested" as noise.
"""

from __future__ import annotations

import io
import zipfile
from typing import Literal

from edgerag.errors import DocumentDamaged, DocumentEncrypted, DocumentUnsupported
from edgerag.ingest.parse.encoding import looks_like_text
from edgerag.ingest.parse.source import Source

Format = Literal["pdf", "docx", "html", "markdown", "text"]

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
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
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
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_KINDS: tuple[tuple[str, str], ...] = (
    ("EncryptedPackage", ""),
    ("WordDocument", "a Word 97-2003 document (.doc)"),
    ("Workbook", "an Excel 97-2003 workbook (.xls)"),
    ("PowerPoint Document", "a PowerPoint 97-2003 presentation (.ppt)"),
    ("__properties_version", "an Outlook message (.msg)"),
)
_ZIP_KINDS: tuple[tuple[str, str], ...] = (
    ("ppt/", "a PowerPoint presentation (.pptx)"),
    ("xl/", "an Excel workbook (.xlsx)"),
    ("META-INF/container.xml", "an EPUB book"),
    ("META-INF/manifest.xml", "an OpenDocument file (.odt, .ods, .odp)"),
    ("content.xml", "an OpenDocument file (.odt, .ods, .odp)"),
    ("META-INF/MANIFEST.MF", "a Java archive"),
)
# Formats that are text on the outside, but whose text is not what a person reads in them.
_TEXT_UNSUPPORTED = {
    ".eml": "an e-mail message",
    ".mbox": "a mailbox",
    ".mht": "a saved web archive",
    ".mhtml": "a saved web archive",
    ".rtf": "a rich text document (.rtf)",
    ".ipynb": "a Jupyter notebook",
    ".svg": "an SVG drawing",
    ".ps": "a PostScript file",
    ".eps": "a PostScript file",
    ".pem": "a key or certificate",
    ".key": "a key or certificate",
}
_REMEDIES = {
    "a Word 97-2003 document (.doc)": "Save it as .docx or PDF.",
    "an Excel 97-2003 workbook (.xls)": "Save it as CSV or PDF.",
    "a PowerPoint 97-2003 presentation (.ppt)": "Save it as PDF.",
    "a PowerPoint presentation (.pptx)": "Save it as PDF.",
    "an Excel workbook (.xlsx)": "Save it as CSV or PDF.",
    "an OpenDocument file (.odt, .ods, .odp)": "Save it as .docx or PDF.",
    "a rich text document (.rtf)": "Save it as .docx or PDF.",
    "an EPUB book": "Save it as HTML or PDF.",
}
_HTML_EXTENSIONS = frozenset({".html", ".htm", ".xhtml", ".shtml"})
_MARKDOWN_EXTENSIONS = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"})
_HTML_STARTS = (b"<!doctype html", b"<html")


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
        raise _ole_error(data)
    if head.startswith(b"{\\rtf"):
        raise unsupported("a rich text document (.rtf)")
    for signature, kind in _BINARY_SIGNATURES:
        if head.startswith(signature):
            raise unsupported(kind)
    if head[257:262] == b"ustar":
        raise unsupported("a tar archive")
    if head[4:8] == b"ftyp":
        raise unsupported("a video or recording")
    if head.startswith(b"RIFF"):
        raise unsupported("an image, video or recording")
    if not looks_like_text(head):
        raise unsupported("a binary file")
    return _text_kind(source, head)


def needs_whole_file(head: bytes) -> bool:
    """True when the first bytes alone cannot tell what is in the file (an archive lists its parts at the end)."""
    return head.startswith((b"PK\x03\x04", _OLE))


def unsupported(kind: str) -> DocumentUnsupported:
    return DocumentUnsupported(f"It is {kind}, which is not read.", remedy=_REMEDIES.get(kind, ""))


def _text_kind(source: Source, head: bytes) -> Format:
    kind = _TEXT_UNSUPPORTED.get(source.extension)
    if kind is not None and head.strip():
        raise unsupported(kind)
    if source.extension in _MARKDOWN_EXTENSIONS:
        return "markdown"
    start = head[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if source.extension in _HTML_EXTENSIONS or start.startswith(_HTML_STARTS):
        return "html"
    return "text"


def _zip_kind(data: bytes) -> Format:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if "word/document.xml" in names:
                return "docx"
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise DocumentDamaged(
            f"It is a damaged zip-based document ({error}).", remedy="Copy it again from where it came from."
        ) from error
    for start, kind in _ZIP_KINDS:
        if any(name.startswith(start) for name in names):
            raise unsupported(kind)
    if "[Content_Types].xml" in names and any(name.startswith("word/") for name in names):
        return "docx"  # the main part has another name; the parser looks for it
    raise unsupported("a zip archive")


def _ole_error(data: bytes) -> DocumentUnsupported | DocumentEncrypted:
    for marker, kind in _OLE_KINDS:
        if marker.encode("utf-16-le") in data:
            if not kind:
                return DocumentEncrypted(
                    "It is an Office document protected by a password.", remedy="Save it without the password."
                )
            return unsupported(kind)
    return unsupported("an old Office file")
