from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.cite import CitationFilter
from edgerag.ask.marks import parse_marks
from edgerag.types import Chunk, Hit, Scores, Source, StoredChunk

OWNERSHIP = "The borrow checker enforces the rules of ownership. Rust 1.0 was released in May 2015 by Mozilla."
ERRORS = "Recoverable errors are handled with Result and the question mark operator. 所有权是这门语言最独特的特性。"


def make_sources(*texts: str) -> tuple[Source, ...]:
    """Not a fixture, so that hypothesis can use it."""
    return tuple(
        Source(
            number=n,
            hit=Hit(
                StoredChunk(
                    n, n, f"/{n}.md", "Notes", "text/markdown", Chunk(0, 0, len(t), t, (), None, None, 1, 1, 9)
                ),
                Scores(None, None, None, None, 0.0),
            ),
            quote=t,
            quote_start=0,
            cited=False,
        )
        for n, t in enumerate(texts, start=1)
    )


SOURCES = make_sources(OWNERSHIP, ERRORS)


def shown(text: str, *, question: str = "") -> str:
    citations = CitationFilter(SOURCES, question=question)
    return citations.feed(text) + citations.finish()


def cited(text: str) -> set[int]:
    citations = CitationFilter(SOURCES)
    citations.feed(text)
    citations.finish()
    return set(citations.cited)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is so [1].", "It is so [1]."),
        ("It is so[2].", "It is so[2]."),
        ("It is so. [1]", "It is so. [1]"),
        ("It is so [9].", "It is so."),
        ("It is so. [9]", "It is so."),
        ("It is so [0].", "It is so."),
        ("It is so [9], or not.", "It is so, or not."),
        ("It is so [9] or not.", "It is so or not."),
        ("It is so [1, 7].", "It is so [1]."),
        ("It is so [1][9].", "It is so [1]."),
        ("It is so [1] [9] [2].", "It is so [1] [2]."),
        ("It is so [Source 2].", "It is so [2]."),
        ("It is so [source 2, 3].", "It is so [2]."),
        ("It is so [1-3].", "It is so [1][2]."),
        ("It is so [1–3].", "It is so [1][2]."),
        ("It is so [1 and 2].", "It is so [1][2]."),
        ("It is so 【2】.", "It is so [2]."),
        ("It was so in 2019[7].", "It was so in 2019."),
        ("是这样[1]。是那样[9]。", "是这样[1]。是那样。"),
    ],
)
def test_marks_are_checked(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "See [the book](https://example.org/[9]) and [7](https://example.org).",
        "Take `a[0]`, `rows[9][7]` or a[0] or max_len[9] here.",
        "```rust\nlet x = rows[9];\nlet x = rows[9];\n```\nDone.",
        "````\n```\n[9]\n```\n[9]\n````",
        "- [ ] open\n- [x] done",
        "A note[^1] and [text].",
        "Any number of [0, 9].",
        "An open bracket [ stays",
        "An open `tick stays",
        "Two  spaces and\n\nparagraphs stay.",
        "It costs 3.14, e.g. at example.org, Dr. Smith says.",
        "1. One thing\n2. Another thing",
        'Was it so? Yes! "Really." (Truly.)',
        "Is so… or not",
    ],
)
def test_what_is_no_mark_is_left_alone(text: str) -> None:
    assert shown(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The borrow checker enforces ownership.", "The borrow checker enforces ownership [1]."),
        ("Handle recoverable errors with Result!", "Handle recoverable errors with Result [2]!"),
        ("Rust 1.0 was released in May 2015.", "Rust 1.0 was released in May 2015 [1]."),
        ("Rust 1.0 was released in May 2016.", "Rust 1.0 was released in May 2016."),
        ("Rust 1.0 was released in May 2015 by Google.", "Rust 1.0 was released in May 2015 by Google."),
        ("The moon is made of cheese.", "The moon is made of cheese."),
        ("Yes.", "Yes."),
        ("所有权是最独特的特性。天空是蓝色的。", "所有权是最独特的特性 [2]。天空是蓝色的。"),
        ("- borrow checker enforces rules\n- moon", "- borrow checker enforces rules [1]\n- moon"),
        ("# The rules of ownership\nIt is so.", "# The rules of ownership\nIt is so."),
        ("The borrow checker enforces:\n- it", "The borrow checker enforces:\n- it"),
        ("The borrow checker enforces ownership", "The borrow checker enforces ownership [1]"),
        (
            "The borrow checker is the part that really enforces all\nthe rules of ownership. Next",
            "The borrow checker is the part that really enforces all\nthe rules of ownership [1]. Next",
        ),
        (
            "The borrow checker is the one that enforces these rules\n`of` ownership. Next",
            "The borrow checker is the one that enforces these rules\n`of` ownership [1]. Next",
        ),
        (
            "- The borrow checker is what enforces rules of ownership\n- The moon",
            "- The borrow checker is what enforces rules of ownership [1]\n- The moon",
        ),
    ],
)
def test_sentences_without_a_mark_are_attributed_when_a_source_supports_them(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_it_tells_which_sources_were_used() -> None:
    assert cited("It is so [2]. And [9].") == {2}
    assert cited("The borrow checker enforces ownership.") == {1}
    assert cited("`a[1]` and [1](http://x) and the moon.") == set()


def test_a_sentence_that_was_said_already_is_not_shown_again() -> None:
    text = "The sky is very blue today. The grass is green. " + "The sky is very blue today. " * 5
    citations = CitationFilter(())
    assert citations.feed(text) + citations.finish() == "The sky is very blue today. The grass is green."
    assert citations.repeats == 5


def test_the_question_alone_is_no_answer() -> None:
    assert shown("What does the borrow checker do?", question="What does the borrow checker do?") == ""
    assert shown("Question: What is it for?\n", question="What is it for?") == ""


def test_repeated_lines_of_code_stay() -> None:
    code = "```\nprint(value_of_it)\nprint(value_of_it)\n```"
    assert shown(code) == code


def test_words_stream_before_their_sentence_ends() -> None:
    citations = CitationFilter(SOURCES)
    first = citations.feed("The answer to this is that a great many things happen at once and")
    assert first.endswith("at once and")


def test_nothing_is_held_back_for_more_than_about_a_sentence() -> None:
    citations = CitationFilter(SOURCES)
    text = "Something new happens in step {}, which nobody has seen before, `and [so on"
    fed = given_back = 0
    for step in range(200):
        piece = text.format(step)
        fed += len(piece)
        given_back += len(citations.feed(piece))
        assert fed - given_back < 400


pieces = st.lists(
    st.sampled_from(
        [
            "[1]",
            "[9]",
            "[",
            "]",
            "1",
            ", ",
            "`",
            "```",
            "\n",
            " ",
            ". ",
            "。",
            "(x)",
            "a",
            "The borrow checker enforces ",
            "ownership",
            "- ",
            "e.g. ",
            "3.14",
            "Source 2",
            "所有权是最独特的特性",
            "! ",
            '"',
            "It is so. ",
            "\t",
        ]
    ),
    max_size=30,
)


@given(pieces, st.data())
def test_the_answer_does_not_depend_on_how_the_stream_is_cut(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    whole = CitationFilter(SOURCES, question="Why?")
    expected = whole.feed(text) + whole.finish()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    split = CitationFilter(SOURCES, question="Why?")
    result = (
        "".join(split.feed(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)) + split.finish()
    )
    assert result == expected
    assert split.cited == whole.cited


@given(pieces)
def test_no_mark_out_of_range_is_left_in_prose(parts: list[str]) -> None:
    text = "".join(parts).replace("`", "").replace("(", "").replace("]", "] ").replace("[", " [")
    assert not re.search(r"\[9\]", shown(text))


@given(st.text(alphabet="ab [19].`\n", max_size=60))
def test_letters_are_never_lost(text: str) -> None:
    """Marks and repetitions go; words stay, unless their sentence was said before."""
    citations = CitationFilter(())
    result = citations.feed(text) + citations.finish()
    if citations.repeats == 0 and citations.sentences_shown == len(set(re.findall(r"[ab]+", text))) == 0:
        assert re.sub(r"[^ab]", "", result) == re.sub(r"[^ab]", "", text)


@pytest.mark.parametrize(
    ("content", "numbers"),
    [("1", (1,)), ("1, 2", (1, 2)), ("1;3", (1, 3)), ("2-4", (2, 3, 4)), ("Source 2", (2,)), ("#3", (3,))],
)
def test_marks_are_read(content: str, numbers: tuple[int, ...]) -> None:
    assert parse_marks(content) == numbers


@pytest.mark.parametrize("content", ["", "a", "0, 1", "1a", "1.5", "x, y", "^1", "12345"])
def test_other_brackets_are_no_marks(content: str) -> None:
    assert parse_marks(content) is None


def test_a_year_in_brackets_is_text() -> None:
    assert shown("The edition of [2019] holds.") == "The edition of [2019] holds."
