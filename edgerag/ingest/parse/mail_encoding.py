"""Mail's own encodings of characters and bytes: charsets by name, encoded words, base64, uuencode.

Everything is lenient: what makes no sense costs no more than itself.
"""

from __future__ import annotations

import binascii
import codecs
import quopri
import re

from edgerag.ingest.parse.encoding import decode

_ENCODED_WORD = re.compile(r"=\?([^?*\s]{1,40})(?:\*[^?\s]{0,20})?\?([bq])\?(.{0,4000}?)\?=", re.IGNORECASE)
_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")
# Codecs that do more than read characters, or take quadratic time over what they are given.
_NO_CHARSETS = frozenset({"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"})
# Labels that programs put on a wider encoding (as browsers read them).
_WIDER = {
    "ascii": "utf-8",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso2022_jp": "iso2022_jp_ext",
}


def decode_words(text: str) -> str:
    """A header with its encoded words (RFC 2047) read; those that make no sense stay as they are written."""
    pieces: list[str] = []
    pending, charset, position = b"", "", 0
    for word in _ENCODED_WORD.finditer(text):
        gap = text[position : word.start()]
        label = word[1].lower()
        # Some programs cut between the bytes of one character: neighbours are joined before they are decoded.
        if pending and (gap.strip() or label != charset):
            pieces.append(decode_charset(pending, charset)[0])
            pending = b""
        if gap.strip() or position == 0:
            pieces.append(gap)
        content = word[3].encode("utf-8", "surrogateescape")
        pending += from_base64(content) if word[2] in "bB" else quopri.decodestring(content.replace(b"_", b"=20"))
        charset, position = label, word.end()
    if pending:
        pieces.append(decode_charset(pending, charset)[0])
    return "".join(pieces) + text[position:]


def decode_charset(data: bytes, label: str) -> tuple[str, str]:
    """Text in the encoding that it names, and a warning where it was read as another ("" otherwise)."""
    name = _codec(label)
    if name:
        if not name.startswith("utf-") and not data.isascii() and _is_utf8(data):
            return data.decode("utf-8"), ""  # mislabelled: text in another encoding is hardly ever valid UTF-8
        try:
            return data.decode(name).removeprefix("\ufeff"), ""
        except UnicodeDecodeError:
            pass
    decoded = decode(data)
    text = decoded.text.removeprefix("\ufeff")
    if not decoded.guessed:
        return text, ""
    return text, f"A part of it was taken to be {decoded.encoding}."


def _codec(label: str) -> str:
    """Python's name of a character set; "" for none that is known."""
    try:
        info = codecs.lookup(label.strip().strip("\"'").lower())
        b"a".decode(info.name, "ignore")  # refuses codecs that give no text
    except (LookupError, ValueError):
        return ""
    return "" if info.name in _NO_CHARSETS else _WIDER.get(info.name, info.name)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def as_text(text: str) -> str:
    """Bytes above ASCII that stand in a header against the rules."""
    if text.isascii() or not any("\udc80" <= character <= "\udcff" for character in text):
        return text
    return decode(text.encode("utf-8", "surrogateescape")).text


def from_base64(data: bytes) -> bytes:
    """Whatever can be decoded: padding may be missing, other characters stand in between."""
    try:
        return binascii.a2b_base64(data)
    except binascii.Error:
        letters = _BASE64.sub(b"", data)
        whole = letters[: len(letters) - (len(letters) % 4 == 1)]
        return binascii.a2b_base64(whole + b"=" * (-len(whole) % 4))


def from_uuencode(data: bytes) -> bytes:
    content = bytearray()
    for line in data.splitlines():
        if line.startswith((b"begin ", b"end")) or not line.strip():
            continue
        try:
            content += binascii.a2b_uu(line)
        except binascii.Error:  # trailing garbage, from encoders that pad their lines
            length = ((line[0] - 32 & 63) * 4 + 5) // 3
            content += binascii.a2b_uu(line[:length])
    return bytes(content)
