"""A thread as Markdown: what it says is written so that every reader of Markdown shows it as text.

Answers keep their structure (headings, lists, tables, code, emphasis). They are read with the inert parser and
written again with every sign escaped that another reader could take for a link, a picture, HTML or an address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from markdown_it.token import Token

from edgerag.types import Exchange, FoundSource, Thread
from edgerag.ui.export.said import doubts, ending, filter_words, state_words, when, where_words
from edgerag.ui.inert_markdown import SOURCE_MARK, parsed
from edgerag.ui.plain import plain
from edgerag.ui.source_marks import NO_MARKS, SourceMarks, marks_of_exchange

# What begins something in some dialect of Markdown, wherever it stands, formulas included.
_SIGNS = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&@:^=-])")
_NUMBER = re.compile(r"^(\s*\d+)([.)])", re.MULTILINE)  # would begin a list
_WEB = re.compile(r"\bwww\.", re.IGNORECASE)
_TICKS = re.compile(r"`+")


def to_markdown(thread: Thread, found: Mapping[int, Sequence[FoundSource]]) -> str:
    head = thread.head
    parts = [f"# {escaped(head.title)}", f"{escaped(f'Library {head.library}, {when(head.began_ns)}')}"]
    for place, exchange in enumerate(thread.exchanges, 1):
        parts += _exchange(exchange, found.get(exchange.id, ()), place)
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """``text`` as Markdown that shows it, character by character."""
    text = _WEB.sub(lambda match: f"{match[0][:-1]}\\.", _SIGNS.sub(r"\\\1", plain(text)))
    return _NUMBER.sub(r"\1\\\2", text)


def rewritten(markdown: str, marks: SourceMarks = NO_MARKS, *, target: str = "") -> str:
    """An answer's Markdown, structure kept, all else text; its marks lead to the place ``target``."""
    tokens = parsed(plain(markdown), marks)
    for child in (child for token in tokens for child in token.children or () if child.type == SOURCE_MARK):
        child.meta["target"] = target
    lines, _ = _blocks(tokens, 0, "")
    return "\n".join(lines).strip("\n")


def _exchange(exchange: Exchange, found: Sequence[FoundSource], place: int) -> list[str]:
    parts = ["---", _quoted(exchange.question)]
    about = filter_words(exchange.where)
    parts += [f"*{escaped(f'Asked only of: {about}')}*"] if about else []
    marks, target = marks_of_exchange(exchange), f"sources:{place}"
    marks = replace(marks, numbers=marks.numbers & {each.source.number for each in found})
    parts += [rewritten(exchange.text, marks, target=target)] if exchange.text.strip() else []
    notes = exchange.answer.notes if exchange.answer is not None else ()
    parts += [f"*{escaped(' '.join(note.split()))}*" for note in (ending(exchange), *notes) if note.strip()]
    parts += [f"\\[?\\] {escaped(' '.join(f'“{words}” {reason}'.split()))}" for words, reason in doubts(exchange)]
    if found:
        # Named by itself: a heading of an answer may have the same words, and no heading gives a name with a colon.
        parts.append(
            "\n".join(
                [
                    f'<a id="{target}"></a>',
                    "",
                    f"#### Sources of answer {place}",
                    "",
                    *(_source(each) for each in found),
                ]
            )
        )
    return parts


def _quoted(question: str) -> str:
    return "\n".join(f"> **{escaped(line.strip())}**" if line.strip() else ">" for line in question.splitlines())


def _source(found: FoundSource) -> str:
    source = found.source
    about = [escaped(source.hit.chunk.title or source.hit.chunk.path), escaped(" ".join(where_words(found).split()))]
    state = state_words(found)
    line = f"- \\[{source.number}\\] {', '.join(about)}{' (cited)' if source.cited else ''}"
    line += f" *{escaped(state)}*" if state else ""
    return f"{line}  \n  “{escaped(' '.join(source.quote.split()))}”"


# ---------------------------------------------------------------- the parser's tokens, written again


def _blocks(tokens: Sequence[Token], at: int, closing: str) -> tuple[list[str], int]:
    """The lines of the blocks from ``at`` to the token ``closing``, and the place behind it."""
    lines: list[str] = []
    while at < len(tokens) and tokens[at].type != closing:
        token = tokens[at]
        at += 1
        match token.type:
            case "paragraph_open":
                block = _inline(tokens[at]).split("\n")
                tight = token.hidden
                at += 2
            case "heading_open":
                block, tight = [f"{token.markup if token.markup[0] == '#' else '##'} {_inline(tokens[at])}"], False
                at += 2
            case "fence" | "code_block":
                info = token.info.strip()
                block, tight = [*([escaped(info), ""] if info else []), *_fenced(token)], False
            case "hr":
                block, tight = ["***"], False
            case "table_open":
                block, at = _table(tokens, at)
                tight = False
            case "blockquote_open":
                inner, at = _blocks(tokens, at, "blockquote_close")
                block, tight = [f"> {line}".rstrip() for line in inner], False
            case "bullet_list_open" | "ordered_list_open":
                block, at = _list(tokens, at, token)
                tight = False
            case _:
                continue
        lines += block if tight else [*block, ""]
    while lines and not lines[-1]:
        lines.pop()
    return lines, at + 1


def _list(tokens: Sequence[Token], at: int, opening: Token) -> tuple[list[str], int]:
    ordered = opening.type == "ordered_list_open"
    lines: list[str] = []
    while tokens[at].type == "list_item_open":
        item = tokens[at]
        inner, at = _blocks(tokens, at + 1, "list_item_close")
        mark = f"{item.info}{item.markup} " if ordered else "- "
        first, *rest = inner or [""]
        lines += [f"{mark}{first}".rstrip(), *(f"{' ' * len(mark)}{line}".rstrip() for line in rest)]
    return lines, at + 1


def _table(tokens: Sequence[Token], at: int) -> tuple[list[str], int]:
    lines: list[str] = []
    row: list[str] = []
    while tokens[at].type != "table_close":
        token = tokens[at]
        at += 1
        if token.type == "inline":
            row.append(_inline(token).replace("\n", " "))
        elif token.type == "tr_close":
            lines.append(f"| {' | '.join(row)} |")
            if len(lines) == 1:
                lines.append(f"|{'---|' * len(row)}")
            row = []
    return lines, at + 1


def _fenced(token: Token) -> list[str]:
    """Fenced by more ticks than stand in it; the name of a language, on which some readers act, stands above it."""
    ticks = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(token.content))])
    return [ticks, *token.content.rstrip("\n").split("\n"), ticks]


def _inline(token: Token) -> str:
    written = []
    for child in token.children or ():
        match child.type:
            case "code_inline":
                ticks = "`" * max([1, *(len(run) + 1 for run in _TICKS.findall(child.content))])
                # A bar would end the cell of a table.
                written.append(
                    f"{ticks} {child.content} {ticks}" if "|" not in child.content else escaped(child.content)
                )
            case "strong_open" | "strong_close":
                written.append("**")
            case "em_open" | "em_close":
                written.append("*")
            case "s_open" | "s_close":
                written.append("~~")
            case kind if kind == SOURCE_MARK:
                written.append(f"[\\[{child.info}\\]](#{child.meta['target']})")
            case "softbreak":
                written.append("\n")
            case "hardbreak":
                written.append("  \n")
            case _:
                written.append(escaped(child.content))
    return "".join(written)
