"""EPUB 2 and 3: the pages of the spine in order, read as HTML, under the names that the table of contents gives them.

The table of contents itself is not text and is left out. What is listed but missing is named in a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import unquote
from xml.etree import ElementTree

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted
from edgerag.ingest.parse.hidden_text import name_hidden
from edgerag.ingest.parse.html import FEWEST_WORDS, all_parts
from edgerag.ingest.parse.layout import Part, lay_out
from edgerag.ingest.parse.package import Package, beside
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.types import ParsedDocument

MEDIA_TYPE = "application/epub+zip"

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# These only scramble embedded fonts (EPUB 3.3, 4.4; Adobe's older way); the text is plain.
_FONT_SCRAMBLING = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PAGE_TYPES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"})
_PAGE_NAMES = (".xhtml", ".html", ".htm")
_HEADING_LEVELS = 9
# The name of a chapter may stand in its first lines without being marked as a heading.
_FIRST_LINES = 4
_MOST_AUTHORS = 3
# A page of an EPUB 2 is its table of contents when so much of its text is links.
_LINK_SHARE = 0.7
_LINK = re.compile(rb"<a\s", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]*>")
_NO_WORDS = re.compile(r"[\W_]+")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
# Of one for all that is shown; one for some kinds of screens alone is left.
_IMPORT = re.compile(
    r"@import\s+(?:url\(\s*[\"']?([^\"')]{1,500})[\"']?\s*\)|[\"']([^\"']{1,500})[\"'])\s*;", re.IGNORECASE
)
_DEEPEST_IMPORT = 3
_MOST_STYLE_BYTES = 2_000_000
_UNNAMED = re.compile(r"(?:untitled|unknown)\b.*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Item:
    """An entry of the manifest."""

    part: str
    media_type: str
    properties: frozenset[str]

    @property
    def is_page(self) -> bool:
        return self.media_type in _PAGE_TYPES or self.part.lower().endswith(_PAGE_NAMES)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of the table of contents."""

    name: str
    words: str
    level: int


@dataclass(frozen=True, slots=True)
class _Book:
    """What the package document says."""

    title: str
    authors: tuple[str, ...]
    spine: tuple[_Item, ...]
    unlisted: int  # entries of the spine that the manifest does not know
    contents: str  # the part with the table of contents, "" if there is none
    contents_page: str  # the page that shows it, of an EPUB 2


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when no page has text, DocumentEncrypted for a protected book, or DocumentDamaged."""
    package = Package(source.data, kind="EPUB")
    book = _book(package)
    _check_readable(package, book)
    names = _table_of_contents(package, book)
    styles = _Styles(package)
    parts: list[Part] = []
    missing: list[str] = []
    damaged: list[str] = []
    shift = tables = 0
    for item in book.spine:
        if "nav" in item.properties or not item.is_page:
            continue
        try:
            data = package.read(item.part)
            if data is None:
                missing.append(item.part)
                continue
            read = all_parts(_without_cdata(data), find_styles=partial(styles.find, item.part))
            page = [part for part in read if part.text.strip()]
        except DocumentDamaged:
            damaged.append(item.part)
            continue
        if item.part == book.contents_page and _is_contents(data, page):
            continue
        page, shift = _under(page, names.get(item.part, []), shift, alone=len(book.spine) == 1)
        # The tables of each page are counted from 1.
        parts.extend(replace(part, table=part.table + tables) if part.table else part for part in page)
        tables += max((part.table for part in page), default=0)
    laid_out = lay_out(parts)
    if not laid_out.text.strip():
        if missing or damaged:
            raise package.damaged("is damaged: none of its pages can be read")
        raise DocumentEmpty(
            "There is no text in the book.", remedy="If its pages are pictures, they need text recognition first."
        )
    return name_hidden(
        ParsedDocument(
            text=laid_out.text,
            title=_title(book) or source.fallback_title,
            media_type=MEDIA_TYPE,
            headings=laid_out.headings,
            warnings=tuple(_warnings(book, missing, damaged)),
            hidden=laid_out.hidden,
        ),
        least_words=FEWEST_WORDS,
    )


class _Styles:
    """The style sheets of a book, each read once: its pages share them."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._texts: dict[str, str | None] = {}

    def find(self, part: str, address: str, depth: int = 0) -> str | None:
        """The one that ``part`` calls by that address, with those that it imports; None if it cannot be read."""
        if _ELSEWHERE.match(address) or not address:
            return None
        name = beside(part, unquote(address))
        if name not in self._texts:
            self._texts[name] = None  # should it import itself
            self._texts[name] = self._read(name, depth)
        return self._texts[name]

    def _read(self, name: str, depth: int) -> str | None:
        try:
            data = self._package.read(name)
        except DocumentDamaged:
            return None
        if data is None or len(data) > _MOST_STYLE_BYTES:
            return None

        def imported(match: re.Match[str]) -> str:
            found = self.find(name, match[1] or match[2], depth + 1) if depth < _DEEPEST_IMPORT else None
            return match[0] if found is None else found

        return _IMPORT.sub(imported, data.decode("utf-8-sig", "replace"))


def _warnings(book: _Book, missing: list[str], damaged: list[str]) -> Iterator[str]:
    if missing:
        yield f"Listed but missing in the file: {', '.join(missing)}."
    if damaged:
        yield f"Damaged, and left out: {', '.join(damaged)}."
    if book.unlisted:
        yield f"{book.unlisted} pages of the reading order are not in the book's own list of files."


def _title(book: _Book) -> str:
    authors = ", ".join(book.authors[:_MOST_AUTHORS]) + (" and others" if len(book.authors) > _MOST_AUTHORS else "")
    return clean_title(f"{book.title} ({authors})" if book.title and authors else book.title)


# ---------------------------------------------------------------- the package document


def _book(package: Package) -> _Book:
    name, root = _package_document(package)
    items: dict[str, _Item] = {}
    for element in _all(root, "item"):
        part = beside(name, unquote(element.get("href", "")))
        properties = frozenset(element.get("properties", "").split())
        items.setdefault(element.get("id", ""), _Item(part, element.get("media-type", "").lower(), properties))
    spine = next(_all(root, "spine"), None)
    ids = [] if spine is None else [element.get("idref", "") for element in _all(spine, "itemref")]
    listed = [items[id_] for id_ in dict.fromkeys(ids) if id_ in items]
    if not listed:  # the reading order is lost: that of the list of files is the best guess
        listed = [item for item in items.values() if item.is_page]
    nav = next((item.part for item in items.values() if "nav" in item.properties), "")
    ncx = items.get("" if spine is None else spine.get("toc", ""))
    guide = next((e.get("href", "") for e in _all(root, "reference") if e.get("type", "").lower() == "toc"), "")
    titles = [" ".join("".join(element.itertext()).split()) for element in _all(root, "title")]
    title = next((title for title in titles if title), "")
    authors = (" ".join("".join(element.itertext()).split()) for element in _all(root, "creator"))
    return _Book(
        title="" if _UNNAMED.fullmatch(title) else title,
        authors=tuple(dict.fromkeys(author for author in authors if author and not _UNNAMED.fullmatch(author))),
        spine=tuple(listed),
        unlisted=sum(1 for id_ in set(ids) if id_ not in items),
        contents=nav or (ncx.part if ncx else _of_type(items.values(), "application/x-dtbncx+xml")),
        contents_page="" if not guide or "#" in guide else beside(name, unquote(guide)),
    )


def _package_document(package: Package) -> tuple[str, ElementTree.Element]:
    container = package.xml(_CONTAINER)
    named = [] if container is None else [unquote(e.get("full-path", "")) for e in _all(container, "rootfile")]
    for name in [*named, *(name for name in package.names if name.lower().endswith(".opf"))]:
        root = package.xml(name) if name else None
        if root is not None:
            return beside("", name), root
    raise package.damaged("has no list of its pages")


def _of_type(items: Iterable[_Item], media_type: str) -> str:
    return next((item.part for item in items if item.media_type == media_type), "")


def _check_readable(package: Package, book: _Book) -> None:
    """Raises DocumentEncrypted when a page is encrypted, as books with copy protection are."""
    root = package.xml(_ENCRYPTION)
    pages = {item.part for item in book.spine}
    for data in () if root is None else _all(root, "EncryptedData"):
        method = next((e.get("Algorithm", "") for e in _all(data, "EncryptionMethod")), "")
        addresses = [beside("", unquote(e.get("URI", ""))) for e in _all(data, "CipherReference")]
        if method not in _FONT_SCRAMBLING and not pages.isdisjoint(addresses):
            raise DocumentEncrypted(
                "The EPUB is protected against copying (DRM).", remedy="Get a copy without protection."
            )


def _all(root: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    """Elements of that name in any namespace: books use many."""
    return (element for element in root.iter() if element.tag == name or element.tag.endswith("}" + name))


# ---------------------------------------------------------------- the table of contents


def _table_of_contents(package: Package, book: _Book) -> dict[str, list[_Entry]]:
    """Its entries by the page they point to. A damaged one gives none: the pages have headings of their own."""
    try:
        root = package.xml(book.contents) if book.contents else None
    except DocumentDamaged:
        return {}
    found: dict[str, list[_Entry]] = {}
    for address, entry in _entries(root):
        if entry.name:
            found.setdefault(beside(book.contents, unquote(address)), []).append(entry)
    return found


def _entries(root: ElementTree.Element | None) -> Iterator[tuple[str, _Entry]]:
    if root is None:
        return
    for nav in _all(root, "nav"):
        if "toc" in nav.get("{http://www.idpf.org/2007/ops}type", "toc").split():
            yield from _links(nav, 0)
            return
    for point_map in _all(root, "navMap"):
        yield from _points(point_map, 1)


def _entry(label: ElementTree.Element, level: int) -> _Entry:
    name = clean_title("".join(label.itertext()))
    return _Entry(name, _words(name), level)


def _links(element: ElementTree.Element, level: int) -> Iterator[tuple[str, _Entry]]:
    for child in element:
        name = child.tag.rsplit("}", 1)[-1]
        if name == "a" and level:
            yield child.get("href", ""), _entry(child, level)
        else:
            yield from _links(child, level + (name in ("ol", "ul")))


def _points(element: ElementTree.Element, level: int) -> Iterator[tuple[str, _Entry]]:
    for child in element:
        if child.tag.rsplit("}", 1)[-1] == "navPoint":
            label = next((e for c in child if c.tag.endswith("navLabel") for e in _all(c, "text")), None)
            address = next((c.get("src", "") for c in child if c.tag.endswith("content")), "")
            if label is not None and address:
                yield address, _entry(label, level)
            yield from _points(child, level + 1)


def _is_contents(data: bytes, page: list[Part]) -> bool:
    shown = sum(len(part.text) for part in page)
    linked = 0
    for link in _LINK.split(data)[1:]:
        attributes, _, rest = link.partition(b">")
        if b"href" in attributes.lower():
            linked += len(_TAG.sub(b"", rest.partition(b"</a")[0]))
    return linked >= _LINK_SHARE * shown


# ---------------------------------------------------------------- headings


def _under(page: list[Part], entries: list[_Entry], shift: int, *, alone: bool) -> tuple[list[Part], int]:
    """The page with its headings at the level of its entry in the table of contents, and how far they were shifted.

    A page without an entry goes on with the chapter before it. A name that the page does not print is put before it,
    unless it is the only page: then it is but a name for the book.
    """
    if not page or not entries:
        return _shifted(page, shift), shift
    printed = [(part.level, _words(part.text)) for part in page if part.kind == "heading"]
    for entry in entries:
        for level, words in printed:
            if _same(words, entry.words):
                return _shifted(page, entry.level - level), entry.level - level
    entry = entries[0]
    inner = entry.level + 1 - min((level for level, _ in printed), default=1)
    for index, part in enumerate(page[:_FIRST_LINES]):
        if part.kind == "paragraph" and _same(_words(part.text), entry.words):
            before, after = _shifted(page[:index], inner), _shifted(page[index + 1 :], inner)
            return [*before, Part("heading", part.text, level=entry.level), *after], inner
    if alone:
        return page, 0
    return [Part("heading", entry.name, level=entry.level), *_shifted(page, inner)], inner


def _shifted(page: list[Part], shift: int) -> list[Part]:
    return [
        replace(part, level=min(max(part.level + shift, 1), _HEADING_LEVELS)) if part.kind == "heading" else part
        for part in page
    ]


def _words(text: str) -> str:
    """In lower case with a blank around each, so that one text can be looked for in another."""
    return f" {_NO_WORDS.sub(' ', text).strip()} ".casefold()


def _same(text: str, name: str) -> bool:
    """True when both say the same, or one begins or ends with the other: "1" or "Chapter 1" of "1. The beginning"."""
    if not text.strip() or not name.strip():
        return False
    return text.startswith(name) or name.endswith(text) or name.startswith(text)


def _without_cdata(data: bytes) -> bytes:
    """The same page with its CDATA sections, which HTML does not know, as text."""
    first, *sections = data.split(b"<![CDATA[")
    pieces = [first]
    for section in sections:
        text, _, rest = section.partition(b"]]>")
        pieces += [text.replace(b"&", b"&amp;").replace(b"<", b"&lt;"), rest]
    return b"".join(pieces)
