"""Text that is written to be obeyed: by a language model, a terminal, a spreadsheet, a template, a UI. Pure.

Nothing here obeys it: text of documents never becomes a control token, an escape code, markup or a path
(docs/security.md). But who ingests such a file should hear that somebody tried, so each kind is named once in the
document's warnings, with the first place and its words. Source code and data hold some of it in earnest.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

from edgerag.ingest.parse.hidden_text import place, printable
from edgerag.types import ParsedDocument

_EXCERPT = 60  # characters
_MOST_CHARACTERS = 4_000_000  # of a text that are looked through: a tenth of a second
_CODE = re.compile(r"text/x-(?!rst|tex|log)|text/css|application/javascript")
_DATA = re.compile(r"application/(?:jsonl?|yaml|toml|xml)")


@dataclass(frozen=True, slots=True)
class _Kind:
    said: str
    # In small letters; where none of them stands, the pattern cannot match. Looking for them is fifty times as fast.
    signs: str  # semicolons between them
    pattern: re.Pattern[str]
    in_code: bool = False  # whether it is named there, too
    in_data: bool = True
    is_prose: bool = False  # goes on over the ends of lines


_WHOM = r"(?:previous|prior|above|earlier|preceding|former|all|any|every|your|these|those)"
_WHAT = r"(?:instruction|prompt|rule|direction|guideline|command|message|context)"
# A manual that sends its reader elsewhere speaks of its own instructions.
_OWN = (
    r"(?!s? (?:in|of|on|from) (?:the |this )?"
    r"(?:chapter|section|step|page|paragraph|appendix|table|figure|manual|guide)\b)"
)
# Letters that a reader takes for those of ASCII, by what they stand for: full-width ones, and those of mathematics.
_LIKE_LETTERS = re.compile("[\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]")
_LETTERS = {
    number: letter
    for number in (*range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B), *range(0x1D400, 0x1D800))
    if len(letter := unicodedata.normalize("NFKC", chr(number))) == 1 and letter.isascii()
}
_LINE_END = re.compile(r"(?<!\n)\n(?!\s)")  # not of a paragraph, a list or a table
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
        ";игнор;забудь;忽略;无视;忘记;の指示",
        re.compile(
            rf"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{{0,40}}\b{_WHOM}\b[^.\n]{{0,40}}\b{_WHAT}{_OWN}"
            r"|\byou are now\b[^.\n]{0,40}\b(?:assistant|model|AI|DAN|mode|unrestricted|developer)\b"
            r"|\b(?:reveal|print|repeat|show)\b[^.\n]{0,30}\bsystem (?:prompt|message|instruction)"
            r"|\b(?:AI|assistant|language model|LLM)s?\b[^.\n]{0,30}\bmust (?:answer|reply|respond|say|write|cite|not)"
            r"|\b(?:ignorieren?|vergiss|vergessen|missachten?)\b[^.\n]{0,60}(?:anweisung|instruktion|regel)"
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
            r"(?:^|[,;|\t\"'(])[ \t]{0,9}[=+\-@][ \t]{0,9}"
            r"(?:[^\n,;\"|]{0,40}?[A-Za-z_]\w{1,20}\|[^\s|][^\n|]{0,200}![\w'$]|(?:HYPERLINK|WEBSERVICE|DDE|EXEC|CALL"
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
    prose = _LINE_END.sub(" ", text.translate(_LETTERS) if _LIKE_LETTERS.search(text) else text)
    small, small_prose = text.lower(), prose.lower()
    warnings = []
    for kind in _KINDS:
        if (is_code and not kind.in_code) or (is_data and not kind.in_data):
            continue
        looked, looked_small = (prose, small_prose) if kind.is_prose else (text, small)
        if not any(sign in looked_small for sign in kind.signs.split(";")):
            continue
        match = kind.pattern.search(looked)
        if match is not None:
            words = printable(text[match.start() : match.end() + _EXCERPT])[:_EXCERPT]
            warnings.append(f'{place(document, match.start())}: {kind.said} are taken as plain text: "{words}".')
    return replace(document, warnings=(*document.warnings, *warnings)) if warnings else document
