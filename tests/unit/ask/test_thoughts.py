from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.thoughts import ThoughtFilter


def told_apart(*pieces: str, opening: str = "") -> tuple[str, str]:
    """Answer and thoughts of a reply that comes in these pieces."""
    thoughts = ThoughtFilter(opening=opening)
    given_out = [*(thoughts.feed(piece) for piece in pieces), thoughts.finish()]
    return "".join(answer for answer, _ in given_out), "".join(thought for _, thought in given_out)


@pytest.mark.parametrize(
    ("reply", "answer", "thought"),
    [
        ("It is 9 Nm.", "It is 9 Nm.", ""),
        ("<think>The table says 9.</think>It is 9 Nm.", "It is 9 Nm.", "The table says 9."),
        ("\n<THINK>\nSo.\n</Think>\n\nIt is 9 Nm.", "\n\nIt is 9 Nm.", "\nSo.\n"),
        ("<thinking>a</thinking>b", "b", "a"),
        ("[THINK]a[/THINK]b", "b", "a"),
        ("<|begin_of_thought|>a<|end_of_thought|>b", "b", "a"),
        ("◁think▷a◁/think▷b", "b", "a"),
        ("<think>one</think> <think>two</think> It is so.", " It is so.", "onetwo"),
        ("<think>a < b, and </thin is no tag</think>c", "c", "a < b, and </thin is no tag"),
        ("<think>another model writes </thinking> here</think>c", "c", "another model writes </thinking> here"),
        ("<think></think>", "", ""),
        ("<think>it never ends", "", "it never ends"),
        ("<think>it never ends </thi", "", "it never ends </thi"),
        ("<thi", "<thi", ""),
        ("<thinner> than that", "<thinner> than that", ""),
        (
            "The tag <think> opens a thought.\n<think>\nSo it does.",
            "The tag <think> opens a thought.\n<think>\nSo it does.",
            "",
        ),
        ("", "", ""),
        ("  \n", "  \n", ""),
    ],
)
def test_thoughts_are_no_part_of_the_answer(reply: str, answer: str, thought: str) -> None:
    assert told_apart(reply) == (answer, thought)
    assert told_apart(*reply) == (answer, thought), "character by character"


@pytest.mark.parametrize("opening", ["<think>", "<|im_start|>assistant\n<think>\n", "<｜Assistant｜><think>\n\n"])
def test_a_thought_that_the_chat_format_opened_ends_at_its_closing_tag(opening: str) -> None:
    assert told_apart("So.\n</think>\nYes.", opening=opening) == ("\nYes.", "So.\n")
    assert told_apart("So it goes on and on", opening=opening) == ("", "So it goes on and on")


@pytest.mark.parametrize("opening", ["<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n\n</think>\n\n", ""])
def test_a_format_that_opens_no_thought_changes_nothing(opening: str) -> None:
    assert told_apart("Yes.", opening=opening) == ("Yes.", "")


def test_it_tells_whether_a_thought_is_open() -> None:
    thoughts = ThoughtFilter()
    seen = []
    for piece in ("<thi", "nk>So", " be it.</thi", "nk>", "Yes."):
        thoughts.feed(piece)
        seen.append(thoughts.thinking)
    assert seen == [False, True, True, False, False]


def test_thoughts_and_answer_stream() -> None:
    thoughts = ThoughtFilter()
    assert thoughts.feed("<think>First I look") == ("", "First I look")
    assert thoughts.feed(" at it.</think>It") == ("It", " at it.")
    assert thoughts.feed(" is so <") == (" is so <", "")


@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "<", "</", "think", ">", " ", "\n", "İ", "ß", "a", "[THINK]", "[/THINK]"]
        )
    ),
    st.sampled_from(["", "<think>\n"]),
    st.data(),
)
def test_any_split_gives_the_same(parts: list[str], opening: str, data: st.DataObject) -> None:
    reply = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=8)))
    pieces = [reply[start:end] for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True)]
    assert told_apart(*pieces, opening=opening) == told_apart(reply, opening=opening)
