from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from edgerag.file_types import is_extension, media_types_of, normal_type, types_of

PARSERS = Path(__file__).parents[2] / "edgerag" / "ingest" / "parse"


@pytest.mark.parametrize(
    ("said", "name"),
    [
        *[(word, "word") for word in ("word", "Word", "docx", "DOCX", "doc", " docx ")],
        *[(word, "excel") for word in ("excel", "xlsx", "xls")],
        *[(word, "spreadsheet") for word in ("spreadsheet", "spreadsheets", "Sheets")],
        *[(word, "slides") for word in ("slides", "slide", "presentation", "presentations")],
        *[(word, "mail") for word in ("mail", "mails", "email", "E-Mail", "emails")],
        *[(word, "image") for word in ("images", "picture", "scan")],
        *[("md", "markdown"), ("web", "html"), ("txt", "text"), ("source", "code"), ("pdfs", "pdf"), ("ebook", "epub")],
        *[(".LOG", ".log"), ("pages", "pages"), ("", "")],
    ],
)
def test_a_type_has_one_spelling_however_it_is_said(said: str, name: str) -> None:
    assert normal_type(said) == name
    assert normal_type(name) == name


def test_a_word_for_several_programs_holds_what_each_writes() -> None:
    assert set(media_types_of("excel")) | set(media_types_of("ods")) == set(media_types_of("spreadsheet"))
    assert set(media_types_of("powerpoint")) | set(media_types_of("odp")) == set(media_types_of("slides"))
    assert {"message/rfc822", "application/vnd.ms-outlook"} == set(media_types_of("mail"))


def test_what_is_no_type_has_no_media_types() -> None:
    assert media_types_of("pages") == media_types_of(".pdf") == media_types_of("") == ()
    assert [is_extension(name) for name in (".pdf", ".tar.gz", ".", "", "pdf")] == [True, True, False, False, False]


def test_a_library_is_told_in_the_words_of_a_person() -> None:
    assert types_of(["text/markdown", "application/pdf", "text/x-python", "text/x-rust"]) == ["code", "markdown", "pdf"]
    assert types_of(["application/x-new"]) == ["application/x-new"]


def test_every_media_type_that_a_parser_gives_has_a_name() -> None:
    given = {media_type for media_type, _ in import_module("edgerag.ingest.parse.code")._LANGUAGES.values()}
    given |= set(import_module("edgerag.ingest.parse.text")._MEDIA_TYPES.values())
    given |= {media_type for *_, media_type in import_module("edgerag.ingest.parse.image")._KINDS}
    for file in PARSERS.glob("*.py"):
        text = file.read_text(encoding="utf-8")
        given |= set(re.findall(r"media_type=\"([^\"]+)\"", text))
        given |= set(re.findall(r"^(?:MEDIA_TYPE|[A-Z]+_TYPE|XLS\w?|ODS|CSV|TSV) = \"([^\"]+)\"", text, re.MULTILINE))
    assert len(given) > 40, "the parsers say it in another way now"
    assert [name for name in types_of(given) if "/" in name] == []
