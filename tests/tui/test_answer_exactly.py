"""What an answer says is on the screen and in what is copied of it, word for word."""

from __future__ import annotations

import re

import pytest
from driving import running
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scripted_session import ScriptedSession
from textual.content import Content

from edgerag.types import InstantSentence
from edgerag.ui.tui.answer_copy import copied
from edgerag.ui.tui.answer_doubts import Doubt
from edgerag.ui.tui.answer_rows import AnswerRow, RowMaker
from edgerag.ui.tui.line_breaks import broken

CHECKSUM = "0123456789abcdef" * 4
SIGNS = ["*", "**", "***", "_", "__", "~~", "`", "``", "\\", "|", "[", "]", "(", ")", "$", "<", ">", "&", "!", ".", ":"]
STARTS = ["- ", "* ", "1. ", "7) ", "> ", "# ", "### ", "```", "```sh", "~~~", "    ", "|", "---", "===", "|---|", "\t"]
WORDS = ["alpha", "b", "7", "42", "x9", "Grüße", "备用", "e\u0301", "2024", "init"]
texts = st.lists(
    st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from(SIGNS),
        st.sampled_from(["\n", "\n\n", " ", "  \n"]),
        st.sampled_from(STARTS).map(lambda start: "\n" + start),
    ),
    max_size=40,
).map("".join)


def plain_rows(text: str, width: int = 80) -> list[str]:
    return [row.content.plain for row in RowMaker(width).rows(text)]


def words(text: str) -> list[str]:
    """Of a script without blanks each letter is a word: there a mark within a line joins nothing."""
    return re.findall(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+", text)


def all_copied(text: str, width: int) -> str:
    return copied(RowMaker(width).rows(text), lambda _row: (0, -1))


@settings(max_examples=400, deadline=None)
@given(texts)
@example("2*3*4 and __init__ and a**b**c, 5~~6~~7, 1`2`3")
@example("\n".join("  " * level + f"- item{level}" for level in range(30)))
@example("> " * 60 + "deep")
@example("| a | b |\n|---|---|\n| 1 | 2 | 3 extra | 4 |\n| only |")
@example("```python title=x.py 12\ncode\n```")
@example("7. seven\n9. nine\n03) three")
@example("**1**~~2~~`3`*4*")
@example("a\\\n7")
def test_every_word_and_number_is_there_once_and_in_order(text: str) -> None:
    assert words("\n".join(plain_rows(text, 10_000))) == words(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2*3*4 = 24", "2*3*4 = 24"),
        ("2**3**4", "2**3**4"),
        ("the __init__ of a_b_c", "the __init__ of a_b_c"),
        ("un*frigging*believable", "un*frigging*believable"),
        ("2 *3* 4", "2 *3* 4"),
        ("5~~6~~7", "5~~6~~7"),
        ("1`2`3", "1`2`3"),
        ("**9 Nm** and *so* on, ~~not~~", "9 Nm and so on, not"),
        ("很**重要**的", "很重要的"),
        ("**bold *in* bold**", "bold in bold"),
    ],
)
def test_marks_are_taken_away_only_where_they_are_not_part_of_a_word(text: str, shown: str) -> None:
    assert plain_rows(text) == [shown]


@pytest.mark.parametrize("width", [20, 30, 80])
@pytest.mark.parametrize(
    "text",
    [
        f"sha256: {CHECKSUM} of it",
        "See /srv/data/projects/alpha/beta/gamma/delta-report-final-of-all-things.pdf for it",
        "日本語の長い文章はどこでも折り返すことができます。とても長い文章です。",
        "Some words of two lengths and then  two blanks and longer words again and again.",
        "🤖" * 30 + " ⚠️ " + "e\u0301" * 50,
    ],
)
def test_what_is_copied_is_what_was_written(text: str, width: int) -> None:
    assert all_copied(text, width) == re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("width", [20, 24, 60])
def test_code_is_copied_with_its_blanks(width: int) -> None:
    code = 'if x:\n    y = "a  b    c"; very_long_identifier_name_is_here(1)\n        deeper = 1'
    lines = [line.removeprefix("  ") for line in all_copied(f"```\n{code}\n```", width).split("\n")]
    assert "\n".join(lines[1:-1]) == code


def test_a_cell_that_takes_several_rows_is_copied_in_one() -> None:
    text = f"> | file | sum |\n> |---|---|\n> | a | {CHECKSUM} |"
    assert f"▌ │ a │ {CHECKSUM} │" in all_copied(text, 50).split("\n")


@given(st.text(alphabet="ab 9\u00a0日e\u0301🤖⚠\ufe0f-", max_size=60), st.integers(1, 30))
def test_the_pieces_of_a_line_are_the_line(text: str, width: int) -> None:
    pieces = broken(Content(text), width)
    together = "".join(piece.joint + piece.content.plain for piece in pieces)
    assert together.rstrip() == text.rstrip()
    assert all(piece.content.cell_length <= width or len(piece.content.plain) == 1 for piece in pieces)
    assert all(not piece.joint.strip() for piece in pieces)


# ---------------------------------------------------------------- signs


def signed(text: str, *doubts: Doubt | str) -> str:
    return "\n".join(row.content.plain for row in RowMaker(90, doubts).rows(text))


def test_the_sign_stands_behind_whole_words_and_numbers() -> None:
    assert "[?]" not in signed("Page 508 of the register.", "Page 5")
    assert "[?]" not in signed("It weighs 1.5 kg.", "5 kg")
    assert signed("Page 508. Page 5.", "Page 5.") == "Page 508. Page 5. [?]"


def test_the_sign_stands_at_the_sentence_that_is_meant() -> None:
    text = "It is old. It is old.\n\n- It is old.\n- It is old.\n\nIt is old."
    places = [match.start() for match in re.finditer("It", text)]
    for number, place in enumerate(places):
        pieces = signed(text, Doubt("It is old.", place)).split("It is old.")
        assert [piece.strip().startswith("[?]") for piece in pieces[1:]] == [n == number for n in range(5)]


def test_two_equal_paragraphs_have_their_own_signs() -> None:
    assert signed("It is old.\n\nIt is old.", Doubt("It is old.", 12)) == "It is old.\n\nIt is old. [?]"


# ---------------------------------------------------------------- widths, line ends


@pytest.mark.parametrize(
    "text",
    [
        "999999999. 999999999. x and more words",
        "\n".join("   " * level + f"- item{level} with words" for level in range(14)),
        "> " * 30 + "deep words in it",
        "1. 2. 3. 4. 5. 6. 7. 8. words",
        "- - - - ```\n        code = 1\n",
    ],
)
@pytest.mark.parametrize("width", [12, 20, 21, 40])
def test_deep_things_fit_the_width(text: str, width: int) -> None:
    rows = RowMaker(width).rows(text)
    assert max(row.content.cell_length for row in rows) <= width
    assert "".join(words("".join(plain_rows(text, width)))) == "".join(words(text))


@given(st.lists(st.sampled_from(["a", "b c", "\r", "\n", "\r\n", "- x", "\r\r"]), max_size=12).map("".join))
def test_rows_are_the_same_the_second_time(text: str) -> None:
    def as_told(rows: list[AnswerRow]) -> list[str]:
        return [row.content.plain for row in rows]

    maker = RowMaker(40)
    first = as_told(maker.rows(text))
    assert (
        as_told(maker.rows(text)) == first == as_told(RowMaker(40).rows(text.replace("\r\n", "\n").replace("\r", "\n")))
    )


# ---------------------------------------------------------------- in the program


async def test_a_long_checksum_is_copied_from_the_screen_whole() -> None:
    session = ScriptedSession()
    session.reply = f"The checksum is {CHECKSUM}, they say."
    async with running(session, size=(80, 30)) as driver:
        await driver.ask("Which?")
        driver.app.screen.text_select_all()
        await driver.pilot.pause()
        assert session.reply in (driver.app.screen.get_selected_text() or "")


async def test_a_click_on_a_documents_own_number_opens_nothing() -> None:
    words = "As shown by Miller [2] and by Jones [3]."
    session = ScriptedSession(model="")
    session.instant, session.stop_reason = (InstantSentence(words, 1, 0, len(words)),), "no_model"
    session.reply = f"“{words}” [1]"
    async with running(session) as driver:
        await driver.ask("Who?")
        row = next(y for y, line in enumerate(driver.rows) if f"“{words}” [1]" in line)
        line = driver.rows[row]
        await driver.pilot.click(offset=(line.index("[2]") + 1, row))
        await driver.pilot.pause()
        assert driver.app.screen is driver.ask_screen
        await driver.pilot.click(offset=(line.index("[1]") + 1, row))
        await driver.until(lambda: driver.app.screen is not driver.ask_screen)
