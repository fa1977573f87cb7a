"""What of a question means something, as it stands there: its words, runs of unspaced scripts, quoted phrases.

Unlike ask/words.py nothing is folded or stemmed: these are words to search for and to show. Pure.
"""

from __future__ import annotations

import re

from edgerag.ask.cues import languages_of
from edgerag.ask.language import function_words
from edgerag.ask.names import capitalised, identifiers, quotes
from edgerag.ask.words import UNSPACED, fold, stem
from edgerag.index.stopwords import STOP_PHRASES, STOP_WORDS

# Vowel signs of Indic scripts and points of Hebrew and Arabic are marks and no letters, but belong to their words.
_IN_WORD = rf"(?:[^\W{UNSPACED}]|[\u0300-\u036f\u0591-\u05c7\u064b-\u0670\u0900-\u0dff])"
_WORD = re.compile(rf"[{UNSPACED}]+|(?!_){_IN_WORD}+(?:(?:::|->|[-./:@#+]){_IN_WORD}+)*[+#]{{0,2}}")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]")
# What glues Chinese words together, and what asks; longest first. Single characters that are parts of many
# words (中, 上, 年) are not here.
_CHINESE_GLUE = (
    "什么时候|什么地方|什么|甚麼|为什么|为何|多长时间|多少|多久|多大|多高|哪一年|哪一个|哪些|哪个|哪里|哪|谁|怎么样|怎么|怎样"
    "|如何|何时|是不是|有没有|可以|应该|能够|需要|请问|他们|她们|它们|这个|那个|这些|那些|这里|那里|这种|那种|这|那|他|她|它"
    "|呢|吗|么|吧|啊|了|的|是|在|和|与|于|被|把|对|从|向|给|让|就|都|也|还|又|及|或|为|所|个|们|几"
)
_JAPANESE_GLUE = re.compile(r"[\u3041-\u3096]+")
_KANA = re.compile(r"[\u3041-\u3096]")
_SHORTEST_KANA_WORD = 4  # a run of hiragana below this is grammar: は, から, ですか
_GLUE = re.compile("|".join(sorted({*_CHINESE_GLUE.split("|"), *STOP_PHRASES}, key=len, reverse=True)))


def pieces(text: str, *, asked: str = "") -> tuple[str, ...]:
    """The words that carry meaning, each once, in order, as they are written; quoted phrases as one.

    ``asked`` is the whole question where ``text`` is a part of it: it tells the language better.
    """
    found: dict[str, str] = {}
    for phrase in phrases(text):
        found.setdefault(fold(phrase), phrase)
        text = text.replace(phrase, " ")
    stop = _stop_words(asked or text)
    japanese = _KANA.search(text) is not None
    for match in _WORD.finditer(text):
        token = match.group().strip(".:/-")
        if _UNSPACED_RUN.match(token):
            for part in _cut(token, japanese=japanese):
                found.setdefault(part, part)
            continue
        bare = re.sub(r"['’]s$", "", token)
        if bare and bare.casefold() not in stop and (len(bare) > 1 or bare.isdigit() or bare.isupper()):
            found.setdefault(fold(bare), bare)
    return tuple(found.values())


def phrases(text: str) -> list[str]:
    """What stands between quotation marks."""
    return [phrase for phrase in dict.fromkeys(quotes(text)) if any(c.isalnum() for c in phrase)]


def names_in(text: str) -> tuple[str, ...]:
    """What looks like a name or a part number, and quoted phrases; in German, where every noun has a capital, nouns."""
    found = [*phrases(text), *identifiers(text), *(word for word, first in capitalised(text) if not first)]
    return tuple(dict.fromkeys(found))


def key_of(piece: str) -> str:
    """Agrees for inflections of one word."""
    folded = fold(piece)
    return folded if any(c.isdigit() for c in folded) or _UNSPACED_RUN.match(folded) else stem(folded)


def _stop_words(text: str) -> frozenset[str]:
    # Of one language: each has function words that mean something in another ("war", "die", "sein").
    languages = languages_of(text) or ("en",)
    listed = [STOP_WORDS.get(language, frozenset()) | function_words(language) for language in languages]
    return frozenset().union(*listed)


def _cut(run: str, *, japanese: bool) -> list[str]:
    if japanese:
        parts: list[str] = []
        position = 0
        for match in _JAPANESE_GLUE.finditer(run):
            parts.append(run[position : match.start()])
            if len(match.group()) >= _SHORTEST_KANA_WORD and not _GLUE.search(match.group()):
                parts.append(match.group())
            position = match.end()
        parts.append(run[position:])
        return [part for part in parts if part and not _GLUE.fullmatch(part)]
    return [part for part in _GLUE.split(run) if part]
