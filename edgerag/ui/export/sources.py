"""What became of the sources of a thread, in the library that it is about."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from edgerag.errors import LibraryError
from edgerag.session import Session
from edgerag.types import FoundSource, Thread


def sources_now(session: Session, thread: Thread) -> dict[int, list[FoundSource]]:
    """The sources by exchange, as its library has them now. Of a library that cannot be read they are gone."""
    found: dict[int, list[FoundSource]] = {}
    with _about(session, thread.head.library) as library:
        for exchange in thread.exchanges:
            if exchange.answer is None:
                continue
            try:
                found[exchange.id] = library.find_sources(exchange.answer.sources, exchange.passage_hashes)
            except LibraryError:
                found[exchange.id] = [FoundSource(source, "gone") for source in exchange.answer.sources]
    return found


def _about(session: Session, library: str) -> AbstractContextManager[Session]:
    """A session over the library of that name."""
    if library == session.settings.library.name:
        return nullcontext(session)
    return session.over(session.locations.library_folder(library))
