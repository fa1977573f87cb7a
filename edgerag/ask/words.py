"""Words and sentences of a text, as the pure stages compare them.

Folding is cruder than the keyword index's own and independent of it: it serves to ask whether two
short texts speak of the same things, in any script.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from edgerag.ask.language import FUNCTION_WORDS

# Scripts that put no space between words; their text is compared by pairs of neighbouring characters.
UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
# Accents, points and vowel signs that stand behind the letter they belong to: those of Latin, Cyrillic, Hebrew, Arabic,
# Syriac, and of the scripts of India, where they are half of the writing. To \w they are no part of a word.
_MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u0900-\u0963\u0971-\u0df3"
)
_LETTER = rf"(?:[^\W_{UNSPACED}]|[{_MARKS}])"
_TOKEN = re.compile(rf"[{UNSPACED}]+|{_LETTER}+(?:['’]{_LETTER}+)*")
_ASCII_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*", re.ASCII)
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]")
# Truncation is the stemmer: for European languages five letters do about as well as a real one
# (McNamee & Mayfield 2004, "Character N-Gram Tokenization for European Language Text Retrieval").
_STEM_LETTERS = 5
_TOKENS_REMEMBERED = 50_000

ENDERS = ".!?。！？…؟।"
_CLOSERS = "\"'”’»)]」』）】"
_SENTENCE_END = re.compile(
    rf"[{re.escape(ENDERS)}]+[{re.escape(_CLOSERS)}]*(?=\s|$)|[。！？।]+[{re.escape(_CLOSERS)}]*|\n\s*\n|\n(?=\s*(?:[-*+#>|]|\d+[.)])\s)"
)
_ABBREVIATIONS = frozenset(
    {"e.g", "i.e", "etc", "vs", "cf", "al", "dr", "mr", "mrs", "ms", "prof", "st", "nr", "fig", "eq", "vol", "pp", "ca"}
    | {"approx", "z.b", "d.h", "bzw", "u.a", "usw", "jr", "sr", "inc", "ltd"}
)
# German writes "12. Mai" and "im 19. Jahrhundert"; a sentence that ends in a number is followed by another word.
_ORDINAL = re.compile(r"(?<![\w.,])\d{1,2}$")
_AFTER_ORDINAL = re.compile(
    r" (?:[a-zß-öø-ÿ]|Jahrhundert|Jh\b|Jan|Feb|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)"
)


def fold(text: str) -> str:
    """``text`` without case and accents; full-width forms become ordinary ones."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def stem(word: str) -> str:
    """The part of a folded word that its inflections share."""
    bare = word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
    return bare[:_STEM_LETTERS]


def content_words(text: str) -> list[str]:
    """Stems of the words that carry meaning, in order; pairs of characters for unspaced scripts."""
    if text.isascii():
        return list(filter(None, map(_content, _ASCII_TOKEN.findall(text))))
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if _UNSPACED_RUN.match(token):
            found.extend(token[i : i + 2] for i in range(max(1, len(token) - 1)))
        elif word := _content(token):
            found.append(word)
    return found


@lru_cache(maxsize=_TOKENS_REMEMBERED)
def _content(token: str) -> str:
    """What a token of a spaced script is compared by; "" for one that carries no meaning."""
    if token.casefold() in FUNCTION_WORDS:
        return ""
    folded = fold(token)
    return folded if any(character.isdigit() for character in folded) else stem(folded)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Half-open spans of the sentences, without the white space around them, in order."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if _is_abbreviation(text, match.start(), match.end()):
            continue
        span = _trimmed(text, start, match.end())
        if span is not None:
            yield span
        start = match.end()
    span = _trimmed(text, start, len(text))
    if span is not None:
        yield span


def ends_with_abbreviation(text: str) -> bool:
    """Whether the full stop that would follow ``text`` belongs to an abbreviation or an initial."""
    words = text.split()
    if not words:
        return False
    last = words[-1].lstrip("(\"'“‘[").casefold()
    return last in _ABBREVIATIONS or (len(last) == 1 and last.isalpha() and last.isascii() and last not in ("a", "i"))


def _is_abbreviation(text: str, start: int, end: int) -> bool:
    if text[start:end] != ".":
        return False
    before = text[max(0, start - 12) : start]
    return ends_with_abbreviation(before) or (
        _ORDINAL.search(before) is not None and _AFTER_ORDINAL.match(text, end) is not None
    )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None
