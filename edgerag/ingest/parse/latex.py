"""LaTeX: the text is the file itself; the title and the sectioning commands are found in it.

Comments and everything verbatim are blanked before the search, at equal length, so that offsets stay. The levels count
from the highest command in use. Commands that a class makes of the standard ones (``\\addsec``, ``\\olsection``) count
as these.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from edgerag.ingest.parse.layout import sole_title
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.ingest.parse.text import read_text
from edgerag.types import Heading, ParsedDocument

_RANKS = {
    name: rank
    for rank, names in enumerate(
        (
            *(("part", "addpart"), ("chapter", "addchap"), ("section", "addsec"), ("subsection",), ("subsubsection",)),
            *(("paragraph", "frametitle"), ("subparagraph",)),
        )
    )
    for name in names
}
_VERBATIM = (
    r"\\begin[ \t]*\{(?P<name>verbatim\*?|[BL]?Verbatim\*?|lstlisting|minted|alltt|comment|filecontents\*?)\}"
    r"(?:(?s:.)*?)(?:\\end[ \t]*\{(?P=name)\}|\Z)"
)
_HIDDEN = re.compile(
    rf"{_VERBATIM}|\\(?:verb|lstinline)\*?(?P<mark>[^\sA-Za-z*{{\[])[^\n]{{0,500}}?(?P=mark)|\\[\\%]|%[^\n]*"
)
_NOT_LINE_FEED = re.compile(r"[^\n]")
_SECTIONING = re.compile(
    r"\\(?:(?P<own>[a-z]{1,6}?)(?=chapter|(?:sub){0,2}section))??"
    r"(?P<name>part|addpart|chapter|addchap|(?:sub){0,2}section|addsec|(?:sub)?paragraph|frametitle)\*?"
    r"[ \t]*\n?[ \t]*(?:\[[^\[\]]{0,500}\][ \t]*\n?[ \t]*)?\{"
)
# Prefixes with which a command says something about sections instead of beginning one.
_NO_PREFIXES = frozenset(
    {"the", "ref", "cref", "label", "auto", "this", "toc", "in", "at", "see", "next", "prev", "no"}
)
_TITLE = re.compile(r"\\title[ \t]*(?:\[[^\[\]]{0,500}\][ \t]*)?\n?[ \t]*\{")
_LONGEST_ARGUMENT = 2000
_PARAMETER = re.compile(r"#\d")  # in the definition of a command, not a title

# Commands that are not shown in a title, with their argument.
_SILENT = re.compile(
    r"\\(?:label|index|thanks|footnote(?:mark)?|cite[a-z]*|protect|vspace|hspace|pdfbookmark|gls)\*?"
    r"(?:\[[^\]]*\])*(?:\{[^{}]*\})?"
)
_TEX_OR_PDF = re.compile(r"\\texorpdfstring[ \t]*\{(?:[^{}]|\{[^{}]*\})*\}[ \t]*\{((?:[^{}]|\{[^{}]*\})*)\}")
_ACCENT = re.compile(r"\\([`'^\"~=.]|[uvHckrd](?![A-Za-z]))[ \t]*(?:\{(\\?[A-Za-z])\}|(\\?[A-Za-z]))")
_ACCENTS = dict(
    zip(
        "`'^\"~=.uvHckrd",
        "\u0300\u0301\u0302\u0308\u0303\u0304\u0307\u0306\u030c\u030b\u0327\u0328\u030a\u0323",
        strict=True,
    )
)
_LETTERS = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "aa": "å", "AA": "Å",
    "i": "ı", "j": "ȷ", "LaTeX": "LaTeX", "TeX": "TeX", "dots": "…", "ldots": "…", "textendash": "–",
    "textemdash": "—", "S": "§", "copyright": "©",
}  # fmt: skip
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?[ \t]*(?:\[[^\]]*\])?")
_ESCAPED = re.compile(r"\\([&%$#_{}])")
_LINE_BREAK = re.compile(r"\\\\(?:\[[^\]]*\])?")
_SPACES = re.compile(r"\\[,;:! /@-]|~")
_LIGATURES = (("---", "—"), ("--", "–"), ("``", "“"), ("''", "”"))


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when there is nothing but blanks."""
    text, warnings = read_text(source)
    visible = _HIDDEN.sub(_blanked, text)
    found = [(rank, _shown(title), start) for rank, title, start in _sections(visible)]
    highest = min((rank for rank, _, _ in found), default=0)
    headings = tuple(Heading(rank - highest + 1, title, start) for rank, title, start in found if title)
    return ParsedDocument(
        text=text,
        title=_title(visible) or sole_title(headings) or source.fallback_title,
        media_type="text/x-tex",
        headings=headings,
        warnings=warnings,
    )


def _blanked(match: re.Match[str]) -> str:
    hidden = match[0]
    if hidden in ("\\\\", "\\%"):  # neither begins a comment
        return hidden
    return _NOT_LINE_FEED.sub(" ", hidden)


def _sections(visible: str) -> Iterator[tuple[int, str, int]]:
    for match in _SECTIONING.finditer(visible):
        title = _argument(visible, match.end())
        if match["own"] not in _NO_PREFIXES and title is not None and not _PARAMETER.search(title):
            yield _RANKS[match["name"]], title, match.start()


def _title(visible: str) -> str:
    for match in _TITLE.finditer(visible):
        title = _argument(visible, match.end())
        if title is not None and not _PARAMETER.search(title) and (shown := _shown(title)):
            return shown
    return ""


def _argument(text: str, start: int) -> str | None:
    """What stands up to the brace that closes; None if none does."""
    depth, position = 1, start
    stop = min(len(text), start + _LONGEST_ARGUMENT)
    while position < stop:
        character = text[position]
        if character == "\\":
            position += 1
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if not depth:
                return text[start:position]
        position += 1
    return None


def _shown(raw: str) -> str:
    """A title as it is printed, about."""
    text = _SILENT.sub("", _TEX_OR_PDF.sub(r"\1", raw))
    text = _LINE_BREAK.sub(" ", text)
    text = _ACCENT.sub(_accented, text)
    text = _COMMAND.sub(lambda match: _LETTERS.get(match[1], " "), text)
    text = _SPACES.sub(" ", text)
    escaped = _ESCAPED.sub(lambda match: chr(0xE000 + ord(match[1])), text)  # kept from what removes braces
    text = escaped.replace("{", "").replace("}", "").replace("$", "")
    text = re.sub("[\ue000-\ue07f]", lambda match: chr(ord(match[0]) - 0xE000), text)
    for written, printed in _LIGATURES:
        text = text.replace(written, printed)
    return clean_title(text)


def _accented(match: re.Match[str]) -> str:
    letter = (match[2] or match[3]).removeprefix("\\")
    return unicodedata.normalize("NFC", letter + _ACCENTS[match[1]])
