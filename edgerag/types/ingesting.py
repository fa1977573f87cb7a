"""What an ingest tells while it works, and of each file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgerag.types.documents import text_share

Outcome = Literal["ingested", "unchanged", "skipped", "failed", "removed"]


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file."""

    path: str
    outcome: Outcome
    reason: str  # empty when there is nothing to explain
    chunk_count: int
    media_type: str = ""
    page_count: int = 0
    character_count: int = 0  # of the text
    size_bytes: int = 0  # of the file, or of the member itself; 0 where not known
    seconds: float = 0.0  # spent on parsing, chunking and storing it; embedding goes over all files together
    warnings: tuple[str, ...] = ()
    moved_from: str = ""  # the path that it had before, when it was found to have moved
    language: str = ""  # of a document; "" of a file that is none

    @property
    def text_share(self) -> float | None:
        """Characters of text per byte of the file; None where that says nothing."""
        return text_share(self.character_count, self.size_bytes)


@dataclass(frozen=True, slots=True)
class FilesDiscovered:
    file_count: int


@dataclass(frozen=True, slots=True)
class FileDone:
    report: FileReport


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """How far the run is. Files are parsed first, their chunks embedded as they come."""

    files_done: int
    files_total: int
    chunks_done: int  # embedded and committed in this run
    chunks_total: int  # known so far
    chunks_per_second: float
    seconds_left: float | None  # None until it can be told
    current: str  # file or stage at work


@dataclass(frozen=True, slots=True)
class IngestDone:
    reports: tuple[FileReport, ...]
    chunks_embedded: int
    seconds: float
    interrupted: bool
    notes: tuple[str, ...] = ()  # what the user should know of the index itself, in sentences

    def count(self, outcome: Outcome) -> int:
        return sum(1 for report in self.reports if report.outcome == outcome)


@dataclass(frozen=True, slots=True)
class WatchNote:
    """What someone who follows a folder should know, in a sentence."""

    kind: Literal["watching", "root_gone", "root_back", "busy", "looking"]
    message: str


IngestEvent = FilesDiscovered | FileDone | IngestProgress | IngestDone
WatchEvent = IngestEvent | WatchNote
