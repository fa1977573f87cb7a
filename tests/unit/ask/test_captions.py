from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.captions import CaptionStop


def passed(text: str, *cuts: int) -> str:
    stop = CaptionStop()
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return "".join(stop.feed(piece) for piece in pieces) + stop.finish()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It is so.\n\n Question: And this?\nYes.", "It is so."),
        ("It is so.\nMost relevant: nothing", "It is so."),
        ("It is so.\nQuestions are hard.", "It is so.\nQuestions are hard."),
        ("The Question: is it so?", "The Question: is it so?"),
        ("It is so.\n\nQuest", "It is so.\n\nQuest"),
        ("One\n\ntwo\n", "One\n\ntwo\n"),
    ],
)
def test_the_answer_ends_at_a_caption(text: str, answer: str) -> None:
    assert passed(text) == answer


@given(st.lists(st.sampled_from(["Question", ":", "\n", " ", "Most relevant", "a", "Q"]), max_size=12), st.data())
def test_it_does_not_depend_on_how_the_stream_is_cut(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    assert passed(text, *cuts) == passed(text)
