"""An answer is kept while it is written, so that whatever ends the program loses at most the words of a second."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from edgerag.errors import LibraryError, StorageFull, ThreadsError
from edgerag.threads.store import ThreadStore
from edgerag.types import (
    Answer,
    AnswerDelta,
    AnswerDone,
    AskEvent,
    InstantAnswer,
    InstantSentence,
    NotKept,
    PromptReady,
    Source,
    TokenCounts,
)

_KEPT_EVERY_S = 1.0


def kept(
    events: Iterable[AskEvent], store: ThreadStore, exchange_id: int, *, every_s: float = _KEPT_EVERY_S
) -> Iterator[AskEvent | NotKept]:
    """``events`` as they are, kept as the answer of this exchange. What cannot be saved stops no answer: NotKept
    tells of it, once. What ``events`` raises is kept as the problem, and raised."""
    writer = _Writer(store, exchange_id, every_s)
    answered = False
    problem = ""
    try:
        for event in events:
            match event:
                case InstantAnswer():
                    writer.found = _begun(event.sources, event.sentences)
                case PromptReady():
                    writer.found = _begun(event.prompt.sources, writer.found.instant if writer.found else ())
                case AnswerDelta():
                    writer.add(event.text)
                case AnswerDone():
                    writer.stop()
                    answered = True
                    try:
                        store.finish(exchange_id, event.answer)
                    except (StorageFull, ThreadsError, LibraryError) as error:
                        writer.trouble = str(error)
            yield event
            if writer.trouble and not writer.told:
                writer.told = True
                yield NotKept(writer.trouble)
    except Exception as error:
        problem = str(error) or type(error).__name__
        raise
    finally:
        writer.stop()
        if not answered:  # it failed, or nobody wanted to hear its end
            try:
                store.fail(exchange_id, text=writer.text, problem=problem)
            except (StorageFull, ThreadsError, LibraryError) as error:
                writer.trouble = writer.trouble or str(error)


def _begun(sources: tuple[Source, ...], instant: tuple[InstantSentence, ...]) -> Answer:
    """An answer of which only the sources are there; from its marks they open, should it never be finished."""
    return Answer(
        question="",
        text="",
        found=True,
        sources=sources,
        stop_reason="cancelled",
        timings=(),
        tokens=TokenCounts(prompt=0, answer=0),
        model="",
        pending_count=0,
        notes=(),
        instant=instant,
    )


class _Writer:
    """Saves what has come, in a thread of its own: the model never waits for the disk."""

    def __init__(self, store: ThreadStore, exchange_id: int, every_s: float) -> None:
        self._store = store
        self._exchange_id = exchange_id
        self._every_s = every_s
        self._pieces: list[str] = []
        self.found: Answer | None = None  # with the sources, before there is an answer
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="thread-keeper", daemon=True)
        self.trouble = ""
        self.told = False

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def add(self, piece: str) -> None:
        self._pieces.append(piece)
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        saved: tuple[int, Answer | None] = (0, None)
        while not self._ended.wait(self._every_s):
            count, found = len(self._pieces), self.found
            if (count, found) == saved or self.trouble:
                continue
            try:
                self._store.keep_text(self._exchange_id, "".join(self._pieces[:count]), begun=found)
                saved = (count, found)
            except (StorageFull, ThreadsError, LibraryError) as error:
                self.trouble = str(error)
