"""Reads the next files while the present one is being chunked and embedded.

Of an archive or a mail its members are read one by one, each with a deadline of its own, and given before the file
around them: when that one is stored, all that it holds was.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from edgerag.errors import DocumentUnsupported
from edgerag.ingest.discover import Candidate
from edgerag.ingest.member_paths import member_path
from edgerag.ingest.parse.process import ParserProcess
from edgerag.ingest.parse.wire import Failed, Parsed, Reply
from edgerag.telemetry.stopwatch import Stopwatch

# Documents that may wait to be taken, and their text: what is read ahead is memory held.
_MOST_WAITING = 8
_MOST_CHARACTERS = 16_000_000
# Of one file, archives in archives counted: beyond, a few kilobytes could keep a machine busy for days.
MOST_MEMBERS = 20_000


@dataclass(frozen=True, slots=True)
class ToRead:
    """A file to parse; with ``known_sha256`` its content may turn out to be the known one."""

    candidate: Candidate
    known_sha256: str


@dataclass(frozen=True, slots=True)
class WasRead:
    """A file, or a member of one, and what its parser said."""

    candidate: Candidate
    reply: Reply
    member: tuple[str, ...] = ()
    seconds: float = 0.0  # spent on parsing it
    around_sha256: str = ""  # of a member: of the file on the disk that it lies in

    @property
    def path(self) -> str:
        return member_path(self.candidate.path, self.member)


class ParseAhead:
    """A thread that feeds one parser process with the files in their order. ``known_sha256`` gives the checksum that
    is known for the path of a member, or "". ``clock`` gives the seconds that reading takes."""

    def __init__(
        self,
        files: Sequence[ToRead],
        parser: ParserProcess,
        *,
        known_sha256: Callable[[str], str] = lambda _: "",
        stopwatch: Stopwatch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = files
        self._parser = parser
        self._known_sha256 = known_sha256
        self._clock = clock
        self._stopwatch = stopwatch or Stopwatch(most_spans=0)
        self._members = 0  # of the present file
        self._around_sha256 = ""
        self._changed = threading.Condition()
        self._waiting: deque[WasRead] = deque()
        self._characters = 0
        self._stopped = False
        self._finished = not files
        self._failure: BaseException | None = None
        self._current = files[0].candidate.path if files else ""
        self._thread: threading.Thread | None = None
        if files:
            # A daemon: should close() never be called, the program can still end.
            self._thread = threading.Thread(target=self._run, name="parse-ahead", daemon=True)
            self._thread.start()

    @property
    def current(self) -> str:
        """The file being parsed."""
        return self._current

    def take(self, *, timeout_s: float) -> WasRead | Literal["wait", "end"]:
        """The next file that was read; "wait" when none came in time, "end" when there will be no more.

        Raises what stopped the thread, such as a parser process that cannot be started.
        """
        with self._changed:
            if not self._waiting and not self._finished:
                self._changed.wait(timeout_s)
            if self._waiting:
                taken = self._waiting.popleft()
                self._characters -= _characters(taken.reply)
                self._changed.notify_all()
                return taken
            if self._failure is not None:
                raise self._failure
            return "end" if self._finished else "wait"

    def close(self) -> None:
        """Stops the thread and its parser process; what was read and not taken is forgotten."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            for file in self._files:
                self._members = 0
                self._around_sha256 = ""
                if not self._read(file, ()):
                    break
        except BaseException as error:  # noqa: BLE001 - raised again by take(), in the thread that ingests
            self._failure = error
        finally:
            self._parser.close()
            with self._changed:
                self._finished = True
                self._changed.notify_all()

    def _read(self, file: ToRead, member: tuple[str, ...]) -> bool:
        """Reads one and all that is in it; False when stopped."""
        self._current = path = member_path(file.candidate.path, member)
        started = self._clock()
        with self._stopwatch.measure_beside("parse") as facts:
            reply = self._parser.read(
                file.candidate.path,
                member=member,
                known_sha256=self._known_sha256(path) if member else file.known_sha256,
                stopped=lambda: self._stopped,
            )
            facts |= {"bytes": file.candidate.size_bytes, "result": type(reply).__name__.lower()}
        seconds = self._clock() - started
        if reply is None:
            return False
        around = self._around_sha256 if member else ""
        if isinstance(reply, Parsed):
            if not member:
                self._around_sha256 = reply.state.sha256
            for name in reply.members:
                self._members += 1
                if self._members > MOST_MEMBERS:
                    reason = DocumentUnsupported(f"It holds more than {MOST_MEMBERS} files; the rest is not read.")
                    refusal = Failed(reason, skipped=True, lasting=False)
                    return self._offer(WasRead(file.candidate, refusal, member, around_sha256=around))
                if not self._read(file, (*member, name)):
                    return False
        return self._offer(WasRead(file.candidate, reply, member, seconds, around))

    def _offer(self, result: WasRead) -> bool:
        """Waits for room; False when stopped."""
        with self._changed:
            while not self._stopped and (
                len(self._waiting) >= _MOST_WAITING or (self._waiting and self._characters > _MOST_CHARACTERS)
            ):
                self._changed.wait()
            self._waiting.append(result)
            self._characters += _characters(result.reply)
            self._changed.notify_all()
            return not self._stopped


def _characters(reply: Reply) -> int:
    return len(reply.document.text) if isinstance(reply, Parsed) and reply.document is not None else 0
