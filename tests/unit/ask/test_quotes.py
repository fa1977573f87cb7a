from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.quotes import quote_span, to_sources
from edgerag.types import Hit


def test_the_quote_is_the_sentence_that_answers(hit: Callable[..., Hit]) -> None:
    text = (
        "The lid is blue. It is opened with four screws. The torque of the screws is 12 newton metres. Then close it."
    )
    (source,) = to_sources([hit(text, start=1_000)], question="Which torque do the screws need?")
    assert source.quote == "The torque of the screws is 12 newton metres."
    assert source.number == 1
    assert source.quote_start == 1_000 + text.index("The torque")


@given(st.text(alphabet="ab .!?。\n中é", max_size=400), st.text(alphabet="ab 中", max_size=20))
def test_a_quote_is_always_a_slice_of_the_chunk(text: str, question: str) -> None:
    start, end = quote_span(text, question=question)
    assert 0 <= start <= end <= len(text)
    assert end - start <= 320


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("## Error codes\n\nE-1042 means a blocked filter.", "E-1042 means a blocked filter."),
        ("| error | code |\n|---|---|\n| E-1042 | blocked |", "| error | code |"),
        ("[error-code]: errors.html#code\n\nClean the filter.", "Clean the filter."),
        ("## Error code E-1042", "## Error code E-1042"),
    ],
)
def test_a_heading_or_rule_is_not_quoted_while_there_are_words(text: str, quote: str) -> None:
    start, end = quote_span(text, question="What does error code E-1042 mean?")
    assert text[start:end].startswith(quote)
