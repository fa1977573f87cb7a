"""One line of a ``.gitignore`` as a regular expression, with git's meaning (``wildmatch.c``).

Only that ``?`` and ``[...]`` stand for a character, where git takes a byte of it.

A pattern is matched against one file or folder only, never against what lies above it: whoever walks a
folder does not enter what is ignored, which is how git itself keeps a negation from reaching into it.

The expressions need time in proportion to pattern times path: what stands between two wildcards is taken at
its first place and never tried elsewhere (which loses no match, since the wildcard behind it takes up the rest).
A folder from elsewhere may hold patterns such as ``*a*a*a*a*b``, over which backtracking never ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_ANY = "[^/]"
_NEVER = r"(?!)"
_POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}

_Wildcard = Literal["*", "**", "/"]


@dataclass(frozen=True, slots=True)
class Glob:
    """What a pattern asks for. ``regex`` is for ``fullmatch``."""

    text: str  # the line as it stands in the file
    negated: bool
    folders_only: bool
    by_name: bool  # matched against the last part of the path; else against the path below the pattern's folder
    regex: str
    literal: str = ""  # the name itself, where the pattern has no wildcard and goes by name


def parse_line(line: str) -> Glob | None:
    """The pattern in a line; None where it holds none (empty, a comment)."""
    if not line or line.startswith("#"):
        return None
    body = _without_trailing_spaces(line)
    negated = body.startswith("!")
    body = body[negated:]
    folders_only = body.endswith("/")
    body = body[: len(body) - folders_only]
    by_name = "/" not in body
    if not by_name:
        body = body.removeprefix("/")
    if not body:
        return None
    tokens = _tokens(body)
    if tokens is None:
        return Glob(line, negated, folders_only, by_name, _NEVER)
    literal = ""
    if by_name and all(token not in ("*", "**") and len(token) == 2 for token in tokens):
        literal = "".join(token[1] for token in tokens)
    return Glob(line, negated, folders_only, by_name, _path_regex(tokens), literal)


def _without_trailing_spaces(line: str) -> str:
    """Spaces at the end count only behind a backslash."""
    end = position = 0
    while position < len(line):
        if line[position] == "\\":
            if position + 1 == len(line):
                return line
            position += 1
            end = position + 1
        elif line[position] != " ":
            end = position + 1
        position += 1
    return line[:end]


def _tokens(pattern: str) -> list[str] | None:
    """``/``, ``*``, ``**``, ``=c`` for a character c, ``[...`` for one of several; None if it can match nothing."""
    tokens: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "*":
            end = position
            while end < len(pattern) and pattern[end] == "*":
                end += 1
            alone = (position == 0 or pattern[position - 1] == "/") and (
                end == len(pattern) or pattern[end] == "/" or pattern.startswith("\\/", end)
            )
            tokens.append("**" if end - position > 1 and alone else "*")
            position = end
        elif character == "[":
            found = _character_class(pattern, position)
            if found is None:
                return None
            regex, position = found
            tokens.append(regex)
        elif character == "\\":
            if position + 1 == len(pattern):
                return None
            escaped = pattern[position + 1]
            tokens.append("/" if escaped == "/" else "=" + escaped)
            position += 2
        else:
            tokens.append({"/": "/", "?": _ANY}.get(character, "=" + character))
            position += 1
    return tokens


def _character_class(pattern: str, start: int) -> tuple[str, int] | None:
    """The expression of ``[...]`` and where it ends; None where it is never closed or names no class."""
    position = start + 1
    negated = pattern[position : position + 1] in ("!", "^")
    position += negated
    parts: list[str] = []
    previous = ""  # the character that a range could begin with
    first = True
    while first or pattern[position : position + 1] != "]":
        first = False
        if position >= len(pattern):
            return None
        character = pattern[position]
        if character == "[" and pattern.startswith("[:", position):
            close = pattern.find("]", position + 2)
            if close < 0:
                return None
            if close > position + 2 and pattern[close - 1] == ":":
                members = _POSIX_CLASSES.get(pattern[position + 2 : close - 1])
                if members is None:
                    return None
                parts.append(members)
                previous, position = "", close + 1
                continue
        is_range = character == "-" and bool(previous) and pattern[position + 1 : position + 2] not in ("", "]")
        if is_range:
            position += 1
            character = pattern[position]
        if character == "\\":
            position += 1
            if position >= len(pattern):
                return None
            character = pattern[position]
        if is_range:
            if previous <= character:
                parts.append(f"{_escaped(previous)}-{_escaped(character)}")
            previous = ""
        else:
            parts.append(_escaped(character))
            previous = character
        position += 1
    members = "".join(parts)
    if negated:
        return f"[^/{members}]", position + 1
    return (f"(?!/)[{members}]" if members else _NEVER), position + 1


def _escaped(character: str) -> str:
    return f"\\U{ord(character):08x}"


def _path_regex(tokens: list[str]) -> str:
    """Segments between slashes; a run of them between two ``**`` is taken where it first fits."""
    runs: list[list[str]] = [[]]  # segments, split at "**"
    segment: list[str] = []
    begun_with_gap = ended_with_gap = False
    last_was_gap = False
    for part in [*tokens, "/"]:
        if part != "/":
            segment.append(part)
            continue
        if segment == ["**"]:
            if not runs[-1] and len(runs) == 1:
                begun_with_gap = True
            elif not last_was_gap:
                runs.append([])
            last_was_gap = True
        else:
            runs[-1].append(_segment_regex(segment))
            last_was_gap = False
        segment = []
    ended_with_gap = last_was_gap
    if ended_with_gap and len(runs) > 1:
        runs.pop()
    if not runs[0]:
        return ".+"  # nothing but "**"
    regex = ""
    for number, run in enumerate(runs):
        is_last = number == len(runs) - 1
        gap = "(?:[^/]+/)" if number or begun_with_gap else ""
        body = "/".join(run)
        if is_last and not ended_with_gap:
            regex += f"{gap}*{body}" if gap else body
        elif gap:
            regex += f"(?>{gap}*?{body}/)"
        else:
            regex += f"{body}/"
    return regex + ".+" if ended_with_gap else regex


def _segment_regex(tokens: list[str]) -> str:
    pieces = [""]
    for token in tokens:
        if token in ("*", "**"):
            pieces.append("")
        elif token.startswith("="):
            pieces[-1] += re.escape(token[1:])
        else:
            pieces[-1] += token
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>{_ANY}*?{piece})" for piece in pieces[1:-1] if piece)
    return f"{pieces[0]}{middle}{_ANY}*{pieces[-1]}"
