"""What is done to a thread from the side list: renamed, deleted, exported. Each asks what it has to know."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from edgerag.errors import EdgeragError
from edgerag.locations import user_path
from edgerag.types import Thread, ThreadHead
from edgerag.ui.plain import plain
from edgerag.ui.tui import shown
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.confirm import ConfirmDialog
from edgerag.ui.tui.screens.line import LineDialog

if TYPE_CHECKING:
    from edgerag.session import Session
    from edgerag.threads.store import ThreadStore
    from edgerag.ui.tui.app import EdgeragApp

_TITLE_WIDTH = 200


async def rename(app: EdgeragApp, store: ThreadStore, head: ThreadHead) -> ThreadHead | None:
    """The thread under its new title; None if it keeps its own."""
    dialog = LineDialog(
        Content.styled("Title of this conversation", "bold"), value=head.title, hint="Enter takes it, Esc leaves it."
    )
    title = await app.push_screen_wait(dialog)
    if title is None or title == head.title:
        return None
    return await asyncio.to_thread(store.rename, head.id, title)


async def delete(app: EdgeragApp, store: ThreadStore, head: ThreadHead) -> bool:
    """Whether it was."""
    count = head.question_count
    question = Content("\n").join(
        [
            Content.styled("Delete this conversation for good?", "bold"),
            Content.assemble("  ", shown.line(head.title, _TITLE_WIDTH)),
            Content.styled(f"{count} question{'' if count == 1 else 's'} with answers.", "$foreground 70%"),
        ]
    )
    if not await app.push_screen_wait(ConfirmDialog(question, agree="Delete")):
        return False
    await asyncio.to_thread(store.delete, [head.id])
    return True


async def export(app: EdgeragApp, store: ThreadStore, head: ThreadHead) -> None:
    """Writes it to a file that the user names; a name that cannot be is asked for again."""
    from edgerag.ui.export import file_name

    thread = await asyncio.to_thread(store.thread, head.id)
    value = f"~/{file_name(thread, 'markdown')}"
    problem = ""
    while True:
        question = Content.styled("Write this conversation with its sources to", "bold")
        if problem:
            question = Content("\n").join([question, shown.text(problem, "$text-error")])
        dialog = LineDialog(question, value=value, hint="A new file; its name ends in .md, .html or .json.")
        typed = await app.push_screen_wait(dialog)
        if typed is None:
            return
        value = typed
        try:
            path = await asyncio.to_thread(_write, app.session, thread, typed)
        except EdgeragError as error:
            problem = str(Problem.of(error))
        else:
            app.notify(plain(f"{path} written."), markup=False)
            return


def _write(session: Session, thread: Thread, typed: str) -> Path:
    from edgerag.ui.export import export as exported
    from edgerag.ui.export import format_of, write_new
    from edgerag.ui.export.sources import sources_now

    path = user_path(typed)
    form = format_of(path)
    found = sources_now(session, thread)
    write_new(path, exported(thread, found, form=form))
    return path
