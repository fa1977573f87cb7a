from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ui.plain import one_line, plain


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jgone", "gone"),
        ("bell\x07 back\x08space", "bell backspace"),
        ("a\r\nb\rc", "a\nbc"),
        ("abc\u202edcba", "abcdcba"),
        ("tab\tand\nline stay", "tab\tand\nline stay"),
        ("an open \x1b] string ends\nwith its line", "an open \nwith its line"),
        ("\x1bPdevice\x1b\\ control", " control"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("caf\udce9.txt of a disk in Latin-1", "caf\\xe9.txt of a disk in Latin-1"),
        ("\x1b]0;a title of \udc9b\x07text", "text"),
    ],
)
def test_a_document_cannot_steer_the_terminal(hostile: str, shown: str) -> None:
    assert plain(hostile) == shown


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = plain(text)
    assert all(character >= " " or character in "\t\n" for character in shown)
    assert not any("\x7f" <= character <= "\x9f" for character in shown)
    assert plain(shown) == shown


@given(st.text(), st.integers(1, 50))
def test_one_line_fits(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert "\n" not in line
