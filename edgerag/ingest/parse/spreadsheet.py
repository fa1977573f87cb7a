"""Spreadsheets (XLSX, XLSM, XLSB, XLS, ODS) as lines of text, a line for each row with something in it.

The text is what the cells show, not what the file stores: see number_format.py, and sheet_layout.py for how it is
laid out. A "page" is a row, under its number in the spreadsheet program.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace

from lxml import etree

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted
from edgerag.ingest.parse import sheet_ods, sheet_xlsb, sheet_xlsx
from edgerag.ingest.parse.dates import PROPERTIES, iso_date_ns
from edgerag.ingest.parse.sheet import Budget, Package, Sheet
from edgerag.ingest.parse.sheet_hidden import HiddenParts
from edgerag.ingest.parse.sheet_layout import SheetLayout
from edgerag.ingest.parse.source import Source, clean_title
from edgerag.types import ParsedDocument

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLSM = "application/vnd.ms-excel.sheet.macroEnabled.12"
XLSB = "application/vnd.ms-excel.sheet.binary.macroEnabled.12"
XLS = "application/vnd.ms-excel"
ODS = "application/vnd.oasis.opendocument.spreadsheet"

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_DC_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_REMEDY = "Open it in a spreadsheet program and save it again."


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty, DocumentEncrypted, DocumentDamaged, or DocumentUnsupported for one that is too large."""
    try:
        if source.data.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
                return _parse_package(Package(archive), source)
        return _parse_xls(source)
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError),
        *(ValueError, LookupError, struct.error),
    ) as error:
        raise DocumentDamaged(f"The spreadsheet is damaged: {error}.", remedy=_REMEDY) from error
    except etree.XMLSyntaxError as error:
        raise DocumentDamaged(
            f"The spreadsheet holds XML that is not well formed: {error.msg}.", remedy=_REMEDY
        ) from error


def _parse_package(package: Package, source: Source) -> ParsedDocument:
    budget = Budget()
    if package.has("content.xml") and not package.has("[Content_Types].xml"):
        found = _document(sheet_ods.read(package, budget), source, ODS, title=_title(package, "meta.xml"))
        return replace(found, dated_ns=_date_ns(package, "meta.xml"))
    title = _title(package, "docProps/core.xml")
    comments = any("comments" in name for name in package.names("xl/"))
    if sheet_xlsx.main_part(package).endswith(".bin"):
        sheets, media_type = sheet_xlsb.read(package, budget), XLSB
    else:
        macros = package.has("xl/vbaProject.bin") or source.extension == ".xlsm"
        sheets, media_type = sheet_xlsx.read(package, budget), XLSM if macros else XLSX
    found = _document(sheets, source, media_type, title=title, comments=comments)
    return replace(found, dated_ns=_date_ns(package, "docProps/core.xml"))


def _parse_xls(source: Source) -> ParsedDocument:
    from edgerag.ingest.parse import sheet_xls  # here: few files are of its kind, and its library loads slowly

    if source.data.startswith(_OLE) and "EncryptedPackage".encode("utf-16-le") in source.data:
        raise DocumentEncrypted(
            "It is an Excel workbook protected by a password.", remedy="Save it without the password."
        )
    return _document(sheet_xls.read(source.data, Budget(), source.passwords), source, XLS, title="")


def _title(package: Package, part: str) -> str:
    if package.has(part):
        for _, element in package.elements(part, _DC_TITLE):
            return clean_title(element.text or "")
    return ""


def _date_ns(package: Package, part: str) -> int | None:
    if not package.has(part):
        return None
    dates = (iso_date_ns(element.text or "") for tag in PROPERTIES for _, element in package.elements(part, tag))
    try:
        return next((moment for moment in dates if moment is not None), None)
    except etree.XMLSyntaxError:
        return None  # the cells can be read all the same


def _document(
    sheets: Iterator[Sheet], source: Source, media_type: str, *, title: str, comments: bool = False
) -> ParsedDocument:
    layout = SheetLayout()
    hidden = HiddenParts()
    uncalculated = 0
    for sheet in sheets:
        uncalculated += sheet.uncalculated
        if sheet.rows:
            layout.add(sheet)
            hidden.add(sheet)
    warnings = list(hidden.warnings())
    if uncalculated:
        warnings.append(f"{uncalculated} formulas were left out, which have no stored result. {_REMEDY}")
    if comments:
        warnings.append("Comments were left out.")
    if not layout.pages:
        if uncalculated:
            raise DocumentEmpty("There are only formulas in it, without their results.", remedy=_REMEDY)
        raise DocumentEmpty("There is nothing in the cells of the spreadsheet.")
    return ParsedDocument(
        text=layout.text(),
        title=title or source.fallback_title,
        media_type=media_type,
        pages=tuple(layout.pages),
        headings=tuple(layout.headings),
        warnings=tuple(warnings),
        hidden=layout.hidden(),
    )
