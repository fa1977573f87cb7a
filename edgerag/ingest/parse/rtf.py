"""RTF (specification 1.9.1), read by its own tokens: text in the code page of its font, paragraphs, tables, headings.

Hidden text is marked; deleted text, pictures and what is no text is skipped; headers and footers are given once,
before the body; footnotes follow it. A file that is cut short is read as far as it goes, and says so.
"""

from __future__ import annotations

from edgerag.errors import DocumentDamaged, DocumentEmpty
from edgerag.ingest.parse.hidden_text import name_hidden
from edgerag.ingest.parse.layout import Part, bare, lay_out, sole_title, unseen
from edgerag.ingest.parse.rtf_reader import Reader
from edgerag.ingest.parse.rtf_story import Layout
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.types import ParsedDocument

MEDIA_TYPE = "application/rtf"


def parse(source: Source) -> ParsedDocument:
    """Raises what :func:`read` raises."""
    return name_hidden(read(source))


def read(source: Source) -> ParsedDocument:
    """The document, its hidden text not yet named in its warnings.

    Raises DocumentEmpty when there is no text, DocumentDamaged when it is no RTF or nested beyond reason."""
    data = source.data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not data.startswith(b"{\\rtf"):
        raise DocumentDamaged("It does not begin as an RTF file does.", remedy="Save it again in a word processor.")
    reader = Reader(data)
    reader.run()
    parts: list[Part] = []
    seen: set[str] = set()
    for margin in (reader.headers, reader.footers):
        parts.extend(unseen(margin, seen))
    body = reader.body.parts(Layout())
    laid_out = lay_out([*parts, *body, *reader.notes])
    if not laid_out.text.strip():
        if reader.cut_short:
            raise DocumentDamaged(
                "The RTF is cut short before its text.", remedy="Copy it again from where it came from."
            )
        raise DocumentEmpty(
            "There is no text in the document.",
            remedy="If it holds pictures of text, they need text recognition first.",
        )
    warnings = []
    if reader.cut_short:
        warnings.append("The file ends too early: its last part may be missing.")
    if reader.comments:
        warnings.append("Comments were left out.")
    title = clean_title(reader.title) or clean_title(bare(reader.body.title)) or sole_title(laid_out.headings)
    return ParsedDocument(
        text=laid_out.text,
        title=title or source.fallback_title,
        media_type=MEDIA_TYPE,
        headings=laid_out.headings,
        warnings=tuple(warnings),
        hidden=laid_out.hidden,
    )
