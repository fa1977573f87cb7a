"""A zip of parts, as office documents and books are kept, opened without trust.

What is unpacked is bounded, part by part and in all, by the size a part declares and by what comes out of it.
XML goes through the standard library's expat, which loads nothing from outside and bounds the expansion of
entities; a part that defines any is refused, since no program writes one.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from urllib.parse import unquote
from xml.etree import ElementTree

from edgerag.errors import DocumentDamaged, DocumentEncrypted

# One part unpacked; more is a bomb (the longest real manuals are below 50 MB).
_MOST_PART_BYTES = 200_000_000
# All that is read of one file, a part that is read twice counting twice.
_MOST_TOTAL_BYTES = 500_000_000
_REMEDY = "Open it in the program that made it and save it again."
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff", b"<\x00", b"\x00<")
# ISO strict files use other names for the same elements.
_STRICT = re.compile(rb"(xmlns(?::[\w.-]+)?\s*=\s*[\"'])http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_TRANSITIONAL = rb"\1http://schemas.openxmlformats.org/\2/2006/\3"


class Package:
    """The parts of one file by name. ``kind`` ("DOCX") is what its messages call it.

    Names are found however they are written: from the root or not, with %-escapes, in other case, with backslashes.
    """

    def __init__(self, data: bytes, *, kind: str) -> None:
        self.kind = kind
        self._left_bytes = _MOST_TOTAL_BYTES
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, ValueError) as error:
            raise self.damaged(f"is damaged: {error}") from error
        self.names = tuple(self._archive.namelist())
        self._known: dict[str, str] = {}
        for name in self.names:
            self._known.setdefault(_plain(name), name)

    def damaged(self, what: str) -> DocumentDamaged:
        return DocumentDamaged(f"The {self.kind} {what}.", remedy=_REMEDY)

    def find(self, name: str) -> str | None:
        """The part of that name as the archive spells it; None if there is none."""
        return self._known.get(_plain(name)) or self._known.get(_plain(unquote(name)))

    def read(self, name: str) -> bytes | None:
        """A part unpacked; None if there is none of that name.

        Raises DocumentDamaged when it is not whole or too large, DocumentEncrypted when it has a password.
        """
        found = self.find(name)
        if found is None:
            return None
        entry = self._archive.getinfo(found)
        if entry.flag_bits & 1:
            raise DocumentEncrypted(
                f"The {self.kind} is protected by a password.", remedy="Save a copy without the password."
            )
        most = min(_MOST_PART_BYTES, self._left_bytes)
        data = b""
        if entry.file_size <= most:
            try:
                with self._archive.open(entry) as file:
                    data = file.read(most + 1)
            except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError) as error:
                raise self.damaged(f"is damaged in {found}: {error}") from error
        if entry.file_size > most or len(data) > most:
            raise DocumentDamaged(f"{found} unpacks to more than {most // 1_000_000} MB, which no real document does.")
        self._left_bytes -= len(data)
        return data

    def xml(self, name: str) -> ElementTree.Element | None:
        """The root of a part, in the transitional namespaces; None if there is none of that name."""
        data = self.read(name)
        return None if data is None else xml_root(data, kind=self.kind, name=name)


def xml_root(data: bytes, *, kind: str, name: str) -> ElementTree.Element:
    """The root of the XML of a part. Raises DocumentDamaged when it is not well formed or defines entities."""
    searched = data
    if data.startswith(_UTF16_MARKS):
        searched = data.decode("utf-16", "replace").encode("utf-8", "replace")
    if b"<!ENTITY" in searched:
        raise DocumentDamaged(f"{name} defines entities, which no program writes in a {kind}.")
    if b"//purl.oclc.org/ooxml/" in data:
        data = _STRICT.sub(_TRANSITIONAL, data)
    try:
        return ElementTree.fromstring(data)  # noqa: S314 - no entity gets here
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DocumentDamaged(
            f"The {kind} holds XML that is not well formed, in {name}: {error}.", remedy=_REMEDY
        ) from error


def beside(part: str, target: str) -> str:
    """The name of what ``part`` calls ``target``: from the root of the archive or from the folder of the part."""
    path = target.replace("\\", "/").split("#", 1)[0]
    if not path.startswith("/"):
        path = posixpath.join(posixpath.dirname(part), path)
    return posixpath.normpath("/" + path).lstrip("/")


def _plain(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").casefold()
