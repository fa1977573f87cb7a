"""What the Office Open XML formats share (ECMA-376 parts 2 and 3): relationships, alternatives, properties."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from edgerag.ingest.parse.dates import properties_date_ns
from edgerag.ingest.parse.package import Package, beside
from edgerag.ingest.parse.source import clean_title

MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


@dataclass(frozen=True, slots=True)
class Relation:
    """That one part refers to another. ``kind`` is the last word of its type, "slide" or "image"."""

    kind: str
    part: str


def relations(package: Package, part: str) -> dict[str, Relation]:
    """What a part refers to inside the package, by the id it uses, in file order; part "" is the package itself."""
    folder, name = posixpath.split(part)
    root = package.xml(posixpath.join(folder, "_rels", name + ".rels"))
    found: dict[str, Relation] = {}
    for element in () if root is None else root.iter(_RELATION):
        target = element.get("Target", "")
        if target and element.get("TargetMode") != "External":
            kind = element.get("Type", "").rsplit("/", 1)[-1]
            found[element.get("Id", "")] = Relation(kind, beside(part, target))
    return found


def core_title(package: Package) -> str:
    """The title in the properties of the document; "" if it has none."""
    core = package.xml("docProps/core.xml")
    found = None if core is None else core.find(_TITLE)
    return "" if found is None else clean_title(found.text or "")


def core_date(package: Package) -> int | None:
    """When the document was last changed, else made, as its properties say; None if they do not."""
    core = package.xml("docProps/core.xml")
    return None if core is None else properties_date_ns(core)


def alternative(element: ElementTree.Element) -> ElementTree.Element | None:
    """The same content is there twice, for newer and for older programs: one is read."""
    choice = element.find(MC + "Choice")
    return choice if choice is not None else element.find(MC + "Fallback")


def resolved(container: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """The children of an element, with one of the alternatives in the place of each choice."""
    for child in container:
        if child.tag == MC + "AlternateContent":
            chosen = alternative(child)
            if chosen is not None:
                yield from resolved(chosen)
        else:
            yield child
