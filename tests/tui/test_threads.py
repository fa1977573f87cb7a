"""Threads on the screen: kept, listed, searched, opened, asked again, renamed, deleted, exported."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import Driver, running
from scripted_session import MANUAL, REPLY, ScriptedSession, plain_document, source
from textual.widgets import Input

from edgerag.errors import StorageFull, UsageError
from edgerag.threads.store import ThreadStore
from edgerag.types import FilterText
from edgerag.ui.tui.widgets.conversation import Conversation
from edgerag.ui.tui.widgets.exchange import ExchangeView
from edgerag.ui.tui.widgets.question_box import QuestionBox
from edgerag.ui.tui.widgets.sources import SourcesPane
from edgerag.ui.tui.widgets.threads_pane import ThreadsPane

QUESTION = "How often is the diaphragm replaced?"


def views(driver: Driver) -> list[ExchangeView]:
    return list(driver.ask_screen.query(ExchangeView))


def box(driver: Driver) -> QuestionBox:
    return driver.ask_screen.query_one(QuestionBox)


async def started_again(store: ThreadStore, session: ScriptedSession | None = None) -> ScriptedSession:
    """A session of the next day over the same threads."""
    again = session or ScriptedSession()
    again.kept = store
    return again


async def open_first(driver: Driver) -> None:
    """Opens the thread that was in use last."""
    await driver.press("ctrl+t")
    await driver.until(lambda: driver.ask_screen.query_one(ThreadsPane).at_cursor)
    await driver.press("enter")
    await driver.until(lambda: views(driver) and views(driver)[-1].text)


async def test_yesterdays_conversation_opens_with_its_sources_and_goes_on() -> None:
    yesterday = ScriptedSession()
    async with running(yesterday) as driver:
        await driver.ask(QUESTION)
        await driver.ask("And the valve balls?")
    today = await started_again(yesterday.kept)
    async with running(today, size=(160, 50)) as driver:
        await driver.see("How often is", "2 questions")
        await open_first(driver)
        assert [view.question for view in views(driver)] == [QUESTION, "And the valve balls?"]
        assert views(driver)[0].text == REPLY
        pane = driver.ask_screen.query_one(SourcesPane)
        assert [source.cited for source in pane.sources] == [True, True, False]
        await driver.ask("And the strainer?")
        assert [turn.question for turn in today.histories[-1]] == [QUESTION, "And the valve balls?"]
        assert today.histories[-1][-1].messages, "the model goes on from what it had"
        await driver.press("ctrl+o")
        await driver.see("▌", "replace the diaphragm")


async def test_what_became_of_the_sources_is_said_and_they_still_open() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask(QUESTION)
    again = await started_again(session.kept)
    again.library["/docs/kestrel-p40-manual.md"] = plain_document("manual", "A new beginning.\n\n" + MANUAL)
    del again.library["/docs/kestrel-p40-datasheet.pdf"]
    async with running(again) as driver:
        await open_first(driver)
        await driver.see("moved: ", "gone: ")
        driver.ask_screen.query_one(Conversation).focus()
        await driver.press("2")
        await driver.see("no longer in the library", "KP40-117 diaphragm", "Enter or a click")
        await driver.press("enter")
        await driver.see("[2] of 3", "no longer in the library")
        await driver.press("p")
        await driver.see("Every 2,000 hours", "▌")
        assert "no longer" not in driver.text


async def test_an_answer_that_was_cut_by_a_kill_is_told_and_asked_again() -> None:
    session = ScriptedSession()
    exchange = session.kept.ask(QUESTION, library="default")
    session.kept.keep_text(exchange.id, "The diaphragm is")
    async with running(session) as driver:
        await open_first(driver)
        await driver.see("The diaphragm is", "interrupted before its end")
        await driver.press("ctrl+r")
        await driver.until(lambda: views(driver) and views(driver)[-1].text == REPLY)
        await driver.see("version 2 of 2")


async def test_a_question_asked_again_keeps_the_answer_of_before_as_a_version() -> None:
    session = ScriptedSession()
    async with running(session, size=(140, 50)) as driver:
        await driver.ask(QUESTION)
        await driver.ask("And then?")
        driver.ask_screen.query_one(Conversation).focus()
        await driver.press("left")
        session.reply = "Another answer [1]."
        await driver.press("r")
        await driver.until(lambda: not driver.busy)
        assert [view.question for view in views(driver)] == [QUESTION]
        await driver.see("Another answer", "version 2 of 2")
        assert session.histories[-1] == ()
        driver.ask_screen.query_one(Conversation).focus()
        await driver.press("left_square_bracket")
        await driver.until(lambda: len(views(driver)) == 2)
        assert views(driver)[0].text == REPLY, "what followed the old one is there too"
        await driver.press("right_square_bracket")
        await driver.see("Another answer")


async def test_an_earlier_question_is_edited_and_sent_as_another_version() -> None:
    session = ScriptedSession()
    async with running(session, size=(140, 50)) as driver:
        await driver.ask("One?")
        await driver.ask("Two?")
        await driver.type_question("a draft")
        driver.ask_screen.query_one(Conversation).focus()
        await driver.press("left", "e")
        assert box(driver).text == "One?"
        await driver.see("Esc leaves it")
        await driver.press("escape")
        await driver.until(lambda: box(driver).text == "a draft")
        box(driver).put("")
        driver.ask_screen.query_one(Conversation).focus()
        await driver.press("e", "home", "N", "o", "t", "space", "enter")
        await driver.until(lambda: not driver.busy and len(views(driver)) == 1)
        assert views(driver)[0].question == "Not One?"
        assert views(driver)[0].kept.versions == 2


async def test_a_stopped_answer_goes_on_where_it_ended() -> None:
    session = ScriptedSession()
    session.stop_reason, session.reply = "length", " ".join(REPLY.split(" ")[:5])
    async with running(session) as driver:
        await driver.ask(QUESTION)
        await driver.see("Ctrl+G goes on")
        session.stop_reason, session.reply = "end", REPLY
        await driver.press("ctrl+g")
        await driver.until(lambda: not driver.busy and views(driver)[-1].text == REPLY)
        assert len(views(driver)) == 1
        assert "goes on" not in driver.text
        assert not driver.ask_screen.check_action("go_on", ())  # it is at its end
        await driver.press("ctrl+g")
    assert session.kept.heads(library="default")[0].question_count == 1
    (kept,) = session.kept.last(session.kept.heads(library="default")[0].id, count=5)
    assert (kept.text, kept.state) == (REPLY, "done")


async def test_going_on_is_offered_where_an_answer_can_go_on() -> None:
    session = ScriptedSession()
    session.stop_reason = "length"
    async with running(session, size=(160, 40)) as driver:
        await driver.ask(QUESTION)
        driver.ask_screen.query_one(Conversation).focus()
        await driver.until(lambda: "g Go on" in driver.rows[-1])
        session.stop_reason = "end"
        await driver.press("g")
        await driver.until(lambda: not driver.busy)
        driver.ask_screen.query_one(Conversation).focus()
        await driver.until(lambda: "r Again" in driver.rows[-1])
        await driver.until(lambda: "g Go on" not in driver.rows[-1])


async def test_an_answer_that_cannot_go_on_keeps_what_there_is_of_it() -> None:
    session = ScriptedSession()
    session.stop_reason = "length"
    async with running(session) as driver:
        await driver.ask(QUESTION)
        session.failures["ask"] = UsageError("The documents have changed since.", remedy="Ask again.")
        await driver.press("ctrl+g")
        await driver.see("The documents have changed since.")
        assert views(driver)[-1].text == REPLY
        del session.failures["ask"]
        await driver.press("ctrl+g")
        await driver.until(lambda: not driver.busy)
        assert views(driver)[-1].text == REPLY
        assert "changed since" not in driver.text


async def test_threads_are_searched_renamed_and_deleted() -> None:
    session = ScriptedSession()
    async with running(session, size=(160, 40)) as driver:
        await driver.ask("About gaskets?")
        await driver.press("ctrl+n")
        session.reply = "Quicksilver is used [1]."
        await driver.ask("About metals?")
        await driver.press("ctrl+t", "slash", *"quicks")
        await driver.until(lambda: "About gaskets?" not in driver.text)
        await driver.see("Quicksilver is used", "1 found")
        await driver.press("enter", "r")
        await driver.see("Title of this conversation")
        driver.app.screen.query_one(Input).value = "Metals & more"
        await driver.press("enter")
        await driver.see("Metals & more")
        await driver.press("d")
        await driver.see("Delete this conversation for good?")
        await driver.press("n")
        assert len(session.kept.heads(library="default")) == 2
        await driver.press("d", "y")
        await driver.until(lambda: len(session.kept.heads(library="default")) == 1)
        await driver.until(lambda: not views(driver))


async def test_a_thread_is_exported_and_no_file_replaced(tmp_path: Path) -> None:
    session = ScriptedSession()
    (tmp_path / "there.md").write_text("mine")
    async with running(session) as driver:
        await driver.ask(QUESTION)
        await driver.press("ctrl+t", "x")
        await driver.see("Write this conversation", "how-often-is-the-diaphragm-replaced.md")
        driver.app.screen.query_one(Input).value = str(tmp_path / "there.md")
        await driver.press("enter")
        await driver.see("exists", "already")  # where the line breaks depends on the path
        driver.app.screen.query_one(Input).value = str(tmp_path / "new.html")
        await driver.press("enter")
        await driver.until(lambda: (tmp_path / "new.html").is_file())
        await driver.until(lambda: "new.html written." in driver.notifications.replace("\n", ""))
    assert (tmp_path / "there.md").read_text() == "mine"
    assert "every 2,000 hours" in (tmp_path / "new.html").read_text()


async def test_drafts_stay_with_their_threads_and_over_a_quit() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask(QUESTION)
        await driver.type_question("a follow-up")
        await driver.press("ctrl+n")
        assert box(driver).text == ""
        await driver.type_question("something new")
    again = await started_again(session.kept)
    async with running(again) as driver:
        await driver.until(lambda: box(driver).text == "something new")
        await open_first(driver)
        await driver.until(lambda: box(driver).text == "a follow-up")
        await driver.press("ctrl+n")
        await driver.until(lambda: box(driver).text == "something new")


async def test_what_is_typed_while_a_thread_opens_is_not_lost() -> None:
    async with running() as driver:
        await driver.ask(QUESTION)
        await driver.press("ctrl+n", *"new")
        await driver.until(lambda: not views(driver))
        assert box(driver).text == "new"


async def test_up_brings_back_questions_of_earlier_days() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask("From yesterday?")
    async with running(await started_again(session.kept)) as driver:
        await driver.pilot.pause()
        await driver.press("up")
        assert box(driver).text == "From yesterday?"


async def test_a_long_thread_comes_as_it_is_scrolled_to() -> None:
    session = ScriptedSession()
    parent = thread = None
    for number in range(40):
        exchange = session.kept.ask(f"Question {number}?", library="default", thread_id=thread, parent_id=parent)
        session.kept.fail(exchange.id, text="Line of the answer.\n\n" * 8, problem="")
        parent, thread = exchange.id, exchange.thread_id
    async with running(session, size=(100, 30)) as driver:
        await open_first(driver)
        await driver.see("Question 39?")
        assert len(views(driver)) < 10
        log = driver.ask_screen.query_one(Conversation)
        log.focus()
        while len(views(driver)) < 40:
            shown = len(views(driver))
            await driver.press("home")
            await driver.until(lambda shown=shown: len(views(driver)) > shown)
            await driver.until(lambda: log.scroll_y > 0)
        assert [view.question for view in views(driver)] == [f"Question {number}?" for number in range(40)]
        await driver.press("home")
        await driver.see("Question 0?")


async def test_short_exchanges_fill_the_screen() -> None:
    session = ScriptedSession()
    parent = thread = None
    for number in range(20):
        exchange = session.kept.ask(f"Question {number}?", library="default", thread_id=thread, parent_id=parent)
        session.kept.fail(exchange.id, text="Yes.", problem="")
        parent, thread = exchange.id, exchange.thread_id
    async with running(session, size=(120, 60)) as driver:
        await open_first(driver)
        await driver.until(lambda: len(views(driver)) >= 6)
        await driver.see("Question 19?", "Question 14?")


async def test_a_thousand_threads_are_a_list_of_what_is_looked_at() -> None:
    session = ScriptedSession()
    for number in range(1000):
        session.kept.ask(f"Question {number}?", library="default")
    async with running(session, size=(80, 24)) as driver:
        await driver.press("ctrl+t")
        await driver.see("Threads (1,000)", "Question 999?")
        await driver.press("end")
        await driver.see("Question 0?")
        await driver.press("pageup", "up")
        assert "Question 0?" not in driver.text or "Question 9?" in driver.text
        await driver.press("escape")
        assert box(driver).has_focus


async def test_a_disk_that_is_full_stops_no_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask(QUESTION)

        def full(*_: object, **__: object) -> None:
            raise StorageFull("The disk is full.", remedy="Free some space.")

        monkeypatch.setattr(session.kept, "ask", full)
        await driver.ask("And now?")
        assert "not kept" in driver.notifications
        assert views(driver)[-1].text == REPLY
        assert [turn.question for turn in session.histories[-1]] == [QUESTION], "it is still a follow-up"


async def test_a_thread_that_was_deleted_in_another_window_is_told_and_asking_goes_on() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.ask(QUESTION)
        session.kept.delete([head.id for head in session.kept.heads(library=None)])
        await driver.ask("And now?")
        assert "deleted in another window" in driver.notifications
        assert [head.title for head in session.kept.heads(library=None)] == ["And now?"]
        assert views(driver)[-1].text == REPLY


async def test_threads_that_cannot_be_opened_are_told_and_asking_works() -> None:
    session = ScriptedSession()
    session.failures["threads"] = StorageFull("The folder cannot be written.", remedy="Check it.")
    async with running(session) as driver:
        await driver.ask(QUESTION)
        assert "not kept" in driver.notifications
        assert views(driver)[-1].text == REPLY


async def test_marks_show_their_passages_under_the_mouse_and_by_number() -> None:
    async with running(size=(140, 45)) as driver:
        await driver.ask(QUESTION)
        y, row = next((y, row) for y, row in enumerate(driver.rows) if "valve balls [1]" in row)
        await driver.pilot.hover(offset=(row.index("[1]") + 1, y))
        await driver.see("[1] kestrel-p40-manual.md, lines 18-20", "clean the strainer")
        await driver.pilot.hover(offset=(row.index("[1]") + 1, 0))
        await driver.until(lambda: not driver.ask_screen._peek.display)
        driver.ask_screen.query_one(Conversation).focus()
        await driver.press("2")
        await driver.see("[2] kestrel-p40-datasheet.pdf, page 2")
        await driver.press("n")
        await driver.see("[3] kestrel-p40-manual.md")
        await driver.press("escape")
        assert not driver.ask_screen._peek.display
        await driver.press("9")  # there is none
        assert not driver.ask_screen._peek.display


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)], ids=str)
async def test_a_long_passage_beside_an_answer_shows_that_it_goes_on(size: tuple[int, int]) -> None:
    session = ScriptedSession()
    text = " ".join(f"line {number} of the passage," for number in range(60))
    manual = plain_document("m", text)
    session.sources = (source("/docs/m.md", manual, text, "line 0 of the passage,", number=1, document_id=1),)
    async with running(session, size=size) as driver:
        await driver.ask(QUESTION)
        driver.ask_screen.query_one(Conversation).focus()
        await driver.press("1")
        await driver.see("[1] m.md", "line 0 of")
        foot = next(y for y, row in enumerate(driver.rows) if "Enter or a click" in row)
        await driver.until(lambda: "…" in driver.rows[foot - 1])
        assert foot < size[1] - 3


async def test_with_little_room_the_sources_open_when_the_keys_go_to_them() -> None:
    async with running(size=(40, 12)) as driver:
        await driver.ask(QUESTION)
        assert "Sources (3, 2 cited)" in driver.text
        assert "kestrel-p40" not in "".join(row for row in driver.rows if row.startswith(" ["))
        await driver.press("tab")
        await driver.see("[1]✓ kestrel", "[3]  kestrel")
        await driver.press("escape")
        assert not any(row.startswith(" [3]") for row in driver.rows)


async def test_a_passage_never_covers_the_mark_that_is_pointed_at() -> None:
    session = ScriptedSession()
    session.reply = "A line.\n\n" * 30 + "The last one [1]."
    async with running(session, size=(120, 30)) as driver:
        await driver.ask(QUESTION)
        y, row = next((y, row) for y, row in enumerate(driver.rows) if "The last one [1]" in row)
        await driver.pilot.hover(offset=(row.index("[1]") + 1, y))
        await driver.see("[1] kestrel-p40-manual.md", "The last one [1]")
        await driver.pilot.hover(offset=(row.index("[1]") + 1, y - 1))
        await driver.until(lambda: not driver.ask_screen._peek.display)
        driver.ask_screen.query_one(Conversation).focus()
        await driver.press("2")
        await driver.see("[2] kestrel-p40-datasheet.pdf")
        await driver.pilot.click("#peek")
        await driver.see("[2] of 3")


async def test_the_answer_is_copied_with_its_sources() -> None:
    async with running() as driver:
        await driver.ask(QUESTION)
        await driver.press("tab", "tab", "C")
        for words in ("every 2,000 hours", "Sources", "*[1] /docs/kestrel-p40-manual.md, lines 18-20", "KP40-117"):
            assert words in driver.app.clipboard


async def test_a_filter_holds_until_it_is_taken_away() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.press("ctrl+l", "down", *"pmp", "enter")
        await driver.see("There is no tag 'pmp'")
        driver.app.screen.query_one("#filter-tags", Input).value = "pump"
        driver.app.screen.query_one("#filter-since", Input).value = "never"
        await driver.press("enter")
        await driver.see("'never' is no date")
        driver.app.screen.query_one("#filter-since", Input).value = ""
        await driver.press("enter")
        await driver.see("Only tag pump")
        await driver.ask(QUESTION)
        assert session.filters[-1] is not None and session.filters[-1].tags == ("pump",)
        await driver.see("only tag pump")
        await driver.press("ctrl+l", "ctrl+d")
        await driver.until(lambda: "Only tag pump" not in driver.text)
        await driver.ask("And of all?")
        assert session.filters[-1] is None
        assert views(driver)[0].kept.where == FilterText(tags="pump")


async def test_a_wider_window_has_the_threads_again_that_a_narrow_one_had_no_room_for() -> None:
    async with running(size=(80, 24)) as driver:
        await driver.ask(QUESTION)
        await driver.press("ctrl+t")
        await driver.see("Threads (1)")
        await driver.press("enter")  # opens it, and the list gives way
        await driver.until(lambda: "Threads (1)" not in driver.text)
        await driver.pilot.resize_terminal(160, 40)
        await driver.see("Threads (1)")
        await driver.press("ctrl+t", "ctrl+t")  # sent away
        await driver.until(lambda: "Threads (1)" not in driver.text)
        await driver.pilot.resize_terminal(80, 24)
        await driver.pilot.resize_terminal(160, 40)
        assert "Threads (1)" not in driver.text


async def test_every_action_is_in_the_palette() -> None:
    session = ScriptedSession()
    session.stop_reason = "length"
    async with running(session) as driver:
        await driver.ask(QUESTION)
        await driver.press("ctrl+r")  # a second version
        await driver.until(lambda: not driver.busy)
        titles = [command.title for command in driver.app.get_system_commands(driver.ask_screen)]
        names = set(titles)
        for name in (
            "New conversation",
            "Ask the question again",
            "Edit and ask again",
            "Go on with an answer that stopped",
        ):
            assert name in names
        for begin in ("Threads", "Filter", "Why this answer", "Open the first cited source"):
            assert any(name.startswith(begin) for name in names)
        for name in ("Copy answer", "Copy with sources", "Rename conversation", "Delete conversation"):
            assert name in names
        for name in ("Export conversation", "Version before", "Version after"):
            assert name in names
        assert len(names) == len(titles)


async def test_a_full_disk_keeps_no_thread_from_being_left_opened_or_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ScriptedSession()

    def full(*_: object, **__: object) -> None:
        raise StorageFull("The disk is full.", remedy="Free some space.")

    async with running(session) as driver:
        await driver.ask(QUESTION)
        for write in ("keep_draft", "choose"):
            monkeypatch.setattr(session.kept, write, full)
        await driver.type_question("half a question")
        await driver.press("ctrl+n")
        await driver.until(lambda: not views(driver))
        assert "What is typed is not kept" in driver.notifications
        assert box(driver).text == ""
        await open_first(driver)
        assert [view.kept.question for view in views(driver)] == [QUESTION]
        await driver.until(lambda: box(driver).text == "half a question")
        await driver.press("ctrl+n", "ctrl+t", "slash", *"diaphragm")
        await driver.see("1 found")
        await driver.press("enter")
        await driver.until(lambda: driver.ask_screen.query_one(ThreadsPane).at_cursor)
        await driver.press("enter")
        await driver.until(lambda: views(driver))
        await driver.until(lambda: box(driver).text == "half a question")


async def test_a_damaged_draft_is_told_and_the_program_begins() -> None:
    session = ScriptedSession()
    session.kept.ask(QUESTION, library="default")
    session.kept.keep_draft(None, "half", FilterText(types="pdf"), library="default")
    with session.kept._database.writing() as db:
        db.execute("UPDATE drafts SET filter = '[1]'")
    async with running(session, size=(160, 40)) as driver:
        await driver.until(lambda: "damaged" in driver.notifications)
        await driver.see("Threads (1)")
        assert box(driver).text == ""
