"""What a library is made of and what is done to it as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a diagnosis."""

    name: str
    severity: Literal["ok", "info", "warning", "error"]
    message: str
    remedy: str = ""
    figure: float | None = None  # what was measured or counted, where that is one number
    unit: str = ""  # of the figure

    @property
    def state(self) -> Literal["ok", "warn", "fail"]:
        """For programs that ask whether something has to be done."""
        states: dict[str, Literal["ok", "warn", "fail"]] = {"warning": "warn", "error": "fail"}
        return states.get(self.severity, "ok")


BringingUpStage = Literal["checking", "keeping a copy", "changing", "checking again"]


@dataclass(frozen=True, slots=True)
class BringingUp:
    """How far a library that an older version of this program wrote is: ``done`` of ``total`` documents, pages of its
    database, or changes."""

    library: str  # the name of its folder
    stage: BringingUpStage
    done: int
    total: int


class BringingUpWatch(Protocol):
    """Told how far it is, many times a second; None: it is over, whatever came of it. What it raises stops the work,
    and what was committed stays."""

    def __call__(self, state: BringingUp | None, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A row of the tuning guide that fits this machine and these settings."""

    key: str
    symptom: str  # to be expected
    why: str  # what makes it fit here
    setting: str  # "" where a command helps and no setting
    value: str
    command: str  # that does it
    effect: str
    measured_in: tuple[str, ...]  # files of bench/results


@dataclass(frozen=True, slots=True)
class SegmentStatus:
    name: str
    vector_count: int
    dead_count: int  # vectors of removed chunks, still in the file
    size_bytes: int
    block_count: int
    resident_bytes: int  # of this process
    walk: str  # how it is searched: "exact scan", "1-bit codes", ...


@dataclass(frozen=True, slots=True)
class BlockHeat:
    """One block of a segment file, and how it was used since this process mapped it."""

    number: int  # in the file, from 0
    kind: str  # the section whose rows it holds: "levels", "links", "bits", "nibbles", "vectors"; "labels" in old files
    size_bytes: int
    resident_bytes: int  # mapped in this process
    cached_bytes: int  # held by the system's page cache, whoever read it
    hits: int
    idle_s: float | None  # seconds since the last use, or since it was mapped; None where that is not known


@dataclass(frozen=True, slots=True)
class SegmentBlocks:
    """The blocks of one segment file, in the order of the file."""

    name: str
    blocks: tuple[BlockHeat, ...]


@dataclass(frozen=True, slots=True)
class MergeProgress:
    """How far the making of segments is."""

    stage: Literal["reading", "linking", "writing"]  # of the segment under construction
    done_rows: int
    all_rows: int


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a seal or a compaction did. ``cancelled``: it stopped early, and what it had finished stays."""

    segments_before: int
    segments_after: int
    bytes_before: int  # of the segment files
    bytes_after: int
    rows_written: int  # into new segments
    rows_dropped: int  # vectors of removed chunks that are in no file any more
    damaged: tuple[str, ...]  # segments that were left as they are because they cannot be read, in sentences
    notes: tuple[str, ...]  # what was not done and why, in sentences
    cancelled: bool


@dataclass(frozen=True, slots=True)
class ReembedPrice:
    """What changing a library over to another embedder would take."""

    embedder: str
    chunks_left: int  # not embedded by an earlier run
    chunks_total: int
    seconds: float  # about, by the speed measured on this machine
    room_bytes: int  # on the disk at its highest, beside the index in use
    free_bytes: int


@dataclass(frozen=True, slots=True)
class ReembedProgress:
    """How far the change to another embedder is."""

    chunks_done: int  # those of earlier runs among them
    chunks_total: int
    chunks_per_second: float
    seconds_left: float | None  # None until it can be told
    current: str  # what else is going on


@dataclass(frozen=True, slots=True)
class ReembedDone:
    """``interrupted``: the library is searched with its old embedder as before, and what was made is kept."""

    embedder: str
    chunks_embedded: int  # in this run
    chunks_total: int
    seconds: float
    interrupted: bool


ReembedEvent = ReembedProgress | ReembedDone


@dataclass(frozen=True, slots=True)
class LibraryStatus:
    name: str
    folder: str
    embedder: str
    dimension: int
    document_count: int
    chunk_count: int
    pending_count: int
    size_bytes: int
    budget_bytes: int
    resident_bytes: int
    segments: tuple[SegmentStatus, ...]
    unsealed_count: int = 0  # vectors in the database, not yet in a segment
    limitation: str = ""  # why the budget cannot be enforced here; empty where it is
    is_encrypted: bool = False


@dataclass(frozen=True, slots=True)
class LockedLibrary:
    """What is known of an encrypted library without its key."""

    name: str
    folder: str
    opened_by: str  # "passphrase" or "key file"
    size_bytes: int


@dataclass(frozen=True, slots=True)
class KvChanges:
    """Which states of the model are those of a text that was edited or is gone."""

    through: int  # number of the last change in it, or what was asked for if there is none
    deprecated: tuple[str, ...] = ()  # names of states whose chunk was edited or left its document
    dropped: tuple[str, ...] = ()  # names of removed documents: every state of theirs has to go
    everything: bool = False  # more changes than are remembered one by one: every state of this library has to go

    def __bool__(self) -> bool:
        return bool(self.deprecated or self.dropped or self.everything)


class KvSink(Protocol):
    """Where a library's changes of states go."""

    def __call__(self, changes: KvChanges, /) -> bool:
        """Carries them out; whether that is done and need not be told again. May be told twice."""
        ...
