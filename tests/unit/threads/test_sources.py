from __future__ import annotations

import pytest
from conversations import PASSAGE, QUOTE, TEXT, source

from edgerag.threads.records import passage_hash
from edgerag.threads.sources import find_again

HASH = passage_hash(PASSAGE)


def test_a_passage_that_is_as_it_was_is_current() -> None:
    found = find_again(source(), HASH, TEXT)
    assert found.state == "current"
    assert found.source == source()


def test_a_passage_that_stands_elsewhere_is_followed() -> None:
    text = f"{QUOTE} But not here.\nA new first line.\n{TEXT}"
    found = find_again(source(), HASH, text)
    chunk = found.source.hit.chunk.chunk
    assert found.state == "moved"
    assert text[chunk.start : chunk.end] == chunk.text == PASSAGE
    assert text.startswith(QUOTE, found.source.quote_start)


@pytest.mark.parametrize("text", [TEXT.replace("Grease", "Oil"), TEXT.replace("12", "14"), ""])
def test_other_words_are_never_taken_for_those_that_were_cited(text: str) -> None:
    found = find_again(source(), HASH, text)
    assert found.state == "changed"
    assert found.source == source()


def test_a_document_that_is_not_there_is_gone() -> None:
    assert find_again(source(), HASH, None).state == "gone"
