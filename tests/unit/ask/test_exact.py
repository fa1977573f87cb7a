from __future__ import annotations

from collections.abc import Callable

import pytest

from edgerag.ask.exact import exact_matches, exact_strings
from edgerag.types import Hit


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What does error E0382 mean?", ("e0382",)),
        ("How do I use std::io::Read with max_len?", ("std::io::read", "max_len")),
        ('Where does it say "the sky is green"?', ("the sky is green",)),
        ("What is a HashMap?", ("hashmap",)),
        ("Which torque has part AB-1200?", ("ab-1200",)),
        ("Who won the world cup in 1998?", ()),
        ("what is the well-known rule?", ()),
        ("什么是「所有权」？", ("所有权",)),
    ],
)
def test_identifiers_and_phrases_are_recognised(question: str, expected: tuple[str, ...]) -> None:
    assert exact_strings(question) == expected


def test_chunks_must_hold_the_whole_identifier(hit: Callable[..., Hit]) -> None:
    chunks = [
        hit("Error E0382 is about moves.", chunk_id=1).chunk,
        hit("Error E03821 is something else.", chunk_id=2).chunk,
        hit("Nothing of the kind.", chunk_id=3).chunk,
    ]
    assert exact_matches(["e0382"], chunks) == {1}
    assert exact_matches(["e9999"], chunks) == frozenset()
    assert exact_matches([], chunks) == frozenset()


def test_the_chunk_with_most_of_them_is_meant(hit: Callable[..., Hit]) -> None:
    chunks = [hit("A_1 alone", chunk_id=1).chunk, hit("A_1 with B_2", chunk_id=2).chunk]
    assert exact_matches(["a_1", "b_2"], chunks) == {2}
