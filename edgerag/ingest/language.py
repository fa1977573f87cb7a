"""Which language a document is in, told from its text without a network.

The answer is one language: of a document in several, the one that most of three samples from its beginning, its middle
and its end are in. Code, numbers and a few words are no language: then it is UNKNOWN_LANGUAGE, which is better than a
wrong one, because words would lose the wrong endings. Where a script belongs to one language the script tells; among
the languages of one script CLD3 tells, a small network of Google's (docs/decisions/038). Pure: the same document
always gives the same answer.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Protocol

from edgerag.types import UNKNOWN_LANGUAGE, ParsedDocument

# Three windows of so many characters: more says nothing new, and takes time for each document.
_WINDOW_CHARACTERS = 1_500
# Of one word after the other; fewer are names, labels, a title, and guessed wrongly.
_FEWEST_LETTERS = 24
# An ideograph or a syllable says about as much as three letters of an alphabet.
_LETTERS_OF_AN_IDEOGRAPH = 3
# Of the characters between blanks; running text has nine in ten, source code and tables of numbers half of them.
_FEWEST_WORDS_SHARE = 0.6
# Half as many single sentences get a wrong language as at 0.7, and one in two hundred more gets none.
_LEAST_PROBABILITY = 0.85

_CODE = re.compile(r"text/(?:x-(?!rst|tex|log)[\w+-]+|javascript|css)")
_BETWEEN = re.compile(r"[\s;|,]+")
# A word as running text has it, in an alphabet, with what stands around it.
_WORD = re.compile(r"[\W_]{0,3}[^\W\d_]+(?:['\u2019.\u2010-][^\W\d_]+)*[\W_]{0,4}")
# Scripts that are written without blanks, or whose vowels are marks: no single word stands between blanks there.
_OTHERWISE_WRITTEN = re.compile("[\u0900-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")

# The scripts that belong to one language nearly always, by the code points of their letters.
_OF_A_SCRIPT = {
    "el": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "hy": re.compile("[\u0531-\u0587]"),
    "he": re.compile("[\u05d0-\u05ea]"),
    "bn": re.compile("[\u0980-\u09ff]"),
    "ta": re.compile("[\u0b80-\u0bff]"),
    "te": re.compile("[\u0c00-\u0c7f]"),
    "th": re.compile("[\u0e01-\u0e5b]"),
    "lo": re.compile("[\u0e81-\u0edf]"),
    "my": re.compile("[\u1000-\u109f]"),
    "ka": re.compile("[\u10a0-\u10ff]"),
    "ko": re.compile("[\u1100-\u11ff\uac00-\ud7a3]"),
    "km": re.compile("[\u1780-\u17d3]"),
    "ja": re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9d]"),
    "zh": re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"),
}
_IDEOGRAPHIC = frozenset({"ja", "zh", "ko"})
# Japanese is ideographs and kana together: a tenth of kana is enough.
_LEAST_KANA_SHARE = 0.1
# Codes of CLD3's that are no longer in use. A name like "ru-Latn" is another language's letters: not told here.
_RENAMED = {"iw": "he", "jw": "jv", "no": "nb"}


def language_of(document: ParsedDocument) -> str:
    """Its ISO 639 code, or UNKNOWN_LANGUAGE."""
    if _CODE.fullmatch(document.media_type):
        return UNKNOWN_LANGUAGE
    told = [language_of_text(window) for window in _windows(document.text)]
    known = Counter(language for language in told if language != UNKNOWN_LANGUAGE)
    return known.most_common(1)[0][0] if known else UNKNOWN_LANGUAGE  # of equally many the first


def language_of_text(text: str) -> str:
    """The same for a text that is read whole."""
    pieces = [piece for piece in _BETWEEN.split(text) if piece]
    words = [piece for piece in pieces if _WORD.fullmatch(piece) or _OTHERWISE_WRITTEN.search(piece)]
    if not words or sum(map(len, words)) < _FEWEST_WORDS_SHARE * sum(map(len, pieces)):
        return UNKNOWN_LANGUAGE
    prose = " ".join(words)
    letters = Counter({language: len(script.findall(prose)) for language, script in _OF_A_SCRIPT.items()})
    others = len(prose.replace(" ", "")) - letters.total()  # marks that are vowels count too
    weights = Counter(letters)
    for code in _IDEOGRAPHIC:
        weights[code] *= _LETTERS_OF_AN_IDEOGRAPH
    if weights["ja"] > _LEAST_KANA_SHARE * (weights["ja"] + weights["zh"]):
        weights["ja"] += weights.pop("zh")
    if weights.total() + others < _FEWEST_LETTERS:
        return UNKNOWN_LANGUAGE
    best, weight = max(weights.items(), key=lambda each: each[1])
    return best if weight > others else _told_by_cld3(prose)


def _windows(text: str) -> tuple[str, ...]:
    """The beginning, the middle and the end; a text that is not much longer than these as a whole."""
    size = _WINDOW_CHARACTERS
    if len(text) <= 3 * size:
        return (text,)
    middle = (len(text) - size) // 2
    return text[:size], text[middle : middle + size], text[-size:]


class _Guess(Protocol):
    language: str
    probability: float


class _Detector(Protocol):
    def FindLanguage(self, text: str) -> _Guess: ...  # noqa: N802 - as CLD3 calls it


def _told_by_cld3(prose: str) -> str:
    guess = _detector().FindLanguage(prose.encode("utf-8", "ignore").decode("utf-8"))
    if guess.probability < _LEAST_PROBABILITY or "-" in guess.language or guess.language == "und":
        return UNKNOWN_LANGUAGE
    return _RENAMED.get(guess.language, guess.language)


@cache
def _detector() -> _Detector:
    import gcld3

    detector: _Detector = gcld3.NNetLanguageIdentifier(0, 4 * 3 * _WINDOW_CHARACTERS)  # least and most bytes
    return detector
