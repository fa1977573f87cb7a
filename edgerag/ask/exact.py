"""Identifiers and quoted phrases of a question, and the chunks in which they stand as they are.

Part numbers, error codes and function names are what embedders confuse most, and what a person who
types them wants found. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from edgerag.types import StoredChunk

# Letters with a digit, an underscore, a scope or path mark or an inner capital: E0382, max_len,
# std::io::Read, HashMap, v1.2.3, AB-1200. Plain words and plain numbers are no identifiers.
_CANDIDATE = re.compile(r"[A-Za-z0-9_$#@][\w$#@]*(?:(?:::|->|[-./:])[\w$#@]+)*(?:\(\))?!?")
_PHRASE = re.compile(r"\"([^\"\n]{3,200})\"|“([^”\n]{3,200})”|`([^`\n]{2,200})`|«([^»\n]{3,200})»|「([^」\n]{2,200})」")


def exact_strings(question: str) -> tuple[str, ...]:
    """The strings of the question that should stand in a chunk letter by letter, case folded."""
    phrases = ["".join(groups) for groups in _PHRASE.findall(question)]
    identifiers = [found.group() for found in _CANDIDATE.finditer(question) if is_identifier(found.group())]
    return tuple(dict.fromkeys(string.casefold() for string in [*phrases, *identifiers]))


def exact_matches(strings: Iterable[str], chunks: Iterable[StoredChunk]) -> frozenset[int]:
    """Ids of the chunks that hold every one of ``strings``; of any of them when no chunk holds all."""
    wanted = tuple(strings)
    if not wanted:
        return frozenset()
    patterns = [
        re.compile(
            rf"(?<!\w){re.escape(string)}(?!\w)" if string[-1:].isalnum() and string[0].isalnum() else re.escape(string)
        )
        for string in wanted
    ]
    counts = {}
    for chunk in chunks:
        text = chunk.chunk.embedding_text.casefold()
        counts[chunk.id] = sum(pattern.search(text) is not None for pattern in patterns)
    best = max(counts.values(), default=0)
    return frozenset(chunk_id for chunk_id, count in counts.items() if count == best) if best else frozenset()


def is_identifier(string: str) -> bool:
    """Whether a string that has the form of an identifier is one, and no plain word or number."""
    has_digit = any(c.isdigit() for c in string)
    has_letter = any(c.isalpha() for c in string)
    if not has_letter:
        return False
    if has_digit or "_" in string or "::" in string or "->" in string or string.endswith(("()", "!")):
        return True
    return any(b.isupper() and a.islower() for a, b in pairwise(string))
