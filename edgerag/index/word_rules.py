"""How a word becomes the word that is indexed: by the language of its document, and by the version of this program.

Words of a language whose Snowball stemmer wins lose their endings by it; then those of every language keep their first
letters only, which does for endings in every alphabet nearly what a stemmer does. Accents and letters that are typed
in several ways are folded, after the stemmer, which needs them; in Vietnamese, where they make other words, a word
counts as it is written, and its plain letters serve queries that are typed without any. Which does what for which
language was measured: docs/decisions/037.

A document's words stay as the version made them that wrote it, until they are made anew; the words of a query are
made by the rules of every pair of language and version that the library holds, so that nothing is missed meanwhile.
Pure: the same words and rules always give the same words.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

# Of the analysis as a whole; documents whose words an older one made are analysed again by the next ingest.
VERSION = 2

_CUT = "cut"  # the first letters alone
_TONES = "tones"
# By the language of the document; the others are cut. Names are those of Snowball's algorithms.
_WAYS = {
    "vi": _TONES,
    # Measured, against the cut alone.
    "ar": "arabic", "de": "german", "el": "greek", "es": "spanish", "hi": "hindi", "ro": "romanian", "ru": "russian",
    # Taken for near relations of those that win by it. Turkish loses, and English wins nothing.
    "ca": "catalan", "fr": "french", "it": "italian", "pt": "portuguese", "cs": "czech", "pl": "polish",
    "sr": "serbian", "ne": "nepali",
}  # fmt: skip
# Each way has a letter that its words end in, so that a word of a query by the rules of one language never meets a
# word of another: with twelve languages in a library that cost up to 2.5 points of hit@1. Letters of N'Ko, which are
# two bytes and which FTS5 leaves as they are. They stand in libraries: add, never change.
_MARKS = {
    _TONES: "\u07ca", "arabic": "\u07cb", "german": "\u07cc", "greek": "\u07cd", "spanish": "\u07ce", "hindi": "\u07cf",
    "romanian": "\u07d0", "russian": "\u07d1", "catalan": "\u07d2", "french": "\u07d3", "italian": "\u07d4",
    "portuguese": "\u07d5", "czech": "\u07d6", "polish": "\u07d7", "serbian": "\u07d8", "nepali": "\u07d9",
}  # fmt: skip
# What a word that they are for begins with; for the others it is a Latin letter.
_LATIN_LETTER = re.compile("[a-z\u00aa-\u024f\u1e00-\u1eff]")
_CYRILLIC, _DEVANAGARI = "\u0400-\u052f", "\u0900-\u097f"
_SCRIPTS = {
    "arabic": re.compile("[\u0600-\u06ff]"),
    "greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "hindi": re.compile(f"[{_DEVANAGARI}]"),
    "nepali": re.compile(f"[{_DEVANAGARI}]"),
    "russian": re.compile(f"[{_CYRILLIC}]"),
    "serbian": re.compile(f"[{_CYRILLIC}a-z\u00aa-\u024f]"),
}
_ALL_MARKS = "".join(_MARKS.values())
_WORDS_REMEMBERED = 20_000  # of all languages together, with their stems: some 4 MB

# Letters kept of a word. hit@1 on XQuAD with and without: de .91/.88, ru .90/.80, el .91/.85, tr .88/.82,
# en .94/.94; on Cranfield and SciFact nDCG@10 does not fall. Six for Latin letters measures alike,
# but takes more words for the same ("transfer", "transform").
_LATIN = "a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_LONG_WORDS = re.compile(
    f"([{_LATIN}]{{7}})[{_LATIN}]+"
    "|([\u0370-\u03ff\u1f00-\u1fff]{6})[\u0370-\u03ff\u1f00-\u1fff]+"  # Greek
    "|([\u0400-\u052f]{6})[\u0400-\u052f]+"  # Cyrillic
    "|([\u0531-\u0587\u10d0-\u10ff]{6})[\u0531-\u0587\u10d0-\u10ff]+"  # Armenian, Georgian
    "|([\u0620-\u064a]{6})[\u0620-\u064a]+"  # Arabic
)
# The Arabic article and what is written together with it. hit@1 on XQuAD .87 with, .82 without.
_ARABIC_ARTICLE = re.compile(
    r"(?<!\w)[\u0648\u0641]?(?:\u0628\u0627\u0644|\u0643\u0627\u0644|\u0644\u0644|\u0627\u0644)(?=\w{3})"
)


@dataclass(frozen=True, slots=True)
class Rules:
    """``way`` is what takes endings off: the name of a stemmer, or what there is instead."""

    version: int
    way: str


PLAIN = Rules(VERSION, _CUT)


def rules_of(language: str, *, version: int = VERSION) -> Rules:
    """The rules for words of a document in ``language`` that ``version`` analysed."""
    return Rules(version, _WAYS.get(language, _CUT) if version > 1 else _CUT)


def rules_of_all(pairs: Iterable[tuple[str, int]]) -> tuple[Rules, ...]:
    """Each once, in a fixed order, of (language, version) of all documents; the plain ones where there are none."""
    rules = {rules_of(language, version=version) for language, version in pairs}
    return tuple(sorted(rules, key=lambda r: (r.version, r.way))) or (PLAIN,)


def indexed(words: str, rules: Rules) -> str:
    """Case-folded ``words``, with spaces between them, as a document by ``rules`` has them."""
    if rules.version == 1:
        return _shorten(words)
    if rules.way == _CUT:
        return _shorten(" ".join(plain_letters(words).split()))
    written = words.split()
    # What a tone was typed for stands behind all others, so that these stay neighbours.
    typed = filter(None, (_typed_plain(word) for word in written)) if rules.way == _TONES else ()
    return " ".join(filter(None, [*(_by_way(word, rules.way) for word in written), *typed]))


def asked(words: str, rules: Rules, *, plainly: bool) -> tuple[str, ...]:
    """The forms of which a document by ``rules`` must have one; more than one word is a phrase.

    ``plainly``: the query that they are from has no accent at all.
    """
    if rules.version == 1 or rules.way == _CUT:
        forms = [indexed(words, rules)]
    else:
        said = words.split()
        forms = [" ".join(filter(None, (_by_way(word, rules.way) for word in said)))]
        if plainly and rules.way == _TONES and len(said) == 1 and _is_of(words, rules.way):
            forms.append(_TYPED_PLAIN + words)
    return tuple(filter(None, forms))


def compared(word: str) -> str:
    """An indexed word without what tells languages apart, and as FTS5's tokenizer leaves it; "" for one that stands
    beside the word that was written, for queries typed without accents."""
    if word[:1] == _TYPED_PLAIN:
        return ""
    word = word.rstrip(_ALL_MARKS)
    return _STEMMERS["porter"].stemWord(word) if word.isascii() else word


@lru_cache(maxsize=_WORDS_REMEMBERED)
def _by_way(word: str, way: str) -> str:
    """A word as documents of one language have it."""
    if not _is_of(word, way):
        return _shorten(plain_letters(word))
    form = _with_tones(word) if way == _TONES else _shorten(plain_letters(_STEMMERS[way].stemWord(word)))
    return form and form + _MARKS[way]


def _typed_plain(word: str) -> str:
    """For a word with tones, or other accents, what is typed without them; else ""."""
    plain = plain_letters(word)
    return _TYPED_PLAIN + plain if plain and plain != word and _is_of(word, _TONES) else ""


def _is_of(word: str, way: str) -> bool:
    """False of numbers, identifiers and words in another script than the way's: they are the same in all languages."""
    return _SCRIPTS.get(way, _LATIN_LETTER).match(word) is not None and not any(map(str.isdigit, word))


def plain_letters(words: str) -> str:
    """Without accents on the letters of alphabets, and with one spelling of letters that have several."""
    return words if words.isascii() else words.translate(_LETTERS)


def _shorten(words: str) -> str:
    """Words without their endings."""
    return _LONG_WORDS.sub(lambda word: word[word.lastindex or 0], _ARABIC_ARTICLE.sub("", words))


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - as Snowball calls it


class _Stemmers(threading.local):
    """One of each for each thread: they may not be shared."""

    def __init__(self) -> None:
        self.by_name: dict[str, _Stemmer] = {}

    def __getitem__(self, name: str) -> _Stemmer:
        if name not in self.by_name:
            import Stemmer

            self.by_name[name] = Stemmer.Stemmer(name)
        return self.by_name[name]


_STEMMERS = _Stemmers()


# Letters that Unicode does not take for another with an accent, as they are typed without one.
_TYPED = {
    "\u0142": "l", "\u0111": "d", "\u00f8": "o", "\u0131": "i", "\u00e6": "ae", "\u0153": "oe", "\u00f0": "d",
    "\u00fe": "th", "\u0127": "h", "\u0167": "t", "\u014b": "n", "\u00df": "ss",
    "\u0671": "\u0627", "\u0649": "\u064a", "\u0629": "\u0647",  # Arabic alef wasla, alef maksura, teh marbuta
    "\u06a9": "\u0643", "\u06cc": "\u064a",  # Persian kaf and yeh
}  # fmt: skip
# Marks that are written or left out as one likes: accents that stand alone, vowel points of Hebrew and Arabic, tatweel.
_DROPPED = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]")
# Letters with accents of the alphabets in which words are the same without.
_ACCENTED = re.compile("[\u00c0-\u024f\u0370-\u03ff\u0400-\u052f\u0622-\u0626\u1e00-\u1fff]")


class _Letters(dict[int, str]):
    """For str.translate: filled as characters come."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if _ACCENTED.match(character):
            character = "".join(c for c in unicodedata.normalize("NFD", character) if not unicodedata.combining(c))
        plain = "".join(_TYPED.get(c, c) for c in _DROPPED.sub("", character))
        self[code] = plain
        return plain


_LETTERS = _Letters()

# FTS5 takes accents off letters, and leaves characters for private use alone: there tones are kept, and the sign before
# the plain letters of a word that is written with some.
_FIRST_MARK, _LAST_MARK, _KEPT = "\u0300", "\u036f", 0xE000
_STROKE = "\ue100"
_TYPED_PLAIN = "\ue101"


class _Tones(dict[int, str]):
    """For str.translate: Latin letters as without an accent, and behind each its accents."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character == "\u0111":
            self[code] = f"d{_STROKE}"
        elif "\u00c0" <= character <= "\u024f" or "\u1e00" <= character <= "\u1eff":
            marks = [
                chr(_KEPT + ord(c) - ord(_FIRST_MARK)) if _FIRST_MARK <= c <= _LAST_MARK else _TYPED.get(c, c)
                for c in unicodedata.normalize("NFD", character)
            ]
            self[code] = "".join(marks)
        else:
            self[code] = _LETTERS[code]
        return self[code]


_WITH_TONES = _Tones()


def _with_tones(word: str) -> str:
    return word if word.isascii() else word.translate(_WITH_TONES)
