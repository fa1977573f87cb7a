from __future__ import annotations

import dataclasses
import json

import pytest

from edgerag.types import Chunk, Hit, Prefill, Scores, Source, StoredChunk
from edgerag.ui import output


def make_hit(*, page: int | None = None, path: str = "/docs/a.md", text: str = "The lid screws.") -> Hit:
    chunk = Chunk(
        ordinal=0,
        start=0,
        end=len(text),
        text=text,
        heading_path=("Manual", "Torques"),
        page_first=page,
        page_last=page,
        line_first=3,
        line_last=9,
        token_count=4,
    )
    stored = StoredChunk(id=7, document_id=2, path=path, title="Manual", media_type="text/markdown", chunk=chunk)
    return Hit(stored, Scores(keyword=3.5, keyword_rank=1, vector=None, vector_rank=None, fused=0.016))


def test_json_is_valid_and_holds_nothing_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"text": "\x1b[31m \x9b2J \u202e é 中 \udc80"}
    output.write_json(value)
    shown = capsys.readouterr().out
    assert not set("\x1b\x9b\u202e\udc80") & set(shown)
    assert "é 中" in shown
    assert json.loads(shown) == value


def test_sources_say_where_and_what() -> None:
    source = Source(
        number=2, hit=make_hit(page=4, path="/docs/\x1b[2Jb.pdf"), quote="lid\n screws", quote_start=4, cited=True
    )
    text = output.sources_text([source])
    assert "*[2] /docs/b.pdf, page 4 (Manual > Torques)" in text
    assert '"lid screws"' in text


def test_a_hit_in_a_spreadsheet_names_its_sheet_once() -> None:
    hit = make_hit(page=4, path="/docs/b.xlsx")
    row = dataclasses.replace(
        hit, chunk=dataclasses.replace(hit.chunk, media_type="application/vnd.oasis.opendocument.spreadsheet")
    )
    assert "/docs/b.xlsx, sheet Manual, row 4 (Torques)" in output.hits_text([row])
    assert output.hit_record(row)["page_unit"] == "row"
    assert output.hit_record(hit)["page_unit"] == "page"
    assert output.hit_record(make_hit())["page_unit"] is None


def test_a_source_record_has_the_offsets_of_its_quote() -> None:
    record = output.source_record(Source(number=1, hit=make_hit(), quote="lid screws", quote_start=4, cited=False))
    assert (record["quote_start"], record["quote_end"]) == (4, 14)
    assert record["scores"]["vector"] is None
    assert record["headings"] == ["Manual", "Torques"]


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (98_362_432, "98.4 MB"), (2 * 10**9, "2.0 GB")],
)
def test_sizes(size_bytes: int, text: str) -> None:
    assert output.size(size_bytes) == text


def test_a_table_lines_up_and_stays_a_table() -> None:
    assert (
        output.table([("a", "long cell", ""), ("bcd", "x\ny\x1b[1m", "end")]) == "a    long cell\nbcd  x y        end\n"
    )
    assert output.table([]) == ""


@pytest.mark.parametrize(
    ("prefill", "words"),
    [
        (None, ""),
        (Prefill(0, 0, 0, 500, 0.5), ""),
        (Prefill(20, 300, 0, 180, 0.5), "320 of them known"),
        (Prefill(20, 200, 600, 80, 0.1), "220 of them known, 600 approximate"),
    ],
)
def test_what_of_a_prompt_was_not_computed_is_said(prefill: Prefill | None, words: str) -> None:
    assert output.reuse_words(prefill) == words


def test_a_hit_of_several_libraries_names_its_own_and_has_its_own_numbers() -> None:
    hit = make_hit()
    shelved = dataclasses.replace(hit.chunk, id=3 << 48 | 7, document_id=3 << 48 | 2, library="work")
    record = output.hit_record(dataclasses.replace(hit, chunk=shelved))
    assert (record["library"], record["chunk_id"], record["document_id"]) == ("work", 7, 2)
    assert output.hits_text([dataclasses.replace(hit, chunk=shelved)]).startswith(" 1. work: /docs/a.md, lines 3-9")
    assert output.hit_record(hit)["library"] == ""
    assert output.hits_text([hit]).startswith(" 1. /docs/a.md")
