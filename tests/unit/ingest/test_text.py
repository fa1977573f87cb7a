"""Every reader of text formats gives the same document, in whatever encoding it comes."""

from __future__ import annotations

import pytest

from edgerag.config import ChunkSettings
from edgerag.ingest.chunk import chunk
from edgerag.ingest.parse import asciidoc, code, latex, markdown, rst, structured, text
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument

SENTENCES = {
    "zh": "更换电池之前，请先断开主电源，等待五分钟。电池装好以后再接通电源。",
    "zh_hant": "更換電池之前，請先斷開主電源，等待五分鐘。電池裝好以後再接通電源。",
    "ja": "電池を交換する前に、必ず主電源を切ってください。カバーを外します。",
    "ko": "배터리를 교체하기 전에 반드시 전원을 끄십시오. 덮개를 여십시오.",
    "ru": "Перед заменой батареи обязательно отключите питание и подождите пять минут.",
    "fr": "Avant de changer la batterie, coupez l'alimentation : l'élève a été prévenu à temps, ça suffit.",
    "de": "Vor dem Tauschen der Batterie den Schalter öffnen – fünf Minuten warten, dann „Start“ drücken.",
}
ENCODINGS = [
    *(("zh", "gb18030"), ("zh_hant", "big5"), ("ja", "shift_jis"), ("ja", "euc_jp"), ("ko", "euc_kr")),
    *(("ru", "koi8_r"), ("ru", "cp1251"), ("fr", "latin-1"), ("de", "cp1252")),
    *(
        (language, encoding)
        for language in ("de", "ja", "ru")
        for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
    ),
]
READERS = {
    "a.txt": (text, "{0}\n{0}\n"),
    "a.log": (text, "2024-01-01 INFO {0}\n2024-01-02 WARN {0}\n"),
    "a.md": (markdown, "# {0}\n\n{0}\n"),
    "a.rst": (rst, "{0}\n" + "=" * 200 + "\n\n{0}\n"),
    "a.adoc": (asciidoc, "= {0}\n\n{0}\n"),
    "a.tex": (latex, "\\section{{{0}}}\n\n{0}\n"),
    "a.json": (structured, '{{"a": {{"b": "{0}", "c": "{0}"}}}}\n'),
    "a.yaml": (structured, "a:\n  - {0}\nb:\n  - {0}\n"),
    "a.xml": (structured, '<a x="1">\n<b name="{0}" y="1" z="2"><c w="3">{0}</c></b>\n</a>\n'),
    "a.py": (code, "# {0}\ndef f():\n    return '''{0}'''\n"),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(("language", "encoding"), ENCODINGS)
def test_twins_come_out_equal(name: str, language: str, encoding: str) -> None:
    reader, form = READERS[name]
    whole = form.format(SENTENCES[language])
    plain: ParsedDocument = reader.parse(Source(whole.encode(), name))
    twin: ParsedDocument = reader.parse(Source(whole.encode(encoding), name))
    assert (twin.text, twin.headings, twin.title, twin.media_type) == (
        plain.text, plain.headings, plain.title, plain.media_type
    )  # fmt: skip
    assert SENTENCES[language] in plain.text
    assert all(heading.start < len(plain.text) for heading in plain.headings)


def test_a_long_log_is_cut_between_its_lines() -> None:
    lines = "".join(f"2024-01-01 12:00:{n % 60:02d} INFO pump: rate of P-{n} is 5. Retry in 3 s.\n" for n in range(500))
    parsed = text.parse(Source(lines.encode(), "a.log"))
    found = chunk(
        parsed,
        count_tokens=lambda t: len(t.split()),
        settings=ChunkSettings(target_tokens=50, heading_tokens=4),
        max_tokens=80,
    )
    assert all(piece.text.startswith("2024") and piece.text.endswith("s.") for piece in found)
    assert all(26 <= len(piece.text.split()) <= 50 for piece in found), "two lines at least, and no more than aimed at"
