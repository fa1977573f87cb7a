"""Small files of many formats, whole and broken, made on the spot."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
CONTENT_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
STYLES = f"""<w:styles {W}>
<w:style w:styleId="T"><w:name w:val="Title"/></w:style>
<w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="H2"><w:name w:val="heading 2"/><w:basedOn w:val="H1"/></w:style>
<w:style w:styleId="Own"><w:name w:val="My style"/><w:basedOn w:val="H2"/></w:style>
</w:styles>"""


def pdf(
    pages: Sequence[Sequence[tuple[float, float, str]] | None], *, title: str = "", encrypted: bool = False
) -> bytes:
    """A PDF; a page is lines of (height on the page, type size, text), or None for one without any text."""
    objects: list[bytes] = []

    def add(body: bytes) -> int:
        objects.append(body)
        return len(objects)

    font = add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    kids = []
    pages_number = len(pages) * 2 + 2
    for lines in pages:
        drawn = b"".join(
            b"BT /F1 %g Tf 72 %g Td (%s) Tj ET\n"
            % (size, height, text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)"))
            for height, size, text in lines or ()
        )
        content = add(b"<< /Length %d >>\nstream\n%sendstream" % (len(drawn), drawn))
        kids.append(
            add(
                b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
                b" /Resources << /Font << /F1 %d 0 R >> >> >>" % (pages_number, content, font)
            )
        )
    assert pages_number == add(
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    )
    catalog = add(b"<< /Type /Catalog /Pages %d 0 R >>" % pages_number)
    info = add(b"<< /Title (%s) >>" % title.encode("latin-1"))
    trailer = b"/Root %d 0 R /Info %d 0 R" % (catalog, info)
    if encrypted:
        secret = b"<" + b"5a" * 32 + b">"
        lock = add(b"<< /Filter /Standard /V 1 /R 2 /Length 40 /P -44 /O %s /U %s >>" % (secret, secret))
        trailer += b" /Encrypt %d 0 R /ID [<00><00>]" % lock
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
    out.write(b"trailer\n<< /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, start))
    return out.getvalue()


def text_pdf(*pages: str, title: str = "") -> bytes:
    """A PDF whose pages hold the given lines, set at 12 points."""
    return pdf(
        [
            [(780 - 14 * n, 12, line) for n, line in enumerate(page.split("\n")) if line] if page else None
            for page in pages
        ],
        title=title,
    )


def docx(body: str, parts: Mapping[str, str] | None = None) -> bytes:
    """A DOCX with this XML as its body, and other parts."""
    document = f'<?xml version="1.0"?><w:document {W} {MC}><w:body>{body}</w:body></w:document>'
    return archive(
        {
            "[Content_Types].xml": CONTENT_TYPES,
            "word/document.xml": document,
            "word/styles.xml": STYLES,
            **(parts or {}),
        }
    )


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def table(*rows: Sequence[str]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return out.getvalue()


def bomb() -> bytes:
    """A DOCX of some hundred kilobytes whose main part unpacks to more than 200 MB."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", CONTENT_TYPES)
        with file.open("word/document.xml", "w", force_zip64=True) as part:
            part.write(f"<w:document {W}><w:body>".encode())
            for _ in range(220):
                part.write(b" " * 1_000_000)
            part.write(b"</w:body></w:document>")
    return out.getvalue()
