"""Documents, paths, errors and answers are data: nothing in them is markup, an action or a code."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import Driver, running
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_session import ScriptedSession, plain_document, source
from textual import events
from textual.widgets import Input

from edgerag.errors import UsageError
from edgerag.types import FileReport, FilterText
from edgerag.ui.inert_markdown import inert_parser
from edgerag.ui.tui import shown
from edgerag.ui.tui.widgets.conversation import Conversation
from edgerag.ui.tui.widgets.exchange import ExchangeView
from edgerag.ui.tui.widgets.question_box import QuestionBox

MARKUP = "[bold]B[/bold] [@click=app.quit]Q[/] [link=http://x.example]L[/link] [/nope] [$primary]v"
CODES = "\x1b[31mred\x1b]52;c;aGk=\x07 \x9b2J \u202egnp.exe\u202c \x00\x7f\u2028"
HOSTILE = f"{MARKUP} {CODES}"
DANGEROUS = {"\x1b", "\x9b", "\x9d", "\x07", "\x00", "\x7f", "\u202e", "\u2066", "\u2028"}


def assert_safe(driver: Driver) -> None:
    """No control on the screen, and nothing on it that acts but the source marks."""
    assert not DANGEROUS & set(driver.text)
    for strip in driver.app.screen._compositor.render_strips():
        for segment in strip:
            style = segment.style
            if style is not None:
                assert style.link is None
                click = style.meta.get("@click")
                assert click is None or str(click).startswith("cite("), click


def hostile_session() -> ScriptedSession:
    text = f"# {MARKUP}\n\nFirst line.\n{HOSTILE}\nLast line.\n"
    document = plain_document(HOSTILE, text)
    path = f"/docs/{HOSTILE}.md".replace("\x00", "")
    session = ScriptedSession(documents={path: document})
    session.sources = (source(path, document, HOSTILE, HOSTILE, number=1, document_id=1),)
    session.reply = (
        f"{HOSTILE} [1]\n\n| {MARKUP} | b |\n|---|---|\n| {HOSTILE} | [1] |\n\n```{MARKUP}\n{HOSTILE}\n```\n"
    )
    session.notes = (HOSTILE,)
    session.model = HOSTILE
    session.reports = [FileReport(path, "failed", HOSTILE, 0), FileReport(path, "skipped", HOSTILE, 0)]
    return session


@pytest.mark.parametrize("size", [(120, 36), (60, 20)])
async def test_hostile_text_is_shown_as_it_is_written_on_every_screen(size: tuple[int, int], tmp_path: Path) -> None:
    async with running(hostile_session(), size=size) as driver:
        await driver.ask(f"What is {MARKUP}?")
        assert_safe(driver)
        await driver.press("ctrl+o")
        await driver.see("[@click=app.quit]", "[link=http", "▌")
        assert_safe(driver)
        await driver.press("escape", "f3")
        await driver.see("[bold]B[/bold]")
        assert_safe(driver)
        await driver.press("d")
        await driver.see("Remove this document")
        assert_safe(driver)
        await driver.press("n", "escape", "f2")
        driver.app.screen.query_one(Input).value = str(tmp_path)
        await driver.press("enter")
        await driver.see("failed", "[bold]B[/bold]")
        assert_safe(driver)
        assert driver.app.is_running


@pytest.mark.parametrize("size", [(150, 40), (60, 20)])
async def test_hostile_text_in_threads_passages_and_filters_is_text(size: tuple[int, int], tmp_path: Path) -> None:
    session = hostile_session()
    exchange = session.kept.ask(HOSTILE, library="default", where=FilterText(tags=HOSTILE, inside=MARKUP))
    session.kept.fail(exchange.id, text=HOSTILE, problem=HOSTILE)
    session.kept.rename(exchange.thread_id, HOSTILE)
    session.kept.keep_draft(exchange.thread_id, "a draft", FilterText(tags=HOSTILE), library="default")
    async with running(session, size=size) as driver:
        await driver.press("ctrl+t")
        await driver.see("[bold]B[/bold]")
        assert_safe(driver)
        await driver.press("slash", *"click")
        await driver.see("found")
        assert_safe(driver)
        await driver.press("enter", "enter")
        await driver.until(lambda: driver.ask_screen.query(ExchangeView) and not driver.ask_screen.busy)
        await driver.see("Only tag [bold]B")
        assert_safe(driver)
        await driver.press("ctrl+l")
        await driver.see("Ask only of")
        assert_safe(driver)
        await driver.press("ctrl+d")
        await driver.ask("What?")
        driver.ask_screen.query_one(Conversation).focus()
        await driver.press("1")
        await driver.see("Enter or a click")
        assert_safe(driver)
        for key, words in (("r", "Title of this"), ("d", "for good?"), ("x", "Write this")):
            await driver.press("escape", "ctrl+t")
            if not driver.ask_screen._threads.is_in_list:
                await driver.press("ctrl+t")
            await driver.press(key)
            await driver.see(words)
            assert_safe(driver)
            await driver.press("escape")
        assert driver.app.is_running


@pytest.mark.asyncio
async def test_stand_ins_for_codes_push_no_word_off_the_screen() -> None:
    words = [f"w{number}\u202e\x1b" for number in range(60)]
    text = f"# é\n\n{' '.join(words)}\n"
    document = plain_document("t", text)
    session = ScriptedSession(documents={"/docs/t.md": document})
    session.sources = (source("/docs/t.md", document, "w3", "w3", number=1, document_id=1),)
    async with running(session, size=(80, 24)) as driver:
        await driver.ask("What?")
        await driver.press("ctrl+o")
        await driver.see("w0", "w59")
        for number in range(60):
            assert f"w{number}�␛" in driver.text


async def test_an_error_is_data_too() -> None:
    session = ScriptedSession()
    session.failures["ask"] = UsageError(HOSTILE, remedy=MARKUP)
    session.failures["warm"] = RuntimeError(HOSTILE)
    async with running(session, size=(200, 40)) as driver:
        await driver.ask("What?")
        await driver.see("[@click=app.quit]Q[/] [link=http://x.example]L[/link] [/nope] [$primary]v")
        assert_safe(driver)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("[text](http://evil.example)", "[text](http://evil.example)"),
        ("[text](javascript:app.quit)", "[text](javascript:app.quit)"),
        ("![picture](http://evil.example/p.png)", "![picture](http://evil.example/p.png)"),
        ("<http://evil.example>", "<http://evil.example>"),
        ("http://evil.example/x", "http://evil.example/x"),
        ("<b onclick='x'>bold</b>", "<b onclick='x'>bold</b>"),
        ("[ref]\n\n[ref]: http://evil.example", "[ref]: http://evil.example"),
        ("a &#x202e; b &#27; c", "a &#x202e; b &#27; c"),
        ("# [heading](http://evil.example)", "[heading](http://evil.example)"),
        ("- ![x](file:///etc/passwd)", "![x](file:///etc/passwd)"),
        ("| [a](http://e.example) |\n|---|\n| ![b](c) |", "![b](c)"),
        ("> [q](http://evil.example)", "[q](http://evil.example)"),
    ],
)
async def test_links_images_and_html_of_a_model_are_dead_text(reply: str, expected: str) -> None:
    session = ScriptedSession()
    session.reply = reply
    async with running(session) as driver:
        await driver.ask("What?")
        await driver.see(expected)
        assert_safe(driver)


async def test_pointing_at_and_clicking_hostile_text_does_nothing() -> None:
    async with running(hostile_session()) as driver:
        await driver.ask("What?")
        for y, row in enumerate(driver.rows[:30]):
            for word in ("[@click", "Q[/]", "[link=", "http://x"):
                if word in row[:70]:
                    await driver.pilot.hover(offset=(row.index(word) + 1, y))
                    await driver.pilot.click(offset=(row.index(word) + 1, y))
        assert driver.app.is_running
        assert driver.app.screen is driver.ask_screen
        assert_safe(driver)


async def test_codes_split_over_two_pieces_leave_no_trace() -> None:
    session = ScriptedSession()
    session.reply = "red \x1b [31m text \x1b ]0;title \x07 end"
    async with running(session) as driver:
        await driver.ask("What?")
        assert_safe(driver)
        assert not DANGEROUS & set(list(driver.ask_screen.query(ExchangeView))[-1].text)


async def test_pasted_text_is_cleaned() -> None:
    async with running() as driver:
        box = driver.ask_screen.query_one(QuestionBox)
        box.post_message(events.Paste("one\r\ntwo\x1b[31m \u202ethree"))
        await driver.until(lambda: box.text == "one\ntwo three")
        await driver.press("f2")
        field = driver.app.screen.query_one(Input)
        field.value = ""
        field.post_message(events.Paste("/tmp/a\x1b[31m b\n"))
        await driver.until(lambda: field.value == "/tmp/a b")


async def test_file_names_with_codes_are_not_offered(tmp_path: Path) -> None:
    (tmp_path / "good [@click=app.quit]name.md").touch()
    (tmp_path / "bad\x1b[2Jname.md").touch()
    async with running() as driver:
        await driver.press("f2")
        driver.app.screen.query_one(Input).value = f"{tmp_path}/"
        await driver.see("good [@click=app.quit]name.md")
        assert "badname" not in driver.text
        assert_safe(driver)


@given(st.text(max_size=200))
def test_stand_ins_keep_every_offset(text: str) -> None:
    safe = shown.same_length(text)
    assert len(safe) == len(text)
    assert not DANGEROUS & set(safe)
    assert safe.count("\n") == text.count("\n")


_PIECES = [
    *("# ", "- ", "> ", "```", "|", "[1]", "*", "_", "~~", "\n", "\n\n", "a b", "1. ", "---", "[x](y)", "<b>", "`"),
    *("&#27;", "备用", "🤖", "[/b]", "[@click=app.quit]", "  ", "\t", "$x$", "\\", "!", "$%^"),
]


@given(st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))
def test_the_parser_makes_nothing_that_acts(markdown: str) -> None:
    kinds = {child.type for token in inert_parser().parse(markdown) for child in token.children or [token]}
    assert not kinds & {"link_open", "image", "html_inline", "html_block"}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(_PIECES), min_size=1, max_size=30))
async def test_any_markdown_streams_without_a_fault(pieces: list[str]) -> None:
    session = ScriptedSession()
    session.reply = "".join(pieces)
    async with running(session) as driver:
        await driver.ask("What?")
        assert not driver.ask_screen.query(".-failed")
        assert_safe(driver)
