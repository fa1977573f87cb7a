"""Questions about the documents as a collection: how many, which, list all. Recognised, and answered by counting.

What a search finds first says nothing about how many there are, and a language model would make a number up.
So these are answered by a scan of the whole keyword index (index/scan.py), and what that cannot see is said. Only
questions that ask about documents, passages or mentions, or that say "list all", are meant: "How many bolts hold the
lid?" has its answer in one sentence and is an ordinary question. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath
from typing import Literal

from edgerag.ask.collection_words import JOINTS, UNSPACED, WORDINGS, Wording
from edgerag.ask.cues import languages_of, lead_of, pronouns_of
from edgerag.ask.pieces import names_in, pieces
from edgerag.ask.quotes import to_sources
from edgerag.safe_text import SafeText
from edgerag.types import DocumentMatch, Hit, KeywordScan, Scores, Source, StoredChunk

# Documents named in one answer: a screenful.
MOST_DOCUMENTS = 20
_MOST_PIECES_NAMED = 8
_NAME_CHARACTERS = 80
_WHAT_IS_COUNTED = (
    "Only these words are counted, in any case and with other endings; what is said in other words is not."
)


@dataclass(frozen=True, slots=True)
class CollectionQuestion:
    """What is to be counted: the words that must stand there, as the question has them; none for everything."""

    wants: Literal["count", "list"]
    pieces: tuple[str, ...]
    # Whether documents or mentions are asked about in so many words. "List all valves" need not be: where no passage
    # holds all its words it is answered like any other question.
    of_documents: bool = True
    # It says "mention it": what, only the conversation tells.
    leans: bool = False
    # Words of it, such as "or" and "not", that a count of documents with all of the pieces does not follow.
    unfollowed: tuple[str, ...] = ()


def collection_question(question: str) -> CollectionQuestion | None:
    """What ``question`` wants counted or listed; None for an ordinary one."""
    asked = " ".join(question.split())
    lead = lead_of(asked, languages_of(asked))
    if lead is not None:
        asked = asked[lead.end() :].lstrip(" ,")
    for language in WORDINGS:
        found = _compiled(language).read(asked)
        if found is not None:
            return replace(found, unfollowed=_joints(asked, language)) if found.pieces else found
    for wants, pattern in _unspaced():
        match = pattern.search(asked)
        if match is not None:
            what = " ".join(filter(None, match.groupdict().values()))
            return CollectionQuestion(wants, _content(what, question=asked))
    return None


def unfollowed_note(collection: CollectionQuestion) -> str:
    """What was not counted as it was asked; "" when all was."""
    if not collection.unfollowed:
        return ""
    words = " and ".join(f"“{word}”" for word in collection.unfollowed)
    return f"A count does not follow {words}: counted are documents with all of the words. Ask for each alone."


def scanned_pieces(collection: CollectionQuestion, added: Sequence[str]) -> tuple[str, ...]:
    """What is looked for: the question's own words, or names among those that were lent, else the first of them."""
    if not collection.leans:
        return collection.pieces
    names = names_in(" ".join(["of", *added]))  # a capital counts inside a sentence
    return tuple(word for word in added if word in names) or tuple(added[:1])


def scan_sources(scan: KeywordScan, chunks: Mapping[int, StoredChunk], *, question: str) -> tuple[Source, ...]:
    """A source for each document that is named and whose passage is among ``chunks`` (by id)."""
    shown = [match for match in scan.documents if match.chunk_id in chunks]
    nothing = Scores(keyword=None, keyword_rank=None, vector=None, vector_rank=None, fused=0.0)
    return to_sources([Hit(chunks[match.chunk_id], nothing) for match in shown], question=question)


def scan_text(scan: KeywordScan, sources: tuple[Source, ...]) -> str:
    """The counts and the documents as an answer; every document is cited under its number."""
    lines = [_summary(scan)]
    numbers = {source.hit.chunk.document_id: source.number for source in sources}
    named = [match for match in scan.documents if match.document_id in numbers]
    if named:
        lines += ["", *(f"- {_line(match, scan)} [{numbers[match.document_id]}]" for match in named)]
        hidden = scan.document_count - len(named)
        if hidden:
            lines += ["", f"and {_count(hidden, 'more document')}."]
    if scan.pieces:
        lines += ["", _WHAT_IS_COUNTED]
    return "\n".join(lines)


# ---------------------------------------------------------------- reading the question


class _Reader:
    """The patterns of one language."""

    def __init__(self, wording: Wording) -> None:
        flags = re.IGNORECASE
        noun = rf"(?:(?P<holder>{wording.holders})|(?P<genre>{wording.genres}))"
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

    def read(self, question: str) -> CollectionQuestion | None:
        match = self._how_often.match(question)
        if match is not None:
            what = " ".join(filter(None, match.groupdict().values()))
            return CollectionQuestion("count", _content(what, question=question))
        match = self._list_all.match(question)
        if match is not None:
            return self._listed(question, question[match.end() :])
        match = self._head.match(question)
        return None if match is None else self._headed(question, match)

    def _listed(self, question: str, rest: str) -> CollectionQuestion | None:
        noun = self._noun.match(rest)
        genre = ""
        if noun is not None:
            genre, rest = noun["genre"] or "", rest[noun.end() :]
            rest = self._without_there(rest)
            mention = self._mention.match(rest)
            rest = rest[mention.end() :] if mention is not None else rest
        wanted = _content(f"{genre} {rest}", question=question)
        if noun is None and not wanted:
            return None
        return CollectionQuestion("list", wanted, of_documents=noun is not None)

    def _headed(self, question: str, match: re.Match[str]) -> CollectionQuestion | None:
        rest = question[match.end() :]
        there = self._there.match(rest)
        rest = self._without_there(rest)
        mention = self._mention.match(rest)
        genre = match["genre"] or ""
        if mention is not None:
            # In Turkish what is mentioned stands before the verb.
            rest = mention.groupdict().get("before") or self._without_there(rest[mention.end() :])
            if not _content(rest, question=question):
                leans = bool(pronouns_of(rest, languages_of(question)))
                return CollectionQuestion("count" if match["how_many"] else "list", (), leans=True) if leans else None
        elif re.search(r"\w", rest):
            # "How many letters are there in the alphabet?": of things that need not be documents.
            if there is None or genre or not _NAMES_A_DOCUMENT.match(match["holder"]) or _IN.match(rest):
                return None
        elif genre and there is None:
            return None
        wants: Literal["count", "list"] = "count" if match["how_many"] else "list"
        return CollectionQuestion(wants, _content(f"{genre} {rest}", question=question))

    def _without_there(self, rest: str) -> str:
        """Without "are there", "in the library", at the beginning or the end."""
        rest = self._there.sub("", rest, count=1) if self._there.match(rest) else rest
        for there in self._there.finditer(rest):
            if not re.search(r"\w", rest[there.end() :]):
                return rest[: there.start()]
        return rest


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


_QUOTED = re.compile('"[^"]*"|“[^”]*”|„[^“”]*[“”]|«[^»]*»')


def _joints(question: str, language: str) -> tuple[str, ...]:
    found = re.findall(rf"(?<!\w)(?:{JOINTS[language]})(?!\w)", _QUOTED.sub(" ", question), re.IGNORECASE)
    return tuple(dict.fromkeys(word.casefold() for word in found))


@cache
def _compiled(language: str) -> _Reader:
    return _Reader(WORDINGS[language])


@cache
def _unspaced() -> tuple[tuple[Literal["count", "list"], re.Pattern[str]], ...]:
    return tuple((wants, re.compile(pattern)) for wants, pattern in UNSPACED)


# ---------------------------------------------------------------- writing the answer


def _summary(scan: KeywordScan) -> str:
    total = _count(scan.document_total, "document")
    if not scan.pieces:
        return f"There are {total} with {_count(scan.passage_total, 'passage')}."
    words = _named([count.piece for count in scan.pieces])
    all_of = "all of " if len(scan.pieces) > 1 else ""
    if not scan.document_count:
        looked = f"None of {total} contains {all_of}{words}."
        alone = [
            f"“{_clean(count.piece)}” stands in {_count(count.document_count, 'document')}"
            for count in scan.pieces
            if count.document_count
        ]
        return looked + (f" {'; '.join(alone)}." if alone and len(scan.pieces) > 1 else "")
    found = f"{scan.document_count} of {total} contain{'s' if scan.document_count == 1 else ''} {all_of}{words}"
    passages = _count(scan.passage_count, "passage")
    if scan.joint_document_count == scan.document_count:
        return f"{found}, in {passages}{' together' if all_of else ''}."
    if not scan.passage_count:
        return f"{found}, but no passage has {'them together' if all_of else 'it outside the title'}."
    where = f"in {scan.joint_document_count} of them"
    if all_of:
        return f"{found}; {where} they stand together, in {passages}."
    return f"{found}, {where} outside the title, in {passages}."


def _line(match: DocumentMatch, scan: KeywordScan) -> str:
    name = _clean(PurePath(match.path).name)
    if match.passage_count:
        return f"{name}: {_count(match.passage_count, 'passage')}"
    return f"{name}: {'in different passages' if len(scan.pieces) > 1 else 'in the title'}"


def _named(words: list[str]) -> str:
    shown = [f"“{_clean(word)}”" for word in words[:_MOST_PIECES_NAMED]]
    more = len(words) - len(shown)
    return ", ".join(shown) + (f" and {more} more words" if more else "")


def _clean(text: str) -> str:
    """On one line, without what a terminal could obey or a reader take for a citation."""
    safe = " ".join(SafeText().feed(text).split()).replace("[", "(").replace("]", ")")
    return safe if len(safe) <= _NAME_CHARACTERS else safe[: _NAME_CHARACTERS - 1] + "…"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
