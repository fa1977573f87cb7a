"""Numbers as a spreadsheet shows them, by their format code (ECMA-376 part 1, 18.8.30 and 18.8.31).

Percentages, currencies, decimals and leading zeros are as on the screen; dates and times are always written as
ISO 8601 has them, to the precision that is shown. Where a code cannot be followed the plain number is given.
"""

from __future__ import annotations

import datetime
import functools
import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal

GENERAL = "General"
_DAY, _CLOCK, _SECONDS = "yyyy-mm-dd", "h:mm", "h:mm:ss"
_WHOLE, _CENTS = "#,##0", "#,##0.00"
# Codes that files name by number only. What depends on the locale is as it shows most: dates with their day, amounts
# without a currency, which the file does not tell.
BUILT_IN = {
    **dict(enumerate(("0", "0.00", _WHOLE, _CENTS, _WHOLE, _WHOLE, _CENTS, _CENTS, "0%", "0.00%", "0.00E+00"), 1)),
    **dict(
        enumerate(("# ?/?", "# ??/??", _DAY, "d-mmm-yy", "d-mmm", "mmm-yy", _CLOCK, _SECONDS, _CLOCK, _SECONDS), 12)
    ),
    **dict.fromkeys((22,), f"{_DAY} {_CLOCK}"),
    **dict.fromkeys((*range(27, 32), *range(34, 37), *range(50, 59)), _DAY),
    **dict.fromkeys((32, 33), _SECONDS),
    **dict.fromkeys((37, 38), f"{_WHOLE};({_WHOLE})"),
    **dict.fromkeys((39, 40), f"{_CENTS};({_CENTS})"),
    **dict(enumerate((_WHOLE, _WHOLE, _CENTS, _CENTS, "mm:ss", "[h]:mm:ss", "mm:ss", "##0.0E+0", "@"), 41)),
}

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?'
    r"|\\(?P<escaped>.)|_.|\*."  # blanks of some width, and padding, say nothing
    r"|\[\$(?P<currency>[^\]-]*)[^\]]*\]"
    r"|\[(?P<elapsed>h+|m+|s+)\]"
    r"|\[(?P<condition>[<>=][^\]]*)\]"
    r"|\[[^\]]*\]"  # a colour or a locale
    r"|(?P<general>general)"
    r"|(?P<half>am/pm|a/p)"
    r"|(?P<scientific>E[+-])"
    r"|(?P<date>y+|m+|d+|h+|s+|e+|g+|b+)"
    r"|(?P<digit>[0#?])|(?P<mark>[.,%/@])|(?P<literal>.)",
    re.IGNORECASE | re.DOTALL,
)
_SECTION = re.compile(r'(?:"[^"]*"?|\\.|\[[^\]]*\]|[^;"\\])*', re.DOTALL)
# Beyond this, digits that the file does not hold would be made up.
_MOST_EXACT = 1e15
_LAST_DAY = 2_958_465  # 9999-12-31
_LONGEST_CODE = 500
_MOST_DECIMALS = 30  # as many as Excel takes
_EXACT = Context(prec=100)
# Letters that stand unquoted in no code for a date, but in "General" as other languages have it ("Standard").
_NO_DATE_LETTERS = frozenset("cfijklnopqruvwx")


def shown(value: float, code: str, *, from_1904: bool = False) -> str:
    """The number as a cell with this format code shows it. ``from_1904``: days count from 1904, not from 1900."""
    if not math.isfinite(value):
        return str(value)
    if code == GENERAL:
        return plain_number(value)
    section, negated = _section(value, code[:_LONGEST_CODE])
    if section is None:
        return plain_number(value)
    if section.dates or section.elapsed:
        return _moment(value, section, from_1904) or plain_number(value)
    if not section.integer and not section.decimals:
        return plain_number(value)
    return _number(-value if negated else value, section)


def plain_number(value: float) -> str:
    """Without what binary fractions add: ``1``, not ``1.0``; ``0.3``, not ``0.30000000000000004``."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return f"{value:.15g}"


@dataclass(frozen=True, slots=True)
class _Format:
    """One section of a code."""

    dates: str  # one letter for each part of a date or time in order, minutes as "n"
    elapsed: str  # "h", "m" or "s": hours and so on that may be more than a day has
    before: str
    integer: tuple[str, ...]  # placeholders, and what stands between them
    decimals: str  # placeholders
    after: str
    grouped: bool
    scale: int  # powers of ten to multiply with
    scientific: bool


def _section(value: float, code: str) -> tuple[_Format | None, bool]:
    """The section for this number, and whether it says itself that the number is negative."""
    sections = _parsed(code)
    if sections is None:
        return None, False
    if value < 0 and len(sections) > 1:
        return sections[1], True
    if value == 0 and len(sections) > 2:
        return sections[2] or sections[0], False
    return sections[0], False


@functools.lru_cache(maxsize=1024)
def _parsed(code: str) -> tuple[_Format | None, ...] | None:
    """The sections of a code; None in place of one, or of all, for what is shown as a plain number."""
    tokens = [list(_TOKEN.finditer(section)) for section in _sections(code)]
    if any(token["condition"] for section in tokens for token in section):
        return None
    return tuple(_format(section) for section in tokens)


def _sections(code: str) -> list[str]:
    sections: list[str] = []
    position = 0
    while True:
        match = _SECTION.match(code, position)
        if match is None:
            return sections
        sections.append(match[0])
        position = match.end() + 1
        if match.end() >= len(code):
            return sections


def _format(tokens: list[re.Match[str]]) -> _Format | None:
    dates = _dates(tokens)
    elapsed = next((token["elapsed"][0].lower() for token in tokens if token["elapsed"]), "")
    words = dates and any((token["literal"] or "").lower() in _NO_DATE_LETTERS for token in tokens)
    if words or any(token["general"] or token["mark"] == "@" for token in tokens):
        return None
    if not dates and any(token["mark"] == "/" for token in tokens):
        return None  # fractions are given as decimals
    before, after, decimals = "", "", ""
    integer: list[str] = []
    pending = ""  # literals that stand between digits if more digits follow
    commas, scale, grouped, pointed, scientific = 0, 0, False, False, False
    for token in tokens:
        literal = token["quoted"] or token["escaped"] or token["currency"] or token["literal"] or ""
        if token["scientific"]:
            scientific = True
        elif token["digit"] and not scientific:
            if commas and not pointed:
                grouped, commas = True, 0
            if pending and not pointed:
                integer.append(pending)
                pending = ""
            if pointed:
                decimals += token["digit"]
            else:
                integer.append(token["digit"])
        elif token["mark"] == "." and not pointed:
            pointed = True
        elif token["mark"] == "," and (integer or pointed):
            commas += 1
        elif token["mark"] == "%":
            scale += 2
            literal = "%"
        if literal and not integer and not decimals:
            before += literal
        elif literal:
            pending += literal
    after = pending
    return _Format(
        dates,
        elapsed,
        before.lstrip(),
        tuple(integer),
        decimals,
        after.rstrip(),
        grouped,
        scale - 3 * commas,
        scientific,
    )


def _dates(tokens: list[re.Match[str]]) -> str:
    runs = [token["date"] or token["elapsed"] or "" for token in tokens]
    runs = [run.lower() for run in runs if run]
    letters: list[str] = []
    for index, run in enumerate(runs):
        after = runs[index + 1][:1] if index + 1 < len(runs) else ""
        minutes = run[0] == "m" and len(run) < 3 and (letters[-1:] == ["h"] or after == "s")
        letters.append("n" if minutes else {"e": "y", "g": "y", "b": "y"}.get(run[0], run[0]))
    return "".join(letters)


def _number(value: float, section: _Format) -> str:
    if abs(value) >= _MOST_EXACT or max(len(section.decimals), abs(section.scale)) > _MOST_DECIMALS:
        return plain_number(value)
    if section.scientific:
        return f"{section.before}{value:.{len(section.decimals)}E}{section.after}"
    scaled = Decimal(repr(value)).scaleb(section.scale)
    rounded = scaled.quantize(Decimal(1).scaleb(-len(section.decimals)), ROUND_HALF_UP, _EXACT)
    whole, _, fraction = f"{abs(rounded):f}".partition(".")
    least = len(section.decimals.rstrip("#?"))
    fraction = fraction[:least] + fraction[least:].rstrip("0")
    whole = _whole(whole, section)
    sign = "-" if rounded < 0 else ""
    return f"{sign}{section.before}{whole}{'.' + fraction if fraction else ''}{section.after}"


def _whole(digits: str, section: _Format) -> str:
    placeholders = [part for part in section.integer if part in ("0", "#", "?")]
    digits = digits.lstrip("0").rjust(placeholders.count("0"), "0")
    if len(placeholders) == len(section.integer):
        return f"{int(digits):,}" if section.grouped and digits else digits or ("" if section.decimals else "0")
    pieces: list[str] = []  # from the right: a telephone number, 000-0000
    for part in reversed(section.integer):
        if part not in ("0", "#", "?"):
            pieces.append(part[::-1] if digits else "")
        elif digits:
            pieces.append(digits[-1])
            digits = digits[:-1]
    return digits + "".join(pieces)[::-1]


def _moment(value: float, section: _Format, from_1904: bool) -> str:
    """ISO date, time or both; "" for what is no date."""
    if section.elapsed:
        return _elapsed(value, section)
    if not 0 <= value < _LAST_DAY + 1:
        return ""
    seconds = round(value * 86_400)
    day, second = divmod(seconds, 86_400)
    clock = f"{second // 3600:02}:{second // 60 % 60:02}" + (f":{second % 60:02}" if "s" in section.dates else "")
    timed = any(letter in section.dates for letter in "hns")
    dated = any(letter in section.dates for letter in "ymd")
    if not dated or (timed and day == 0 and not from_1904):
        return clock
    date = _date(day, from_1904)
    if "d" not in section.dates:
        date = date[:7] if "m" in section.dates else date[:4]
    return f"{date} {clock}" if timed else date


def _date(day: int, from_1904: bool) -> str:
    if from_1904:
        return (datetime.date(1904, 1, 1) + datetime.timedelta(min(day, _LAST_DAY - 1462))).isoformat()
    if day == 60:
        return "1900-02-29"  # there was no such day, but spreadsheets have it
    first = datetime.date(1899, 12, 31) if day < 60 else datetime.date(1899, 12, 30)
    return (first + datetime.timedelta(min(day, _LAST_DAY))).isoformat()


def _elapsed(value: float, section: _Format) -> str:
    if abs(value) > _LAST_DAY:
        return ""
    seconds = round(abs(value) * 86_400)
    sign = "-" if value < 0 else ""
    if section.elapsed == "s":
        return f"{sign}{seconds}"
    second = f":{seconds % 60:02}" if "s" in section.dates else ""
    if section.elapsed == "m":
        return f"{sign}{seconds // 60}{second}"
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}{second}"
