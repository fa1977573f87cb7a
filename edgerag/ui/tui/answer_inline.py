"""The words of a block of an answer with their styles, the marks of its sources among them."""

from __future__ import annotations

import re

from markdown_it.token import Token
from textual.content import Content, Span
from textual.style import Style

from edgerag.ui.inert_markdown import SOURCE_MARK

_CITING = re.compile(r"cite\(([0-9]{1,3})\)")
_INLINE_STYLES = {"em_open": "italic", "strong_open": "bold", "s_open": "strike"}
_CODE_STYLE = "$text-warning on $warning 10%"


def marked_number(action: str) -> int | None:
    """The number of a source mark, by what a click on it does; None where it is no mark."""
    match = _CITING.fullmatch(action)
    return int(match[1]) if match else None


def inline_content(token: Token) -> Content:
    """The words of a block with their styles."""
    parts: list[str] = []
    spans: list[Span] = []
    open_styles: list[tuple[str, int]] = []
    length = 0

    def add(text: str) -> None:
        nonlocal length
        parts.append(text)
        length += len(text)

    for child in token.children or ():
        match child.type:
            case "softbreak":
                add(" ")
            case "hardbreak":
                add("\n")
            case "code_inline":
                spans.append(Span(length, length + len(child.content), _CODE_STYLE))
                add(child.content)
            case kind if kind == SOURCE_MARK:
                place = length, length + len(child.content)
                spans.append(Span(*place, "$text-accent"))
                spans.append(Span(*place, Style.from_meta({"@click": f"cite({int(child.info)})"})))
                add(child.content)
            case kind if kind in _INLINE_STYLES:
                open_styles.append((_INLINE_STYLES[kind], length))
            case kind if kind.endswith("_close") and open_styles:
                style, start = open_styles.pop()
                spans.append(Span(start, length, style))
            case _:
                add(re.sub(r"\s+", " ", child.content))
    return Content("".join(parts), spans=spans)
