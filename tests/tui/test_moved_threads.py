"""The open conversation where its file is another one now, or cannot be opened any more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from scripted_session import ScriptedSession

from edgerag.errors import LibraryLocked
from edgerag.session import Session
from edgerag.threads.store import ThreadStore
from edgerag.types import FilterText
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.thread_desk import ThreadDesk

ANY = FilterText()


def told() -> tuple[ThreadDesk, ScriptedSession, list[Problem]]:
    session, warnings = ScriptedSession(), list[Problem]()
    return ThreadDesk(cast("Session", session), warn=warnings.append), session, warnings


def test_a_question_after_the_file_moved_begins_a_new_conversation(tmp_path: Path) -> None:
    """The number of the open one may be that of another there."""
    desk, session, warnings = told()
    session.kept = before = ThreadStore(tmp_path / "a.sqlite")
    session_after = ThreadStore(tmp_path / "b.sqlite")
    session_after.ask("somebody else's", library="default")

    async def conversation() -> None:
        first = await desk.ask("one", parent_id=None, where=ANY)
        session.kept = session_after
        second = await desk.ask("two", parent_id=first.id, where=ANY)
        assert (second.thread_id, second.parent_id) == (2, None)

    asyncio.run(conversation())
    assert [problem.message for problem in warnings] == [
        "The conversations of this library are kept in another place now."
    ]
    assert before.questions(library="default", limit=9) == ["one"]
    before.close()
    session_after.close()


def test_where_the_key_is_missing_it_goes_on_in_memory_and_says_so(tmp_path: Path) -> None:
    locked = False

    def belongs() -> tuple[Path, None]:
        if locked:
            raise LibraryLocked("It is encrypted.", remedy="Type its passphrase.")
        return tmp_path / "a.sqlite", None

    desk, session, warnings = told()
    session.kept = file = ThreadStore(tmp_path / "a.sqlite", belongs=belongs)

    async def conversation() -> None:
        nonlocal locked
        first = await desk.ask("one", parent_id=None, where=ANY)
        locked = True
        session.failures["threads"] = LibraryLocked("It is encrypted.", remedy="Type its passphrase.")
        await desk.ask("two", parent_id=first.id, where=ANY)
        store = await desk.store()
        assert store.path is None
        assert store.questions(library="default", limit=9) == ["two"]

    asyncio.run(conversation())
    assert warnings[0].message == "It is encrypted."
    assert "not kept" in warnings[0].remedy
    locked = False
    assert file.questions(library="default", limit=9) == ["one"]
    file.close()
