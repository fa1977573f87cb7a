"""Says what is wrong with what a stopped writer left, and with how it ended."""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faults import writer
from faults.children import EXPLAINED, FINISHED, Ended, Fault, arm, in_child, read, write
from faults.state import State, read_state

_KILLED = ("kill-before", "kill-after", "short-kill")


class Judge:
    """Knows the state after each step of an undisturbed run."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self._number = 0
        self.states: list[State] = []
        with self.base() as base:

            def work(tell: Callable[[Any], None]) -> None:
                writer.run(base / "lib", start=0, report=lambda done: tell([done, asdict(read_state(base / "lib"))]))

            code, said, _ = in_child(work)
            assert code == FINISHED, said[-1]
            self.states = [State(**state) for _, state in said]
            assert not any(state.wrong for state in self.states), self.states
            self.files = sorted(path.name for path in (base / "lib").rglob("*"))

    @contextlib.contextmanager
    def base(self) -> Iterator[Path]:
        self._number += 1
        folder = self.scratch / str(self._number)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def differs(self, state: State, done: int | None) -> list[str]:
        """What is wrong with a library in which so many steps were reported as done. The next may be, as a whole."""
        wrong = list(state.wrong)
        last = -1 if done is None else done
        allowed = [self.states[number] for number in (last, last + 1) if 0 <= number < len(self.states)]
        if state.content is None:
            if done is not None:
                wrong.append(f"there is no library after {done} steps")
        elif all(state.content != each.content for each in allowed):
            wrong.append(f"the content is neither that of step {done} nor of the next: {state.content}")
        elif not _is_among(state, allowed) and 0 <= last < len(writer.STEPS) and writer.STEPS[last].commits == "one":
            wrong.append(f"the segments are neither those of step {done} nor of the next: {state.layout}")
        return wrong

    def finish(self, base: Path, *, done: int | None, fault: Fault | None = None) -> list[str]:
        """Runs the writer to its end, stopped once more on its way if a fault is given; what is wrong then."""
        wrong = []
        if fault is not None:
            ended = write(base, fault, start=done or 0)
            wrong += outcome(ended, fault)
            done = done if ended.done is None else ended.done
            wrong += [f"stopped again: {text}" for text in self.differs(read(base), done)]

        def work(tell: Callable[[Any], None]) -> None:
            arm(base, Fault())
            writer.run(base / "lib", start=done or 0, report=lambda _: None)
            # Before it is read: a reader may leave an empty -wal behind.
            tell(["files", sorted(path.name for path in (base / "lib").rglob("*"))])
            tell(["state", asdict(read_state(base / "lib"))])

        code, said, _ = in_child(work)
        if code != FINISHED:
            wrong.append(f"the next run ended with {code}: {said}")
            return wrong
        files, state = said[0][1], State(**said[1][1])
        wrong += state.wrong
        if state.content != self.states[-1].content:
            wrong.append(f"the content in the end is not that of an undisturbed run: {state.content}")
        if len(files) != len(self.files) or any(name.endswith((".tmp", "-wal", "-shm")) for name in files):
            wrong.append(f"left behind: {files} where an undisturbed run leaves {self.files}")
        return wrong


def _is_among(state: State, allowed: list[State]) -> bool:
    return any((state.content, state.layout) == (each.content, each.layout) for each in allowed)


def outcome(ended: Ended, fault: Fault) -> list[str]:
    """What is wrong with how a writer ended, as its user sees it."""
    if ended.hung:
        return ["the writer hung"]
    if fault.kind in _KILLED:
        # In a second run the place may lie behind its end.
        return [] if ended.code in (-signal.SIGKILL, FINISHED) else [f"not killed but ended: {ended}"]
    if ended.code == FINISHED:
        return []
    if ended.code != EXPLAINED or ended.error is None:
        return [f"a raw error: {ended.error}"]
    name, message, remedy = ended.error
    if fault.kind == "short":
        return [f"a short write stopped it: {name}: {message}"]
    if name != "StorageFull" or not message.endswith((".", "!")) or not remedy:
        return [f"not the right error: {name}: {message!r} {remedy!r}"]
    return []
