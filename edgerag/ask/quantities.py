"""The numbers of a text, so that 1,000 and 1 000, 50% and fifty percent, 3 million and 3,000,000 compare.

One written number can have several readings (1.500 is 1500 or 1.5): two numbers agree when they share
one. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from edgerag.ask.number_words import MAGNITUDES, NUMERALS_ZH, SPELLED, WEAK, numeral_zh
from edgerag.ask.words import UNSPACED, content_words

_LONGEST = 40  # digits; longer ones are data
_DIGITS = re.compile(r"(?<!\d)\d{1,3}(?:[ ]\d{3})+(?![\d])(?:[.,]\d+)?|\d+(?:[.,'’]\d+)*")
_WORD = re.compile(rf"[^\W\d_{UNSPACED}]+(?:-[^\W\d_{UNSPACED}]+)*")
_DECADE = re.compile(r"[12]\d\d0(?:s|er|-[хе])")
_NUMERAL_ZH = re.compile(rf"[{NUMERALS_ZH}]+")
_UNIT = re.compile(
    rf"[\s-]?(%|°\s?[CF]|(?:degrees?|Grad|degrés?|grados?|градус\w*)(?:\s[CF]\w*)?"
    rf"|[^\W\d_{UNSPACED}]+(?:/[^\W\d_]+)?\d?|[€$£{UNSPACED}])"
)
_DEGREES = re.compile(r"degrees?|grad|degrés?|grados?|градус\w*")
_ZH_FACTOR = {"百": 100, "千": 1_000, "万": 10_000, "萬": 10_000, "亿": 10**8, "億": 10**8}

# Units that are written in more than one way, and those that are told apart. Others are not compared.
_UNITS = {
    spelling: unit
    for unit, spellings in {
        "%": "% percent prozent pourcent percento процент процента процентов",
        "°c": "°c celsius",
        "°f": "°f fahrenheit",
        "kg": "kg kilogram kilograms kilogramme kilogrammes kilogramm",
        "g": "g gram grams gramm",
        "mg": "mg milligram milligrams milligramm",
        "km": "km kilometre kilometres kilometer kilometers",
        "m": "m metre metres meter meters",
        "cm": "cm centimetre centimetres centimeter centimeters",
        "mm": "mm millimetre millimetres millimeter millimeters",
        "nm": "nm",
        "bar": "bar",
        "kw": "kw kilowatt kilowatts",
        "mw": "mw megawatt megawatts",
        "v": "v volt volts",
        "mph": "mph",
        "km/h": "km/h kmh kph",
        "hours": "h hour hours stunde stunden heure heures hora horas",
        "seconds": "s sec second seconds sekunde sekunden seconde secondes segundo segundos",
        "minutes": "min minute minutes minuten minuto minutos",
        "days": "day days tag tage tagen jour jours día días",
        "weeks": "week weeks woche wochen semaine semaines semana semanas",
        "months": "month months monat monate monaten mois mes meses",
        "years": "year years jahr jahre jahren an ans année années año años",
    }.items()
    for spelling in spellings.split()
}
_MONTHS = {
    month: str(number)
    for names in (
        "january february march april may june july august september october november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for number, month in enumerate(names.split(), start=1)
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it is written and what it may mean. A weak one proves something in a source and
    nothing in an answer."""

    surface: str
    start: int  # in the text, after NFKC
    end: int
    values: frozenset[str]
    unit: str  # what is counted: a unit, or the stem of the next word; "" when that says nothing
    weak: bool = False


def quantities(text: str) -> list[Quantity]:
    """The numbers of ``text``, written in digits or spelled out, in order."""
    text = unicodedata.normalize("NFKC", text)
    found = [*_in_digits(text), *_spelled(text), *_chinese(text)]
    return sorted(found, key=lambda quantity: quantity.start)


def month_number(word: str) -> str | None:
    """The number of the month that is so called: 5 for May, mai and mayo."""
    return _MONTHS.get(word.casefold())


def is_unit(word: str) -> bool:
    """Whether ``word`` is a unit: Celsius is no name."""
    return word.casefold() in _UNITS


def _in_digits(text: str) -> Iterator[Quantity]:
    for match in _DIGITS.finditer(text):
        if len(match.group()) > _LONGEST:
            continue
        readings = _readings(match.group())
        if _DECADE.match(text, match.start()):
            readings |= {match.group()[2:4]}  # the 1980s are the 80s
        values, unit = _with_what_follows(readings, text, match.end())
        yield Quantity(match.group(), match.start(), match.end(), values, unit)


def _spelled(text: str) -> Iterator[Quantity]:
    for match in _WORD.finditer(text):
        word = match.group().casefold()
        number = SPELLED.get(word, SPELLED.get(word.partition("-")[0]))  # seven-layer
        if number is None:
            if (month := _MONTHS.get(word)) is not None:
                yield Quantity(match.group(), match.start(), match.end(), frozenset({month}), "", weak=True)
            elif word.endswith("s") and (factor := MAGNITUDES.get(word[:-1])):
                yield Quantity(match.group(), match.start(), match.end(), frozenset({str(factor)}), "", weak=True)
            continue
        values, unit = _with_what_follows(frozenset({str(number)}), text, match.end())
        yield Quantity(match.group(), match.start(), match.end(), values, unit, weak=word in WEAK)


def _chinese(text: str) -> Iterator[Quantity]:
    for match in _NUMERAL_ZH.finditer(text):
        number = numeral_zh(match.group())
        if number is not None and len(match.group()) <= _LONGEST:
            after_digits = text[match.start() - 1 : match.start()].isdigit()  # 3万: told by the digits
            weak = len(match.group()) == 1 or after_digits
            yield Quantity(match.group(), match.start(), match.end(), frozenset({str(number)}), "", weak=weak)


def _with_what_follows(values: frozenset[str], text: str, end: int) -> tuple[frozenset[str], str]:
    """The readings with "million" counted in, and the unit."""
    match = _UNIT.match(text, end)
    if match is None:
        return values, ""
    word = _DEGREES.sub("°", match[1].casefold()).replace(" ", "")[:_LONGEST]
    if word.startswith("°"):
        return values, _UNITS.get(word[:2], "")
    factor = MAGNITUDES.get(word) or MAGNITUDES.get(word.rstrip("s")) or _ZH_FACTOR.get(match[1][:1])
    if factor and not (word in _UNITS and len(word) == 1):
        values |= {_canonical(Decimal(value) * factor) for value in values if value.count(".") < 2}
        return values, ""
    if word in _UNITS:
        return values, _UNITS[word]
    return values, next(iter(content_words(word)), "")


def _readings(written: str) -> frozenset[str]:
    groups = re.split(r"[ .,'’]", written)
    signs = re.findall(r"[ .,'’]", written)
    if not signs:
        return frozenset({_canonical(Decimal(written))})
    if len(set(signs)) == 2 and signs.count(signs[-1]) == 1:  # 1,234.5 and 1.234,5
        return frozenset({_canonical(Decimal("".join(groups[:-1]) + "." + groups[-1]))})
    joined = _canonical(Decimal("".join(groups)))
    if signs[0] in " '’":
        return frozenset({joined})
    if len(signs) > 1:  # 1,000,000 and 1,00,000; else a version or a date
        return frozenset({joined}) if len(groups[-1]) == 3 else frozenset({".".join(groups)})
    decimal = _canonical(Decimal(".".join(groups)))
    grouped = len(groups[1]) == 3 and len(groups[0]) <= 3 and groups[0] != "0"
    return frozenset({joined, decimal}) if grouped else frozenset({decimal})


def _canonical(number: Decimal) -> str:
    return format(number.normalize(), "f")
