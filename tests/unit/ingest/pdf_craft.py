"""PDFs with one thing in them that is hard to read: columns, vertical lines, forms, attachments, passwords."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field


def _described(name: bytes, entries: bytes) -> bytes:
    """A font of this name that is not in the file."""
    font = b"<< /Type /Font /BaseFont /%s %s" % (name, entries)
    descriptor = b"<< /Type /FontDescriptor /FontName /%s /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0" % name
    return font + b" /FontDescriptor " + descriptor + b" /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >> >>"


def _composite(key: bytes, name: bytes, cmap: bytes, collection: bytes, entries: bytes = b"/CIDFontType0") -> bytes:
    """A font of many letters that is not in the file."""
    information = b"<< /Registry (Adobe) /Ordering (%s) /Supplement 0 >>" % collection
    letters = _described(name, b"/Subtype %s /CIDSystemInfo %s" % (entries, information))
    return b" /%s << /Type /Font /Subtype /Type0 /BaseFont /%s /Encoding /%s /DescendantFonts [%s] >>" % (
        key,
        name,
        cmap,
        letters,
    )


# By the name in the resources of a page: how the letters of a font become codes.
UNEMBEDDED = {
    "GB1": ("utf-16-be", _composite(b"GB1", b"STSong-Light", b"UniGB-UTF16-H", b"GB1")),
    "GB2": ("gbk", _composite(b"GB2", b"STSong-Light", b"GBK-EUC-H", b"GB1")),
    "CN1": ("big5", _composite(b"CN1", b"MSung-Light", b"ETen-B5-H", b"CNS1")),
    "KR1": ("utf-16-be", _composite(b"KR1", b"HYSMyeongJo-Medium", b"UniKS-UTF16-H", b"Korea1")),
    "KR2": ("cp949", _composite(b"KR2", b"HYSMyeongJo-Medium", b"KSCms-UHC-H", b"Korea1")),
    "JP1": ("utf-16-be", _composite(b"JP1", b"Ryumin-Light", b"UniJIS-UTF16-H", b"Japan1")),
    "JP2": ("cp932", _composite(b"JP2", b"Ryumin-Light", b"90ms-RKSJ-H", b"Japan1")),
    "V1": ("utf-16-be", _composite(b"V1", b"Ryumin-Light", b"UniJIS-UTF16-V", b"Japan1")),
}
_GLYPH = 1  # object: a square, the glyph of each letter of /T3
FONTS = (
    b"/F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    # Letters by their names in a font that is not in the file.
    b" /L1 "
    + _described(
        b"Arial",
        b"/Subtype /TrueType /FirstChar 65 /LastChar 70 /Widths [500 500 500 500 500 500]"
        b" /Encoding << /Type /Encoding /Differences [65 /afii10017 /uni05D0 /uni0E01 /uni0905 /uni0561 /uni10D0] >>",
    )
    # Codes of an unknown collection, and no /ToUnicode: nobody can say which letters they are.
    + _composite(b"N1", b"AAAAAA+Nameless", b"Identity-H", b"Identity", entries=b"/CIDFontType2 /CIDToGIDMap /Identity")
    + b" /T3 << /Type /Font /Subtype /Type3 /FontBBox [0 0 0 0] /FontMatrix [0.001 0 0 0.001 0 0]"
    b" /CharProcs << /g1 %d 0 R >> /Encoding << /Type /Encoding /Differences [65 /g1 /g1 /g1] >>"
    b" /FirstChar 65 /LastChar 67 /Widths [600 600 600] >>" % _GLYPH + b"".join(font for _, font in UNEMBEDDED.values())
)
_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A page: what is drawn on it, the annotations on it, and whether it is shown turned."""

    content: bytes
    annotations: Sequence[bytes] = ()
    rotate: int = 0
    box: bytes = b"0 0 595 842"


@dataclass(slots=True)
class _File:
    objects: list[bytes] = field(default_factory=list)

    def add(self, body: bytes) -> int:
        self.objects.append(body)
        return len(self.objects)

    def stream(self, data: bytes, entries: bytes = b"") -> int:
        return self.add(b"<< %s /Length %d >>\nstream\n%s\nendstream" % (entries, len(data), data))


def text(x: float, y: float, words: str, *, size: float = 12, before: bytes = b"", matrix: bytes = b"1 0 0 1") -> bytes:
    """One line of text; ``before`` is painting state such as ``1 g`` or ``3 Tr``."""
    escaped = words.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
    return b"q BT %s /F1 %g Tf %s %g %g Tm (%s) Tj ET Q\n" % (before, size, matrix, x, y, escaped)


def drawn(font: str, x: float, y: float, words: str, *, size: float = 12, matrix: bytes = b"1 0 0 1") -> bytes:
    """One text object in a font that is not in the file (``UNEMBEDDED``)."""
    codes = words.encode(UNEMBEDDED[font][0]).hex().encode()
    return b"BT /%s %g Tf %s %g %g Tm <%s> Tj ET\n" % (font.encode(), size, matrix, x, y, codes)


def vertical(x: float, y: float, words: str, *, size: float = 12) -> bytes:
    """One vertical line of Japanese that begins at the top."""
    return drawn("V1", x, y, words, size=size)


def by_name(x: float, y: float, codes: str) -> bytes:
    """Letters A to F of the font that knows its letters by their names: А, א, ก, अ, ա, ა."""
    return b"BT /L1 12 Tf 1 0 0 1 %g %g Tm (%s) Tj ET\n" % (x, y, codes.encode())


def glyphs(x: float, y: float, codes: str) -> bytes:
    """Letters A to C of a font of Type 3 that does not say what they stand for."""
    return b"BT /T3 12 Tf 1 0 0 1 %g %g Tm (%s) Tj ET\n" % (x, y, codes.encode())


def nameless(x: float, y: float, words: str) -> bytes:
    """A line of glyphs by number, from which the letters cannot be known."""
    codes = b"".join(b"%04x" % (ord(letter) - 29) for letter in words)
    return b"BT /N1 12 Tf 1 0 0 1 %g %g Tm <%s> Tj ET\n" % (x, y, codes)


def picture(width: float, height: float) -> bytes:
    """A chequered picture over the lower left of the page."""
    rows = b"".join((b"00ff" if row % 2 else b"ff00") * 32 for row in range(64))
    return b"q %g 0 0 %g 0 0 cm BI /W 64 /H 64 /CS /G /BPC 8 /F /AHx ID %s> EI Q\n" % (width, height, rows)


def widget(kind: bytes, name: str, entries: bytes) -> bytes:
    return b"<< /Type /Annot /Subtype /Widget /Rect [50 50 150 70] /FT %s /T (%s) %s >>" % (
        kind,
        name.encode("latin-1"),
        entries,
    )


def note(words: str, *, author: str = "", entries: bytes = b"") -> bytes:
    return b"<< /Type /Annot /Subtype /Text /Rect [10 10 30 30] /Contents (%s) /T (%s) %s >>" % (
        words.encode("latin-1"),
        author.encode("latin-1"),
        entries,
    )


def build(
    pages: Sequence[Drawn | bytes],
    *,
    attached: Sequence[tuple[str, bytes]] = (),
    user_password: str | None = None,
    owner_password: str = "",
) -> bytes:
    """The PDF; with a user password (also "") it is encrypted with 40 bits, as old programs do."""
    file = _File()
    assert file.stream(b"600 0 d0 100 0 400 700 re f") == _GLYPH
    kids: list[int] = []
    fields: list[int] = []
    parent = sum(2 + len(page.annotations) if isinstance(page, Drawn) else 2 for page in pages) + _GLYPH + 1
    for page in pages:
        page = Drawn(page) if isinstance(page, bytes) else page
        content = file.stream(page.content)
        annotations = [file.add(annotation) for annotation in page.annotations]
        fields += [n for n, body in zip(annotations, page.annotations, strict=True) if b"/Widget" in body]
        kids.append(
            file.add(
                b"<< /Type /Page /Parent %d 0 R /MediaBox [%s] /Rotate %d /Contents %d 0 R /Annots [%s]"
                b" /Resources << /Font << %s >> >> >>"
                % (parent, page.box, page.rotate, content, _references(annotations), FONTS)
            )
        )
    assert parent == file.add(b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), _references(kids)))
    names: list[bytes] = []
    for name, data in attached:
        stream = file.stream(data, b"/Type /EmbeddedFile")
        names.append(
            b"(%s) %d 0 R"
            % (
                name.encode("latin-1"),
                file.add(b"<< /Type /Filespec /F (%s) /EF << /F %d 0 R >> >>" % (name.encode("latin-1"), stream)),
            )
        )
    catalog = file.add(
        b"<< /Type /Catalog /Pages %d 0 R /AcroForm << /Fields [%s] >> /Names << /EmbeddedFiles << /Names [%s] >> >> >>"
        % (parent, _references(fields), b" ".join(names))
        if fields or names
        else b"<< /Type /Catalog /Pages %d 0 R >>" % parent
    )
    trailer = b"/Root %d 0 R" % catalog
    if user_password is not None:
        trailer += _encrypt(file, user_password, owner_password)
    return _written(file.objects, trailer)


def _references(numbers: Sequence[int]) -> bytes:
    return b" ".join(b"%d 0 R" % number for number in numbers)


def _written(objects: Sequence[bytes], trailer: bytes) -> bytes:
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


def _encrypt(file: _File, user: str, owner: str) -> bytes:
    """Encrypts the streams in place (ISO 32000-1, 7.6: algorithms 1 to 4); strings are left out of such files."""
    padded_user = (user.encode("latin-1") + _PADDING)[:32]
    padded_owner = ((owner or user).encode("latin-1") + _PADDING)[:32]
    lock = _rc4(hashlib.md5(padded_owner).digest()[:5], padded_user)
    permissions = (-44).to_bytes(4, "little", signed=True)
    key = hashlib.md5(padded_user + lock + permissions + b"id").digest()[:5]
    for number, body in enumerate(file.objects, 1):
        head, mark, rest = body.partition(b"\nstream\n")
        if mark:
            own = hashlib.md5(key + number.to_bytes(3, "little") + bytes(2)).digest()[:10]
            data = rest[: -len(b"\nendstream")]
            file.objects[number - 1] = head + mark + _rc4(own, data) + b"\nendstream"
    entry = file.add(
        b"<< /Filter /Standard /V 1 /R 2 /Length 40 /P -44 /O <%s> /U <%s> >>"
        % (lock.hex().encode(), _rc4(key, _PADDING).hex().encode())
    )
    return b" /Encrypt %d 0 R /ID [<%s> <%s>]" % (entry, b"id".hex().encode(), b"id".hex().encode())


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
