"""Questions about the documents as a collection: how many, which, list all. Recognised, and answered by counting.

What a search finds first says nothing about how many there are, and a language model would make a number up.
So these are answered by a scan of the whole keyword index (index/scan.py), and what that cannot see is said. Only
questions that ask about documents, passages or mentions, or that say "list all", are meant: "How many bolts hold the
lid?" has its answer in one sentence and is an ordinary question. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from edgerag.ask.collection_words import (
    CHINESE_NOT,
    FILE_KINDS,
    FILE_NOUNS,
    GENRE_KINDS,
    JAPANESE_NEGATION,
    JAPANESE_NOT,
    TURKISH_NOT,
    UNSPACED,
    UNSPACED_HOLDERS,
    WORDINGS,
    Wording,
)
from edgerag.ask.cues import languages_of, lead_of, pronouns_of
from edgerag.ask.joined_words import Joined, JoinReader, join_reader
from edgerag.ask.pieces import names_in, pieces
from edgerag.file_types import is_extension, media_types_of, normal_type, types_of
from edgerag.types import Filter, WordQuery


@dataclass(frozen=True, slots=True)
class CollectionQuestion:
    """What is to be counted: the documents that ``words`` mean; of these ``types`` alone, where there are any."""

    wants: Literal["count", "list"]
    words: WordQuery
    types: tuple[str, ...] = ()
    # Whether documents or mentions are asked about in so many words. "List all valves" need not be: where no passage
    # holds all its words it is answered like any other question.
    of_documents: bool = True
    # It says "mention it": what, only the conversation tells.
    leans: bool = False
    # Words of it, such as "only", that a count does not follow.
    unfollowed: tuple[str, ...] = ()
    # "E-mails" may be a word that stands there, or a type of file: the same question for where there are such files.
    as_type: CollectionQuestion | None = None

    @property
    def pieces(self) -> tuple[str, ...]:
        """The words that must stand there, or some of which must."""
        return self.words.held


def collection_question(question: str) -> CollectionQuestion | None:
    """What ``question`` wants counted or listed; None for an ordinary one."""
    asked = " ".join(question.split())
    lead = lead_of(asked, languages_of(asked))
    if lead is not None:
        asked = asked[lead.end() :].lstrip(" ,")
    for language in WORDINGS:
        found = _compiled(language).read(asked)
        if found is not None:
            return found
    return _unspaced_question(asked)


def scanned_words(collection: CollectionQuestion, added: Sequence[str]) -> WordQuery:
    """What is looked for: the question's own words, or names among those that were lent, else the first of them."""
    if not collection.leans:
        return collection.words
    names = names_in(" ".join(["of", *added]))  # a capital counts inside a sentence
    return WordQuery.all_of(tuple(word for word in added if word in names) or tuple(added[:1]))


def of_types(where: Filter | None, types: Sequence[str]) -> Filter | None:
    """``where`` for documents of ``types`` alone; None where that cannot be said, because it names extensions."""
    where = where or Filter()
    if not types or not where.types:
        return replace(where, types=tuple(types)) if types else where
    if any(map(is_extension, where.types)):
        return None
    allowed = {media_type for name in where.types for media_type in media_types_of(name)}
    both = [media_type for name in types for media_type in media_types_of(name) if media_type in allowed]
    # Where nothing is of both, what is left is a type that no document has.
    return replace(where, types=tuple(types_of(both)) or ("",))


# ---------------------------------------------------------------- reading the question

# "PDF", "html or txt", "PDF-, Word- und Excel-".
_AND = r"(?:\s*[,/]\s*|\s*,?\s+(?:or|and|oder|und|ou|et|o|y|e|of|en|lub|i|или|и)\s+)"
_KINDS = rf"(?:{FILE_KINDS})s?(?:-?{_AND}(?:{FILE_KINDS})s?(?!\w))*"
_NOUNS = rf"(?:{FILE_NOUNS})(?:{_AND}(?:{FILE_NOUNS})(?!\w))*"


class _Reader:
    """The patterns of one language."""

    def __init__(self, wording: Wording, joints: JoinReader) -> None:
        flags = re.IGNORECASE
        self._joints = joints
        holder = (
            rf"(?:(?P<kind>{_KINDS})\s*-?\s*)?(?P<holder>{wording.holders})"
            rf"(?:\s+(?:{_OF_KIND})?(?P<kind_behind>{_KINDS})(?!\w)(?:[\s-]+format)?)?"
        )
        noun = rf"(?:{holder}|(?P<alone>{_NOUNS})|(?P<genre>{wording.genres}))"
        # What ends in an apostrophe ("d'") has no space behind it.
        self._head = re.compile(
            rf"\W*(?:(?P<how_many>{wording.how_many})|(?P<which>{wording.which}))(?:\s+|(?<=['’\s])){noun}(?!\w)\s*",
            flags,
        )
        self._there = re.compile(rf"(?:{wording.there})(?!\w)\s*", flags)
        self._mention = re.compile(rf"(?:{wording.mention})(?!\w)\s*", flags)
        self._list_all = re.compile(rf"\W*(?:{wording.list_all})(?!\w)\s*", flags)
        self._noun = re.compile(rf"{noun}(?!\w)\s*", flags)
        self._how_often = re.compile(rf"\W*(?:{wording.how_often})\W*$", flags)
        self._are_kind = re.compile(
            rf"(?:are|sind|sont|son|sono|são|zijn|są)\s+(?P<kind>{FILE_KINDS}|{FILE_NOUNS})s?"
            rf"(?:[\s-]*(?:{wording.holders}))?\W*$",
            flags,
        )

    def read(self, question: str) -> CollectionQuestion | None:
        match = self._how_often.match(question)
        if match is not None:
            return self._counted_mentions(question, match)
        match = self._list_all.match(question)
        if match is not None:
            return self._listed(question, question[match.end() :])
        match = self._head.match(question)
        return None if match is None else self._headed(question, match)

    def _counted_mentions(self, question: str, match: re.Match[str]) -> CollectionQuestion:
        said = match.groupdict()
        what = " ".join(filter(None, said.values()))
        joined = self._joined(what, question)
        if not said.get("what5") and joined.words.none_of:  # mentions that are not there
            joined = Joined(joined.words, (*joined.beyond, *self._joints.joints(what)))
        return _collected("count", joined)

    def _listed(self, question: str, rest: str) -> CollectionQuestion | None:
        noun = self._noun.match(rest)
        if noun is None:
            wanted = _content(rest, question=question)
            # "All valves or pumps", "all parts without a number": no list of documents is meant.
            if not wanted or self._joints.joints(rest):
                return None
            return CollectionQuestion("list", WordQuery.all_of(wanted), of_documents=False)
        rest = self._without_there(rest[noun.end() :])
        tail, negated = self._tail(rest)
        joined = self._joined(rest if tail is None else tail, question, negated=negated, around=rest)
        return self._typed(_collected("list", joined), noun, question)

    def _headed(self, question: str, match: re.Match[str]) -> CollectionQuestion | None:
        rest = question[match.end() :]
        there = self._there.match(rest)
        rest = self._without_there(rest)
        genre = match["genre"] or ""
        wants: Literal["count", "list"] = "count" if match["how_many"] else "list"
        tail, negated = self._tail(rest)
        if tail is not None:
            tail = self._without_there(tail)
            joined = self._joined(tail, question, negated=negated, around=rest)
            if joined.words == WordQuery():
                leans = bool(pronouns_of(tail, languages_of(question)))
                beyond = (*joined.beyond, *(self._joints.joints(rest) if negated else ()))
                return CollectionQuestion(wants, WordQuery(), leans=True, unfollowed=beyond) if leans else None
            return self._typed(_collected(wants, joined), match, question)
        if re.search(r"\w", rest):
            kind = self._are_kind.match(rest)
            if kind is not None and not genre:
                return CollectionQuestion(wants, WordQuery(), types=(normal_type(kind["kind"]),))
            # "How many letters are there in the alphabet?": of things that need not be documents.
            if there is None or genre or not _names_a_document(match) or _IN.match(rest):
                return None
        elif genre and there is None:
            return None
        return self._typed(_collected(wants, self._joined(rest, question, around=rest)), match, question)

    def _tail(self, rest: str) -> tuple[str | None, bool]:
        """What stands behind the verb that says "mention", and whether that is negated; None without such a verb."""
        without = self._joints.without.match(rest)
        if without is not None:
            return rest[without.end() :], True
        mention, negated = self._mention.match(rest), False
        negation = self._joints.negation(rest)
        if negation is not None and (mention is None or negation.start() < mention.end()):
            bare = f"{rest[: negation.start()]} {rest[negation.end() :]}"
            bare = " ".join(bare.split())
            mention = self._mention.match(bare)
            if mention is not None:
                rest, negated = bare, True
        if mention is None:
            return None, False
        before = mention.groupdict().get("before")  # in Turkish what is mentioned stands before the verb
        if before:
            return before, bool(re.search(TURKISH_NOT, mention[0][len(before) :]))
        return rest[mention.end() :], negated

    def _joined(self, text: str, question: str, *, negated: bool = False, around: str = "") -> Joined:
        def content(part: str) -> tuple[str, ...]:
            part = part.strip()
            verb = self._mention.match(part)  # "but do not mention the valve"
            return _content(part[verb.end() :] if verb is not None and part != text else part, question=question)

        joined = self._joints.read(text, negated=negated, content=content)
        beyond = (*joined.beyond, *self._joints.beyond(around))
        return Joined(joined.words, tuple(dict.fromkeys(beyond)))

    def _typed(self, found: CollectionQuestion, noun: re.Match[str], question: str) -> CollectionQuestion:
        """With the type of file, or the kind of document, that the noun says."""
        genre = noun["genre"] or ""
        if genre:
            called = _content(genre, question=question)
            any_of = tuple((*called, *words) for words in found.words.any_of) or ((called,) if called else ())
            typed = replace(found, words=replace(found.words, any_of=any_of))
            kind = next((kind for words, kind in GENRE_KINDS if re.fullmatch(words, genre, re.IGNORECASE)), "")
            return replace(typed, as_type=replace(found, types=(kind,))) if kind else typed
        kind = noun["kind"] or noun["kind_behind"] or noun["alone"] or ""
        # A "text passage" is a passage.
        if not kind or (noun["holder"] and not _names_a_document(noun) and kind.casefold() in ("text", "word", "mail")):
            return found
        kinds = (normal_type(one.rstrip("-")) for one in re.split(_AND, kind))
        return replace(found, types=tuple(dict.fromkeys(kinds)))

    def _without_there(self, rest: str) -> str:
        """Without "are there", "in the library", at the beginning or the end."""
        rest = self._there.sub("", rest, count=1) if self._there.match(rest) else rest
        for there in self._there.finditer(rest):
            if not re.search(r"\w", rest[there.end() :]):
                return rest[: there.start()]
        return rest


def _collected(wants: Literal["count", "list"], joined: Joined) -> CollectionQuestion:
    return CollectionQuestion(wants, joined.words, unfollowed=joined.beyond)


def _names_a_document(noun: re.Match[str]) -> bool:
    return bool(noun["alone"]) or bool(noun["holder"] and _NAMES_A_DOCUMENT.match(noun["holder"]))


# Between "documents" and "PDF".
_OF_KIND = (
    r"of (?:the )?(?:file )?type |in |as |en (?:formato |format )?|im |au format |de type |du type |de tipo |di tipo |"
    r"em |vom typ |van het type |w formacie |в формате "
)
_NAMES_A_DOCUMENT = re.compile(
    r"doc|dok|file|datei|fichier|archivo|fichero|arquivo|ficheiro|bestand|plik|док|файл|belge|dosya", re.I
)
_IN = re.compile(r"(?:in|im|en|dans|nel\w*|em|n[ao]|w|в|на)\b", re.IGNORECASE)
_THE_WORD = re.compile(
    r"^\W*(?:(?:the|das|den|le|la|el|il|a|o|het)\s+)?(?:words?|terms?|phrase|wort|wörter|begriff|mots?|terme|palabras?|término"
    r"|parol[ae]|palavras?|termo|woord|słow[oa]|слов[оа])\s+",
    re.IGNORECASE,
)


def _content(text: str, *, question: str) -> tuple[str, ...]:
    return pieces(_THE_WORD.sub("", text.strip()), asked=question)


_UNSPACED_LETTER = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


def _unspaced_question(asked: str) -> CollectionQuestion | None:
    """Of a question in Chinese or Japanese."""
    if not _UNSPACED_LETTER.search(asked):
        return None
    reader = join_reader("")
    negated = re.search(CHINESE_NOT, asked) is not None
    asked = re.sub(CHINESE_NOT, "", asked, count=1)
    types: tuple[str, ...] = ()
    for pattern in _typed_unspaced():
        if match := pattern.search(asked):
            types = (normal_type(match["kind"]),)
            asked = asked[: match.start("kind")].rstrip() + asked[match.end("kind") :].lstrip(" -")
            break
    for wants, pattern in _unspaced():
        match = pattern.search(asked)
        if match is not None:
            said = match.groupdict()
            japanese_not = re.search(JAPANESE_NOT, asked) is not None
            joined = reader.read(
                said.get("what") or said.get("what2") or "",
                negated=negated or japanese_not,
                content=lambda part: _content(part, question=asked),
            )
            beyond = [*joined.beyond, *reader.beyond(asked)]
            if not japanese_not and (left := re.search(JAPANESE_NEGATION, asked)):
                beyond.append(left[0])
            words, genre = joined.words, _content(said.get("genre") or "", question=asked)
            found = CollectionQuestion(wants, words, types=types, unfollowed=tuple(dict.fromkeys(beyond)))
            if not genre:
                return found
            any_of = tuple((*genre, *group) for group in words.any_of) or (genre,)
            kind = next((kind for named, kind in GENRE_KINDS if re.fullmatch(named, said["genre"] or "")), "")
            typed = replace(found, words=replace(words, any_of=any_of))
            return replace(typed, as_type=replace(found, types=(kind,))) if kind else typed
    return None


@cache
def _typed_unspaced() -> tuple[re.Pattern[str], ...]:
    kind = rf"(?P<kind>{FILE_KINDS})\s*-?\s*(?=(?:{UNSPACED_HOLDERS}))"
    return tuple(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            rf"(?:多少|几|幾|哪些|哪几|哪個|哪个|所有|全部)[个個份篇封张張本件]?(?:的)?\s*{kind}",
            rf"(?:どの|どんな|いくつの|何[件個通つ本]の|すべての|全ての|全部の)\s*{kind}",
            rf"(?:言及|含|触れ|書かれ|述べ|記載|載って|説明)[^、。]{{0,8}}?{kind}",
        )
    )


@cache
def _compiled(language: str) -> _Reader:
    return _Reader(WORDINGS[language], join_reader(language))


@cache
def _unspaced() -> tuple[tuple[Literal["count", "list"], re.Pattern[str]], ...]:
    return tuple((wants, re.compile(pattern)) for wants, pattern in UNSPACED)
