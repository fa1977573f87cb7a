"""A parser process as its parent sees it: given a file it answers within the deadline, or it is replaced.

Nothing that a file does to the parser reaches this process: a crash, a hang, an answer that is no
answer or too long each become a ParserDied for that file, and the next file gets a fresh process.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from edgerag.errors import EdgeragError, ParserDied
from edgerag.hold import Hold
from edgerag.ingest.parse.ocr import Recogniser
from edgerag.ingest.parse.source import Recognised
from edgerag.ingest.parse.wire import (
    HEADER,
    MAGIC,
    MAX_BODY_BYTES,
    MAX_TEXT_BYTES,
    Failed,
    Picture,
    Reply,
    Request,
    ToRecognise,
    WorkerReply,
    frame,
    read_reply,
    request_body,
)
from edgerag.ingest.parse.wire_page import PageReply
from edgerag.machine.courtesy import step_back
from edgerag.machine.standstill import wait_standing_still
from edgerag.types import PageWanted

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[3])
# -P keeps the working folder out of the module path: a folder of documents may hold a lxml.py.
_START = (
    "import sys; root = sys.argv.pop(1); root in sys.path or sys.path.insert(0, root);"
    "from edgerag.ingest.parse.worker import main; main()"
)
_READ_BYTES = 1 << 20
_NO_ANSWER = "The parser answered with something that is no answer."
_POLL_S = 0.1  # how soon a cancelled wait ends
# Of one file: some hours of work.
_MOST_OCR_PAGES = 2_000
_TOO_MANY_PAGES = f"Only {_MOST_OCR_PAGES} pages of a file are read by OCR."


class ParserProcess:
    """One worker, started on first use, replaced after it died. For one thread at a time.

    ``passwords`` are tried on what is protected. With a ``recogniser`` scanned pages are drawn by the worker and read
    by it. While it is on ``hold`` the worker stands still, and no deadline comes nearer. ``command`` is for tests: what
    to run in place of the worker.
    """

    def __init__(
        self,
        *,
        memory_bytes: int,
        max_file_bytes: int,
        max_text_bytes: int = MAX_TEXT_BYTES,
        deadline_s: float,
        niceness: int = 0,
        passwords: Sequence[str] = (),
        recogniser: Recogniser | None = None,
        hold: Hold | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        self._niceness = niceness
        self._passwords = tuple(passwords)
        self._recogniser = recogniser
        self._hold = hold or Hold()
        self._memory_bytes = memory_bytes
        self._max_file_bytes = max_file_bytes
        self._max_text_bytes = max_text_bytes
        self._deadline_s = deadline_s
        self._command = list(command) if command is not None else None
        self._process: subprocess.Popen[bytes] | None = None

    def read(
        self,
        path: str,
        *,
        member: tuple[str, ...] = (),
        known_sha256: str = "",
        stopped: Callable[[], bool] = lambda: False,
    ) -> Reply | None:
        """What became of one file, or of one member in it; None when ``stopped()`` turned true while it was at
        work."""
        request = Request(
            path,
            known_sha256,
            self._max_file_bytes,
            self._deadline_s,
            member,
            passwords=self._passwords,
            ocr="off" if self._recogniser is None else self._recogniser.mode,
            max_text_bytes=self._max_text_bytes,
        )
        reply = self._ask(request, stopped)
        if isinstance(reply, ToRecognise) and self._recogniser is not None:
            return self._with_ocr(request, reply.pages, self._recogniser, stopped)
        return self._no_answer() if isinstance(reply, ToRecognise | Picture | PageReply) else reply

    def view(
        self,
        path: str,
        wanted: PageWanted,
        *,
        member: tuple[str, ...] = (),
        stopped: Callable[[], bool] = lambda: False,
    ) -> PageReply | Failed | None:
        """A page of a file, or of one member in it, as it is seen; None when ``stopped()`` turned true meanwhile."""
        request = Request(
            path, "", self._max_file_bytes, self._deadline_s, member, passwords=self._passwords, view=wanted
        )
        reply = self._ask(request, stopped, outlives_worker=True)
        if reply is None or isinstance(reply, PageReply | Failed):
            return reply
        return self._no_answer()

    def _with_ocr(
        self, request: Request, pages: Sequence[int], recogniser: Recogniser, stopped: Callable[[], bool]
    ) -> Reply | None:
        """Each page has a deadline of its own: a scanned book takes long."""
        recognised: list[Recognised] = []
        for page in pages[:_MOST_OCR_PAGES]:
            match self._ask(replace(request, picture_of=page), stopped):
                case None:
                    return None
                case Picture(data):
                    read = recogniser.read(data, page, stopped=stopped, hold=self._hold)
                    if read is None:
                        return None
                    recognised.append(read)
                case Failed(error):  # the others may be drawn
                    recognised.append(Recognised(page, "", 0.0, error.message))
                case _:
                    return self._no_answer()
        recognised.extend(Recognised(page, "", 0.0, _TOO_MANY_PAGES) for page in pages[_MOST_OCR_PAGES:])
        reply = self._ask(replace(request, recognised=tuple(recognised)), stopped)
        return self._no_answer() if isinstance(reply, ToRecognise | Picture | PageReply) else reply

    def _no_answer(self) -> Failed:
        self.close()
        return Failed(ParserDied(_NO_ANSWER), skipped=False, lasting=True)

    def _ask(
        self, request: Request, stopped: Callable[[], bool], *, outlives_worker: bool = False
    ) -> WorkerReply | None:
        """``outlives_worker``: a worker that waited and is found to have ended is replaced, once and without a word:
        something else may have ended it while somebody read a page."""
        waited = self._process is not None
        try:
            reply = self._exchange(frame(request_body(request)), stopped)
        except _WorkerFailed as failure:
            reason = str(failure) or self._how_it_ended()
            self.close()
            if outlives_worker and waited and not str(failure):
                return self._ask(request, stopped)
            return Failed(ParserDied(reason), skipped=False, lasting=True)
        except BaseException:
            self.close()  # an answer may be half read: nothing can be asked of this worker again
            raise
        if reply is None or (isinstance(reply, Failed) and isinstance(reply.error, ParserDied)):
            self.close()  # at work still, or in a state that nobody knows
        return reply

    def close(self) -> None:
        """Ends the process, at once."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # unsent bytes for a process that is gone
                    pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        command = self._command or [
            sys.executable, "-P", "-X", "utf8", "-c", _START, _PACKAGE_ROOT, str(os.getpid()), str(self._memory_bytes)
        ]  # fmt: skip
        try:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter, no shell
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C in the terminal is not for it
            )
        except OSError as error:
            raise EdgeragError(
                f"The parser process cannot be started: {error}.", remedy="Free some memory or processes, then go on."
            ) from error
        step_back(self._niceness, pid=process.pid)
        assert process.stdin is not None and process.stdout is not None
        os.set_blocking(process.stdin.fileno(), False)
        os.set_blocking(process.stdout.fileno(), False)
        return process

    def _exchange(self, message: bytes, stopped: Callable[[], bool]) -> WorkerReply | None:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._start()
        wait = _Wait(self._process.pid, self._deadline_s, stopped, self._hold)
        try:
            self._send(message, wait)
            header = self._receive(HEADER.size, wait)
            magic, length = HEADER.unpack(header)
            if magic != MAGIC or length > MAX_BODY_BYTES:
                raise _WorkerFailed(_NO_ANSWER)
            return read_reply(json.loads(self._receive(length, wait)))
        except _Stopped:
            return None
        except (ValueError, RecursionError) as error:
            raise _WorkerFailed(_NO_ANSWER) from error

    def _send(self, message: bytes, wait: _Wait) -> None:
        assert self._process is not None and self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        rest = memoryview(message)
        while rest:
            wait.until_writable(descriptor)
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise _WorkerFailed from error

    def _receive(self, size: int, wait: _Wait) -> bytes:
        assert self._process is not None and self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        parts: list[bytes] = []
        while size:
            wait.until_readable(descriptor)
            try:
                part = os.read(descriptor, min(size, _READ_BYTES))
            except BlockingIOError:
                continue
            if not part:
                raise _WorkerFailed
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _how_it_ended(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "The parser closed its connection without an answer."
        if code in (-signal.SIGKILL, -signal.SIGXCPU):
            return "The parser was killed, most likely because it ran out of memory or time."
        if code < 0:
            return f"The parser crashed ({_signal_name(-code)})."
        return f"The parser ended without an answer (exit code {code})."


class _WorkerFailed(Exception):
    """The worker cannot be used any more; its text is the reason, or empty when its exit code tells."""


class _Stopped(Exception):
    pass


class _Wait:
    """One deadline over all the waiting for one answer."""

    def __init__(self, pid: int, deadline_s: float, stopped: Callable[[], bool], hold: Hold) -> None:
        self._pid = pid
        self._deadline = hold.clock() + deadline_s
        self._deadline_s = deadline_s
        self._stopped = stopped
        self._hold = hold

    def until_readable(self, descriptor: int) -> None:
        self._until(descriptor, select.POLLIN)

    def until_writable(self, descriptor: int) -> None:
        self._until(descriptor, select.POLLOUT)

    def _until(self, descriptor: int, event: int) -> None:
        poll = select.poll()  # not select(): a process with many mapped blocks may have high descriptors
        poll.register(descriptor, event)
        while True:
            if self._hold.is_on:
                wait_standing_still(self._hold, self._pid, self._stopped)
            if self._stopped():
                raise _Stopped
            left = self._deadline - self._hold.clock()
            if left <= 0:
                raise _WorkerFailed(
                    f"The parser was stopped after {self._deadline_s:g} seconds (ingest.parse_deadline_s)."
                )
            if poll.poll(min(left, _POLL_S) * 1000):
                return


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
