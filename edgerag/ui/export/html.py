"""A thread as one HTML page that needs nothing else: no script, no picture, no address that leads out of it.

All text is escaped; answers keep their structure by the inert parser. A policy in the page forbids the browser to
load or run anything. Source marks lead to the sources below the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from markdown_it.token import Token

from edgerag.types import Exchange, FoundSource, Thread
from edgerag.ui.export.said import doubts, ending, filter_words, state_words, when, where_words
from edgerag.ui.inert_markdown import SOURCE_MARK, inert_parser, parsed
from edgerag.ui.plain import plain
from edgerag.ui.source_marks import marks_of_exchange

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } section { border-top: 1px solid #8886; padding: 1rem 0; }
.question { font-weight: 600; white-space: pre-wrap; border-left: .25rem solid #47a; padding-left: .75rem; }
.about, .note { color: #777; font-size: .9rem; } .doubt { color: #b60; font-size: .9rem; }
.sources { font-size: .9rem; padding-left: 0; list-style: none; } .sources li { margin: .5rem 0; }
.sources li:target { outline: 2px solid #47a; } .state { color: #b60; } q { white-space: pre-wrap; }
table { border-collapse: collapse; } td, th { border: 1px solid #8886; padding: .2rem .5rem; }
pre { overflow-x: auto; background: #8881; padding: .5rem; } .mark { font-size: .8em; vertical-align: super; }
@media print { body { max-width: none; } }
"""


def to_html(thread: Thread, found: Mapping[int, Sequence[FoundSource]]) -> str:
    head = thread.head
    body = [
        f"<h1>{_text(head.title)}</h1>",
        f'<p class="about">{_text(f"Library {head.library}, {when(head.began_ns)}")}</p>',
    ]
    for exchange in thread.exchanges:
        body += ["<section>", *_exchange(exchange, found.get(exchange.id, ())), "</section>"]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="und">\n<head>\n<meta charset="utf-8">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">',
            f"<title>{_text(head.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            *body,
            "</body>\n</html>\n",
        ]
    )


def _text(text: str) -> str:
    return escape(plain(text))


def _exchange(exchange: Exchange, found: Sequence[FoundSource]) -> list[str]:
    lines = [f'<p class="question" dir="auto">{_text(exchange.question)}</p>']
    about = filter_words(exchange.where)
    if about:
        lines.append(f'<p class="about">{_text(f"Asked only of: {about}")}</p>')
    lines.append(f'<div class="answer" dir="auto">{_answer(exchange, found)}</div>')
    notes = exchange.answer.notes if exchange.answer is not None else ()
    lines += [f'<p class="note">{_text(note)}</p>' for note in (ending(exchange), *notes) if note]
    lines += [f'<p class="doubt">[?] “{_text(words)}” {_text(reason)}</p>' for words, reason in doubts(exchange)]
    if found:
        lines += ['<ul class="sources">', *(_source(exchange, each) for each in found), "</ul>"]
    return lines


def _answer(exchange: Exchange, found: Sequence[FoundSource]) -> str:
    """The parser escapes all text; the marks of what is there become ways to the sources, outside of code."""
    parser = inert_parser()
    numbers = {each.source.number for each in found}
    tokens: list[Token] = []
    for token in parsed(plain(exchange.text), marks_of_exchange(exchange)):
        if token.type == "fence":
            if token.info.strip():  # as text: in its place it would become the name of a class
                tokens.append(_as_it_stands("html_block", f'<p class="about">{escape(token.info.strip())}</p>\n'))
            token.info = ""
        elif token.type == "list_item_open" and token.info:
            token.attrSet("value", str(int(token.info)))  # each number as it was written
        for child in token.children or ():
            if child.type == SOURCE_MARK:
                number = int(child.info)
                anchor = f'<a class="mark" href="#{_anchor(exchange, number)}">{child.content}</a>'
                child.type, child.content = "html_inline", anchor if number in numbers else child.content
        tokens.append(token)
    rendered: str = parser.renderer.render(tokens, parser.options, {})
    return rendered


def _as_it_stands(kind: str, html: str) -> Token:
    """A token whose content is written as it stands."""
    return Token(kind, "", 0, content=html)


def _anchor(exchange: Exchange, number: int) -> str:
    return f"s{exchange.id}-{number}"


def _source(exchange: Exchange, found: FoundSource) -> str:
    source = found.source
    state = state_words(found)
    cited = " · cited" if source.cited else ""
    return (
        f'<li id="{_anchor(exchange, source.number)}">[{source.number}] '
        f"<strong>{_text(source.hit.chunk.title or source.hit.chunk.path)}</strong>, {_text(where_words(found))}{cited}"
        + (f' <span class="state">({_text(state)})</span>' if state else "")
        + f'<br><q dir="auto">{_text(source.quote)}</q></li>'
    )
