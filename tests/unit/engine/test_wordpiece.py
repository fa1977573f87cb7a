"""BERT's tokenizer on a vocabulary small enough to read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.engine.wordpiece import WordPiece

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁pump", "s", "▁cafe", "▁.", "▁水", "▁泵", "▁straße", "▁म", "ी", "▁σ"]


def pieces(text: str) -> list[str]:
    return [VOCABULARY[token] for token in WordPiece(VOCABULARY).encode(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pumps.", ["▁pump", "s", "▁."]),
        ("CAFÉ cafe\u0301", ["▁cafe", "▁cafe"]),
        ("水泵", ["▁水", "▁泵"]),
        ("Straße", ["▁straße"]),
        ("मी", ["▁म", "ी"]),  # a spacing mark stays
        ("Σ", ["▁σ"]),
        ("pump\u200b\x07s", ["▁pump", "s"]),
        ("pumpx", ["[UNK]"]),
        ("s" * 101, ["[UNK]"]),
        ("[SEP]", ["[UNK]", "[UNK]", "[UNK]"]),
        (" \t\n", []),
    ],
)
def test_words_are_found_as_bert_finds_them(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@given(st.text())
def test_no_text_gives_a_special_token(text: str) -> None:
    assert not {"[PAD]", "[CLS]", "[SEP]"} & set(pieces(text))
