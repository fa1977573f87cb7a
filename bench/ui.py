"""What the terminal UI costs and how soon it answers to a key: the real app, driven through Textual's own driver.

    python bench/ui.py [--part start] [--part keys] [--part stop] [--part cpu] [--part lists] [--json FILE]

start   from the start of the process to a letter that was typed being on the screen, in a pseudo-terminal of 120x40;
        warm, and cold: the files of the program, of the modules it loads, of the library and the models are taken out
        of the page cache before (posix_fadvise), but for what others have mapped. Making the library is left out.
keys    from a key to the paint that shows it, while the real chat model streams an answer and a folder is ingested; and
        the longest time that the event loop did nothing else.
stop    from Esc to the end of an answer of the real chat model.
cpu     processor seconds (user and system, the process and its children) of an answer of 4,000 tokens: over the UI and
        as `edgerag ask` prints it into a file, in turns. A scripted generator of 100 tokens a second says what the UI
        takes; the real chat model what of the whole that is.
lists   1,000 threads and 100,000 documents: from the key to the first paint with them, to scroll and to filter.

The painting is real, what it is written to is not a terminal. The models are loaded before anything but the start.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import io
import os
import pty
import random
import resource
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from fcntl import ioctl
from functools import partial
from pathlib import Path
from typing import Any

from record import CHECKOUT, record
from threads import fill, scripted_session

from edgerag.config import GenerationSettings, Settings
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.threads.store import ThreadStore
from edgerag.types import AnswerDelta, AnswerDone, Document
from edgerag.ui.asking import AnswerPrinter
from edgerag.ui.tui.app import EdgeragApp
from edgerag.ui.tui.screens.ask import AskScreen
from edgerag.ui.tui.screens.library import LibraryScreen
from edgerag.ui.tui.widgets.question_box import QuestionBox

_SIZE = (120, 40)
_TOKENS, _TOKENS_PER_S = 4_000, 100
_QUESTION = "How often is the diaphragm replaced, and what else is done then?"
_LETTER = "ж"  # of no text on the screen
_PATIENCE_S = 180
_WORDS = ("pump", "torque", "lid", "screw", "gasket", "diaphragm", "newton", "valve", "ball", "strainer", "frost")
PARTS = ("start", "keys", "stop", "cpu", "lists")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the terminal UI.")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this; may be given again")
    parser.add_argument("--rounds", type=int, default=5, help="of starts, stops and pairs (default 5)")
    parser.add_argument("--keys", type=int, default=200, help="key presses (default 200)")
    parser.add_argument("--tokens", type=int, default=_TOKENS)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=1_000)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    parts = arguments.part or list(PARTS)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as scratch:
        home = Path(scratch)
        (home / "models").symlink_to(CHECKOUT / "models")
        with real_session(home) as session:
            for _ in session.ingest([CHECKOUT / "examples" / "docs"]):
                pass
        for part in parts:
            figures[part] = measure(part, arguments, home)
            print(part, figures[part], flush=True)
    print(record("ui", figures, parameters={**vars(arguments), "json": None, "size": _SIZE}, file=arguments.json))


def measure(part: str, arguments: argparse.Namespace, home: Path) -> dict[str, Any]:
    match part:
        case "start":
            return starts(home, rounds=arguments.rounds)
        case "keys":
            return asyncio.run(keys(home, count=arguments.keys))
        case "stop":
            return asyncio.run(stops(home, rounds=arguments.rounds))
        case "cpu":
            return cpu(home, tokens=arguments.tokens, rounds=arguments.rounds)
        case _:
            return asyncio.run(lists(documents=arguments.documents, threads=arguments.threads))


@contextlib.contextmanager
def real_session(home: Path, *, answer_tokens: int = 256) -> Iterator[Session]:
    session = Session(Settings(generation=GenerationSettings(answer_tokens=answer_tokens)), Locations(home))
    try:
        yield session
    finally:
        session.close()


def milliseconds(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "most": 1.0}
    return {name: round(1e3 * ordered[min(len(ordered) - 1, int(len(ordered) * q))], 1) for name, q in shares.items()}


# ------------------------------------------------------------ start


def starts(home: Path, *, rounds: int) -> dict[str, Any]:
    one_start(home)  # makes byte code, and what is looked at once
    figures: dict[str, Any] = {}
    for name in ("warm", "cold"):
        found = []
        for _ in range(rounds):
            if name == "cold":
                drop_from_cache(home)
            found.append(one_start(home))
        figures[name] = {
            key: round(statistics.median(each[key] for each in found), 3) for key in ("first_paint_s", "usable_s")
        }
        figures[name]["usable_s_all"] = [round(each["usable_s"], 3) for each in found]
    return figures


def one_start(home: Path) -> dict[str, float]:
    """In a process and a terminal of its own; ended by its own key."""
    controller, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _SIZE[1], _SIZE[0], 0, 0))
    environment = {**os.environ, "EDGERAG_HOME": str(home), "TERM": "xterm-256color", "PYTHONPATH": str(CHECKOUT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "edgerag"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        start_new_session=True,
    )
    os.close(terminal)
    try:
        seen = wait_for(controller, b"sk about your documents", b"")  # the cursor stands on the first letter
        figures = {"first_paint_s": time.perf_counter() - began}
        os.write(controller, _LETTER.encode())
        wait_for(controller, _LETTER.encode(), seen)
        figures["usable_s"] = time.perf_counter() - began
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        os.close(controller)
    return figures


def wait_for(controller: int, words: bytes, seen: bytes) -> bytes:
    until = time.monotonic() + _PATIENCE_S
    while words not in seen:
        if not select.select([controller], [], [], max(0.0, until - time.monotonic()))[0]:
            raise TimeoutError(f"{words!r} is not on the screen")
        seen += os.read(controller, 65_536)
    return b""


def drop_from_cache(home: Path) -> None:
    """The next start reads from the disk what no other process has mapped: the modules and libraries that this process
    has loaded, which are those of the program, the library and the models."""
    os.sync()
    files = {Path(name) for module in list(sys.modules.values()) for name in _files_of(module)}
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    files |= {Path(line.split()[-1]) for line in maps if line.endswith(".so")}
    for folder in (CHECKOUT / "edgerag", home / "indexes", (CHECKOUT / "models").resolve()):
        files |= set(folder.rglob("*"))
    for file in files:
        with contextlib.suppress(OSError):
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def _files_of(module: Any) -> list[str]:
    return [name for name in (getattr(module, "__file__", None), getattr(module, "__cached__", None)) if name]


# ------------------------------------------------------------ the app, and when it paints


class WatchedApp(EdgeragApp):
    """Tells of every paint."""

    CSS_PATH = str(CHECKOUT / "edgerag" / "ui" / "tui" / "app.tcss")

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self._awaited: tuple[Callable[[], object], asyncio.Event] | None = None

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        if self._awaited is not None and self._awaited[0]():
            self._awaited[1].set()

    async def painted(self, condition: Callable[[], object]) -> None:
        """Until a paint ends at which ``condition()`` holds."""
        event = asyncio.Event()
        self._awaited = (condition, event)
        async with asyncio.timeout(_PATIENCE_S):
            await event.wait()
        self._awaited = None

    def send_key(self, key: str) -> None:
        """As the driver does it when the terminal sends one."""
        from textual.events import Key

        event = Key(key, key if len(key) == 1 else None)
        event.set_sender(self)
        assert self._driver is not None
        self._driver.send_message(event)

    async def timed_key(self, key: str, condition: Callable[[], object]) -> float:
        began = time.perf_counter()
        self.send_key(key)
        await self.painted(condition)
        return time.perf_counter() - began


@dataclass
class LoopWatch:
    """The longest time in which the event loop did not come round."""

    longest_s: float = 0.0
    _task: asyncio.Task[None] | None = field(default=None)

    async def _run(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.002)
            self.longest_s = max(self.longest_s, time.perf_counter() - before - 0.002)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def take_ms(self) -> float:
        longest, self.longest_s = self.longest_s, 0.0
        return round(1e3 * longest, 1)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


@contextlib.asynccontextmanager
async def running(session: Any) -> AsyncIterator[tuple[WatchedApp, LoopWatch]]:
    app, watch = WatchedApp(session), LoopWatch()
    async with app.run_test(size=_SIZE):
        async with asyncio.timeout(_PATIENCE_S):
            while not app.facts.known:
                await asyncio.sleep(0.01)
        watch.start()
        yield app, watch
        watch.stop()


def screen_of(app: EdgeragApp) -> AskScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, AskScreen)
    return screen


async def begin(app: EdgeragApp, question: str) -> AskScreen:
    """Asks it, whatever stands in the box."""
    from edgerag.types import FilterText

    screen = screen_of(app)
    screen._ask(question, parent_id=None, where=FilterText())
    await asyncio.sleep(0)
    return screen


async def has_words(screen: AskScreen) -> None:
    """Waits for the first words of the model."""
    async with asyncio.timeout(_PATIENCE_S):
        while screen.busy and not (screen._answering is not None and screen._answering.text):
            await asyncio.sleep(0.005)


# ------------------------------------------------------------ keys, stop


async def keys(home: Path, *, count: int) -> dict[str, Any]:
    chance = random.Random(7)
    folder = home / "texts"
    make_folder(folder, chance)
    times: list[float] = []
    with real_session(home, answer_tokens=1_024) as session:
        await asyncio.to_thread(session.warm)
        async with running(session) as (app, watch):
            box = screen_of(app).query_one(QuestionBox)
            app._begin_ingest([folder])
            app.pop_screen()  # the dialog of the ingest; it goes on
            ingesting = 0
            while len(times) < count:
                if not screen_of(app).busy:
                    await has_words(await begin(app, _QUESTION))
                wanted = len(box.text) + 1
                times.append(await app.timed_key(chance.choice("abcdefgh"), partial(_has, box, wanted)))
                ingesting += app.ingest_view.running
                await asyncio.sleep(chance.uniform(0.03, 0.15))  # a fast typist's
            app.stop_ingest()
            longest = watch.take_ms()
            screen_of(app).action_stop()
            while screen_of(app).busy or app.ingest_view.running:
                await asyncio.sleep(0.01)
    return {"key_to_paint_ms": milliseconds(times), "while_ingesting": ingesting, "loop_blocked_ms": longest}


def _has(box: QuestionBox, count: int) -> bool:
    return len(box.text) >= count


def make_folder(folder: Path, chance: random.Random) -> None:
    """More than is ingested while the keys are pressed."""
    folder.mkdir()
    paragraphs = [" ".join(chance.choices(_WORDS, k=90)) + "." for _ in range(200)]
    for number in range(2_000):
        text = "\n\n".join(chance.choices(paragraphs, k=8))
        (folder / f"{number:04}.md").write_text(f"# Text {number}\n\n{text}\n", encoding="utf-8")


async def stops(home: Path, *, rounds: int) -> dict[str, Any]:
    times: list[float] = []
    with real_session(home, answer_tokens=1_024) as session:
        await asyncio.to_thread(session.warm)
        async with running(session) as (app, _):
            while len(times) < rounds:
                screen = await begin(app, _QUESTION)
                await has_words(screen)
                if screen.busy:
                    began = time.perf_counter()
                    app.send_key("escape")
                    while screen.busy:
                        await asyncio.sleep(0.001)
                    times.append(time.perf_counter() - began)
    return {"esc_to_stopped_ms": milliseconds(times)}


# ------------------------------------------------------------ processor time


def used_s() -> float:
    """Processor seconds of this process and of its children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cpu(home: Path, *, tokens: int, rounds: int) -> dict[str, Any]:
    pairs = [(of_plain(paced(tokens)), asyncio.run(of_screen(paced(tokens)))) for _ in range(max(1, rounds // 2))]
    ui_s = statistics.median(screen - plain for plain, screen in pairs)
    real = []
    for _ in range(rounds):
        with real_session(home, answer_tokens=1_024) as session:
            session.warm()
            of_plain(session)  # so that neither of the two is the first to read these sources
            plain = of_plain(session)
            real.append((plain, asyncio.run(of_screen(session))))
    with real_session(home, answer_tokens=1_024) as session:
        session.warm()
        per_token = decode_cpu_s(session)
    return {
        "scripted": {
            "tokens": tokens,
            "plain_s": round(statistics.median(plain for plain, _ in pairs), 2),
            "screen_s": round(statistics.median(screen for _, screen in pairs), 2),
            "extra_s": round(ui_s, 2),
        },
        "real_model": {
            "cpu_s_per_token": round(per_token, 4),
            "extra_of_so_many_tokens": round(ui_s / (per_token * tokens), 3),
            "paired_whole_answers": round(
                sum(screen for _, screen in real) / max(1e-9, sum(plain for plain, _ in real)) - 1, 3
            ),
        },
    }


def paced(tokens: int) -> Any:
    """A session whose answer comes at the pace of a fast model: paragraphs, a list, a table, code, as answers have."""
    chance = random.Random(7)
    session = scripted_session()
    parts: list[str] = []
    while sum(len(part.split()) for part in parts) < tokens:
        parts += [" ".join(chance.choices(_WORDS, k=60)) + " [1].", " ".join(chance.choices(_WORDS, k=70)) + " [2]."]
        parts.append(
            "\n".join(f"- **{chance.choice(_WORDS)}** " + " ".join(chance.choices(_WORDS, k=9)) for _ in range(5))
        )
        parts.append(
            "| Part | Torque |\n|---|---|\n" + "\n".join(f"| {chance.choice(_WORDS)} | {n} |" for n in range(4))
        )
        parts.append("```python\n" + "\n".join(f"{chance.choice(_WORDS)} = {n}" for n in range(6)) + "\n```")
    session.reply = "\n\n".join(parts)
    started = time.perf_counter()

    def wait(index: int) -> None:
        nonlocal started
        if index == 0:
            started = time.perf_counter()
        time.sleep(max(0.0, started + index / _TOKENS_PER_S - time.perf_counter()))

    session.before_delta = wait
    return session


def of_plain(session: Any) -> float:
    """As `edgerag ask` does it, into a file."""
    gc.collect()
    before = used_s()
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")):
        printer = AnswerPrinter()
        for event in session.ask(_QUESTION):
            printer.show(event)
        printer.finish()
    return used_s() - before


async def of_screen(session: Any) -> float:
    """The same over the UI, but for its start and its end."""
    async with running(session) as (app, _):
        await asyncio.sleep(0.5)
        gc.collect()
        before = used_s()
        screen = await begin(app, _QUESTION)
        while screen.busy:
            await asyncio.sleep(0.05)
        return used_s() - before


def decode_cpu_s(session: Session) -> float:
    """Of one token of the real model, its reading left out."""
    before, count = 0.0, 0
    for event in session.ask(_QUESTION):
        if isinstance(event, AnswerDelta) and not before:
            before = used_s()
        if isinstance(event, AnswerDone):
            count = event.answer.tokens.answer
    return (used_s() - before) / max(1, count - 1)


# ------------------------------------------------------------ lists


async def lists(*, documents: int, threads: int) -> dict[str, Any]:
    chance = random.Random(7)
    session = scripted_session()
    store = ThreadStore(None)
    for _ in range(threads):
        fill(store, chance, 2)
    session.kept = store
    kept = [document(number, chance) for number in range(1, documents + 1)]
    session.documents = lambda: list(kept)
    async with running(session) as (app, watch):
        figures: dict[str, Any] = {}

        async def timed(name: str, key: str, condition: Callable[[], object]) -> None:
            await asyncio.sleep(0.3)
            watch.take_ms()
            seconds = await app.timed_key(key, condition)
            await asyncio.sleep(0.3)
            figures[name] = {"ms": round(1e3 * seconds, 1), "loop_blocked_ms": watch.take_ms()}

        pane = screen_of(app)._threads
        await timed("threads_open", "ctrl+t", lambda: pane.at_cursor and pane.display)
        listed = pane._list
        await timed("threads_end", "end", lambda: listed.scroll_offset.y > threads)
        await timed("threads_page", "pageup", lambda: True)
        app.send_key("home")
        await timed("threads_search_line", "slash", lambda: pane._search.has_focus)
        await timed("threads_filtered", "q", lambda: "found" in str(pane.border_title))
        app.send_key("escape")
        await asyncio.sleep(0.5)
        app.send_key("escape")
        await asyncio.sleep(0.5)

        await timed("documents_first_paint", "f3", lambda: isinstance(app.screen, LibraryScreen))
        await asyncio.sleep(1.0)
        app.send_key("escape")
        await timed(
            "documents_open", "f3", lambda: isinstance(app.screen, LibraryScreen) and app.screen.count == documents
        )
        screen = app.screen
        assert isinstance(screen, LibraryScreen)
        await timed("documents_end", "end", lambda: screen.cursor == screen.row_count - 1)
        await timed("documents_page", "pageup", lambda: screen.cursor < screen.row_count - 1)
        await timed("documents_filter_line", "slash", lambda: True)
        await timed("documents_filtered", "7", lambda: 0 < screen.count < documents)
    return figures


def document(number: int, chance: random.Random) -> Document:
    path = f"/docs/{chance.choice(_WORDS)}/{chance.choice(_WORDS)}/text-{number:06}.md"
    return Document(
        id=number,
        path=path,
        root="/docs",
        title=f"Text {number}",
        media_type="text/markdown",
        content_sha256="0" * 64,
        size_bytes=9_000 + number,
        mtime_ns=0,
        page_count=0,
        chunk_count=1 + number % 90,
        pending_count=0,
        warnings=(),
    )


if __name__ == "__main__":
    main()
