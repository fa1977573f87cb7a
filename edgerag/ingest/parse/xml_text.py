"""XML as text: what is in it, its named parts, one endless line laid out.

expat reads it without ever expanding an entity of its own or fetching anything.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from edgerag.ingest.parse.outline import DEEPEST, Named, joined

_DECLARED = re.compile(rb"<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([\w.-]{1,40})[\"']")
_DECLARATION_SEARCHED = 200
# The names by which a person knows an element, as attributes and as elements in it, the best first.
_NAMES = ("name", "title", "label", "id", "key", "ref")
_LONGEST_NAME = 120
# Prose: so much of the file is text, in passages of so many characters, or in ones with elements inside their text.
_PROSE_SHARE = 0.5
_MIXED_SHARE = 0.35
_PROSE_LENGTH = 60
# The roots of DocBook, DITA and TEI, which hold shorter ones too: titles, terms, steps.
_PROSE_ROOTS = frozenset(
    {"book", "article", "chapter", "section", "topic", "concept", "task", "reference", "refentry", "dita", "TEI"}
)
_KNOWN_LENGTH = 15
# Characters in attributes, as a share of those in text: more is data, whose names would be lost with the tags.
_MOST_ATTRIBUTES = 0.05
_MOST_ATTRIBUTES_KNOWN = 0.25
_LONGEST_WORDS = 15  # on average, of ASCII text: longer ones are keys and signatures
_TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>"
    r"|<(?:[^>\"']|\"[^\"]*\"|'[^']*')*+>|[^<]+",
    re.DOTALL,
)
_DEEPEST_INDENT = 40
_MOST_GROWTH = 4  # by line ends and indentation


@dataclass(slots=True)
class _Element:
    tag: str
    part: Named | None
    text: int = 0  # characters of its own
    filled: int = 0  # elements in it with text of their own
    children: Counter[str] = field(default_factory=Counter)
    rank: int = len(_NAMES)
    names: list[str] = field(default_factory=list)  # its text, while it may be a name


@dataclass(slots=True)
class Survey:
    """What a pass over the file found. ``damage`` says why it is no XML; then nothing else holds."""

    damage: str = ""
    parts: list[Named] = field(default_factory=list)
    text: int = 0  # characters of text without blanks at its ends
    passages: int = 0  # elements with text of their own, those inside running text aside
    root: str = ""
    prolog: int = 0  # bytes before the root
    mixed: int = 0  # characters of text beside elements
    ascii: int = 0  # characters of text in passages of ASCII alone
    ascii_words: int = 0
    attributes: int = 0
    elements: Counter[str] = field(default_factory=Counter)
    with_text: Counter[str] = field(default_factory=Counter)  # elements that hold text, or nothing
    in_text: Counter[str] = field(default_factory=Counter)  # elements beside text

    def is_prose(self, length: int) -> bool:
        length -= self.prolog
        known = self.root in _PROSE_ROOTS
        if self.attributes > self.text * (_MOST_ATTRIBUTES_KNOWN if known else _MOST_ATTRIBUTES):
            return False
        if self.ascii * 2 > self.text and self.ascii > self.ascii_words * _LONGEST_WORDS:
            return False
        if not self.passages or self.text < self.passages * (_KNOWN_LENGTH if known else _PROSE_LENGTH):
            return False
        mixed = known or self.mixed * 2 > self.text
        return self.text >= length * (_MIXED_SHARE if mixed else _PROSE_SHARE)

    def inline(self) -> frozenset[str]:
        """The tags that stand inside running text."""
        return frozenset(
            tag
            for tag, count in self.elements.items()
            if self.in_text[tag] * 2 > count and self.with_text[tag] * 2 >= count
        )


def declared(data: bytes, *, wide: bool) -> str:
    """The encoding that the file says it has, by Python's name; "" without one that can be believed."""
    match = _DECLARED.search(data, 0, _DECLARATION_SEARCHED)
    if match is None or wide:
        return ""
    try:
        name = codecs.lookup(match[1].decode("ascii")).name
    except LookupError:
        return ""
    return "" if name.startswith(("utf-16", "utf-32", "utf-8")) else name


def survey(text: str) -> Survey:
    """One pass over the file."""
    lead = len(text) - len(text.lstrip())  # a declaration must stand first
    surveyor = _Surveyor(lead)
    try:
        surveyor.parser.Parse(text[lead:].encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        return Survey(damage=f"{expat.ErrorString(error.code)} in line {text.count(chr(10), 0, lead) + error.lineno}")
    found = surveyor.found
    _in_characters(text[lead:].encode("utf-8", "replace"), lead, found.parts)
    _name_single(found.parts)
    return found


class _Surveyor:
    def __init__(self, lead: int) -> None:
        self.found = Survey()
        self._lead = lead
        self._open: list[_Element] = []
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        # Its presence keeps expat from expanding the entities that the file declares.
        self.parser.DefaultHandler = _ignore

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = local(tag)
        depth = len(self._open)
        part = None
        if 1 <= depth <= DEEPEST:
            part = Named(depth, "", self.parser.CurrentByteIndex, 0, parts=False)
            self.found.parts.append(part)
        if not depth:
            self.found.root, self.found.prolog = tag, self.parser.CurrentByteIndex
        element = _Element(tag, part)
        for key, value in attributes.items():
            self.found.attributes += len(value)
            self._name(element, local(key).lower(), value)
        if self._open:
            self._open[-1].children[tag] += 1
            if self._open[-1].part is not None:
                self._open[-1].part.parts = True
        self._open.append(element)
        self.found.elements[tag] += 1

    def _name(self, element: _Element, key: str, value: str) -> None:
        if element.part is None or key not in _NAMES or not value.strip() or len(value) > _LONGEST_NAME:
            return
        if (rank := _NAMES.index(key)) < element.rank:
            element.part.title, element.rank = f"{element.tag} {value.strip()}", rank

    def _text(self, data: str) -> None:
        if data.strip():
            length = len(data.strip())
            self._open[-1].text += length
            if data.isascii():
                self.found.ascii += length
                self.found.ascii_words += len(data.split())
            if len(self._open[-1].names) < 2:
                self._open[-1].names.append(data[: _LONGEST_NAME + 1])

    def _end(self, _tag: str) -> None:
        element = self._open.pop()
        found = self.found
        found.text += element.text
        found.passages += 0 if element.text else element.filled
        found.with_text[element.tag] += bool(element.text) or not element.children
        if element.text and element.children:
            found.mixed += element.text
            found.in_text.update(element.children)
        if element.part is not None:
            # The end tag begins here: close enough for the length of a part.
            element.part.end = self.parser.CurrentByteIndex
            element.part.title = element.part.title or f"<{element.tag}"
        if self._open:
            self._open[-1].filled += bool(element.text)
        else:
            found.passages += bool(element.text)
        if self._open and not element.children:
            self._name(self._open[-1], element.tag.lower(), "".join(element.names))


def _ignore(_data: str) -> None:
    """Comments, instructions and references to entities."""


def local(tag: str) -> str:
    """A name without its prefix."""
    return tag.rpartition(":")[2]


def _in_characters(code: bytes, lead: int, parts: list[Named]) -> None:
    """Turns offsets in bytes into offsets in characters."""
    if len(code) == len(code.decode("utf-8", "replace")):
        for part in parts:
            part.start, part.end = part.start + lead, part.end + lead
        return
    places = sorted({offset for part in parts for offset in (part.start, part.end)})
    characters: dict[int, int] = {}
    position, count = 0, lead
    for place in places:
        count += len(code[position:place].decode("utf-8", "replace"))
        position = place
        characters[place] = count
    for part in parts:
        part.start, part.end = characters[part.start], characters[part.end]


def _name_single(parts: list[Named]) -> None:
    """An element without a name is known by its tag if no sibling has the same; else it stays without."""
    siblings: list[Counter[str]] = [Counter() for _ in range(DEEPEST + 1)]
    groups: list[tuple[Named, Counter[str]]] = []
    for part in parts:
        siblings[part.level + 1 :] = [Counter() for _ in range(DEEPEST - part.level)]
        siblings[part.level][part.title] += 1
        groups.append((part, siblings[part.level]))
    for part, group in groups:
        if part.title.startswith("<"):
            part.title = part.title[1:] if group[part.title] == 1 else ""


def laid_out(text: str) -> str:
    """The same XML, which must be well-formed, with an element on each line, indented.

    "" when that would be several times as long: so much nesting says nothing."""
    return joined(_layout(text), most=_MOST_GROWTH * len(text)).strip("\n")


def _layout(text: str) -> Iterator[str]:
    depth = 0
    before = "end"
    for match in _TOKEN.finditer(text):
        token = match[0]
        if not token.startswith("<") or token.startswith("<![CDATA["):
            if token.strip():
                yield token.strip("\n") if before != "text" else token
                before = "text"
            continue
        closing = token.startswith("</")
        depth -= closing
        if before == "end" or (before == "start" and not closing):
            yield "\n" + "  " * min(max(depth, 0), _DEEPEST_INDENT)
        yield token
        opens = not closing and not token.startswith(("<?", "<!")) and not token.endswith("/>")
        depth += opens
        before = "start" if opens else "end"
