"""The encoding of file names in archives that say nothing about it, judged over all names of an archive together.

A name is too short for what judges texts: "für" is Korean to it. So Western names are recognised first, by their
letters standing alone between ASCII ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from edgerag.ingest.parse.encoding import decode

# What programs that know no Unicode write Western names in: DOS, then Windows.
_WESTERN = ("cp437", "cp850", "cp1252")
# Readings of `decode` that are believed for as little as a name: their letters come in words.
_OTHER_SCRIPTS = frozenset(
    {
        *("gb18030", "big5hkscs", "cp932", "euc_jp", "euc_kr", "cp949", "iso2022_jp"),
        *("cp1251", "koi8_r", "koi8_u", "cp866", "iso8859_5", "cp1253", "iso8859_7"),
    }
)
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_KANA = re.compile("[\u3041-\u309f\u30a1-\u30ff]")
_HAN = re.compile("[\u4e00-\u9fff]")
# The kanji of level 1 in Shift-JIS, whose first bytes stand for no letter in the EUC encodings.
_KANJI_1 = re.compile(rb"(?:[\x88-\x97][\x40-\x7e\x80-\xfc])")
# A case that changes inside a word around a letter above ASCII: "DÚjÓ".
_ODD_CASE = re.compile(r"[a-zß-öø-ÿ][À-ÖØ-Þ]|[ß-öø-ÿ][A-Z]")
# The most frequent syllables of Korean names and texts; Chinese misread as Korean has rare ones.
_COMMON_HANGUL = frozenset(
    "이다는을가의에하고지도로은기사한자를인리어시대정그나있서아해일전부수제스보상원주라만장조구신과동공용경성안계방"
    "문발비게여관들면으소생유개연회학업우선국물재차오화분위음모중진무내교행실결간법치심양명식표영현적년서월최종록안출"
)


def name_encoding(names: Iterable[bytes]) -> str:
    """The one encoding that all the names are decoded with."""
    joined = b"\n".join(sorted({name for name in names if not name.isascii()}))
    if not joined:
        return "ascii"
    try:
        joined.decode("utf-8")
    except UnicodeDecodeError:
        guess = decode(joined).encoding
    else:
        return "utf-8"
    western, oddities = _western(joined)
    runs = _HIGH_RUN.findall(joined)
    alone = sum(len(run) == 1 for run in runs) > len(runs) / 2
    if guess == "cp932" and _KANA.search(joined.decode("cp932", "replace")):
        return guess
    if alone and not oddities:
        return western
    if guess in ("euc_kr", "cp949") and _is_chinese(joined):
        return "gb18030"
    if guess in _OTHER_SCRIPTS:
        return guess
    if oddities and len(_KANJI_1.findall(joined)) * 2 >= sum(map(len, runs)) / 2 and _decodes(joined, "cp932"):
        return "cp932"
    return western


def _western(joined: bytes) -> tuple[str, int]:
    """The Western reading with the fewest characters that make no sense in a word, and how many they are."""
    readings = []
    for order, encoding in enumerate(_WESTERN):
        text = joined.decode(encoding, "replace")
        strange = sum(
            character > "\x7f" and not unicodedata.name(character, "").startswith("LATIN ") for character in text
        )
        readings.append((strange + len(_ODD_CASE.findall(text)), order, encoding))
    oddities, _, encoding = min(readings)
    return encoding, oddities


def _is_chinese(joined: bytes) -> bool:
    korean = [character for character in joined.decode("cp949", "replace") if character > "\x7f"]
    common = sum(character in _COMMON_HANGUL for character in korean)
    return common * 3 < len(korean) and _decodes(joined, "gb18030")


def _decodes(joined: bytes, encoding: str) -> bool:
    """Whether the names are Han characters in an encoding, and nothing else above ASCII."""
    try:
        text = joined.decode(encoding)
    except UnicodeDecodeError:
        return False
    return all(_HAN.match(character) for character in text if character > "\x7f")
