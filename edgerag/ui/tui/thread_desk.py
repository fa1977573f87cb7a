"""The thread that is open on the screen, and the way to the file of all threads.

What the file refuses stops no conversation: it goes on in memory, and the user is told that it is not kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgerag.errors import LibraryError, StorageFull, ThreadsError, UsageError
from edgerag.types import Exchange, FilterText
from edgerag.ui.tui.problem import Problem

if TYPE_CHECKING:
    from edgerag.session import Session
    from edgerag.threads.store import ThreadStore

_NOT_KEPT = "This conversation is not kept: it ends with the program."
_DRAFT_NOT_KEPT = "What is typed is not kept: it ends with the program."
_MOVED = "The conversations of this library are kept in another place now."
_NEW_ONE = "The question begins a new one."
_REFUSED = (StorageFull, ThreadsError, LibraryError)  # LibraryError: their library was given another key elsewhere
_CARRIED_OVER = 30  # exchanges: what a follow-up looks back at


@dataclass(frozen=True, slots=True)
class Draft:
    """What is typed and not sent, and the filter in force, of a thread or of none yet."""

    thread_id: int | None
    library: str
    text: str
    where: FilterText

    def keep(self, store: ThreadStore) -> None:
        """Raises ThreadsError, StorageFull."""
        store.keep_draft(self.thread_id, self.text, self.where, library=self.library)


class ThreadDesk:
    """``thread_id`` None: a conversation in which nothing has been asked yet."""

    def __init__(self, session: Session, *, warn: Callable[[Problem], None]) -> None:
        self._session = session
        self._warn = warn
        self._store: ThreadStore | None = None
        self._opening = asyncio.Lock()
        self.thread_id: int | None = None
        self.leaf_id: int | None = None  # the exchange that the next question follows
        self.title = ""
        self._refused: dict[tuple[str, int | None], Draft] = {}  # drafts that the file did not take

    @property
    def library(self) -> str:
        return self._session.settings.library.name

    @property
    def opened_store(self) -> ThreadStore | None:
        """Without waiting: None until it has been opened."""
        return self._store

    async def store(self) -> ThreadStore:
        """The file of the threads, where it is now; where it cannot be opened, a store in memory."""
        async with self._opening:
            if self._store is None or self._store.path is not None:
                try:
                    found = await asyncio.to_thread(lambda: self._session.threads)
                except _REFUSED as error:
                    if self._store is not None:
                        return self._store  # which says so itself, and writes nothing
                    found = self._in_memory(error)
                if self._store is not None and found is not self._store and self.thread_id is not None:
                    self._warn(Problem(_MOVED, _NEW_ONE))
                    self.close()
                self._store = found
            return self._store

    async def ask(self, question: str, *, parent_id: int | None, where: FilterText) -> Exchange:
        """Keeps a question before anything is done about it; in a new thread where its own was deleted elsewhere."""
        store = await self.store()
        parent_id = None if self.thread_id is None else parent_id
        try:
            exchange = await asyncio.to_thread(
                store.ask, question, library=self.library, thread_id=self.thread_id, parent_id=parent_id, where=where
            )
        except UsageError:
            self._warn(Problem("This conversation was deleted in another window.", _NEW_ONE))
            self.close()
            exchange = await asyncio.to_thread(store.ask, question, library=self.library, where=where)
        except _REFUSED as error:
            before = await self._line(store, parent_id)
            self._store = store = self._in_memory(error)
            self.thread_id, parent_id = _carried_over(store, before, library=self.library)
            exchange = store.ask(
                question, library=self.library, thread_id=self.thread_id, parent_id=parent_id, where=where
            )
        self.thread_id, self.leaf_id = exchange.thread_id, exchange.id
        self.title = await asyncio.to_thread(lambda: store.head(exchange.thread_id).title)
        return exchange

    async def open(self, thread_id: int, *, count: int) -> list[Exchange]:
        """The last exchanges of a thread, which is the open one from now on."""
        store = await self.store()
        exchanges = await asyncio.to_thread(store.last, thread_id, count=count)
        head = await asyncio.to_thread(store.head, thread_id)
        self.thread_id, self.title = thread_id, head.title
        self.leaf_id = exchanges[-1].id if exchanges else None
        return exchanges

    async def keep_draft(self, draft: Draft) -> None:
        """In the file; where that refuses it, as long as the program runs, which is told once for each."""
        store = await self.store()
        place = (draft.library, draft.thread_id)
        try:
            await asyncio.to_thread(draft.keep, store)
        except _REFUSED as error:
            if place not in self._refused:
                self._warn(Problem(error.message, f"{error.remedy} {_DRAFT_NOT_KEPT}".strip()))
            self._refused[place] = draft
        else:
            self._refused.pop(place, None)

    async def draft(self) -> tuple[str, FilterText]:
        """Of the open thread. One that is damaged is told, and is none."""
        refused = self._refused.get((self.library, self.thread_id))
        if refused is not None:
            return refused.text, refused.where
        store = await self.store()
        try:
            return await asyncio.to_thread(store.draft, self.thread_id, library=self.library)
        except (ThreadsError, LibraryError) as error:
            self._warn(Problem(error.message, error.remedy))
            return "", FilterText()

    async def choose(self, exchange_id: int) -> bool:
        """Whether the branch that this exchange is in is now the one in use: not where the file cannot be written,
        which is told. Raises UsageError, ThreadsError."""
        store = await self.store()
        try:
            await asyncio.to_thread(store.choose, exchange_id)
        except (StorageFull, LibraryError) as error:
            self._warn(Problem(error.message, error.remedy))
            return False
        return True

    def close(self) -> None:
        """The next question begins a new thread."""
        self.thread_id = self.leaf_id = None
        self.title = ""

    def _in_memory(self, error: StorageFull | ThreadsError | LibraryError) -> ThreadStore:
        from edgerag.threads.store import ThreadStore

        self._warn(Problem(error.message, f"{error.remedy} {_NOT_KEPT}".strip()))
        return ThreadStore(None)

    async def _line(self, store: ThreadStore, parent_id: int | None) -> list[Exchange]:
        if self.thread_id is None or parent_id is None:
            return []
        try:
            parent = await asyncio.to_thread(store.exchange, parent_id)
            above = await asyncio.to_thread(store.last, self.thread_id, count=_CARRIED_OVER, before=parent_id)
        except _REFUSED:  # it cannot be read either: the conversation begins anew
            return []
        return [*above, parent]


def _carried_over(store: ThreadStore, line: list[Exchange], *, library: str) -> tuple[int | None, int | None]:
    """The exchanges as a thread of ``store``: its id and that of the last one."""
    thread_id = parent_id = None
    for exchange in line:
        copy = store.ask(
            exchange.question, library=library, thread_id=thread_id, parent_id=parent_id, where=exchange.where
        )
        thread_id, parent_id = copy.thread_id, copy.id
        if exchange.answer is not None:
            store.finish(copy.id, replace(exchange.answer, messages=()))
    return thread_id, parent_id
