from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.config import ChunkSettings
from edgerag.errors import DocumentEmpty
from edgerag.ingest.chunk import chunk
from edgerag.ingest.parse.csv_table import parse
from edgerag.ingest.parse.source import Source
from edgerag.ingest.parse.text import read_text
from edgerag.types import ParsedDocument


def read(text: str | bytes, name: str = "table.csv") -> ParsedDocument:
    return parse(Source(text.encode() if isinstance(text, str) else text, name))


def headings(document: ParsedDocument) -> list[tuple[int, str, str]]:
    """Level, title, and the line where it stands."""
    return [(h.level, h.title, document.text[h.start :].split("\n")[0]) for h in document.headings]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_delimiter_is_found(delimiter: str) -> None:
    rows = [["Name", "Town", "Price"], ["Bolt", "Ulm", "1,5"], ["Nut", "Bonn", "0,25"]]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    document = read(out.getvalue())
    assert headings(document) == [(1, "Name | Town | Price", delimiter.join(rows[0]))]
    assert document.text == out.getvalue().replace("\r\n", "\n"), "the lines are the lines of the file"
    assert document.media_type == ("text/tab-separated-values" if delimiter == "\t" else "text/csv")


def test_commas_in_texts_and_numbers_do_not_hide_the_delimiter() -> None:
    document = read("Item; Price, net\nBolt, large; 1,50\nNut, small; 0,25\n")
    assert headings(document)[0][1] == "Item | Price, net"


def test_the_delimiter_that_the_file_names_is_taken() -> None:
    document = read("sep=,\nName,Remark\nBolt,a;b;c\nNut,d;e;f\n")
    assert headings(document) == [(1, "Name | Remark", "Name,Remark")]


def test_a_title_above_the_labels() -> None:
    document = read("Prices 2024,,\nName,Town,Price\nBolt,Ulm,1\n")
    assert headings(document) == [(1, "Prices 2024", "Prices 2024,,"), (2, "Name | Town | Price", "Name,Town,Price")]


@pytest.mark.parametrize("text", ["1,2,3\n4,5,6\n", "one column\nof words\n", "A,A,A\nA,A,A\n", "a,b\n"])
def test_no_header_where_nothing_looks_like_one(text: str) -> None:
    assert headings(read(text)) == []


def test_a_record_may_go_over_lines() -> None:
    document = read('Preface,,\n"Name\nof part",Town,Price\n"Bolt,\n\nlong",Ulm,1\nNut,Bonn,2\n')
    assert headings(document)[-1] == (2, "Name of part | Town | Price", '"Name')


def test_a_quote_that_never_ends_takes_no_row_with_it() -> None:
    text = "Name,Price\nBolt,1\nNut,2\n" + '"Washer,3\n' * 500
    document = read(text)
    assert headings(document) == [(1, "Name | Price", "Name,Price")]
    assert document.text == text


def test_a_field_of_a_megabyte() -> None:
    text = 'Name,Price\nBolt,1\n"' + "x" * 1_000_000 + '",2\n'
    assert headings(read(text)) == [(1, "Name | Price", "Name,Price")]


def test_other_encodings_and_blank_files() -> None:
    assert headings(read("Größe,Stück\nM4,100\n".encode("utf-16")))[0][1] == "Größe | Stück"
    with pytest.raises(DocumentEmpty):
        read(" \n \n")


def test_chunks_carry_the_header_and_cut_no_row() -> None:
    lines = [f"part {n},made in town number {n},{n}" for n in range(1, 300)]
    document = read("\n".join(["Part,Origin,Pieces", *lines]))
    found = chunk(
        document,
        count_tokens=lambda text: len(text.replace(",", " ").split()),
        settings=ChunkSettings(target_tokens=60, heading_tokens=16),
        max_tokens=100,
    )
    assert len(found) > 10
    assert all(piece.heading_path == ("Part | Origin | Pieces",) for piece in found)
    assert all("Part | Origin | Pieces" in piece.context for piece in found)
    rows = [line for piece in found for line in piece.text.split("\n")]
    assert rows == ["Part,Origin,Pieces", *lines]
    assert [piece.line_first for piece in found[1:]] == [piece.line_last + 1 for piece in found[:-1]]


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.sampled_from('ab1.,;|\t"\n\r\\ \x00é'), min_size=1, max_size=200), st.sampled_from(["t.csv", "t.tsv"])
)
def test_whatever_it_holds_the_text_is_the_file(text: str, name: str) -> None:
    source = Source(text.encode(), name)
    try:
        expected, _ = read_text(source)
    except DocumentEmpty:
        return
    document = parse(source)
    assert document.text == expected
    for heading in document.headings:
        assert heading.start == 0 or expected[heading.start - 1] == "\n"
        assert heading.title
