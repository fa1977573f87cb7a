"""A long answer is cut where each part alone says what it says in the whole, however it grows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it.token import Token

from edgerag.ui.inert_markdown import inert_parser
from edgerag.ui.sections import sections_of

_BLOCKS = [
    "A paragraph of some words.",
    "Two lines\nof one paragraph",
    "- one\n- two\n\n  with more",
    "1. first\n2. second",
    "2. begins at two",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "```python\nx = 1\n\ny = 2\n```",
    "> quoted\n> twice",
    "# A heading",
    "Underlined\n---",
    "***",
    "    indented\n\n    code",
    "- not yet",
    "-",
    "=",
    "Text [1] with *stars* and $x_1$.",
]
texts = st.lists(st.sampled_from(_BLOCKS), max_size=14).flatmap(
    lambda parts: st.lists(st.sampled_from(["\n", "\n\n", "\n\n\n"]), min_size=len(parts), max_size=len(parts)).map(
        lambda gaps: "".join(part + gap for part, gap in zip(parts, gaps, strict=True))
    )
)


def meaning(text: str) -> list[tuple[str, str, str, int]]:
    return [(token.type, token.tag, token.content, token.level) for token in _tokens(text)]


def _tokens(text: str) -> list[Token]:
    return inert_parser().parse(text)


@given(texts, st.integers(1, 60))
def test_the_parts_say_what_the_whole_says(text: str, at_least: int) -> None:
    parts = sections_of(text, at_least=at_least)
    assert "".join(parts) == text
    assert [each for part in parts for each in meaning(part)] == meaning(text)
    assert all(len(part) >= at_least for part in parts[:-1])


@given(texts, st.integers(1, 60), st.randoms(use_true_random=False))
def test_what_was_cut_while_it_grew_is_never_regretted(text: str, at_least: int, chance) -> None:  # type: ignore[no-untyped-def]
    done, last, place = "", "", 0
    while place < len(text):
        step = chance.randint(1, 12)
        parts = sections_of(last + text[place : place + step], at_least=at_least)
        place += step
        done += "".join(parts[:-1])
        last = parts[-1]
        pieces = [*sections_of(done, at_least=at_least)] if done else []
        assert "".join(pieces) == done
    assert meaning(done) + meaning(last) == meaning(text)


def test_a_long_code_block_stays_one() -> None:
    code = "```\n" + "line\n\n" * 500
    assert sections_of(code) == [code]
