"""An ingest as the UI sees it: its events folded into one picture, whichever screen looks at it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from edgerag.types import FileDone, FileReport, FilesDiscovered, IngestDone, IngestEvent, IngestProgress
from edgerag.ui.report import clock
from edgerag.ui.tui.problem import Problem


@dataclass(frozen=True, slots=True)
class IngestView:
    """``running`` until the session's last event; then ``done`` or ``problem`` tells how it ended."""

    running: bool = False
    stopping: bool = False
    paused: bool = False
    file_count: int = 0
    progress: IngestProgress | None = None
    troubles: tuple[FileReport, ...] = ()  # failed and skipped so far
    done: IngestDone | None = None
    problem: Problem | None = None
    paths: tuple[Path, ...] = ()  # that were asked for

    @property
    def can_be_paused(self) -> bool:
        """Or let go on."""
        return self.running and not self.stopping

    @property
    def state(self) -> str:
        """What it is at, for a heading: ``Reading``, ``Paused``, ``Stopping``."""
        if self.stopping:
            return "Stopping"
        return "Paused" if self.paused else "Reading"

    @property
    def is_unfinished(self) -> bool:
        """It ended before its end, or with files that failed: to read the same again does what is left."""
        ended_well = self.done is not None and not self.done.interrupted and not self.done.count("failed")
        return bool(self.paths) and not self.running and not ended_well

    def after(self, event: IngestEvent) -> IngestView:
        match event:
            case FilesDiscovered():
                return replace(self, file_count=event.file_count)
            case FileDone():
                if event.report.outcome in ("failed", "skipped"):
                    return replace(self, troubles=(*self.troubles, event.report))
                return self
            case IngestProgress():
                return replace(self, progress=event)
            case IngestDone():
                return replace(self, done=event, troubles=troubles_of(event))

    @property
    def fraction(self) -> float:
        """Share of the work that is done. Chunks are the work; files stand for chunks not yet counted."""
        progress = self.progress
        if self.done is not None and not self.done.interrupted:
            return 1.0
        if progress is None:
            return 0.0
        total = progress.files_total + progress.chunks_total
        return min(1.0, (progress.files_done + progress.chunks_done) / total) if total else 0.0

    def figures(self) -> str:
        """``12/112 files · 240/310 chunks · 45 chunks/s · 2 min left``; paused, no time is promised."""
        progress = self.progress
        if progress is None:
            found = f"{self.file_count:,} files found" if self.file_count else "looking for files"
            return f"{found} · paused" if self.paused else found
        parts = [
            f"{progress.files_done:,}/{progress.files_total:,} files",
            f"{progress.chunks_done:,}/{progress.chunks_total:,} chunks",
        ]
        if self.paused:
            return " · ".join([*parts, "paused"])
        parts.append(f"{progress.chunks_per_second:.0f} chunks/s")
        if progress.seconds_left is not None:
            parts.append(f"{clock(progress.seconds_left)} left")
        return " · ".join(parts)


def troubles_of(done: IngestDone) -> tuple[FileReport, ...]:
    """Failed first, then skipped."""
    return tuple(r for outcome in ("failed", "skipped") for r in done.reports if r.outcome == outcome)


def summary(done: IngestDone) -> str:
    """``5 ingested, 2 unchanged, 1 failed · 63 chunks embedded in 4.1 s``; what is zero goes unsaid."""
    counts = [
        f"{done.count(outcome)} {outcome}"
        for outcome in ("ingested", "unchanged", "removed", "skipped", "failed")
        if done.count(outcome)
    ]
    figures = f"{done.chunks_embedded:,} chunks embedded in {clock(done.seconds)}"
    return f"{', '.join(counts) or 'no files'} · {figures}"


def bar(fraction: float, width: int) -> tuple[str, str]:
    """A bar of ``width`` cells as its full and its empty part."""
    full = round(max(0.0, min(1.0, fraction)) * width)
    return "━" * full, "─" * (width - full)
