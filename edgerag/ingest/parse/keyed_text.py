"""YAML and TOML as text: their keys and tables, found line by line, for a reader and not for a program.

Broken files are common in both (templates, half an edit), and a line that looks like a key says what follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from edgerag.ingest.parse.outline import Named

_KEY = re.compile(
    r"(?P<indent> *)(?P<item>- +)?"
    r"(?:\"(?P<quoted>[^\"]{1,200})\"|'(?P<single>[^']{1,200})'|(?P<plain>[^\s#\"'\[\]{}&*!|>%@`,?:-][^:#]{0,200}|[^\s:#-]))"
    r"[ \t]*:(?:[ \t]+(?P<value>.*))?$"
)
_BLOCK_VALUE = re.compile(r"(?:&\S+ +|!\S+ +)*[|>][+\-\d]*[ \t]*(?:#.*)?$")
_DOCUMENT = re.compile(r"---(?:[ \t]|$)")
# The keys by which a person knows an item of a list.
_ITEM_NAMES = frozenset({"name", "title", "id", "key", "alias", "label"})
_TABLE = re.compile(r"[ \t]*\[\[?[ \t]*(?P<name>[\w.\"' \t-]{1,200}?)[ \t]*\]\]?[ \t]*(?:#.*)?$")
_TOML_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|#.*")
_LONG_QUOTES = re.compile(r"\"\"\"|'''")


def yaml_parts(text: str) -> list[Named]:
    """The keys of its mappings and the named items of its lists; several documents in one file are parts themselves."""
    documents = [list(_keys(text, start, end)) for start, end in _documents(text)]
    if len(documents) == 1:
        return documents[0]
    return [part for number, keys in enumerate(documents, 1) for part in _document(text, number, keys)]


def _documents(text: str) -> list[tuple[int, int]]:
    starts = [0]
    offset = 0
    for line in text.split("\n"):
        if _DOCUMENT.match(line):
            starts.append(offset)
        offset += len(line) + 1
    spans = [*zip(starts, [*starts[1:], len(text)], strict=True)]
    filled = [(start, end) for start, end in spans if text[start:end].strip("- \t\n")]
    return filled or [(0, len(text))]


def _document(text: str, number: int, keys: list[Named]) -> Iterator[Named]:
    """A document among several, named by its kind and name (as in a Kubernetes manifest), and its keys below it."""
    if not keys:
        return
    values: dict[str, str] = {}
    for key in keys:
        if key.level <= 2 and not key.parts:
            value = text[key.start : key.end].partition(":")[2].split("#")[0].strip().strip("\"'")
            values.setdefault(key.title, value)
    names = [values[name] for name in ("kind", "name", "title", "id") if values.get(name)][:2]
    yield Named(1, " ".join(names) or f"document {number}", keys[0].start, keys[-1].end, parts=True)
    for key in keys:
        yield replace(key, level=key.level + 1)


def _keys(text: str, start: int, end: int) -> Iterator[Named]:
    open_: list[tuple[int, Named]] = []  # each with twice its indent, plus one for an item
    found: list[Named] = []
    block = -1  # indent of the key whose value is a block of text we are in
    offset = start
    last = start  # end of the last line that is not blank
    for line in text[start:end].split("\n"):
        stripped = line.lstrip(" ")
        indent = len(line) - len(stripped)
        if block >= 0 and stripped.strip() and indent <= block:
            block = -1
        if stripped.strip() and block < 0 and not stripped.startswith("#"):
            place = 2 * indent + stripped.startswith("- ")
            while open_ and open_[-1][0] >= place:
                open_.pop()[1].end = last
            for _, part in open_:
                part.parts = True
            if key := _KEY.match(line):
                name = key["quoted"] or key["single"] or (key["plain"] or "").strip()
                value = (key["value"] or "").strip()
                if key["item"]:
                    name = value.strip("\"'") if name in _ITEM_NAMES else ""
                found.append(Named(len(open_) + 1, name, offset + indent, offset + len(line), parts=False))
                open_.append((place, found[-1]))
                if _BLOCK_VALUE.match(value):
                    block = indent
        offset += len(line) + 1
        if stripped.strip():
            last = offset - 1
    for _, part in open_:
        part.end = last
    yield from found


def toml_parts(text: str) -> list[Named]:
    """Its tables."""
    found: list[Named] = []
    quotes = ""  # of the string of several lines that we are in
    brackets = 0  # of the array that we are in
    offset = 0
    for line in text.split("\n"):
        rest = line
        if quotes:
            _, closing, rest = line.partition(quotes)
            quotes = "" if closing else quotes
        elif not brackets and (table := _TABLE.match(line)):
            if found:
                found[-1].end = offset
            found.append(Named(1, table["name"].strip(), offset, len(text), parts=True))
            rest = ""
        while not quotes and (opening := _LONG_QUOTES.search(_without_strings(rest))):
            plain = _without_strings(rest)
            _, closing, tail = plain[opening.end() :].partition(opening[0])
            rest = plain[: opening.start()] + tail
            quotes = "" if closing else opening[0]
        if not quotes:
            plain = _without_strings(rest)
            brackets = max(0, brackets + plain.count("[") - plain.count("]"))
        offset += len(line) + 1
    return found


def _without_strings(line: str) -> str:
    return _TOML_STRING.sub("", line) if not _LONG_QUOTES.search(line) else line
