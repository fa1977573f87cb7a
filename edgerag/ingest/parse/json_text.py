"""JSON as text: its named parts, its escapes made readable, one endless line laid out.

It works on tokens, not on values: what is damaged, or has comments in it, is read as far as it goes, and nothing
depends on how deep it is nested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from edgerag.ingest.parse.outline import DEEPEST, Named, joined

_STRING = r'"(?:[^"\\]++|\\.)*+"'
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\],:]", re.DOTALL)
# As above, but a container with no other in it is one token, and so is what stands between the marks.
_LAYOUT_TOKEN = re.compile(
    rf"{_STRING}|[\[{{](?:[^\[\]{{}}\"]++|{_STRING})*+[\]}}]|[{{}}\[\],:]|[^\s{{}}\[\],:\"]++|\"", re.DOTALL
)
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|.)", re.DOTALL
)
# The names by which a person knows a record, the best first.
_NAMES = ("name", "title", "label", "id", "key")
_WIDTH = 100  # of a line that is laid out
_DEEPEST_INDENT = 40
_MOST_GROWTH = 4  # by line ends and indentation
_SHORT = 1_000  # characters; up to here it does not matter


@dataclass(slots=True)
class _Open:
    """A container that is open."""

    object: bool
    part: Named | None
    member: Named | None = None  # the member we are in
    key: str = ""
    expects_key: bool = True
    rank: int = len(_NAMES)  # of the name that was found for ``part``
    records: int = 0  # objects that began in it, which is an array


def readable(text: str) -> str:
    """The text with escapes like ``\\u00e9`` as characters; its lines stay as they are."""
    return _ESCAPE.sub(_character, text) if "\\u" in text else text


def _character(match: re.Match[str]) -> str:
    high, low, single = match.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    character = chr(int(single, 16)) if single else ""
    return character if character.isprintable() and character not in '"\\' and character else match[0]


def named_parts(text: str) -> tuple[list[Named], bool]:
    """The members of its objects and the records of its arrays; and whether all that was opened was closed."""
    found: list[Named] = []
    stack: list[_Open] = []
    whole = True
    for match in _TOKEN.finditer(text):
        piece, start = match[0], match.start()
        top = stack[-1] if stack else None
        if piece in "{[":
            stack.append(_Open(piece == "{", _begun(found, top, len(stack), start, piece)))
        elif piece in "}]":
            if top is None or top.object != (piece == "}"):
                whole = False
                continue
            _end_member(top, start)
            if (part := stack.pop().part) is not None:
                part.end = match.end()
                if part.level == 1 and not part.title:
                    part.title = f"record {stack[-1].records}"
        elif top is None:
            continue
        elif piece == ",":
            _end_member(top, start)
            top.expects_key = True
        elif piece == ":":
            top.expects_key = False
        elif top.object and top.expects_key:
            top.key = piece
            if len(stack) <= DEEPEST:
                top.member = Named(len(stack), _value(piece), start, match.end(), parts=False)
                found.append(top.member)
        elif top.object and top.part is not None and (rank := _rank(top.key)) < top.rank:
            top.part.title, top.rank = _value(piece), rank
    for left in stack:
        for part in (left.part, left.member):
            if part is not None:
                part.end = len(text)
    return found, whole and not stack


def _begun(found: list[Named], top: _Open | None, depth: int, start: int, piece: str) -> Named | None:
    """The part that a container is, if it has, or may get, a name."""
    if top is None or depth > DEEPEST:
        return None
    if top.object:
        if top.member is not None:
            top.member.parts = True
            top.member.end = start + 1
        return None
    if piece == "[":  # an array in an array is a row
        return None
    top.records += 1
    found.append(Named(depth, "", start, start + 1, parts=True))
    return found[-1]


def _end_member(container: _Open, end: int) -> None:
    if container.member is not None:
        container.member.end = end
        container.member = None


def _rank(key: str) -> int:
    name = key.strip('"').lower()
    return _NAMES.index(name) if name in _NAMES else len(_NAMES)


def _value(piece: str) -> str:
    try:
        return str(json.loads(piece, strict=False))
    except ValueError:
        return piece.strip('"')


def laid_out(text: str) -> str:
    """The same JSON over many lines, indented; small arrays and objects stay on one.

    "" when that would be long, and several times as long as the text: so much nesting says nothing."""
    return joined(_layout(text), most=max(_SHORT, _MOST_GROWTH * len(text))).strip("\n")


def _layout(text: str) -> Iterator[str]:
    depth = 0
    fresh = True  # at the beginning of a line
    apart = False  # a blank must follow: two values without a comma, in a damaged file
    for match in _LAYOUT_TOKEN.finditer(text):
        piece = match[0]
        indent = "  " * min(depth, _DEEPEST_INDENT)
        if piece in "{[":
            yield (indent if fresh else "") + piece + "\n"
            depth, fresh = depth + 1, True
        elif piece in "}]":
            depth = max(0, depth - 1)
            yield ("" if fresh else "\n") + "  " * min(depth, _DEEPEST_INDENT) + piece
            fresh = False
        elif piece == ",":
            yield ",\n"
            fresh = True
        elif piece == ":":
            yield ": "
        else:
            yield (indent if fresh else " " * apart) + (_leaf(piece, indent) if piece[0] in "{[" else piece)
            fresh, apart = False, True
            continue
        apart = False
        if not depth and piece in "}]":
            yield "\n"
            fresh = True


def _leaf(piece: str, indent: str) -> str:
    """A container without others in it: on one line, or a member on each, or an array filled up to the width."""
    if len(piece) <= _WIDTH:
        return piece[0] + " ".join(_items(piece[1:-1])) + piece[-1]
    lines: list[str] = []
    line = ""
    for item in _items(piece[1:-1]):
        if line and (piece[0] == "{" or len(line) + len(item) > _WIDTH):
            lines.append(line)
            line = ""
        line = f"{line} {item}" if line else item
    lines.append(line)
    body = "\n".join(f"{indent}  {line}" for line in lines)
    return f"{piece[0]}\n{body}\n{indent}{piece[-1]}"


def _items(body: str) -> Iterator[str]:
    item = ""
    for match in re.finditer(rf"{_STRING}|[,:]|[^\s,:\"]++|\"", body, re.DOTALL):
        item += match[0] if match[0] != ":" else ": "
        if match[0] == ",":
            yield item
            item = ""
    if item:
        yield item
