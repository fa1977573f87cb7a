from __future__ import annotations

import codecs
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.safe_text import SafeText, escaped, json_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hcleared", "cleared"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("\x1bPdata\x1b\\after", "after"),
        ("\x1b]never closed\nnext line", "\nnext line"),
        ("a\x00b\x07c\x7fd\x85e", "abcde"),
        ("line\r\nend", "line\nend"),
        ("abc\u202edef\u2066", "abcdef"),
        ("नमस्ते 👨‍👩‍👧 می‌خواهم", "नमस्ते 👨‍👩‍👧 می‌خواهم"),
    ],
)
def test_only_text_is_left(text: str, expected: str) -> None:
    assert SafeText().feed(text) == expected


@given(st.text(alphabet="\x1b[]0;1mP\\\x07\n\x9babc ", max_size=40), st.integers(0, 40))
def test_a_sequence_cut_in_two_is_still_recognised(text: str, cut: int) -> None:
    pieces = SafeText()
    assert pieces.feed(text[:cut]) + pieces.feed(text[cut:]) == SafeText().feed(text)


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    left = SafeText().feed(text)
    assert not any((c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f" for c in left)


@given(st.text(st.characters()), st.sampled_from(["ascii", "latin-1", "cp1252", "shift_jis", "utf-8"]))
def test_json_stays_json_in_an_encoding_that_lacks_characters(text: str, encoding: str) -> None:
    codecs.register_error("test-escapes", escaped)
    shown = json_text({"text": text}, indent=2).encode(encoding, "test-escapes")
    assert json.loads(shown.decode(encoding)) == json.loads(json.dumps({"text": text}))
