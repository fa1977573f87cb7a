"""HTML: what a page says, without navigation, scripts and styles. Nothing is ever fetched.

What the page holds and does not show, for whatever reason, is read and marked: text that only a script unfolds, what is
there for screen readers, and what someone wants a program to read and a person not to see.
"""

from __future__ import annotations

import codecs
import functools
import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lxml import etree

from edgerag.errors import DocumentDamaged, DocumentEmpty
from edgerag.ingest.parse.encoding import decode
from edgerag.ingest.parse.hidden_text import name_hidden
from edgerag.ingest.parse.html_look import Look, StyleSheet
from edgerag.ingest.parse.layout import Part, bare, hide, lay_out, sole_title, table_row
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.types import ParsedDocument

_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)|encoding=[\"']([\w.-]+)", re.I)
_META_SEARCHED = 4096
# What browsers read these labels as (WHATWG Encoding Standard), by Python's names.
_BROWSER_NAMES = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
_NEVER_SHOWN = frozenset(
    {
        *("script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas"),
        *("audio", "video", "map", "select", "textarea", "button", "datalist"),
        "ix:header",  # of a report in Inline XBRL: values for programs, which no program shows
        *("rt", "rp"),  # how a word is spoken, written above it: between its letters nobody would find it
    }
)
_BANNERS = frozenset({"header", "footer", "aside"})  # of the page, when they stand outside its content
_CONTENT = frozenset({"main", "article"})
_WATCHED = _BANNERS | _CONTENT
_DEEPEST_LIST = 8
_NOISE_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar"})
_BLOCKS = frozenset(
    {
        *("html", "body", "p", "div", "section", "article", "main", "header", "footer", "aside", "nav", "address"),
        *("ul", "ol", "li", "dl", "dt", "dd", "blockquote", "figure", "figcaption", "pre", "hr", "center"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "table", "caption", "thead", "tbody", "tfoot", "tr", "td", "th"),
        *("form", "fieldset", "legend", "details", "summary"),
    }
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_STYLE = re.compile(r"<style\b([^>]{0,1000})>", re.IGNORECASE)
_STYLE_END = re.compile(r"</style", re.IGNORECASE)
_PRINTED = re.compile(r"media\s*=\s*[\"']?\s*print", re.IGNORECASE)
_LINK = re.compile(r"<(?:link\b|\?xml-stylesheet\b)([^>]{0,1000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-z-]{1,40})\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_IMPORT = re.compile(r"@import\b", re.IGNORECASE)
_REMEMBERED_SHEETS = 4  # a book's pages have the same
# Pages are full of dates and labels that are there for programs; an instruction has more words.
FEWEST_WORDS = 3
_BLANKS = re.compile(r"[ \t\r\n\f]+")  # not the no-break space, which is meant


@dataclass(slots=True)
class _Open:
    """An element that is kept, or dropped, as a whole at its end."""

    tag: str
    out: list[Part]  # where its content goes, from ``length`` on
    length: int
    outside: bool  # of any main or article element
    has_title: bool = False


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when nothing would be seen, DocumentDamaged when it cannot be taken apart."""
    if not source.data.strip():
        raise DocumentEmpty("The file is empty.")
    markup, warnings = _decoded(source.data)
    page = _read(markup, noise=False)
    laid_out = lay_out(page.shown())
    if not laid_out.text.strip():
        laid_out = lay_out(_read(markup, noise=True).shown())
    if not laid_out.text.strip():
        raise DocumentEmpty("There is no text in the page.")
    return name_hidden(
        ParsedDocument(
            text=laid_out.text,
            title=clean_title(page.title) or sole_title(laid_out.headings) or source.fallback_title,
            media_type="text/html",
            headings=laid_out.headings,
            warnings=warnings,
            hidden=laid_out.hidden,
        ),
        least_words=FEWEST_WORDS,
    )


# What a page's address of a style sheet leads to; None where that is not at hand.
FindStyles = Callable[[str], str | None]


def all_parts(data: bytes, *, find_styles: FindStyles = lambda _: None) -> list[Part]:
    """Everything in a page of a book, where asides are notes and no part is navigation. Raises DocumentDamaged."""
    markup, _ = _decoded(data)
    return _read(markup, noise=True, find_styles=find_styles).shown()


def _read(markup: str, *, noise: bool, find_styles: FindStyles = lambda _: None) -> _Page:
    linked = [find_styles(address) for address in _linked(markup)]
    texts = (*(text for text in linked if text is not None), *_styles(markup))
    complete = None not in linked and not any(map(_IMPORT.search, texts))
    page = _Page(_style_sheet(texts, complete), noise=noise)
    # As events, not as a tree: libxml2 cuts a tree short at 2,048 levels, and pages that never close
    # their tags go deeper.
    parser = etree.HTMLParser(encoding="utf-8", target=page, no_network=True, huge_tree=True, recover=True)
    try:
        etree.fromstring(markup.replace("\x00", "").encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        if not page.started:  # nothing in it looks like markup or text
            return page
        raise DocumentDamaged(f"The HTML cannot be taken apart: {error}.") from error
    return page


@functools.lru_cache(_REMEMBERED_SHEETS)
def _style_sheet(texts: tuple[str, ...], complete: bool) -> StyleSheet:
    return StyleSheet(texts, complete=complete)


def _linked(markup: str) -> Iterator[str]:
    """The addresses of style sheets for the screen that a page names."""
    for link in _LINK.finditer(markup):
        said = {name.lower(): html.unescape(a or b or c) for name, a, b, c in _ATTRIBUTE.findall(link[1])}
        kinds = said.get("rel", "stylesheet" if link[0].startswith("<?") else "").lower().split()
        is_print = said.get("media", "").strip().lower() == "print"
        if "stylesheet" in kinds and "alternate" not in kinds and not is_print:
            yield said.get("href", "")


def _styles(markup: str) -> Iterator[str]:
    """What the style elements of a page hold, for the screen."""
    position = 0
    while (start := _STYLE.search(markup, position)) and (end := _STYLE_END.search(markup, start.end())):
        if not _PRINTED.search(start[1]):
            yield markup[start.end() : end.start()]
        position = end.end()


def _decoded(data: bytes) -> tuple[str, tuple[str, ...]]:
    guess = decode(data)
    if not guess.guessed:
        return guess.text, ()
    match = _META_CHARSET.search(data, 0, _META_SEARCHED)
    if match:
        label = (match[1] or match[2]).decode("ascii")
        try:
            name = codecs.lookup(label).name
        except LookupError:
            name = ""
        name = _BROWSER_NAMES.get(name, name)
        if name and not name.startswith(("utf-16", "utf-32", "utf-8")):
            return data.decode(name, "replace"), ()
    return guess.text, (f"The encoding was taken to be {guess.encoding}.",)


class _Page:
    """Receives the events of one pass (start, data, end) and keeps what is shown."""

    def __init__(self, styles: StyleSheet, *, noise: bool) -> None:
        self._styles = styles
        self._looks: list[Look] = [styles.first()]  # of the elements around
        self.title = ""
        self.started = False
        self._keep_noise = noise
        self._skipped = 0  # open elements inside one that is not shown, itself included
        self._in_title = False
        self._inline: list[str] = []
        self._out: list[Part] = []
        self._mains: list[list[Part]] = []
        self._open: list[_Open] = []  # elements of which something must be known at their end
        self._cells: list[list[list[Part]]] = []  # of each open row
        self._outer: list[list[Part]] = []  # what an open cell interrupts
        self._tables: list[int] = []
        self._table_count = 0
        self._pre = 0
        self._items: list[bool] = []  # for each open li: its marker is still to be written
        self._heading = 0
        self._content_depth = 0  # open main and article elements
        self._header_depth = 0

    def shown(self) -> list[Part]:
        """What the page shows: its one main element if it says which that is, else everything."""
        self._flush()
        while self._outer:  # cells that were never closed
            self._close_cell()
        mains = [parts for parts in self._mains if parts]
        return mains[0] if len(mains) == 1 and not self._keep_noise else self._out

    # ------------------------------------------------------------ events of the parser

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.started = True
        if self._skipped or self._is_skipped(tag, attributes):
            self._skipped += 1
            return
        self._looks.append(self._styles.inside(self._looks[-1], tag, attributes))
        if tag in _BLOCKS:
            self._flush()
        if tag == "title":
            self._in_title = not self.title
        elif tag == "br":
            self._inline.append("\n")
        elif tag == "pre":
            self._pre += 1
        elif tag == "li":
            self._items.append(True)
        elif tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
            if tag == "h1":
                for element in self._open:
                    element.has_title = True
        elif tag == "table":
            self._table_count += 1
            self._tables.append(self._table_count)
        elif tag == "tr":
            self._cells.append([])
        elif tag in ("td", "th") and self._cells:
            self._outer.append(self._out)
            self._out = []
        if tag in _WATCHED or attributes.get("role") == "main":
            self._open.append(_Open(tag, self._out, len(self._out), outside=not self._content_depth))
            self._content_depth += tag in _CONTENT or attributes.get("role") == "main"
            self._header_depth += tag == "header"

    def data(self, text: str) -> None:
        self.started = True
        if self._skipped:
            return
        if self._in_title:
            self.title += text
        else:
            text = bare(text if self._pre else _BLANKS.sub(" ", text))
            self._inline.append(hide(text) if self._looks[-1].hidden else text)

    def end(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        self._looks.pop()
        if tag in _BLOCKS:
            self._flush()
        if tag == "title":
            self._in_title = False
        elif tag == "pre":
            self._pre -= 1
        elif tag == "li":
            self._items.pop()
        elif tag in _HEADINGS:
            self._heading = 0
        elif tag == "table":
            self._tables.pop()
        elif tag == "tr":
            self._out.extend(table_row(self._cells.pop(), self._tables[-1] if self._tables else 0))
        elif tag in ("td", "th") and self._cells:
            self._close_cell()
        if self._open and self._open[-1].tag == tag:
            self._close_watched(self._open.pop())

    def close(self) -> None:
        """The end of the page; the parser wants the method."""

    # ------------------------------------------------------------ what they mean

    def _is_skipped(self, tag: str, attributes: Mapping[str, str]) -> bool:
        if tag in _NEVER_SHOWN:
            return True
        if self._keep_noise:
            return False
        if tag == "nav" or attributes.get("role") in _NOISE_ROLES:
            return True
        return bool(self._header_depth) and tag in ("ul", "ol")  # a menu beside the title

    def _close_watched(self, element: _Open) -> None:
        if element.tag in _BANNERS:
            self._header_depth -= element.tag == "header"
            # The banner of a page is noise, unless the title of the page stands in it.
            if element.outside and not element.has_title and not self._keep_noise:
                del element.out[element.length :]
            return
        self._content_depth -= 1
        if element.outside and element.tag != "article":
            self._mains.append(element.out[element.length :])

    def _close_cell(self) -> None:
        cell, self._out = self._out, self._outer.pop()
        if self._cells:
            self._cells[-1].append(cell)
        else:
            self._out.extend(cell)

    def _flush(self) -> None:
        text = "".join(self._inline)
        self._inline.clear()
        if not self._pre:
            text = "\n".join(line.strip(" \t") for line in re.sub(" +", " ", text).split("\n")).strip()
        if not text.strip():
            return
        if self._heading:
            self._out.append(Part("heading", text, level=self._heading))
        elif self._items:
            marker = "- " if self._items[-1] else "  "
            self._items[-1] = False
            indent = "  " * min(len(self._items) - 1, _DEEPEST_LIST)
            self._out.append(Part("item", indent + marker + text))
        else:
            self._out.append(Part("paragraph", text))
