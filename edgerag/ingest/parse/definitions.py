"""The classes and functions of a source file, as headings with offsets in its bytes.

A heading stands where the definition begins, with its decorators and the comments directly above it. What follows
behind a definition without being one gets a heading of its own, so that no line is filed under a function that has
ended. Functions inside functions are part of these, unless the outer one is as long as a module.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field

from tree_sitter import Node, Parser, QueryCursor

from edgerag.ingest.parse.grammars import Grammar
from edgerag.ingest.parse.source import clean_title
from edgerag.types import Heading

# A function of more lines is a module in all but name, and what is defined in it counts.
_MODULE_LINES = 150
_LONGEST_TITLE = 60  # a longer one is cut to the name: the context of a chunk has little room
_LONGEST_PASSAGE_TITLE = 60
_FEWEST_PASSAGE_LINES = 3  # fewer lines behind a definition stay with it
_ANNOTATIONS = frozenset({"decorator", "annotation", "marker_annotation", "attribute_list"})
_HEADER_END = re.compile(r"(?<![\s:{;=>-])(?:[\s:{;]|=>|->|=)+$")
# Lines that only close something.
_CLOSING = re.compile(r"(?:[\s)}\]>;,]|end\b|#\s*(?:endif|else)\b.*|\?>)*$")
_NAME_DEPTH = 6  # declarators of C around a name: pointers, references, parameters
_TRAILING_COMMENT = re.compile(r"\s+(?://|#)[^\n]*$")
_LONGEST_LINE = 1000  # of which a title is made


@dataclass(slots=True)
class _Definition:
    start: int
    end: int
    title: str
    long: bool  # no function, or one as long as a module
    level: int = 1
    parts: list[_Definition] = field(default_factory=list)


def definitions(code: bytes, grammar: Grammar) -> list[Heading]:
    """The headings of ``code`` in order. It may be broken: what is recognised is given."""
    return _Finder(code, grammar).headings()


class _Finder:
    def __init__(self, code: bytes, grammar: Grammar) -> None:
        self._code = code
        self._grammar = grammar
        self._comments: list[tuple[int, int]] = []
        self._above: dict[int, int] = {}  # start of a line to where the comment begins that ends on the line before
        self._whole: dict[int, Node] = {}  # start of a definition to what stands around it
        self._names: dict[int, str] = {}  # start of a definition to the name behind its body

    def headings(self) -> list[Heading]:
        found: list[Heading] = []
        # A list of what is still to do, not recursion: how deep it goes is in the hand of who wrote the file.
        pending = [(_nested(self._found()), len(self._code))]
        while pending:
            parts, end = pending.pop()
            for index, part in enumerate(parts):
                found.append(Heading(part.level, part.title, part.start))
                following = parts[index + 1] if index + 1 < len(parts) else None
                lines, comment = self._between(part.end, following.start if following else end)
                if len(lines) == _FEWEST_PASSAGE_LINES:
                    found.append(self._passage(part.level, lines[0], part.end))
                elif following and comment and not lines:
                    following.start = comment
                if part.parts:
                    pending.append((part.parts, part.end))
        return sorted(found, key=lambda heading: heading.start)

    def _found(self) -> list[_Definition]:
        tree = Parser(self._grammar.language).parse(self._code)
        nodes: dict[tuple[int, int], tuple[Node, Node | None, bool]] = {}
        for _, captures in QueryCursor(self._grammar.query).matches(tree.root_node):
            if inner := captures.get("inner"):
                self._whole[inner[0].start_byte] = captures["whole"][0]
                if name := captures.get("name"):
                    self._names[inner[0].start_byte] = self._slice(*name[0].byte_range)
            elif above := captures.get("above"):
                self._note_comment(*above[0].byte_range)
            else:
                function = captures.get("function")
                node = (function or captures["type"])[0]
                body = captures.get("body")
                nodes.setdefault(node.byte_range, (node, body[0] if body else None, function is not None))
        self._comments.sort()
        made = [self._definition(*found) for found in nodes.values()]
        return sorted(made, key=lambda definition: (definition.start, -definition.end))

    def _note_comment(self, start: int, end: int) -> None:
        self._comments.append((start, end))
        line_end = self._code.find(b"\n", max(start, end - 1))  # some grammars count the line end in
        if line_end >= 0 and self._begins_line(start) and not self._code[end:line_end].strip():
            self._above[line_end + 1] = start

    def _begins_line(self, offset: int) -> bool:
        return not self._code[self._line(offset) : offset].strip()

    def _line(self, offset: int) -> int:
        return self._code.rfind(b"\n", 0, offset) + 1

    def _slice(self, start: int, end: int) -> str:
        return self._code[start:end].decode("utf-8", "replace")

    def _with_above(self, start: int) -> int:
        """Where the comments directly above a definition begin."""
        while self._begins_line(start) and (above := self._above.get(self._line(start))) is not None and above < start:
            start = above
        return start

    def _definition(self, node: Node, body: Node | None, function: bool) -> _Definition:
        start, end = node.byte_range
        while (whole := self._whole.get(start)) is not None and whole.end_byte >= end:
            end = whole.end_byte
            if whole.start_byte >= start:
                break
            start = whole.start_byte
        lines = node.end_point[0] - node.start_point[0]
        long = not function or lines > _MODULE_LINES
        return _Definition(self._with_above(start), end, self._title(node, body), long)

    def _title(self, node: Node, body: Node | None) -> str:
        start = _after_annotations(node)
        body = _initializers(node) or body or node.child_by_field_name("body")
        header = self._slice(start, body.start_byte if body else node.end_byte).strip()
        if body is None or self._grammar.header_lines:
            header = header.partition("\n")[0]
        header = _TRAILING_COMMENT.sub("", header) if len(header) <= _LONGEST_LINE else header
        name = self._names.get(node.start_byte, "")
        title = clean_title(f"{_HEADER_END.sub('', header)} {name if name not in header else ''}")
        if len(title) <= _LONGEST_TITLE:
            return title
        named = self._slice(start, max(start, _name_end(node)))
        return clean_title(named[: _LONGEST_TITLE - 3]) + "(…)"

    def _between(self, start: int, stop: int) -> tuple[list[int], int]:
        """Where the first lines of code stand behind a definition, and the first comment (0 without one)."""
        lines: list[int] = []
        first_comment = 0
        position = self._code.find(b"\n", start, stop) + 1
        while 0 < position < stop and len(lines) < _FEWEST_PASSAGE_LINES:
            line_end = self._code.find(b"\n", position, stop)
            line_end = stop if line_end < 0 else line_end
            line = self._slice(position, min(line_end, position + _LONGEST_LINE))
            first = position + len(line.encode()) - len(line.lstrip().encode())
            if comment := self._comment_end(first):
                first_comment = first_comment or first
                line_end = max(line_end, self._code.find(b"\n", comment - 1, stop))
            elif not _CLOSING.match(line):
                lines.append(first)
            position = line_end + 1
        return lines, first_comment

    def _passage(self, level: int, start: int, after: int) -> Heading:
        """The heading for code that is no definition: its first line."""
        line = self._slice(start, start + _LONGEST_LINE).partition("\n")[0]
        title = clean_title(line[:_LONGEST_PASSAGE_TITLE]) + ("…" if len(line) > _LONGEST_PASSAGE_TITLE else "")
        return Heading(level, title, max(after, self._with_above(start)))

    def _comment_end(self, offset: int) -> int:
        """End of the comment in which ``offset`` lies, 0 if it is in none."""
        index = bisect.bisect_right(self._comments, (offset, len(self._code))) - 1
        return self._comments[index][1] if index >= 0 and offset < self._comments[index][1] else 0


def _nested(found: list[_Definition]) -> list[_Definition]:
    """Those at the top, with their parts in them; the parts of a function are left out."""
    top: list[_Definition] = []
    around: list[_Definition] = []
    for definition in found:
        while around and around[-1].end <= definition.start:
            around.pop()
        if not around:
            top.append(definition)
        elif not around[-1].long:
            continue
        else:
            definition.level = around[-1].level + 1
            around[-1].parts.append(definition)
        around.append(definition)
    return top


def _after_annotations(node: Node) -> int:
    """Where the definition itself begins, behind what is written before it about it."""
    start = node.start_byte
    for child in node.children:
        if child.type == "modifiers":
            ends = [part.end_byte for part in child.children if part.type in _ANNOTATIONS]
            return max([start, *ends])
        if child.type not in _ANNOTATIONS:
            break
        start = child.end_byte
    return start


def _initializers(node: Node) -> Node | None:
    """What a constructor in C++ does before its body."""
    return next((child for child in node.children if child.type == "field_initializer_list"), None)


def _name_end(node: Node) -> int:
    for _ in range(_NAME_DEPTH):
        if name := node.child_by_field_name("name"):
            return name.end_byte
        inner = node.child_by_field_name("declarator")
        if inner is None:
            break
        node = inner
    return node.end_byte
