"""Small numbers spelled out, in the languages whose function words are known, and Chinese numerals.

Modest on purpose: up to ninety-nine and the first ordinals. A word that often means something else
("one", "second", "mil"), or that counts what a source only lists ("two"), is weak: in a source it may
stand for the number, in an answer it is not held against it.
"""

from __future__ import annotations

_EN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_DE = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
)
_FR = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf"
)
_ES = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve"
)
_EN_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_DE_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
_FR_TENS = "vingt trente quarante cinquante soixante"
_ES_TENS = "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa"
_EN_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_DE_ORDINALS = "erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte"

# Words that are more often something else than this number, or count what a source only lists.
WEAK = frozenset(
    "zero one two first second third null eins zwei erste zweite acht elf un uno une una ein eine deux dos six sept "  # noqa: SIM905 - as one reads it
    "neuf dix once cent mil zéro cero".split()
)

_DIGITS_ZH = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_UNITS_ZH = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000, "亿": 10**8, "億": 10**8}
NUMERALS_ZH = "".join([*_DIGITS_ZH, *_UNITS_ZH])


def _spelled() -> dict[str, int]:
    words: dict[str, int] = {}
    for names in (_EN, _DE, _FR, _ES):
        words |= {word: number for number, word in enumerate(names.split())}
    for names in (_EN_TENS, _DE_TENS, _FR_TENS, _ES_TENS):
        words |= {word: 10 * tens for tens, word in enumerate(names.split(), start=2)}
    for names in (_EN_ORDINALS, _DE_ORDINALS):
        words |= {word: number for number, word in enumerate(names.split(), start=1)}
    words |= {f"{word}{end}": n for n, word in enumerate(_DE_ORDINALS.split(), start=1) for end in ("r", "n", "s", "m")}
    for tens, ten in enumerate(_EN_TENS.split(), start=2):
        words |= {f"{ten}-{unit}": 10 * tens + n for n, unit in enumerate(_EN.split()[:10]) if n}
    for tens, ten in enumerate(_DE_TENS.split(), start=2):
        words |= {f"{unit}und{ten}": 10 * tens + n for n, unit in enumerate(["null", "ein", *_DE.split()[2:10]]) if n}
    for tens, ten in enumerate(_FR_TENS.split(), start=2):
        words |= {f"{ten}-{unit}": 10 * tens + n for n, unit in enumerate(_FR.split()[:10]) if n}
    return words | {"dozen": 12, "une": 1, "ein": 1, "eine": 1, "una": 1}


SPELLED = _spelled()

# "3 million" is 3,000,000 as well as 3.
MAGNITUDES = {
    word: factor
    for factor, words in {
        100: "hundred hundert cent cien ciento",
        1_000: "thousand tausend mille mil тыс тысяч тысячи k",
        10**6: "million millions million millionen mio millón millones миллион миллиона миллионов млн m",
        10**9: "billion billions milliarde milliarden mrd milliard milliards миллиард миллиарда миллиардов млрд bn",
        10**12: "trillion trillions billionen billones",
    }.items()
    for word in words.split()
}


def numeral_zh(text: str) -> int | None:
    """The value of Chinese numerals: 十二 is 12, 一九九八 is 1998; None for what is no number."""
    if all(c in _DIGITS_ZH for c in text):
        return int("".join(str(_DIGITS_ZH[c]) for c in text))
    total = section = digit = 0
    for character in text:
        if character in _DIGITS_ZH:
            digit = _DIGITS_ZH[character]
            continue
        unit = _UNITS_ZH.get(character)
        if unit is None:
            return None
        if unit >= 10_000:
            total = (total + section + digit or 1) * unit
            section = 0
        else:
            section += (digit or 1) * unit
        digit = 0
    return total + section + digit
