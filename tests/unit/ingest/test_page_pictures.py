"""A page of a PDF as it is seen: drawn by the parser process, its passage found, and what cannot be drawn said."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.ingest import craft
from unit.ingest.pdf_craft import Drawn, build, picture, text

from edgerag.config import IngestSettings
from edgerag.errors import (
    DocumentChanged,
    DocumentDamaged,
    DocumentEncrypted,
    DocumentError,
    DocumentGone,
    DocumentUnsupported,
)
from edgerag.ingest.page_pictures import PagePictures
from edgerag.ingest.parse import pdf
from edgerag.ingest.parse.pdf_picture import letters_of, letters_on, spans_of
from edgerag.ingest.parse.source import Source
from edgerag.ingest.parse.wire_page import PageReply, page_body, read_page
from edgerag.types import Document, PagePicture, PageWanted
from edgerag.types.pictures import MOST_PIXELS
from edgerag.word_edges import is_edge

WORDS = "Every 2,000 hours: replace the diaphragm"
PAGES = build([text(72, 700, "The first page."), text(72, 700, "Maintenance") + text(72, 300, WORDS)])


def document(path: str, data: bytes, media_type: str = "application/pdf") -> Document:
    return Document(
        id=1,
        path=path,
        root="/",
        title="",
        media_type=media_type,
        content_sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        mtime_ns=0,
        page_count=2,
        chunk_count=1,
        pending_count=0,
        warnings=(),
    )


@contextmanager
def pages_of(path: Path | str, data: bytes) -> Iterator[PagePictures]:
    pages = PagePictures(document(str(path), data), IngestSettings())
    try:
        yield pages
    finally:
        pages.close()


def view(data: bytes, wanted: PageWanted) -> PagePicture:
    """Without the process."""
    return pdf.view(Source(data, "a.pdf"), wanted)


def darkest(drawn: PagePicture, box: tuple[int, int, int, int]) -> int:
    left, top, right, bottom = box
    row_bytes = 3 * drawn.width
    return min(min(drawn.rgb[y * row_bytes + 3 * left : y * row_bytes + 3 * right]) for y in range(top, bottom))


def test_a_page_is_drawn_in_the_parser_process_with_its_passage_found(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(PAGES)
    with pages_of(file, PAGES) as pages:
        drawn = pages.draw(PageWanted(2, 300, f"Maintenance\n{WORDS}", WORDS))
        assert drawn is not None
        assert (drawn.number, drawn.page_count, drawn.width) == (2, 2, 300)
        assert len(drawn.rgb) == 3 * drawn.width * drawn.height
        assert len(drawn.passage) == 2 and len(drawn.quote) == 1
        left, top, right, bottom = drawn.quote[0]
        # 300 of 842 points from below, at 300 / 595 pixels a point
        assert top < (842 - 300) * 300 / 595 <= bottom + 3 and left >= 72 * 300 / 595 - 2 and right < 300
        assert darkest(drawn, drawn.quote[0]) < 120, "there is ink in the box"
        other = pages.draw(PageWanted(1, 100))
        assert other is not None and other.passage == ()


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_the_words_are_found_on_a_turned_page_too(rotate: int) -> None:
    turned = build([Drawn(text(72, 700, WORDS), rotate=rotate)])
    drawn = view(turned, PageWanted(1, 400, WORDS, WORDS))
    assert drawn.quote, "found"
    assert darkest(drawn, drawn.quote[0]) < 120, "there is ink in the box"


def test_a_word_that_a_line_end_divides_is_found_whole() -> None:
    data = build([text(72, 700, "It needs a new dia-") + text(72, 686, "phragm each year.")])
    drawn = view(data, PageWanted(1, 400, "It needs a new diaphragm each year.", "diaphragm"))
    assert len(drawn.passage) == 2
    assert len(drawn.quote) == 2


def test_words_that_are_not_on_the_page_have_no_place() -> None:
    assert view(PAGES, PageWanted(1, 200, "Nothing of this is there", "of this")).passage == ()
    assert view(build([picture(595, 842)]), PageWanted(1, 200, WORDS, WORDS)).passage == ()


@pytest.mark.parametrize("box", [b"0 0 14400 1", b"0 0 1 14400", b"0 0 200000 200000", b"0 0 0.01 0.01"])
def test_a_page_of_any_shape_is_within_the_bound(box: bytes) -> None:
    drawn = view(build([Drawn(b"", box=box)]), PageWanted(1, 20_000))
    assert 1 <= drawn.width * drawn.height <= MOST_PIXELS


def refusal(path: Path | str, data: bytes, page: int = 1) -> DocumentError:
    with pages_of(path, data) as pages, pytest.raises(DocumentError) as caught:
        pages.draw(PageWanted(page, 100))
    return caught.value


def test_what_cannot_be_drawn_says_so_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    gone = refusal(file, PAGES)
    assert isinstance(gone, DocumentGone) and "no longer where it was read" in gone.message
    file.write_bytes(build([text(72, 700, "Another edition.")]))
    changed = refusal(file, PAGES)
    assert isinstance(changed, DocumentChanged) and "has changed since" in changed.message
    locked = build([b""], user_password="secret", owner_password="x")
    file.write_bytes(locked)
    protected = refusal(file, locked)
    assert isinstance(protected, DocumentEncrypted) and "password" in protected.message
    file.write_bytes(b"%PDF-1.4 and then nothing")
    assert isinstance(refusal(file, b"%PDF-1.4 and then nothing"), DocumentDamaged)
    file.write_bytes(PAGES)
    assert isinstance(refusal(file, PAGES, 3), DocumentDamaged)
    file.write_bytes(b"Now it is a text.\n")
    assert isinstance(refusal(file, PAGES), DocumentUnsupported)
    with pytest.raises(DocumentUnsupported, match="Only pages of a PDF"):
        PagePictures(document("/a.md", b"", "text/markdown"), IngestSettings())


def test_a_pdf_in_an_archive_is_drawn(tmp_path: Path) -> None:
    file = tmp_path / "box.zip"
    file.write_bytes(craft.archive({"in/a.pdf": PAGES}))
    with pages_of(f"{file}!/in/a.pdf", PAGES) as pages:
        drawn = pages.draw(PageWanted(2, 200, WORDS, WORDS))
        assert drawn is not None and drawn.quote


def test_who_no_longer_waits_stops_the_drawing(tmp_path: Path) -> None:
    """The page takes for ever; the next one does not wait for it. Whether somebody still waits is asked before
    the page is begun and before it is handed to the process, and then for as long as the process is at it."""
    slow = b"0 0 m 500 700 l S\n" * 3_000_000
    file = tmp_path / "slow.pdf"
    file.write_bytes(build([slow, b""]))
    data = file.read_bytes()
    asked = itertools.count(1)
    with pages_of(file, data) as pages:
        assert pages.draw(PageWanted(1, 1500), stopped=lambda: next(asked) > 2) is None
        assert next(asked) > 3, "it was at it"
        assert pages.draw(PageWanted(2, 50)) is not None


def test_a_parser_that_was_killed_while_it_waited_is_started_anew_unseen(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(PAGES)
    with pages_of(file, PAGES) as pages:
        assert pages.draw(PageWanted(1, 50)) is not None
        for _ in range(3):
            process = pages._parser._process
            assert process is not None
            process.kill()
            assert pages.draw(PageWanted(2, 50)) is not None


@pytest.mark.parametrize(("make", "said"), [(Path.mkdir, "folder"), (os.mkfifo, "pipe")])
def test_what_stands_in_the_place_of_the_file_is_named(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    make(tmp_path / "a.pdf")
    with pages_of(tmp_path / "a.pdf", PAGES) as pages, pytest.raises(DocumentGone, match=rf"a\.pdf.* {said}"):
        pages.draw(PageWanted(1, 50))


def lie(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    body = dict(page_body(PageReply(PagePicture(1, 1, 2, 2, bytes(12)), "0")))
    body |= {"passage": [], "quote": []}
    change(body)
    return body


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(width=3),
        lambda body: body.update(width=10**6, height=10**6),
        lambda body: body.update(number=2),
        lambda body: body.update(passage=[[0, 0, 3, 1]]),
        lambda body: body.update(quote=[[0, 0, -1, 1]]),
        lambda body: body.update(passage=[[0, 0, 1, 1]] * 5_000),
        lambda body: body.update(rgb="no base64!"),
        lambda body: body.update(page_count=True),
        lambda body: body.pop("sha256"),
    ],
)
def test_a_parser_that_lies_about_its_picture_is_not_believed(change: Callable[[dict[str, Any]], None]) -> None:
    assert read_page(lie(lambda body: None)).picture.width == 2
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_page(lie(change))


@given(st.lists(st.text(alphabet="abcdeéß-ﬁ 12\n", min_size=1, max_size=30), min_size=1, max_size=6), st.data())
def test_a_passage_of_the_page_is_found_where_it_stands(lines: list[str], data: st.DataObject) -> None:
    page = letters_on("\n".join(lines))
    edges = [at for at in range(len(page.text) + 1) if is_edge(page.text, at)]
    start = data.draw(st.sampled_from(edges))
    passage = page.text[start : data.draw(st.sampled_from([at for at in edges if at >= start]))]
    spans = spans_of(page, passage)
    assert "".join(page.letters[a:b] for a, b in spans) == letters_of(passage)


@pytest.mark.parametrize(
    ("page", "words", "found"),
    [
        ("from 112 kg to 12 kg", "12 kg", [(11, 15)]),
        ("only 112 kg", "12 kg", []),
        ("1.12 kg or 12 kg", "12 kg", [(7, 11)]),
        ("cheap artofficial, the art of it", "art of", [(19, 24)]),
        ("ポンプは12kgです", "12kg", [(4, 8)]),
    ],
)
def test_words_are_not_found_in_other_words(page: str, words: str, found: list[tuple[int, int]]) -> None:
    assert spans_of(letters_on(page), words) == found


def test_a_passage_that_was_cut_within_a_word_is_found() -> None:
    assert spans_of(letters_on("an unreasonably long word"), "asonably long word") == [(6, 22)]


def test_lines_that_a_parser_has_put_in_another_order_are_found_one_by_one() -> None:
    page = letters_on("left column begins here right column begins there left column goes on right column goes on")
    passage = "Left column begins here\nleft column goes on\nof another page entirely\nright column begins there"
    found = [page.letters[a:b] for a, b in spans_of(page, passage)]
    assert found == ["leftcolumnbeginshere", "leftcolumngoeson", "rightcolumnbeginsthere"]
    assert spans_of(letters_on("12 of 12 are 12"), "No\n12\n12") == [], "a short line that stands anywhere says nothing"
