from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.words import content_words, sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It costs 3.14 dollars. Ask Dr. Smith, e.g. today. Done.", None),
        ("所有权很重要。它是核心！真的吗？", ["所有权很重要。", "它是核心！", "真的吗？"]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("- first item\n- second item", ["- first item", "- second item"]),
        ("A paragraph\n\nAnother one", ["A paragraph", "Another one"]),
        ("wrapped\nline.", ["wrapped\nline."]),
        ("Am 12. Mai 1821 gebaut. Danach nicht.", ["Am 12. Mai 1821 gebaut.", "Danach nicht."]),
        ("Im 19. Jahrhundert. Das 3. und letzte Rad.", ["Im 19. Jahrhundert.", "Das 3. und letzte Rad."]),
        (
            "There were 12. Then they left in 2010. In all 22.",
            ["There were 12.", "Then they left in 2010.", "In all 22."],
        ),
        ("", []),
        ("  \n ", []),
    ],
)
def test_sentences(text: str, expected: list[str] | None) -> None:
    if expected is None:
        expected = ["It costs 3.14 dollars.", "Ask Dr. Smith, e.g. today.", "Done."]
    assert sentences(text) == expected


@given(st.text(alphabet="ab .!?。\n\"'1)-é中"))
def test_sentences_hold_everything_but_white_space(text: str) -> None:
    spans = list(sentence_spans(text))
    assert all(a_end <= b_start for (_, a_end), (b_start, _) in itertools.pairwise(spans))
    assert "".join("".join(text[s:e].split()) for s, e in spans) == "".join(text.split())


def test_inflections_share_a_stem_and_function_words_go() -> None:
    assert content_words("How do I handle recoverable errors?") == content_words("the handling of recoverable error")
    assert content_words("Übergänge") == content_words("ubergange")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी पम्प।", 2),
        ("தமிழ் மொழி", 2),
        ("বাংলা ভাষা", 2),
        ("שָׁלוֹם עוֹלָם", 2),
        ("السَّلامُ عَلَيْكُمْ", 2),
        ("Zu\u0308rich cafe\u0301", 2),
    ],
)
def test_marks_are_part_of_their_words(text: str, words: int) -> None:
    assert len(content_words(text)) == words


def test_points_and_accents_make_no_difference() -> None:
    assert content_words("שָׁלוֹם") == content_words("שלום")
    assert content_words("السَّلامُ") == content_words("السلام")
    assert content_words("Zu\u0308rich") == content_words("Zürich")


def test_unspaced_scripts_become_pairs() -> None:
    assert content_words("所有权") == ["所有", "有权"]
    assert content_words("Rust 的") == ["rust", "的"]
