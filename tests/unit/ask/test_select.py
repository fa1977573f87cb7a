from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.select import quote_span, select, to_sources
from edgerag.types import Hit

COPY = "The pump must be opened only after the pressure has fallen below two bar, as the manual of 2019 says."


def test_copies_are_sources_once(hit: Callable[..., Hit]) -> None:
    hits = [
        hit(COPY, chunk_id=1),
        hit(COPY + " Really.", chunk_id=2),
        hit("The lid has four screws of steel.", chunk_id=3),
    ]
    selection = select(hits, probabilities={1: 0.9, 2: 0.9, 3: 0.8}, source_count=3)
    assert [h.chunk.id for h in selection.hits] == [1, 3]
    assert selection.duplicates == 1


def test_hits_far_below_the_best_are_not_used_as_padding(hit: Callable[..., Hit]) -> None:
    hits = [hit(f"Passage of its own, number {n}, about {'xyz'[n]}.", chunk_id=n) for n in range(3)]
    selection = select(hits, probabilities={0: 0.95, 1: 0.9, 2: 0.01}, source_count=3)
    assert [h.chunk.id for h in selection.hits] == [0, 1]


def test_no_more_than_asked_for(hit: Callable[..., Hit]) -> None:
    texts = ["alpha beta", "gamma delta", "epsilon zeta", "eta theta"]
    hits = [hit(text, chunk_id=n) for n, text in enumerate(texts)]
    assert len(select(hits, probabilities=dict.fromkeys(range(4), 0.9), source_count=2).hits) == 2


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
