from __future__ import annotations

import pytest

from edgerag.ask.repetition import is_looping


@pytest.mark.parametrize(
    "text",
    [
        "the the the the the the the the",
        "So it goes. " * 5,
        "Answer: " + "a b c " * 10,
        "\n" * 500,
        "是的" * 20,
        "-" * 500,
    ],
)
def test_loops_are_recognised(text: str) -> None:
    assert is_looping(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "An ordinary answer that says a few things once.",
        "No, no, no!",
        "| a | b |\n| --- | --- |\n",
        "10000000000000000000",
        "-" * 80,
        "let a = 1;\nlet b = 2;\nlet c = 3;\nlet d = 4;\n",
    ],
)
def test_answers_are_not(text: str) -> None:
    assert not is_looping(text)
