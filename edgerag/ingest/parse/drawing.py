"""The words of DrawingML (ECMA-376 part 1): paragraphs of a shape, tables, charts and SmartArt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from xml.etree import ElementTree

from edgerag.ingest.parse.layout import CELL_SEPARATOR, Part, hide, table_row
from edgerag.ingest.parse.openxml import MATH, resolved

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_D = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_DEEPEST_ITEM = 8
# Points of a diagram that say something; the others are arrows and places.
_NODES = frozenset({"node", "asst"})


IsHidden = Callable[[ElementTree.Element], bool]


def _never(_run: ElementTree.Element) -> bool:
    return False


def paragraphs(body: ElementTree.Element, *, listed: bool, is_hidden: IsHidden = _never) -> Iterator[Part]:
    """The paragraphs of a text body; ``listed``: they have bullets where nothing says otherwise; ``is_hidden`` says
    whether a run is not seen."""
    found = [(paragraph, text) for paragraph in body.iterfind(A + "p") if (text := _text(paragraph, is_hidden).strip())]
    for paragraph, text in found:
        properties = paragraph.find(A + "pPr")
        level = "" if properties is None else properties.get("lvl", "")
        depth = min(int(level), _DEEPEST_ITEM) if level.isdecimal() else 0
        if _is_item(properties, default=listed and (len(found) > 1 or depth > 0)):
            yield Part("item", "  " * depth + "- " + text)
        else:
            yield Part("paragraph", text)


def _is_item(properties: ElementTree.Element | None, *, default: bool) -> bool:
    if properties is not None:
        if properties.find(A + "buNone") is not None:
            return False
        if any(properties.find(A + name) is not None for name in ("buChar", "buAutoNum", "buBlip")):
            return True
    return default


def _text(paragraph: ElementTree.Element, is_hidden: IsHidden = _never) -> str:
    pieces: list[str] = []
    for child in resolved(paragraph):
        if child.tag == A + "br":
            pieces.append("\n")
        elif child.tag == A + "fld" and child.get("type", "").startswith("slidenum"):
            continue
        elif child.tag not in (A + "pPr", A + "endParaRPr"):
            words = "".join(text.text or "" for text in child.iter() if text.tag in (A + "t", MATH + "t"))
            pieces.append(hide(words) if is_hidden(child) else words)
    return "".join(pieces)


def table(element: ElementTree.Element, number: int) -> Iterator[Part]:
    """Its rows; a cell that others are merged into stands once."""
    for row in element.iterfind(A + "tr"):
        cells: list[list[Part]] = []
        for cell in row.iterfind(A + "tc"):
            body = cell.find(A + "txBody")
            if body is not None and not {cell.get("hMerge"), cell.get("vMerge")} & {"1", "true"}:
                cells.append(list(paragraphs(body, listed=False)))
        yield from table_row(cells, number)


def chart(root: ElementTree.Element | None, number: int) -> Iterator[Part]:
    """The title of a chart, the titles of its axes, and its figures as a table: a row for each category."""
    if root is None:
        return
    for title in root.iter(_C + "title"):
        if text := " ".join("".join(piece.text or "" for piece in title.iter(A + "t")).split()):
            yield Part("paragraph", text)
    series = list(root.iter(_C + "ser"))
    names = [" ".join(_points(one.find(_C + "tx")).values()) for one in series]
    labels: dict[int, str] = {}
    for one in series:
        for name in ("cat", "xVal"):
            for index, label in _points(one.find(_C + name)).items():
                labels.setdefault(index, label)
    values = [_points(one.find(_C + "val")) or _points(one.find(_C + "yVal")) for one in series]
    rows = [["", *names]] if any(names) else []
    places = sorted(labels.keys() | {index for points in values for index in points})
    rows += [[labels.get(index, ""), *(points.get(index, "") for points in values)] for index in places]
    for row in rows:  # with its empty cells: a figure must stand below its name
        yield Part("row", CELL_SEPARATOR.join(" ".join(value.split()) for value in row), table=number)


def _points(element: ElementTree.Element | None) -> dict[int, str]:
    """The values that the chart keeps of its cells, by their index."""
    found: dict[int, str] = {}
    for point in () if element is None else element.iter(_C + "pt"):
        index, value = point.get("idx", ""), point.find(_C + "v")
        if index.isdecimal() and value is not None and value.text:
            found.setdefault(int(index), value.text)
    literal = None if element is None else element.find(_C + "v")
    if not found and literal is not None and literal.text:
        found[0] = literal.text
    return found


def diagram(root: ElementTree.Element | None) -> Iterator[Part]:
    """The words of a SmartArt drawing as a nested list, in the order of its outline."""
    if root is None:
        return
    points = {point.get("modelId", ""): point for point in root.iterfind(f"{_D}ptLst/{_D}pt")}
    children: dict[str, list[tuple[int, str]]] = {}
    for link in root.iterfind(f"{_D}cxnLst/{_D}cxn"):
        rank = link.get("srcOrd", "")
        if link.get("type", "parOf") == "parOf":
            children.setdefault(link.get("srcId", ""), []).append(
                (int(rank) if rank.isdecimal() else 0, link.get("destId", ""))
            )
    tops = [id_ for id_, point in points.items() if point.get("type") == "doc"]
    waiting = [(id_, -1) for id_ in reversed(tops)]
    seen: set[str] = set()
    while waiting:
        id_, depth = waiting.pop()
        if id_ in seen or id_ not in points:
            continue
        seen.add(id_)
        yield from _node(points[id_], depth)
        waiting.extend((child, depth + 1) for _, child in sorted(children.get(id_, []), reverse=True))
    for id_, point in points.items():
        if id_ not in seen:
            yield from _node(point, 0)


def _node(point: ElementTree.Element, depth: int) -> Iterator[Part]:
    body = point.find(_D + "t")
    if body is None or point.get("type", "node") not in _NODES:
        return
    text = " ".join(" ".join(_text(paragraph) for paragraph in body.iterfind(A + "p")).split())
    if text:
        yield Part("item", "  " * min(max(depth, 0), _DEEPEST_ITEM) + "- " + text)
