"""Bytes to text: byte order marks, then UTF-8, then the legacy encodings judged by what they yield.

Short legacy texts defeat general detectors, so the multi-byte encodings are judged here: of those that
decode without an error, the one whose characters are common in its language wins. The single-byte
ones, where every byte decodes, are left to charset-normalizer.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 65_536  # judging more than this changes no verdict
_TEXT_CONTROLS = frozenset(b"\t\n\r\x0b\x0c\x08\x1b")
_MOST_CONTROLS = 0.02  # share of control bytes in a text: escape codes in logs
_LEAST_READABLE = 16  # characters
_MOST_HOLES = 0.3  # share of NUL bytes in a text that is otherwise clean

# The most frequent characters of running text; a wrong decoding of Chinese yields rare ones.
_COMMON_HAN = frozenset(
    "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家"
    "十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从知使全点实业外"
    "开它合因由些关式数线体比电机文化产理名第度重体部情间本内长明动工水高问很最新意正机手力向样程语言编信"
    "這為來個們說國時會後對裡過發與還進種將見沒從點實業關數線體電機產問樣語學開動長間無當經現話東車書頭"
    "市民城街区區路川江山海州省县縣島湖北南西京港世界位于於及使通四五六七八九百千万萬"
)
_KANA = re.compile("[\u3041-\u309f\u30a1-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_HAN = re.compile("[\u4e00-\u9fff]")
_CJK_PUNCTUATION = re.compile("[\u3000-\u3002\u3008-\u3011\u2014\u2018\u2019\u201c\u201d\uff01-\uff5e·…]")
_UNLIKELY = re.compile("[\u0080-\u009f\ue000-\uf8ff\ufff0-\uffff\uff61-\uff9f\u2500-\u257f]")
_MULTI_BYTE = ("gb18030", "big5hkscs", "cp932", "euc_jp", "euc_kr", "cp949")
# First bytes of the common half of a character set (GB 2312 level 1, Big5 level 1).
_LEVEL_1 = {"gb18030": re.compile(rb"[\xb0-\xd7][\xa1-\xfe]"), "big5hkscs": re.compile(rb"[\xa4-\xc6][\x40-\xfe]")}
# Words of a script (a wrong decoding mixes cases inside words) and its frequent letters.
_CYRILLIC = (re.compile("(?<![а-яё])[А-ЯЁа-яё][а-яё]{2,}"), frozenset("оеаинтсрвлкмдпуьыя"))
_GREEK = (re.compile("[Α-Ωα-ωΆ-ώ][α-ωά-ώ]{2,}"), frozenset("αοιετσνηυρπκμλςάέήίό"))
_HEBREW = (re.compile("[א-ת]{2,}"), frozenset("יוהאלרתבשמנ"))
_ARABIC = (re.compile("[ء-ي]{2,}"), frozenset("اليمونربتةعدسفك"))
_SCRIPTS = {
    "cp1251": _CYRILLIC,
    "koi8_r": _CYRILLIC,
    "iso8859_5": _CYRILLIC,
    "cp866": _CYRILLIC,
    "mac_cyrillic": _CYRILLIC,
    "cp1253": _GREEK,
    "cp1255": _HEBREW,
    "cp1256": _ARABIC,
    "iso8859_6": _ARABIC,
}
# Letters and marks of the languages that an encoding is used for; the first of equals wins.
_MARKS = "“”„‘’‚–—…•«»€§°·\u00a0\u00adµ²³½¼¾©®"
_LATIN = {
    "cp1252": frozenset("àâäáãåæçéèêëíìîïñóòôöõøœúùûüßÀÂÄÁÃÅÆÇÉÈÊËÍÌÎÏÑÓÒÔÖÕØŒÚÙÛÜ¿¡ºª£" + _MARKS),
    "cp1250": frozenset("ąćęłńóśźżáčďéěíňřšťúůýžäĺľôŕöőüűđĄĆĘŁŃÓŚŹŻÁČĎÉĚÍŇŘŠŤÚŮÝŽÄĹĽÔŔÖŐÜŰĐß" + _MARKS),
    "cp1254": frozenset("çğıöşüâîûÇĞİÖŞÜÂÎÛ" + _MARKS),
}
_HIGH = re.compile(rb"[\x80-\xff]+")
_HIGH_RUN = re.compile(rb"[\x80-\xff]{3,}")
_SINGLE_BYTE = (
    "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r", "koi8_u",
    "iso8859_2", "iso8859_5", "iso8859_7", "iso8859_9", "cp866", "tis_620",
)  # fmt: skip
_PLAUSIBLE = 0.45  # below it no multi-byte reading is believed


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text and the encoding it was in; ``guessed`` when the bytes themselves do not prove it."""

    text: str
    encoding: str
    guessed: bool


def looks_like_text(head: bytes) -> bool:
    """False for the beginning of a binary file."""
    if not head or any(head.startswith(mark) for mark, _ in _BOMS) or wide_encoding(head):
        return True
    controls = sum(head.count(byte) for byte in range(1, 32) if byte not in _TEXT_CONTROLS)
    holes = head.count(0)  # a log after a power cut has blocks of NUL in it, and nothing else that is odd
    if controls > len(head) * _MOST_CONTROLS or holes > len(head) * (0 if controls else _MOST_HOLES):
        return False
    if _is_utf8(head):
        return True
    if holes:
        return False
    # Legacy text has runs of letters; compressed data has every byte equally often.
    return controls == 0 or sum(byte < 0x80 for byte in head) > len(head) * 0.6


def decode(data: bytes) -> Decoded:
    """The text in ``data``. Never fails: a byte that means nothing becomes U+FFFD."""
    for mark, marked in _BOMS:
        if data.startswith(mark):
            return Decoded(data.decode(marked, "replace"), marked, guessed=False)
    if encoding := wide_encoding(data[:_SAMPLE_BYTES]):
        return Decoded(data.decode(encoding, "replace"), encoding, guessed=True)
    if japanese := _seven_bit_japanese(data):
        return Decoded(japanese, "iso2022_jp", guessed=True)
    try:
        return Decoded(data.decode("utf-8"), "utf-8", guessed=False)
    except UnicodeDecodeError as error:
        # One bad byte in a long UTF-8 text must not turn the rest into mojibake.
        if _mostly_utf8(data):
            return Decoded(data.decode("utf-8", "replace"), f"utf-8 (damaged at byte {error.start})", guessed=True)
    guess = _script_encoding(data) or _latin_encoding(data) or _single_byte_encoding(data)
    return Decoded(data.decode(guess, "replace"), guess, guessed=True)


def _seven_bit_japanese(data: bytes) -> str | None:
    """ISO-2022-JP, which would pass as UTF-8; not the escape sequences of a terminal log."""
    if not (b"\x1b$" in data and data.isascii()):
        return None
    try:
        text = data.decode("iso2022_jp_2")
    except UnicodeDecodeError:
        return None
    return text if _KANA.search(text) or _HAN.search(text) else None


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=False)
    except UnicodeDecodeError:
        return False
    return True


def _mostly_utf8(data: bytes) -> bool:
    text = data[:_SAMPLE_BYTES].decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = sum(character > "\x7f" for character in text) - bad
    return good > 4 * bad


def wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, by where the zero bytes (or the bytes below 32) stand."""
    if len(head) < 8 or b"\x00" not in head:
        return None
    head = head[: len(head) // 4 * 4]
    zeros = [head[offset::4].count(0) / (len(head) / 4) for offset in range(4)]
    if zeros[2] > 0.9 and zeros[3] > 0.9 and zeros[0] < 0.3:
        return _if_decodes(head, "utf-32-le")
    if zeros[0] > 0.9 and zeros[1] > 0.9 and zeros[3] < 0.3:
        return _if_decodes(head, "utf-32-be")
    even, odd = (zeros[0] + zeros[2]) / 2, (zeros[1] + zeros[3]) / 2
    if odd > 0.2 and even < 0.02:
        return _if_decodes(head, "utf-16-le")
    if even > 0.2 and odd < 0.02:
        return _if_decodes(head, "utf-16-be")
    # In other scripts only blanks, digits and line ends have a zero byte, all at the same place.
    if odd and not even:
        return _if_readable(head, "utf-16-le")
    if even and not odd:
        return _if_readable(head, "utf-16-be")
    return None


def _if_readable(head: bytes, encoding: str) -> str | None:
    """The encoding, if nearly everything in it is letters, digits, marks and blanks: of numbers by chance, three
    quarters are."""
    text = head.decode(encoding, "replace")
    if len(text) < _LEAST_READABLE:
        return None
    readable = sum(unicodedata.category(c)[0] in "LMNPZS" or c in "\t\n\r" for c in text)
    return encoding if readable >= 0.99 * len(text) and "\ufffd" not in text else None


def _if_decodes(head: bytes, encoding: str) -> str | None:
    text = head.decode(encoding, "replace")
    odd = text.count("\ufffd") + sum(c < " " and c not in "\t\n\r\x0c" for c in text)
    return encoding if odd <= len(text) * 0.01 + 1 else None


def _script_encoding(data: bytes) -> str | None:
    """The best reading in another script than Latin, or None if none is believable."""
    sample = data[:_SAMPLE_BYTES]
    scores: dict[str, float] = {}
    for encoding in _MULTI_BYTE:
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            text = decoder.decode(sample, final=len(sample) == len(data))
        except UnicodeDecodeError:
            continue
        scores[encoding] = _plausibility(text, encoding, sample)
    for encoding, (word, letters) in _SCRIPTS.items():
        text = sample.decode(encoding, "replace")
        scores[encoding] = _share("".join(word.findall(text)).lower(), letters, of=text)
    best = max(scores, key=lambda encoding: scores[encoding])
    return best if scores[best] > _PLAUSIBLE else None


def _plausibility(text: str, encoding: str, sample: bytes) -> float:
    """How well the characters above ASCII fit the language of an encoding, about 0 to 1."""
    foreign = [character for character in text if character > "\x7f"]
    if not foreign:
        return 0.0
    joined = "".join(foreign)
    han = _HAN.findall(joined)
    common = sum(character in _COMMON_HAN for character in han)
    kana, hangul = len(_KANA.findall(joined)), len(_HANGUL.findall(joined))
    punctuation = len(_CJK_PUNCTUATION.findall(joined))
    unlikely = len(_UNLIKELY.findall(joined))
    if encoding in ("cp932", "euc_jp"):
        likely = kana * 1.0 + (len(han) * 0.6 if kana else common * 0.3)
    elif encoding in ("euc_kr", "cp949"):
        # The syllables that only cp949 has are rare in Korean and frequent in misread Japanese.
        likely = hangul * (1.0 if encoding == "euc_kr" else 0.8) + (len(han) * 0.3 if hangul else 0)
    else:  # more than a third of running Chinese is common characters
        level_1 = len(_LEVEL_1[encoding].findall(sample))
        likely = min(0.95 * len(han), max(common * 2.5, level_1 * 0.5)) - 0.5 * kana
    return (likely + 0.8 * punctuation - 2 * unlikely) / len(foreign)


def _latin_encoding(data: bytes) -> str | None:
    sample = data[:_SAMPLE_BYTES]
    if len(_HIGH_RUN.findall(sample)) * 4 > len(_HIGH.findall(sample)):
        return None  # whole words above ASCII: another script
    scores = {}
    for encoding, letters in _LATIN.items():
        text = sample.decode(encoding, "replace")
        scores[encoding] = _share(text, letters, of=text)
    best = max(scores, key=lambda encoding: scores[encoding])
    return best if scores[best] > 2 * _PLAUSIBLE else None


def _share(text: str, letters: frozenset[str], *, of: str) -> float:
    """How many of the characters above ASCII in ``of`` are ``letters`` that stand in ``text``."""
    foreign = sum(character > "\x7f" for character in of)
    return sum(character in letters for character in text) / foreign if foreign else 0.0


def _single_byte_encoding(data: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE_BYTES], cp_isolation=list(_SINGLE_BYTE)).best()
    return best.encoding if best is not None else "cp1252"
