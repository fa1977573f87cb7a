"""The tokens of RTF (specification 1.9.1) as they change what is read: groups, destinations, control words, text.

A group inherits what holds around it and forgets its own changes when it closes. Destinations that a reader does
not see are skipped; the others are stories of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from edgerag.errors import DocumentDamaged
from edgerag.ingest.parse.layout import Part, bare, hide
from edgerag.ingest.parse.rtf_header import Fonts, Styles, page_codec
from edgerag.ingest.parse.rtf_look import Colours, Look
from edgerag.ingest.parse.rtf_story import Layout, Story

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}]+)|(\\)", re.DOTALL
)
_WORD, _WORD_WITH_NUMBER, _HEX, _SYMBOL, _BRACE, _TEXT = range(1, 7)
_DEEPEST_GROUP = 10_000  # real files stay below 100
_HEADING_LEVELS = 9
_CHARACTERS = {
    "tab": "\t",
    "line": "\n",
    "lbr": "\n",
    "emdash": "—",
    "endash": "–",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "bullet": "•",
    "emspace": "\u2003",
    "enspace": "\u2002",
    "qmspace": "\u2005",
}
_SYMBOLS = {b"~": "\u00a0", b"_": "-", b"\\": "\\", b"{": "{", b"}": "}"}
# Destinations that no reader sees, or sees elsewhere; those that begin with an asterisk are skipped if not known.
_SKIPPED = frozenset(
    {
        *("pict", "fldinst", "datafield", "info", "listtable", "listoverridetable", "revtbl", "filetbl"),
        *("xe", "tc", "tcn", "rxe", "bkmkstart", "bkmkend", "nonshppict", "shprslt", "sp", "nonesttables", "private"),
        *("ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn", "atnid", "atnauthor", "annotation"),
        *("themedata", "colorschememapping", "datastore", "latentstyles", "rsidtbl", "generator", "objdata"),
    }
)
_KEPT_STARRED = frozenset({"shpinst", "do", "footnote", "moMath", "moMathPara", "ud", "nesttableprops"})
_TABLES = {"fonttbl": "fonts", "stylesheet": "styles", "colortbl": "colours"}
_STORIES = {
    **dict.fromkeys(("header", "headerl", "headerr", "headerf"), "header"),
    **dict.fromkeys(("footer", "footerl", "footerr", "footerf"), "footer"),
    **dict.fromkeys(("shptxt", "dptxbxtext"), "box"),
    **dict.fromkeys(("listtext", "pntext"), "marker"),
    "footnote": "note",
}
_MATH_PROPERTIES = re.compile("m[a-zA-Z]+Pr")


@dataclass(slots=True)
class _Group:
    """What holds until the group closes; the groups inside inherit it."""

    story: Story
    layout: Layout
    table: str = ""  # of fonts or styles, whose entries are read
    font: int = 0
    skipped: bool = False
    look: Look = Look()  # noqa: RUF009 - frozen
    deleted: bool = False
    fallback: int = 1  # characters that stand after a Unicode one for programs that know none
    twice: bool = False  # its groups say the same, once in Unicode

    def inner(self) -> _Group:
        """A group inside this one. Files have hundreds of thousands, so it is made in the quickest way."""
        skipped = self.skipped or self.twice
        return _Group(self.story, self.layout, self.table, self.font, skipped, self.look, self.deleted, self.fallback)


class Reader:
    """Reads ``data`` once, with ``run``; then ``body`` and the others hold what it found."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._fonts = Fonts()
        self._default_font = 0
        self._styles = Styles()
        self._colours = Colours()
        self._entry = 0  # of the table of fonts or styles that is being read
        self._to_skip = 0  # characters of a fallback
        self._bytes = bytearray()  # not yet decoded: a character may have two
        self._bytes_font = 0
        self._starred = False
        self.body = Story("body")
        self.headers: list[Part] = []
        self.footers: list[Part] = []
        self.notes: list[Part] = []
        self.title = ""
        self.comments = False
        self.cut_short = False
        self._group = _Group(self.body, Layout())
        self._outer: list[_Group] = []

    def run(self) -> None:
        data, match, position = self._data, _TOKEN.match, 0
        while position < len(data):
            token = match(data, position)
            if token is None:
                break
            position, kind = token.end(), token.lastindex
            if kind == _BRACE:
                if token[5] == b"{":
                    self._open()
                elif len(self._outer) > 1:
                    self._close()
                else:  # the document ends; what follows is padding
                    self._flush()
                    return
            elif kind in (_WORD, _WORD_WITH_NUMBER):
                number = int(token[2]) if token[2] else None
                if token[1] == b"bin":
                    position += max(number or 0, 0)
                else:
                    self._word(token[1].decode("ascii"), number)
            elif self._group.skipped:
                self._starred = kind == _SYMBOL and token[4] == b"*"
            elif kind == _TEXT:
                self._text(token[6].translate(None, b"\r\n\x00"))
            elif kind == _HEX:
                self._text(bytes([int(token[3], 16)]))
            elif kind == _SYMBOL:
                self._symbol(token[4])
        self.cut_short = True
        while len(self._outer) > 1:
            self._close()
        self._flush()

    # ------------------------------------------------------------ groups

    def _open(self) -> None:
        if len(self._outer) >= _DEEPEST_GROUP:
            raise DocumentDamaged(f"The RTF is nested more than {_DEEPEST_GROUP} groups deep.")
        self._flush()
        self._to_skip = 0
        outer = self._group
        self._outer.append(outer)
        self._group = outer.inner()
        if outer.table == "styles":
            self._entry = 0

    def _close(self) -> None:
        self._flush()
        self._to_skip = 0
        closed, self._group = self._group, self._outer.pop()
        if closed.story is not self._group.story:
            self._end_story(closed)

    def _end_story(self, group: _Group) -> None:
        story, around = group.story, self._group.story
        if story.kind == "title":
            self.title = self.title or story.words()
        elif story.kind == "marker":
            around.marker = story.words() or "-"
        elif story.kind in _TABLES.values():
            pass
        else:
            parts = story.parts(group.layout)
            if story.kind == "box":
                around.add_box(parts)
            else:
                {"header": self.headers, "footer": self.footers, "note": self.notes}[story.kind].extend(parts)

    # ------------------------------------------------------------ control words

    def _word(self, word: str, number: int | None) -> None:
        group, starred = self._group, self._starred
        self._starred = False
        if group.skipped:
            if word == "title" and self._outer and self._inside_info():
                group.skipped, group.story = False, Story("title")
            elif word == "ud" and self._outer[-1].twice:
                group.skipped = self._outer[-1].skipped
            return
        if starred and word not in _KEPT_STARRED:
            group.skipped = True
            self.comments = self.comments or word == "annotation"
            return
        if word == "u" and number is not None:
            self._unicode(number)
            return
        if (character := _CHARACTERS.get(word)) is not None:
            if self._to_skip:
                self._to_skip -= 1
            else:
                self._add(character)
            return
        self._to_skip = 0  # programs that write no fallback go on with a control word
        if (end := _ENDS.get(word)) is not None:
            self._flush()
            end(self, group)
        elif (change := _CHANGES.get(word)) is not None:
            self._flush()
            change(self, group, number)
        elif len(self._outer) > 1:
            self._destination(word, group)

    def _inside_info(self) -> bool:
        """True in a group of the information group, which stands in the document group."""
        return len(self._outer) > 2 and self._outer[-1].skipped and not self._outer[-2].skipped

    def _destination(self, word: str, group: _Group) -> None:
        if word in _SKIPPED or _MATH_PROPERTIES.fullmatch(word):
            group.skipped = True
            self.comments = self.comments or word == "annotation"
        elif word in _STORIES:
            group.story, group.layout = Story(_STORIES[word]), Layout()
        elif word in _TABLES:
            group.table = _TABLES[word]
            group.story = Story(group.table)
        elif word == "upr":
            group.twice = True

    def _font(self, group: _Group, number: int | None) -> None:
        if group.table == "fonts":
            self._entry = number or 0
            self._fonts.define(self._entry)
        else:
            group.font = number or 0

    def _charset(self, group: _Group, number: int | None) -> None:
        if group.table == "fonts":
            self._fonts.define(self._entry).charset = 1 if number is None else number

    def _font_page(self, group: _Group, number: int | None) -> None:
        if group.table == "fonts":
            self._fonts.define(self._entry).page = number

    def _page(self, _group: _Group, number: int | None) -> None:
        self._fonts.document = page_codec(number or 0) or self._fonts.document

    def _style(self, group: _Group, number: int | None) -> None:
        if group.table == "styles":
            self._entry = number or 0
        else:
            group.layout = replace(group.layout, heading=self._styles.level(number or 0))

    def _based_on(self, group: _Group, number: int | None) -> None:
        if group.table == "styles":
            self._styles.define(self._entry).based_on = number

    def _outline(self, group: _Group, number: int | None) -> None:
        level = None if number is None or not 0 <= number < _HEADING_LEVELS else number + 1
        if group.table == "styles":
            self._styles.define(self._entry).outline = level
        elif level is not None:
            group.layout = replace(group.layout, heading=level)

    def _end_paragraph(self, group: _Group) -> None:
        group.story.end_paragraph(group.layout)

    def _end_cell(self, group: _Group) -> None:
        group.story.end_cell(group.layout, 1)

    def _end_row(self, group: _Group) -> None:
        group.story.end_row(group.layout, 1)

    def _end_inner_cell(self, group: _Group) -> None:
        group.story.end_cell(group.layout, max(group.layout.table, 2))

    def _end_inner_row(self, group: _Group) -> None:
        group.story.end_row(group.layout, max(group.layout.table, 2))

    def _new_layout(self, group: _Group) -> None:
        group.layout = Layout()
        group.look = replace(group.look, paragraph_ground=0)

    def _in_table(self, group: _Group, number: int | None) -> None:
        group.layout = replace(group.layout, table=max(group.layout.table, 1) if number != 0 else 0)

    def _table_depth(self, group: _Group, number: int | None) -> None:
        group.layout = replace(group.layout, table=max(number or 0, 0))

    def _list(self, group: _Group, number: int | None) -> None:
        group.layout = replace(group.layout, listed=bool(number))

    def _list_depth(self, group: _Group, number: int | None) -> None:
        group.layout = replace(group.layout, depth=max(number or 0, 0))

    def _plain(self, group: _Group) -> None:
        group.font, group.deleted = self._default_font, False
        group.look = Look(paragraph_ground=group.look.paragraph_ground)

    def _hide(self, group: _Group, number: int | None) -> None:
        group.look = replace(group.look, hidden=number != 0)

    def _size(self, group: _Group, number: int | None) -> None:
        group.look = replace(group.look, half_points=number)

    def _colour(self, group: _Group, number: int | None) -> None:
        group.look = replace(group.look, colour=number or 0)

    def _ground(self, group: _Group, number: int | None) -> None:
        group.look = replace(group.look, ground=number or 0)

    def _paragraph_ground(self, group: _Group, number: int | None) -> None:
        group.look = replace(group.look, paragraph_ground=number or 0)

    def _shaded_cell(self, _group: _Group, _number: int | None) -> None:
        self._colours.shaded_cells = True

    def _colour_part(self, group: _Group, word: str, number: int | None) -> None:
        if group.table == "colours":
            self._colours.component(word, number)

    def _delete(self, group: _Group, number: int | None) -> None:
        group.deleted = number != 0

    def _fallback(self, group: _Group, number: int | None) -> None:
        group.fallback = max(number or 0, 0)

    def _first_font(self, group: _Group, number: int | None) -> None:
        self._default_font = group.font = number or 0

    # ------------------------------------------------------------ text

    def _symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            self._starred = True
        elif symbol in b"\r\n":
            self._flush()
            self._end_paragraph(self._group)
        elif symbol == b"\t":
            self._add("\t")
        elif self._to_skip:
            self._to_skip -= 1
        elif (text := _SYMBOLS.get(symbol)) is not None:
            self._add(text)

    def _unicode(self, number: int) -> None:
        self._flush()
        group = self._group
        self._to_skip = group.fallback
        code = number + 0x10000 if number < 0 else number
        if 0 < code <= 0x10FFFF:
            self._put(self._fonts.character(code, group.font))

    def _text(self, data: bytes) -> None:
        if self._to_skip:
            skipped = min(self._to_skip, len(data))
            self._to_skip -= skipped
            data = data[skipped:]
        if not data:
            return
        if self._bytes_font != self._group.font:
            self._flush()
            self._bytes_font = self._group.font
        self._bytes += data

    def _add(self, text: str) -> None:
        self._flush()
        self._put(text)

    def _flush(self) -> None:
        if self._bytes:
            data = bytes(self._bytes)
            self._bytes.clear()
            if self._group.table:
                self._put(data.decode(self._fonts.document, "replace"))
            else:
                self._put(self._fonts.decode(data, self._bytes_font))

    def _put(self, text: str) -> None:
        group = self._group
        if group.skipped or group.deleted:
            return
        if group.table == "colours":
            self._colours.separators(text)
        elif group.table == "fonts":
            font = self._fonts.define(self._entry)
            font.name = (font.name + text).split(";", 1)[0]
        elif group.table == "styles":
            self._styles.define(self._entry).name += text
        else:
            text = bare(text)
            in_box = group.story.kind == "box"
            hidden = self._colours.hides(group.look, in_table=bool(group.layout.table), in_box=in_box)
            group.story.add(hide(text) if hidden else text, group.layout)


_ENDS: dict[str, Callable[[Reader, _Group], None]] = {
    **dict.fromkeys(("par", "sect", "page", "column"), Reader._end_paragraph),
    "cell": Reader._end_cell,
    "row": Reader._end_row,
    "nestcell": Reader._end_inner_cell,
    "nestrow": Reader._end_inner_row,
    "pard": Reader._new_layout,
    "plain": Reader._plain,
}
_CHANGES: dict[str, Callable[[Reader, _Group, int | None], None]] = {
    "f": Reader._font,
    "deff": Reader._first_font,
    "fcharset": Reader._charset,
    "cpg": Reader._font_page,
    "ansicpg": Reader._page,
    "mac": lambda reader, group, _: reader._page(group, 10000),
    "pc": lambda reader, group, _: reader._page(group, 437),
    "pca": lambda reader, group, _: reader._page(group, 850),
    "s": Reader._style,
    "sbasedon": Reader._based_on,
    "outlinelevel": Reader._outline,
    "intbl": Reader._in_table,
    "itap": Reader._table_depth,
    "ls": Reader._list,
    "ilvl": Reader._list_depth,
    "v": Reader._hide,
    "fs": Reader._size,
    "cf": Reader._colour,
    **dict.fromkeys(("cb", "chcbpat", "highlight"), Reader._ground),
    "cbpat": Reader._paragraph_ground,
    **dict.fromkeys(("clcbpat", "clshdng", "clcfpat"), Reader._shaded_cell),
    "red": lambda reader, group, number: reader._colour_part(group, "red", number),
    "green": lambda reader, group, number: reader._colour_part(group, "green", number),
    "blue": lambda reader, group, number: reader._colour_part(group, "blue", number),
    "deleted": Reader._delete,
    "uc": Reader._fallback,
}
