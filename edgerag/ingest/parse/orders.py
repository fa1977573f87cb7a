"""Text that is written to be obeyed: by a language model, a terminal, a spreadsheet, a template, a UI. Pure.

Nothing here obeys it: text of documents never becomes a control token, an escape code, markup or a path
(docs/security.md). But who ingests such a file should hear that somebody tried, so each kind is named once in the
document's warnings, with the first place and its words. Source code and data hold some of it in earnest.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from edgerag.ingest.parse.hidden_text import place, printable
from edgerag.types import ParsedDocument

_EXCERPT = 60  # characters
_MOST_CHARACTERS = 4_000_000  # of a text that are looked through: mostly a tenth of a second, at the worst some seconds
# Characters around a sign in which a match of its pattern lies.
_BEFORE, _BEHIND = 300, 500
_CODE = re.compile(r"text/x-(?!rst|tex|log)|text/css|application/javascript")
_DATA = re.compile(r"application/(?:jsonl?|yaml|toml|xml)")


@dataclass(frozen=True, slots=True)
class _Kind:
    said: str
    # In small letters; each match of the pattern holds one of them.
    signs: str  # semicolons between them
    pattern: re.Pattern[str]
    in_code: bool = False  # whether it is named there, too
    in_data: bool = True
    is_prose: bool = False  # goes on over the ends of lines


_WHOM = r"(?:previous|prior|above|earlier|preceding|former|all|any|every|your|these|those)"
_WHAT = r"(?:instruction|prompt|rule|direction|guideline|context)"
_NOT = r"(?<!never )(?<!not )(?<!n't )(?<!n\u2019t )"  # who forbids it gives no such order
# A manual that sends its reader elsewhere speaks of its own instructions.
_OWN = (
    r"(?!s? (?:in|of|on|from) (?:the |this )?"
    r"(?:chapter|section|step|page|paragraph|appendix|table|figure|manual|guide)\b)"
)
# Letters that a reader takes for those of ASCII, by what they stand for: full-width, raised, circled, of mathematics.
_LOOK_ALIKE = (
    (0xAA, 0xBA), (0x2B0, 0x2E4), (0x1D2C, 0x1DBF), (0x2071, 0x209C), (0x2100, 0x214F), (0x24B6, 0x24E9),
    (0xFF21, 0xFF5A), (0x1D400, 0x1D7FF), (0x1F130, 0x1F149),
)  # fmt: skip
_LETTERS = {
    number: letter
    for first, last in _LOOK_ALIKE
    for number in range(first, last + 1)
    if len(letter := unicodedata.normalize("NFKC", chr(number))) == 1 and letter.isascii() and letter.isalpha()
}
_LIKE_LETTERS = re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in _LOOK_ALIKE)}]")
# Cyrillic and Greek letters that look like Latin ones; meant as such where one word has both.
_TWINS = str.maketrans("\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u03bf\u03b1", "aeopcyxisjoa")
_TWO_SCRIPTS = re.compile(r"[a-z][\u03b1-\u03c9\u0430-\u045f]|[\u03b1-\u03c9\u0430-\u045f][a-z]")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\u180e]")  # within words, nobody sees them
_LINE_END = re.compile(r"(?<!\n)\n(?=[ \t]*\w)")  # not of a paragraph, an item of a list, a row of a table
# Of a template: names inside the engine, a call of the system, a loop without an end in sight, a sum to see if it runs.
_RUNS = (
    r"(?:__\w|\b(?:config|self|request|cycler|lipsum|joiner|import|eval|exec|system|popen|passthru|shell_exec|subclasses"
    r"|constructor|Runtime)\b|\d ?[*+] ?'?\d|\*\*)"
)
_KINDS = (
    _Kind(
        "control tokens of chat models",
        "<|;<\uff5c;inst];sys>>;_of_turn>;system_prompt];tool_;_tools;think>;function_calls>;<s>;###",
        re.compile(
            r"<\|[a-z_0-9 ]{2,40}\|>|<\uff5c[^\uff5c\n]{1,40}\uff5c>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"
            r"|\[/?(?:SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<\|START_OF_TURN_TOKEN\|>"
            r"|</?(?:tool_call|think|function_calls)>|</s>\s*<s>|^### (?:Instruction|Response|System):",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
    _Kind(
        "orders to a language model",
        "ignor;disregard;forget;overrid;bypass;you are now;system ; must ;vergiss;vergess;missacht;oublie;olvida"
        ";игнор;забудь;忽略;无视;忘记;の指示;무시",
        re.compile(
            rf"{_NOT}\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{{0,40}}\b{_WHOM}\b[^.\n]{{0,40}}\b{_WHAT}{_OWN}"
            r"|\byou are now\b[^.\n]{0,40}\b(?:assistant|model|AI|DAN|mode|unrestricted|developer)\b"
            rf"|{_NOT}\bignore (?:everything|all)(?: that)?(?: is| was)?(?: written| said)? (?:above|before)\b"
            r"|\b(?:reveal|print|repeat|show)\b[^.\n]{0,30}\b(?:system prompt|your system (?:message|instruction))"
            r"|\b(?:AI|language model|LLM|chat ?bot)s?\b[^.\n]{0,30}\bmust (?:answer|reply|respond|say|write|cite|not)"
            r"|(?:이전|위의?|모든)[^.\n]{0,16}(?:지시|지침|명령)[^.\n]{0,16}무시"
            r"|\b(?:ignorieren?|vergiss|vergessen|missachten?)\b(?! (?:Sie )?(?:nie|nicht)\b)[^.\n]{0,60}"
            r"(?:anweisung|instruktion|regel)"
            r"|\b(?:ignore[rz]?|oublie[rz]?)\b[^.\n]{0,20}\b(?:les|ces|vos|tes|mes|toutes)\b[^.\n]{0,30}\b(?:instructions|consignes|règles)"
            r"|\b(?:ignora|olvida)\b[^.\n]{0,40}\b(?:instrucciones|istruzioni|reglas)"
            r"|(?:игнорируй|забудь)[^.\n]{0,40}(?:инструкци|указани|правил)"
            r"|(?:忽略|无视|忘记)[^。\n]{0,12}(?:指令|指示|说明|规则)|(?:以前|上記|これまで)の指示[^。\n]{0,8}無視",
            re.IGNORECASE,
        ),
        is_prose=True,
    ),
    _Kind(
        "codes for a terminal",
        "\x1b;\x90;\x98;\x9b;\x9d;\x9e;\x9f",
        re.compile(r"\x1b[\[\]PX^_()#cNO78=>]|[\x90\x98\x9b\x9d-\x9f][^\s]"),
        in_code=True,
    ),
    _Kind(
        "commands for a spreadsheet",
        "|;hyperlink(;webservice(;importxml(;importdata(;importhtml(;importfeed(;importrange(;dde(;exec(;call("
        ";register(;rtd(;filterxml(;image(",
        re.compile(
            # "=cmd|'/C calc'!A0" talks to a program; "| - valve | 3 |" is a row of a table.
            # Possessive, and by whole words: a file full of beginnings costs no more than any other.
            r"(?:^|[,;|\"'(]|(?<!\t)\t)[ \t]{0,40}+[=+\-@][ \t]{0,9}+"
            r"(?:[^\n,;\"|]{0,40}?\b[A-Za-z_]\w{1,20}+\|[^\s|][^\n|]{0,200}![\w'$]|(?:HYPERLINK|WEBSERVICE|DDE|EXEC|CALL"
            r"|REGISTER|RTD|FILTERXML|IMAGE|IMPORT(?:XML|DATA|HTML|FEED|RANGE))\()",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
    _Kind(
        "commands of a template",
        "{{;{%;${;<%;<?php",
        re.compile(
            # What runs something or looks into the engine; placeholders stand in many an honest manual.
            rf"\{{\{{[^{{}}\n]{{0,200}}{_RUNS}[^{{}}\n]{{0,200}}\}}\}}|\{{%[^%\n]{{0,200}}{_RUNS}[^%\n]{{0,200}}%\}}"
            r"|\$\{(?:jndi|env|sys|script|url|dns|lower|upper|java):[^}\n]{0,200}\}"
            rf"|<%[^%\n]{{0,200}}{_RUNS}[^%\n]{{0,200}}%>|<\?(?:php|=)[^\n]{{0,200}}{_RUNS}",
            re.IGNORECASE,
        ),
        in_data=False,
    ),
    _Kind(
        "markup for a user interface",
        "[@click;[link;[on_click;](",
        re.compile(
            r"\[(?:@click|link|on_click)=[^\]\n]{1,200}\]|\]\(\s*(?:javascript|data|vbscript|file):", re.IGNORECASE
        ),
    ),
)


def with_orders_named(document: ParsedDocument) -> ParsedDocument:
    """The document with a warning for each kind of such text; the same one without any."""
    is_code, is_data = _CODE.match(document.media_type), _DATA.match(document.media_type)
    text = document.text[:_MOST_CHARACTERS]
    small = text.lower()
    unseen, proses = _proses(text)
    warnings = []
    for kind in _KINDS:
        if (is_code and not kind.in_code) or (is_data and not kind.in_data):
            continue
        span = _found(kind, proses) if kind.is_prose else _found(kind, [(text, small)])
        if span is not None:
            start, end = (_in_text(offset, unseen) for offset in span) if kind.is_prose else span
            last = text.find("\n", end)  # the rest of the line says what it is about
            words = printable(text[start : last if last >= 0 else end + _EXCERPT])[:_EXCERPT]
            warnings.append(f'{place(document, start)}: {kind.said}, taken as plain text: "{words}".')
    return replace(document, warnings=(*document.warnings, *warnings)) if warnings else document


def _proses(text: str) -> tuple[list[int], list[tuple[str, str]]]:
    """Where characters were left out that nobody sees, each offset without those before it; and the text as somebody
    reads it, whatever its letters are, each time with the same in small letters."""
    left_out = [match.start() - number for number, match in enumerate(_UNSEEN.finditer(text))]
    seen = _UNSEEN.sub("", text) if left_out else text
    prose = _LINE_END.sub(" ", seen.translate(_LETTERS) if _LIKE_LETTERS.search(seen) else seen)
    small = prose.lower()
    found = [(prose, small)]
    if _TWO_SCRIPTS.search(small):
        latin = small.translate(_TWINS)
        found.append((latin, latin))
    return left_out, found


def _in_text(offset: int, left_out: list[int]) -> int:
    return offset + bisect_right(left_out, offset)


def _found(kind: _Kind, texts: list[tuple[str, str]]) -> tuple[int, int] | None:
    """Where the first of it stands in the first text that has any."""
    for text, small in texts:
        for start, end in _looked_at(text, small, kind.signs.split(";")):
            if match := kind.pattern.search(text, start, end):
                return match.span()
    return None


def _looked_at(text: str, small: str, signs: list[str]) -> Iterator[tuple[int, int]]:
    """What lies around the signs: the pattern takes a second for a megabyte, finding them a hundredth of it."""
    if len(small) != len(text):  # a few letters become two when they are made small
        if any(sign in small for sign in signs):
            yield 0, len(text)
        return
    begin = end = -1
    for found in sorted(found for sign in signs for found in _places(small, sign)):
        if found - _BEFORE > end:
            if end >= 0:
                yield begin, end
            begin = max(0, found - _BEFORE)
        end = found + _BEHIND
    if end >= 0:
        yield begin, min(end, len(text))


def _places(text: str, sign: str) -> Iterator[int]:
    found = text.find(sign)
    while found >= 0:
        yield found
        found = text.find(sign, found + 1)
