"""The files that a PDF holds: their names, and the bytes of one."""

from __future__ import annotations

import ctypes
from pathlib import PurePosixPath
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from edgerag.errors import DocumentDamaged, DocumentUnsupported
from edgerag.ingest.parse.source import clean_title

_MOST_ATTACHMENTS = 1_000


def attachment_names(document: Any) -> tuple[str, ...]:
    """The names in the order of the file, each once: a second of the same name gets a number."""
    names: dict[str, None] = {}
    for number in range(_count(document)):
        name = _name(document, number)
        stem, suffix = PurePosixPath(name).stem, PurePosixPath(name).suffix
        again = 2
        while name in names:
            name = f"{stem} ({again}){suffix}"
            again += 1
        names[name] = None
    return tuple(names)


def read_attachment(document: Any, number: int, max_bytes: int) -> bytes:
    """Raises DocumentDamaged, or DocumentUnsupported for one that is larger than ``max_bytes``."""
    try:
        attachment = document.get_attachment(number)
        size = ctypes.c_ulong()
        pdfium.FPDFAttachment_GetFile(attachment.raw, None, 0, ctypes.byref(size))
        if size.value > max_bytes:
            raise DocumentUnsupported(
                f"It is larger than the limit ({size.value / 1e6:.1f} MB, the limit is {max_bytes / 1e6:.1f} MB).",
                remedy="Raise ingest.max_file_size to read it.",
            )
        return bytes(attachment.get_data()) if size.value else b""
    except pypdfium2.PdfiumError as error:
        raise DocumentDamaged("The attached file cannot be taken out of the PDF.") from error


def _count(document: Any) -> int:
    return min(int(document.count_attachments()), _MOST_ATTACHMENTS)


def _name(document: Any, number: int) -> str:
    """The name without the folders of the machine that it comes from."""
    try:
        name = document.get_attachment(number).get_name()
    except (pypdfium2.PdfiumError, UnicodeDecodeError):
        name = ""
    return clean_title(name.replace("\\", "/").rpartition("/")[2]) or f"attachment {number + 1}"
