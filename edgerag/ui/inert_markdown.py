"""The Markdown that answers are read as: structure, and nothing that could act or hide text.

A model repeats what documents say, so its Markdown is foreign text. Links, images, autolinks, references, HTML and
entities are no syntax: they stand there as they were written (docs/decisions/050). Formulas in the notation of
LaTeX are text too: nothing inside them is emphasis or an escape.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

# $x_1$ of one line, with no blank inside the signs, as people write prices: "from $5 to $10".
# Not longer than a page: what is never closed is not looked for to the end of the text at each sign.
_FORMULA = re.compile(
    r"\\\(.{1,1000}?\\\)|\\\[.{1,1000}?\\\]|\$\$[^$]+\$\$|\$(?![\s\d])[^$\n]*[^\s$\\]\$(?!\d)", re.DOTALL
)


def inert_parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough, without anything that could act."""
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 10})
    parser.enable(["table", "strikethrough"])
    parser.disable(["link", "image", "autolink", "entity", "reference", "html_block", "html_inline"])
    parser.inline.ruler.before("escape", "formula", _formula)
    return parser


def _formula(state: StateInline, silent: bool) -> bool:
    match = _FORMULA.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.pending += match[0]
    state.pos = match.end()
    return True
