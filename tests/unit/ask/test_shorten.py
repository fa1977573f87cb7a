from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.shorten import GAP, joined, shortened

TEXT = (
    "## Maintenance\n\nThe pump is painted blue. The torque of the lid is 12 newton metres. Its box is made of oak. "
    "Check the lid and its torque every year. The paint is dry after two days."
)


def kept(question: str, most: int, text: str = TEXT) -> list[str]:
    spans = shortened(text, question=question, fits=lambda length: length <= most)
    return [text[start:end] for start, end in spans]


def test_the_sentences_about_the_question_stay_in_their_order() -> None:
    assert kept("Which torque has the lid?", 95) == [
        "The torque of the lid is 12 newton metres.",
        "Check the lid and its torque every year.",
    ]


def test_nothing_stays_where_no_sentence_fits_or_none_says_anything() -> None:
    assert kept("Which torque has the lid?", 10) == []
    assert kept("Who was king of France?", 1_000) == []


def test_headings_are_no_sentences() -> None:
    assert all("##" not in sentence for sentence in kept("Maintenance of the pump torque lid", 1_000))


def test_a_mark_stands_where_something_is_missing() -> None:
    text = "One. Two. Three."
    assert joined(text, [(0, 4), (5, 9)]) == "One. Two."
    assert joined(text, [(0, 4), (10, 16)]) == f"One.{GAP}Three."


@given(st.text(alphabet="ab .!?\n中é", max_size=300), st.text(alphabet="ab 中", max_size=20), st.integers(0, 200))
def test_what_stays_is_the_documents_own_and_fits(text: str, question: str, most: int) -> None:
    spans = shortened(text, question=question, fits=lambda length: length <= most)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert sum(end - start for start, end in spans) <= most
    for part in joined(text, spans).split(GAP):
        assert part in text
