"""Which sources a sentence of an answer comes from, and what in it stands in no source.

Pure. Strict on what can be looked up (numbers and what they count, names, part numbers, quoted words)
and lenient on the rest (inflection, order, other words for the same). It cannot see a negation, nor a
name of the sources in the wrong role; and where a script has no capitals, names are words like others.
The constants are tuned by ``python bench/support.py`` on half of its sentences (docs/decisions/045).
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from edgerag.ask.language import dominant_script, guess_language
from edgerag.ask.names import NameIndex, capitalised, compact, identifiers, quotes
from edgerag.ask.quantities import Quantity, is_unit, month_number, quantities
from edgerag.ask.words import content_words, fold, sentence_spans
from edgerag.types import Source, Support

_LEAST_SHARE_OF_MARK = 0.6  # of the sentence's content words that a source must hold to be marked by us
_LEAST_WORDS = 2  # one shared word is chance
# Of the words that the sentence adds to the question. Fewer in the sources, and they do not say so.
_LEAST_SHARE = 0.34
_SHORTEST_QUOTE = 3  # letters; of less nothing can be told
# Of the words that the nearest sentence of a source shares: a sentence with as many speaks of the same.
_NEAR_SHARE = 0.8
_SHORT_SENTENCE = 4  # content words: "It was built in 1821." goes with the sentence before it
_SHORTEST_COMPOUND = 5
_LEAST_OF_A_LANGUAGE = 4  # content words: a name or two are the same in every language
# Words about the answer itself, and words that say nothing: "The answer to this question is indeed ...".
_ABOUT_THE_ANSWER = frozenset(
    content_words(
        "answer question source passage document text according based provided information context mentioned stated "
        "indeed also actually approximately typically generally therefore however "
        "Antwort Frage Quelle Dokument Text laut gemäß ungefähr tatsächlich "
        "réponse question source document texte selon environ respuesta pregunta fuente documento texto según "
        "ответ вопрос источник документ текст согласно примерно 答案 问题 根据 文档 来源"
    )
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``sources`` hold the sentence between them, best first; where there are none, ``reason`` says why."""

    support: Support
    sources: tuple[int, ...] = ()
    reason: str = ""
    doubtful: bool = False  # only its words speak against it, and other words may mean the same


@dataclass(frozen=True, slots=True)
class Claims:
    """What can be looked up of one sentence."""

    said: tuple[str, ...]  # content words that are no numbers
    words: tuple[str, ...]  # those that tell something
    new_words: tuple[str, ...]  # those that the question does not hold
    context: frozenset[str]  # what is said and asked: the words around a number in a source
    numbers: tuple[Quantity, ...]
    names: tuple[str, ...]
    identifiers: tuple[str, ...]
    quotes: tuple[str, ...]

    @property
    def bare(self) -> bool:
        """Whether it says hardly anything in words: "12 newton", "In 1998"."""
        return len(set(self.words)) < _LEAST_WORDS

    @property
    def strict(self) -> bool:
        """Whether it holds anything that is looked up as it is."""
        return bool(self.numbers or self.names or self.identifiers or self.quotes)


class _Evidence:
    """One source, prepared for looking things up."""

    def __init__(self, source: Source) -> None:
        self.number = source.number
        text = f"{source.hit.chunk.title}\n\n{source.hit.chunk.chunk.embedding_text}"
        self.text = text = unicodedata.normalize("NFKC", text)
        self._names = NameIndex(text)
        self._folded = fold(text)
        self._compact = compact(text)
        # Where each value stands: the number of its sentence, and what it counts there.
        self._numbers: dict[str, list[tuple[int, str]]] = {}
        self._sentences: list[frozenset[str]] = []
        for place, (start, end) in enumerate(sentence_spans(text)):
            self._sentences.append(frozenset(content_words(text[start:end])))
            for quantity in quantities(text[start:end]):
                for value in quantity.values:
                    self._numbers.setdefault(value, []).append((place, quantity.unit))
        self.words: frozenset[str] = frozenset().union(*self._sentences)
        self._counted = frozenset(unit for found in self._numbers.values() for _, unit in found)

    def missing(self, claims: Claims) -> list[str]:
        """What of the claims does not stand here, in words."""
        near = self._near(claims.context, bare=claims.bare) if claims.numbers else frozenset()
        lacking = [f"the number {q.surface}" for q in claims.numbers if not self._holds_number(q, near)]
        lacking += [f"the name {name}" for name in claims.names if not self._holds_name(name)]
        lacking += [f"“{string}”" for string in claims.identifiers if not self._holds_identifier(string)]
        lacking += [f"the words “{quote}”" for quote in claims.quotes if compact(quote) not in self._compact]
        return lacking

    def share(self, words: Sequence[str]) -> float:
        """The share (0..1) of the words that stand here."""
        return sum(word in self.words for word in words) / len(words) if words else 0.0

    def _near(self, context: frozenset[str], *, bare: bool) -> frozenset[int]:
        """The sentences that speak of the same: those that share the most words with it, those that add a
        word to them, and a short one behind. A number that stands elsewhere is about something else."""
        shared = [words & context for words in self._sentences]
        best = max(shared, key=len, default=frozenset())
        if len(best) < _LEAST_WORDS:  # too little to tell where it is spoken of
            return frozenset(range(len(shared)))
        return frozenset(
            place
            for place, found in enumerate(shared)
            if len(found) >= _NEAR_SHARE * len(best)
            or found - best
            or (place and shared[place - 1] == best and (bare or len(self._sentences[place]) <= _SHORT_SENTENCE))
        )

    def _holds_number(self, wanted: Quantity, near: frozenset[int]) -> bool:
        units = {unit for v in wanted.values for place, unit in self._numbers.get(v, ()) if place in near}
        if not units or not wanted.unit or "" in units or wanted.unit in units:
            return bool(units)
        # 18 yards are no 18 seconds, where the source counts other seconds.
        return wanted.unit not in self._counted

    def _holds_name(self, name: str) -> bool:
        month = month_number(name)
        if self._names.holds(name) or (month is not None and month in self._numbers):
            return True
        # German makes one word of several: Torgröße has Größe in it.
        return len(name) >= _SHORTEST_COMPOUND and fold(name)[:-1] in self._folded

    def _holds_identifier(self, string: str) -> bool:
        parts = re.findall(r"[A-Za-z0-9]+", string)
        pattern = r"(?<![A-Za-z0-9])" + r"[\W_]*".join(map(re.escape, parts)) + r"(?![A-Za-z0-9])"
        return re.search(pattern, self.text, re.IGNORECASE) is not None


def _tells(word: str) -> bool:
    return word not in _ABOUT_THE_ANSWER and not is_unit(word) and (len(word) > 1 or not word.isascii())


class SupportFinder:
    """Answers for one set of sources. ``question``: what only repeats it is no news."""

    def __init__(self, sources: Sequence[Source], *, question: str = "") -> None:
        self._sources = tuple(sources)
        self._asked = frozenset(content_words(question))
        self._asked_names = NameIndex(question)
        self._nouns_are_capital = guess_language(question) == "de"

    @cached_property
    def _evidence(self) -> tuple[_Evidence, ...]:
        """Made when it is first asked for: many answers mark their sentences themselves."""
        return tuple(_Evidence(source) for source in self._sources)

    @cached_property
    def _script(self) -> str:
        return dominant_script("\n".join(evidence.text for evidence in self._evidence))

    @cached_property
    def _language(self) -> str:
        return guess_language("\n".join(evidence.text for evidence in self._evidence))

    def find(self, sentence: str) -> int | None:
        """The number of the one source that clearly holds all of ``sentence``; None when none does."""
        claims = self.claims(sentence)
        if len(set(claims.said)) + len(claims.numbers) < _LEAST_WORDS:
            return None
        best: tuple[float, int] | None = None
        for evidence in self._evidence:
            share = evidence.share(claims.said)
            if share >= _LEAST_SHARE_OF_MARK and (best is None or share > best[0]) and not evidence.missing(claims):
                best = (share, evidence.number)
        return best[1] if best else None

    def is_foreign(self, text: str) -> bool:
        """Whether ``text`` is in another language than the sources: then only numbers and part numbers compare."""
        script = dominant_script(text)
        if script == "none" or not self._evidence or len(content_words(text)) < _LEAST_OF_A_LANGUAGE:
            return False
        if script != self._script:
            return True
        languages = {guess_language(text), self._language}
        return len(languages) == 2 and "" not in languages

    def judge(self, sentence: str, *, foreign: bool = False) -> Verdict:
        """Whether the sources hold ``sentence``, one of them or several together."""
        claims = self.claims(sentence)
        if foreign:
            claims = dataclasses.replace(claims, names=(), quotes=())
        if not self._evidence or not (claims.words or claims.strict):
            return Verdict("not_checked", reason="It states nothing that could be looked up.")
        missing = {evidence.number: evidence.missing(claims) for evidence in self._evidence}
        nowhere = [item for item in missing[self._evidence[0].number] if all(item in m for m in missing.values())]
        if nowhere:
            return Verdict("unsupported", reason=f"No source has {nowhere[0]}.")
        chosen = self._fewest(claims, missing)
        words = claims.new_words or claims.words
        share = sum(any(word in evidence.words for evidence in chosen) for word in words) / max(1, len(words))
        if share < _LEAST_SHARE and foreign:
            return Verdict("not_checked", reason="It is in another language than the sources.", doubtful=True)
        if share < _LEAST_SHARE and not (claims.strict and claims.bare):
            # Words of the question would make any answer to it look alike.
            echo = max(evidence.share(claims.words) for evidence in self._evidence) >= _LEAST_SHARE
            return Verdict("unsupported", reason="No source says this.", doubtful=not echo)
        return Verdict("supported", tuple(evidence.number for evidence in chosen))

    def claims(self, sentence: str) -> Claims:
        """What of ``sentence`` (without marks) can be looked up."""
        sentence = unicodedata.normalize("NFKC", sentence)
        said = tuple(word for word in content_words(sentence) if not word[0].isdigit())
        words = tuple(word for word in said if _tells(word))
        parts = tuple(identifiers(sentence))
        unnamed = sentence  # the digits of a part number are no numbers of their own
        for part in parts:
            unnamed = unnamed.replace(part, " ")
        return Claims(
            said=said,
            words=words,
            new_words=tuple(word for word in words if word not in self._asked),
            context=self._asked | frozenset(said),
            numbers=tuple(quantity for quantity in quantities(unnamed) if not quantity.weak),
            names=tuple(self._names(sentence)),
            identifiers=parts,
            quotes=tuple(quote for quote in quotes(sentence) if len(compact(quote)) >= _SHORTEST_QUOTE),
        )

    def _names(self, sentence: str) -> list[str]:
        """The words that must be names. One that begins the sentence may be any word."""
        names = [word for word, begins in capitalised(sentence) if not begins and not is_unit(word)]
        if self._nouns_are_capital:  # a noun of the question is no name that the model brings in
            names = [name for name in names if not self._asked_names.holds(name)]
        return names

    def _fewest(self, claims: Claims, missing: dict[int, list[str]]) -> list[_Evidence]:
        """The best source, and others for what it lacks."""
        ranked = sorted(
            self._evidence,
            key=lambda evidence: (
                len(missing[evidence.number]),
                -evidence.share(claims.new_words) - evidence.share(claims.words),
                evidence.number,
            ),
        )
        chosen: list[_Evidence] = []
        lacking: set[str] | None = None
        for evidence in ranked:
            own = set(missing[evidence.number])
            if lacking is None or lacking - own:
                chosen.append(evidence)
                lacking = own if lacking is None else lacking & own
        return chosen
