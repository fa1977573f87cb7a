"""What kind of thing a warning about a document says: told from its words, which the parsers choose.

In the order in which a person should hear of them. What fits none is of the last kind.
"""

from __future__ import annotations

import re

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "hidden text",
        re.compile(
            r"has hidden text|hidden text on|Hidden text, |There is hidden text|Hidden and read"
            r"|Hidden (?:sheets|rows|columns) were read|direction of text is overridden|invisible tag characters"
            r"|characters without width|Hidden characters stand"
        ),
    ),
    ("text that gives orders", re.compile(r"taken as plain text:")),
    (
        "damage",
        re.compile(
            r"[Dd]amaged|cut short|ends too early|[Mm]issing|could not be (?:read|decoded)|cannot be (?:read|unpacked)"
            r"|not in the book's own list|is not well[- ]formed|do not close"
        ),
    ),
    ("pages read by OCR", re.compile(r"read by OCR|OCR found no text")),
    ("scans not read", re.compile(r"scanned and not read")),
    ("protected parts", re.compile(r"protected by a password|is encrypted with")),
    ("parts left out", re.compile(r"[Ll]eft out|not followed|are not read|is not read|only the first")),
    ("encoding guessed", re.compile(r"encoding was taken to be")),
)
_OTHER = "notes"
KINDS: tuple[str, ...] = (*(kind for kind, _ in _PATTERNS), _OTHER)


def kind_of(warning: str) -> str:
    """One of ``KINDS``."""
    return next((kind for kind, pattern in _PATTERNS if pattern.search(warning)), _OTHER)


def rank_of(warning: str) -> int:
    """How soon a person should hear of it; 0 is first."""
    return KINDS.index(kind_of(warning))
