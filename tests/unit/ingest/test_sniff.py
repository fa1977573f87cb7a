from __future__ import annotations

import pytest
from unit.ingest import craft

from edgerag.errors import DocumentDamaged, DocumentEncrypted, DocumentUnsupported
from edgerag.ingest.parse.sniff import sniff
from edgerag.ingest.parse.source import Source

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.pdf", b"%PDF-1.7 ...", "pdf"),
        ("lies.txt", b"\n\n%PDF-1.4 ...", "pdf"),
        ("a.docx", craft.docx(""), "docx"),
        ("lies.md", craft.docx(""), "docx"),
        ("a.html", b"<p>x", "html"),
        ("no-extension", b"  <!DOCTYPE HTML><p>x", "html"),
        ("lies.pdf", b"just words", "text"),
        ("a.md", b"# x", "markdown"),
        ("A.MD", b"# x", "markdown"),
        ("README", b"words", "text"),
        ("data.csv", b"a,b\n1,2", "text"),
        ("main.py", b"import os", "text"),
        ("wide.txt", "words in UTF-16".encode("utf-16"), "text"),
        ("legacy.txt", "Größe".encode("latin-1"), "text"),
        ("log.txt", b"\x1b[31mred\x1b[0m\n" * 20, "text"),
        ("empty.txt", b"", "text"),
    ],
)
def test_content_decides(name: str, data: bytes, expected: str) -> None:
    assert sniff(Source(data, name)) == expected


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(50), "PNG image"),
        ("lies.txt", b"\x7fELF" + bytes(50), "a program"),
        ("a.bin", bytes(range(256)) * 20, "binary file"),
        ("a.pptx", craft.archive({"[Content_Types].xml": "", "ppt/presentation.xml": ""}), "PowerPoint"),
        ("a.xlsx", craft.archive({"[Content_Types].xml": "", "xl/workbook.xml": ""}), "Excel"),
        ("a.epub", craft.archive({"mimetype": "application/epub+zip", "META-INF/container.xml": ""}), "EPUB"),
        ("a.odt", craft.archive({"mimetype": "x", "content.xml": "", "META-INF/manifest.xml": ""}), "OpenDocument"),
        ("a.zip", craft.archive({"readme.txt": "x"}), "zip archive"),
        ("a.doc", OLE + "WordDocument".encode("utf-16-le"), "Word 97"),
        ("a.msg", OLE + "__properties_version".encode("utf-16-le"), "Outlook"),
        ("a.rtf", b"{\\rtf1 x}", "rich text"),
        ("a.eml", b"From: me\n\nHello", "e-mail"),
        ("a.ipynb", b'{"cells": []}', "Jupyter"),
        ("a.mp4", b"\x00\x00\x00\x18ftypmp42", "video"),
        ("a.gguf", b"GGUF" + bytes(20), "GGUF"),
    ],
)
def test_what_is_not_read_is_named_in_a_sentence(name: str, data: bytes, said: str) -> None:
    with pytest.raises(DocumentUnsupported, match=rf"^It is .*{said}.*which is not read\."):
        sniff(Source(data, name))


def test_a_locked_office_file_is_encrypted_not_unsupported() -> None:
    with pytest.raises(DocumentEncrypted, match="password"):
        sniff(Source(OLE + "EncryptedPackage".encode("utf-16-le"), "a.xlsx"))


def test_half_a_zip_is_damaged() -> None:
    with pytest.raises(DocumentDamaged, match="damaged"):
        sniff(Source(craft.docx("x" * 1000)[:200], "a.docx"))
