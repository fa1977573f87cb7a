"""What is written on a PDF page besides its text: filled form fields and notes, as they stand below the page's text."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium

from edgerag.ingest.parse.source import clean_text

_MOST_ANNOTATIONS = 5_000  # on one page
_LONGEST = 20_000  # characters of one value or note
_PASSWORD_FIELD = 1 << 13  # its value is not for reading (ISO 32000, table 231)
_TICKED = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_WRITTEN = (
    pdfium.FPDF_FORMFIELD_TEXTFIELD,
    pdfium.FPDF_FORMFIELD_COMBOBOX,
    pdfium.FPDF_FORMFIELD_LISTBOX,
)
# Their contents are not a person's words, or are those of the note that they belong to.
_NO_NOTES = (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_PRINTERMARK)
_UNSEEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_FIELD_PART = re.compile(r"(?:.*\.)?([^.\[\]]+)(?:\[\d+\])?")  # of "form1[0].page[0].Name[0]"


@dataclass(frozen=True, slots=True)
class Annotations:
    """Lines for the fields and notes of a page, and whether there are fields that nobody filled in."""

    lines: tuple[str, ...]
    has_empty_fields: bool


def read_annotations(page: Any, form: Any) -> Annotations:
    """``form`` is the form environment of the document; None when it has no form."""
    fields: dict[str, None] = {}  # each once: a field may stand in several places
    notes: list[str] = []
    empty = False
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page.raw), _MOST_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, number)
        if not annotation:
            continue
        try:
            if pdfium.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
                continue
            kind = pdfium.FPDFAnnot_GetSubtype(annotation)
            if kind == pdfium.FPDF_ANNOT_WIDGET and form is not None:
                line = _field(form.raw, annotation)
                empty = empty or not line
                if line:
                    fields[line] = None
            elif kind not in _NO_NOTES:
                notes.extend(_note(annotation))
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)
    return Annotations((*fields, *notes), empty)


def _field(form: Any, annotation: Any) -> str:
    """``name: value`` of a field; "" when it is not filled in, or not to be read."""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    name = _words(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    if not name:
        full = _words(pdfium.FPDFAnnot_GetFormFieldName, form, annotation)
        match = _FIELD_PART.fullmatch(full)
        name = match[1] if match else full
    if kind in _TICKED:
        if not pdfium.FPDFAnnot_IsChecked(form, annotation):
            return ""
        return f"{name}: {_words(pdfium.FPDFAnnot_GetFormFieldExportValue, form, annotation) or 'yes'}"
    if kind not in _WRITTEN or pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD_FIELD:
        return ""
    value = _words(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation)
    return f"{name}: {value}" if value else ""


def _note(annotation: Any) -> Iterator[str]:
    text = _words(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")
    author = _words(pdfium.FPDFAnnot_GetStringValue, annotation, b"T")
    if text:
        yield f"Note by {author}: {text}" if author else f"Note: {text}"


def _words(read: Callable[..., int], *of: Any) -> str:
    """What a PDFium function that fills a buffer of UTF-16 says, on lines without blank ones between them."""
    size = read(*of, None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    read(*of, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    text = clean_text(buffer.raw[: size - 2].decode("utf-16-le", "replace"))[:_LONGEST]
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())
