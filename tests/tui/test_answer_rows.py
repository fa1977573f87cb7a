"""An answer's Markdown in rows: its words, its structure, its width; and streamed it is what it is at once."""

from __future__ import annotations

import random

import pytest
from driving import Driver, running
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_session import ScriptedSession

from edgerag.ui.source_marks import SourceMarks
from edgerag.ui.tui.answer_inline import marked_number
from edgerag.ui.tui.answer_rows import RowMaker
from edgerag.ui.tui.widgets.answer_markdown import AnswerMarkdown

WHOLE = """# Pump

The lid is tightened to **9 Nm** [1], *crosswise*, with `torque --slow`.

- Every week: look for drops.
- Every 500 hours:
  1. clean the strainer
  2. listen

> Drain the pump before frost.
> It is brittle.

| Part | Torque |
|---|--:|
| Lid screws of the upper housing, all of them | 9 |
| Clamp [2] | 14 |

```python
def turn(angle):
    return angle * 2
```

---
The end.
"""


def shown(text: str, width: int = 44) -> list[str]:
    return [row.content.plain.rstrip() for row in RowMaker(width).rows(text)]


def test_an_answer_has_the_structure_that_its_markdown_says() -> None:
    assert shown(WHOLE) == [
        "Pump",
        "",
        "The lid is tightened to 9 Nm [1], crosswise,",
        "with torque --slow.",
        "",
        "• Every week: look for drops.",
        "• Every 500 hours:",
        "  1. clean the strainer",
        "  2. listen",
        "",
        "▌ Drain the pump before frost. It is",
        "▌ brittle.",
        "",
        "┌─────────────────────────────────┬────────┐",
        "│ Part                            │ Torque │",
        "├─────────────────────────────────┼────────┤",
        "│ Lid screws of the upper         │      9 │",
        "│ housing, all of them            │        │",
        "│ Clamp [2]                       │     14 │",
        "└─────────────────────────────────┴────────┘",
        "",
        "  python",
        "  def turn(angle):",
        "      return angle * 2",
        "",
        "",
        "─" * 44,
        "",
        "The end.",
    ]


def test_a_mark_acts_and_nothing_else_does() -> None:
    marks = SourceMarks(numbers=frozenset({1, 2, 3}))
    actions = [
        span.style.meta["@click"]
        for row in RowMaker(80, (), marks).rows(WHOLE + "\n[link](http://a.b) <b>[3]</b> ![x](y)")
        for span in row.content.spans
        if not isinstance(span.style, str) and span.style.meta
    ]
    assert [marked_number(action) for action in actions] == [1, 2, 3]


@pytest.mark.parametrize(
    "text", ["- a\n- b\n  - c", "1. a\n\n   b\n2. c", "> > a\n>\n> - b", "- \n- ", "-", ">", "```\n", ""]
)
def test_odd_markdown_has_rows_all_the_same(text: str) -> None:
    assert {sign for sign in text if sign.isalnum()} <= set("".join(shown(text))), text


def test_a_table_with_too_many_columns_is_told_as_text() -> None:
    table = "|" + "a1|" * 30 + "\n|" + "-|" * 30 + "\n|" + "b2|" * 30
    assert sum(row.count("a1") for row in shown(table)) == 30
    assert not any("┌" in row for row in shown(table))


WORDS = st.sampled_from(
    ["pump", "lid\n", "\n\n", "- x", "1. y", "> q", "| a | b |\n|---|---|\n| c | d |", "```\ncode", "# h", "[1]",
     "**b**", "备用电源", "e\u0301", "\t", "word " * 30, "w" * 90, "---", "`", "*", "_i_", "  \n"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=14).map(" ".join), st.integers(1, 60))
def test_no_row_is_wider_than_the_window_and_no_letter_is_lost(text: str, width: int) -> None:
    rows = RowMaker(width).rows(text)
    wide = RowMaker(10_000).rows(text)
    if width >= 12:  # below, bullets and bars alone may be wider
        assert all(row.content.cell_length <= width for row in rows)

    def letters(made: list) -> list[str]:  # type: ignore[type-arg]
        return sorted(sign for row in made for sign in row.content.plain if sign.isalnum())

    if width >= 12:
        assert letters(rows) == letters(wide)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=14).map(" ".join), st.integers(0, 2**32))
def test_the_rows_of_a_growing_text_are_those_of_the_whole(text: str, seed: int) -> None:
    chance, maker, at = random.Random(seed), RowMaker(40), 0
    while at < len(text):
        at += chance.randint(1, 20)
        grown = maker.rows(text[:at])
        assert [row.content.plain for row in grown] == [row.content.plain for row in RowMaker(40).rows(text[:at])]


async def streamed(driver: Driver) -> AnswerMarkdown:
    await driver.ask("How?")
    return driver.ask_screen.query(AnswerMarkdown).last()


async def test_what_is_copied_has_no_line_ends_of_the_window() -> None:
    session = ScriptedSession()
    session.reply = "One two three four five six seven eight nine ten. " * 4 + "\n\n- first\n- second"
    async with running(session, size=(60, 30)) as driver:
        answer = await streamed(driver)
        assert len(answer._rows) > 6
        driver.app.screen.text_select_all()
        await driver.pilot.pause()
        copied = driver.app.screen.get_selected_text() or ""
        assert ("One two three four five six seven eight nine ten. " * 4).strip() in copied
        assert "• first\n• second" in copied


async def test_an_answer_fits_every_width_it_is_given() -> None:
    session = ScriptedSession()
    session.reply = WHOLE * 4
    async with running(session, size=(120, 40)) as driver:
        answer = await streamed(driver)
        for width in (70, 50, 140):
            await driver.pilot.resize_terminal(width, 40)
            await driver.until(lambda: answer.size.height == len(answer._rows))
            whole = RowMaker(answer.content_size.width).rows(answer.source)
            assert [row.content.plain for row in answer._rows] == [row.content.plain for row in whole]
        await driver.see("The end.")


async def test_other_colours_are_seen_at_once() -> None:
    async with running() as driver:
        answer = await streamed(driver)

        def colours() -> set[str]:
            return {str(segment.style.color) for y in range(3) for segment in answer.render_line(y) if segment.style}

        before = colours()
        driver.app.theme = "light"
        await driver.pilot.pause()
        assert colours() != before
