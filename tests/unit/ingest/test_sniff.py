from __future__ import annotations

import pytest
from unit.ingest import craft

from edgerag.errors import DocumentDamaged, DocumentEncrypted, DocumentUnsupported
from edgerag.ingest.parse.sniff import sniff
from edgerag.ingest.parse.source import Source

ODF = "application/vnd.oasis.opendocument."
MAIL = (
    b"Message-ID: <1@example.org>\nMIME-Version: 1.0\nFrom: me@example.org\nTo: you@example.org\n"
    b"Date: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: x\n\nHello\n"
)
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
        ("data.csv", b"a,b\n1,2", "csv"),
        ("main.py", b"import os", "code"),
        ("a.json", b"{}", "structured"),
        ("a.ipynb", b'{"cells": []}', "notebook"),
        ("a.rst", b"Title\n=====\n", "rst"),
        ("a.adoc", b"= Title\n", "asciidoc"),
        ("a.tex", b"\\section{x}", "latex"),
        ("a.pptx", craft.archive({"[Content_Types].xml": "", "ppt/presentation.xml": ""}), "pptx"),
        ("a.xlsx", craft.archive({"[Content_Types].xml": "", "xl/workbook.xml": ""}), "spreadsheet"),
        ("a.xls", OLE + "Workbook".encode("utf-16-le"), "spreadsheet"),
        ("old.xls", OLE + "Book".encode("utf-16-le") + bytes(20), "spreadsheet"),
        ("a.epub", craft.archive({"mimetype": "application/epub+zip", "META-INF/container.xml": ""}), "epub"),
        ("a.odt", craft.archive({"mimetype": f"{ODF}text", "content.xml": ""}), "opendocument"),
        ("a.odp", craft.archive({"mimetype": f"{ODF}presentation", "content.xml": ""}), "opendocument"),
        ("a.ods", craft.archive({"mimetype": f"{ODF}spreadsheet", "content.xml": ""}), "spreadsheet"),
        ("a.fodt", b"<?xml version='1.0'?><office:document/>", "opendocument"),
        ("a.zip", craft.archive({"readme.txt": "x"}), "archive"),
        pytest.param(
            "cut.zip", craft.archive({"readme.txt": "x" * 100})[:60], "archive", id="cut.zip"
        ),  # holds the time
        ("a.gz", b"\x1f\x8b\x08", "archive"),
        ("a.msg", OLE + "__properties_version".encode("utf-16-le"), "outlook"),
        ("a.rtf", b"{\\rtf1 x}", "rtf"),
        ("a.eml", b"From: me\n\nHello", "mail"),
        ("no-extension", MAIL, "mail"),
        ("no-extension", b"From me@example.org Thu Jan  1 00:00:00 2026\n" + MAIL, "mailbox"),
        ("notes.txt", b"To: do\nBuy milk, and call back.\n", "text"),
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
        ("a.odg", craft.archive({"mimetype": f"{ODF}graphics", "content.xml": ""}), "OpenDocument drawing"),
        ("a.jar", craft.archive({"META-INF/MANIFEST.MF": "x"}), "Java archive"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c" + bytes(50), "7z archive"),
        ("winmail.dat", b"\x78\x9f\x3e\x22" + bytes(50), "winmail"),
        ("a.doc", OLE + "WordDocument".encode("utf-16-le"), "Word 97"),
        ("a.doc", OLE + "BookmarkWordDocument".encode("utf-16-le"), "Word 97"),
        ("a.ppt", OLE + "PowerPoint Document".encode("utf-16-le"), "PowerPoint 97"),
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


def test_a_message_in_pgp_is_encrypted() -> None:
    with pytest.raises(DocumentEncrypted, match="PGP"):
        sniff(Source(b"-----BEGIN PGP MESSAGE-----\n\nhQEMA", "a.asc"))


def test_half_a_zip_is_damaged() -> None:
    with pytest.raises(DocumentDamaged, match="damaged"):
        sniff(Source(craft.docx("x" * 1000)[:200], "a.docx"))
