"""Source code: the text is the file itself; its classes and functions are the headings.

tree-sitter reads broken code too: what it recognises is used. Without a grammar there are no headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from edgerag.ingest.parse.definitions import definitions
from edgerag.ingest.parse.grammars import grammar
from edgerag.ingest.parse.source import Source
from edgerag.ingest.parse.text import read_text
from edgerag.types import Heading, ParsedDocument

# Extension to media type and grammar; "" where there is none.
_LANGUAGES = {
    **dict.fromkeys((".py", ".pyi"), ("text/x-python", "python")),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), ("text/javascript", "javascript")),
    ".ts": ("text/x-typescript", "typescript"),
    ".tsx": ("text/x-typescript", "tsx"),
    ".java": ("text/x-java", "java"),
    **dict.fromkeys((".c", ".h"), ("text/x-c", "c")),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp", ".hh"), ("text/x-c++", "cpp")),
    ".cs": ("text/x-csharp", "c_sharp"),
    ".go": ("text/x-go", "go"),
    ".rs": ("text/x-rust", "rust"),
    ".rb": ("text/x-ruby", "ruby"),
    ".php": ("text/x-php", "php"),
    **dict.fromkeys((".sh", ".bash"), ("text/x-shellscript", "bash")),
    ".kt": ("text/x-kotlin", ""),
    ".scala": ("text/x-scala", ""),
    ".swift": ("text/x-swift", ""),
    ".pl": ("text/x-perl", ""),
    ".lua": ("text/x-lua", ""),
    ".r": ("text/x-r", ""),
}
_CPP_HEADER = re.compile(
    r"^[ \t]*(?:class\s+\w+|namespace\b|template\s*<|(?:public|private|protected)\s*:)", re.MULTILINE
)
# A syntax tree takes some thirty bytes of memory per byte of code; what is longer was written by a program.
_MOST_BYTES = 10_000_000


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when there is nothing but blanks."""
    text, warnings = read_text(source)
    media_type, language = _LANGUAGES.get(source.extension, ("text/plain", ""))
    if source.extension == ".h" and _CPP_HEADER.search(text):
        media_type, language = "text/x-c++", "cpp"
    headings: tuple[Heading, ...] = ()
    if language:
        code = text.encode("utf-8", "replace")
        if len(code) > _MOST_BYTES:
            warnings = (*warnings, "It is too long for its functions to be told apart.")
        else:
            headings = tuple(_in_characters(code, definitions(code, grammar(language))))
    return ParsedDocument(
        text=text, title=source.fallback_title, media_type=media_type, headings=headings, warnings=warnings
    )


def _in_characters(code: bytes, headings: Iterable[Heading]) -> Iterator[Heading]:
    """The headings, in order of their start, with offsets in characters."""
    offset, characters = 0, 0
    for heading in headings:
        characters += len(code[offset : heading.start].decode("utf-8", "replace"))
        offset = heading.start
        yield Heading(heading.level, heading.title, characters)
