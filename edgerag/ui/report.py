"""Standard error: progress, timings, warnings and failures, in sentences. And the exit codes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edgerag.errors import EdgeragError
from edgerag.types import (
    Answer,
    BringingUp,
    BringingUpStage,
    FileReport,
    IngestDone,
    IngestProgress,
    MergeProgress,
    ReembedProgress,
)
from edgerag.ui.cells import cell_count, padded
from edgerag.ui.output import reuse_words
from edgerag.ui.place import short_path
from edgerag.ui.plain import one_line, plain
from edgerag.ui.plain_marks import foreign_words
from edgerag.ui.warning_kinds import KINDS, kind_of, rank_of

if TYPE_CHECKING:
    from rich.progress import Progress

EXIT_OK = 0
EXIT_SOME_FAILED = 1
EXIT_INTERRUPTED = 130
_REASONS_SHOWN = 20
_SENTENCE_WIDTH = 120
_WARNINGS_SHOWN = 5
_WARNING_WIDTH = 160
_NAME_WIDTH = 40
_UPGRADE_UNITS: dict[BringingUpStage, str] = {
    "checking": "documents",
    "keeping a copy": "pages",
    "changing": "changes",
    "checking again": "documents",
}


def say(text: str) -> None:
    """One line for the person at the terminal."""
    # Standard error refuses: nobody is left to tell, and the data matters more.
    with contextlib.suppress(OSError):
        sys.stderr.write(plain(text) + "\n")
        sys.stderr.flush()


def fail(error: EdgeragError) -> int:
    """Says what went wrong and gives the exit code."""
    say(f"edgerag: {error}")
    return error.exit_code


def unsupported_sentences(answer: Answer) -> None:
    """Names the sentences of the answer that stand in no source, each with the reason."""
    unsupported = [sentence for sentence in answer.sentences if sentence.support == "unsupported"]
    for sentence in unsupported[:_REASONS_SHOWN]:
        text = foreign_words(one_line(answer.text[sentence.start : sentence.end], _SENTENCE_WIDTH))
        say(f"[?] not in the sources: “{text}” {sentence.reason}")
    if len(unsupported) > _REASONS_SHOWN:
        say(f"  ... and {len(unsupported) - _REASONS_SHOWN} more (--json lists all)")


def timings_line(answer: Answer) -> str:
    """``first token 0.8 s, 92 tokens at 71 tok/s, 2.1 s in all, prompt 512 tokens (300 of them known), smollm2``"""
    seconds = {time.stage: time.seconds for time in answer.timings}
    parts = []
    if "first_token" in seconds:  # all that came before the model's first token, not its prefill alone
        parts.append(f"first token {seconds['total'] - seconds['generate']:.2f} s")
    if answer.tokens.answer and seconds.get("generate"):
        parts.append(f"{answer.tokens.answer} tokens at {answer.tokens.answer / seconds['generate']:.0f} tok/s")
    if "total" in seconds:
        parts.append(f"{seconds['total']:.2f} s in all")
        if answer.plan is not None and (expected := answer.plan.forecast) is not None and "generate" in seconds:
            parts[-1] += f" (expected {expected.seconds:.1f} s ± {expected.error:.0%}, loading apart)"
    if answer.tokens.prompt:
        known = reuse_words(answer.prefill)
        parts.append(f"prompt {answer.tokens.prompt} tokens{f' ({known})' if known else ''}")
    if answer.model:
        parts.append(answer.model)
    return ", ".join(parts)


def ingest_summary(done: IngestDone) -> None:
    """The closing lines of an ingest: counts, then each file that needs a look with its reason."""
    say(
        f"{done.count('ingested')} ingested, {done.count('unchanged')} unchanged, {done.count('removed')} removed, "
        f"{done.count('skipped')} skipped, {done.count('failed')} failed; "
        f"{done.chunks_embedded} chunks embedded in {done.seconds:.1f} s."
    )
    for note in done.notes:
        say(f"note: {note}")
    for line in warning_lines(done.reports):
        say(line)
    for outcome in ("failed", "skipped"):
        _reasons([report for report in done.reports if report.outcome == outcome])
    if done.interrupted:
        say("Interrupted. What was read is kept; the same command goes on where it stopped.")


def warning_lines(reports: Iterable[FileReport]) -> list[str]:
    """What there is to know of the files that were read now: how many by kind, and the first of them by name."""
    warned = [report for report in reports if report.outcome == "ingested" and report.warnings]
    if not warned:
        return []
    counts = Counter(kind for report in warned for kind in {kind_of(warning) for warning in report.warnings})
    kinds = ", ".join(f"{kind} in {counts[kind]}" for kind in KINDS if counts[kind])
    lines = [f"{len(warned)} {'file has' if len(warned) == 1 else 'files have'} warnings: {kinds}."]
    sentences = [(rank_of(warning), report.path, warning) for report in warned for warning in report.warnings]
    sentences.sort(key=lambda each: each[:2])
    lines += [
        f"  warning: {short_path(path)}: {one_line(text, _WARNING_WIDTH)}"
        for _, path, text in sentences[:_WARNINGS_SHOWN]
    ]
    if len(sentences) > _WARNINGS_SHOWN:
        lines.append(f"  ... and {len(sentences) - _WARNINGS_SHOWN} more (`edgerag status --files` lists all)")
    return lines


def _reasons(reports: list[FileReport]) -> None:
    for report in reports[:_REASONS_SHOWN]:
        say(f"  {report.outcome}: {short_path(report.path)}: {report.reason}")
    if len(reports) > _REASONS_SHOWN:
        say(f"  ... and {len(reports) - _REASONS_SHOWN} more {reports[-1].outcome} (--json lists all)")


class ProgressBar:
    """How far an ingest or a compaction is; nothing where there is no terminal."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, text="", current="") if progress else None

    def show(self, event: IngestProgress) -> None:
        if self._progress is None or self._task is None:
            return
        left = "" if event.seconds_left is None else f", {clock(event.seconds_left)} left"
        text = (
            f"{event.files_done}/{event.files_total} files, {event.chunks_done}/{event.chunks_total} chunks, "
            f"{event.chunks_per_second:.0f}/s{left}  "
        )
        self._progress.update(
            self._task,
            # Chunks are the work; while files are still being parsed their number is not known yet.
            completed=event.chunks_done + event.files_done,
            total=max(1, event.chunks_total + event.files_total),
            text=text,
            current=one_line(event.current, 40),
        )

    def show_reembed(self, event: ReembedProgress) -> None:
        """The same for the change to another embedder."""
        if self._progress is None or self._task is None:
            return
        left = "" if event.seconds_left is None else f", {clock(event.seconds_left)} left"
        self._progress.update(
            self._task,
            completed=event.chunks_done,
            total=max(1, event.chunks_total),
            text=f"{event.chunks_done:,}/{event.chunks_total:,} passages, {event.chunks_per_second:.0f}/s{left}  ",
            current=one_line(event.current, 60),
        )

    def show_questions(self, done: int, total: int) -> None:
        """The same for the questions of an evaluation."""
        if self._progress is None or self._task is None:
            return
        self._progress.update(
            self._task, completed=done, total=max(1, total), text=f"{done:,}/{total:,} questions", current=""
        )

    def show_merge(self, event: MergeProgress) -> None:
        """The same for the making of segments."""
        if self._progress is None or self._task is None:
            return
        self._progress.update(
            self._task,
            completed=event.done_rows,
            total=max(1, event.all_rows),
            text=f"{event.done_rows:,}/{event.all_rows:,} vectors, ",
            current=event.stage,
        )

    def show_bytes(self, done: int, total: int) -> None:
        """The same for a file that is written or read."""
        if self._progress is None or self._task is None:
            return
        text = f"{done / 1e6:,.0f}/{total / 1e6:,.0f} MB"
        self._progress.update(self._task, completed=done, total=max(1, total), text=text, current="")


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[ProgressBar]:
    if quiet or not sys.stderr.isatty():
        yield ProgressBar(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True, no_color="NO_COLOR" in os.environ, highlight=False)
    columns = (BarColumn(bar_width=24), TextColumn("{task.fields[text]}{task.fields[current]}", markup=False))
    with Progress(*columns, console=console, transient=True) as progress:
        yield ProgressBar(progress)


def upgrade_line(state: BringingUp) -> str:
    """``Library default is brought up to this version: checking, 120 of 4,000 documents``"""
    words = f"Library {one_line(state.library, _NAME_WIDTH)} is brought up to this version: {state.stage}"
    return f"{words}, {state.done:,} of {state.total:,} {_UPGRADE_UNITS[state.stage]}" if state.total else words


class Upgrade:
    """Says how far a library is brought up: on a terminal in one line that changes, else once that it is."""

    def __init__(self) -> None:
        self._width = 0  # of what stands on the line

    def __call__(self, state: BringingUp | None, /) -> None:
        if not sys.stderr.isatty():
            if state is not None and not self._width:
                self._width = 1
                say(f"Library {one_line(state.library, _NAME_WIDTH)} is of an older version and is brought up first.")
            return
        text = "" if state is None else plain(upgrade_line(state))
        with contextlib.suppress(OSError):  # nobody is left to tell, and the data matters more
            sys.stderr.write(f"\r{padded(text, self._width)}" + ("\r" if state is None else ""))
            sys.stderr.flush()
        self._width = cell_count(text)


def clock(seconds: float) -> str:
    """``45 s``, ``3 min``, ``1 h 20 min``"""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
