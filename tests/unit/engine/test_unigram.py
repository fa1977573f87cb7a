"""SentencePiece's unigram tokenizer on a vocabulary small enough to read."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.engine.unigram import SPECIAL, Unigram

SCORES = {
    "<s>": 0.0,
    "<pad>": 0.0,
    "</s>": 0.0,
    "<unk>": 0.0,
    "▁": -3.0,
    "▁pump": -5.0,
    "▁pu": -4.0,
    "mp": -2.0,
    "s": -2.5,
    "▁screw": -6.0,
    "泵": -6.5,
    "水泵": -7.0,
    "é": -4.5,
    "1": -3.5,
    "/": -3.6,
    "2": -3.7,
    "<mask>": 0.0,
}
PIECES = list(SCORES)
TOKENIZER = Unigram(
    PIECES,
    list(SCORES.values()),
    unknown=3,
    special=SPECIAL,
    characters={"\t": " ", "\n": " ", "\u3000": " ", "½": "1/2", "\u200b": "", "Ｓ": "s"},
)


def pieces(text: str) -> list[str]:
    return [PIECES[token] for token in TOKENIZER.encode(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pumps screw", ["▁pump", "s", "▁screw"]),  # -5 beats -4 - 2
        ("  pump\t\npump ", ["▁pump", "▁pump", "▁"]),
        ("水泵", ["▁", "水泵"]),  # one piece beats two, one of which is unknown
        ("水", ["▁", "<unk>"]),
        ("水水水 水", ["▁", "<unk>", "▁", "<unk>"]),  # what is unknown together is one token
        ("½", ["▁", "1", "/", "2"]),
        ("e\u0301é", ["▁", "é", "é"]),
        ("pumpＳ\u200bs", ["▁pump", "s", "s"]),
        ("<s></s>", ["▁", "<unk>", "s", "<unk>", "/", "s", "<unk>"]),  # words, no control tokens
        ("", []),
        (" ", []),
    ],
)
def test_the_likeliest_pieces_are_found(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def likelihood(tokens: list[int]) -> float:
    return sum(SCORES[PIECES[token]] for token in tokens)


@given(st.text(alphabet="pums", max_size=9))
def test_no_other_cut_is_likelier(word: str) -> None:
    found = TOKENIZER.encode(word)
    whole = "▁" + word if word else ""
    if 3 in found:
        return
    assert "".join(PIECES[token] for token in found) == whole
    for cuts in itertools.product((False, True), repeat=max(0, len(whole) - 1)):
        parts, start = [], 0
        for end, cut in enumerate((*cuts, True), start=1):
            if cut and whole:
                parts.append(whole[start:end])
                start = end
        if all(part in SCORES and part not in SPECIAL for part in parts):
            assert sum(SCORES[part] for part in parts) <= likelihood(found) + 1e-9


@given(st.text())
def test_no_text_gives_a_control_token(text: str) -> None:
    assert not (SPECIAL - {"<unk>"}) & set(pieces(text))


@given(st.lists(st.text(alphabet="pumps水é ", max_size=6)))
def test_what_was_met_before_changes_nothing(texts: list[str]) -> None:
    for text in texts:
        fresh = Unigram(PIECES, list(SCORES.values()), unknown=3, special=SPECIAL, characters={})
        assert TOKENIZER.encode(text) == fresh.encode(text)
