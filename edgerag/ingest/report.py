"""The report of an ingest as a file: each file with its state, its reason and what was found in it, as JSON or CSV.

Written whole or not at all. Whether it can be written is found out before the ingest begins, not after hours of work.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edgerag.errors import UsageError
from edgerag.ingest.parse.own_report import COLUMNS, JSON_KEY, JSON_VALUE
from edgerag.machine.disk import is_full, storage_error, sync_folder
from edgerag.safe_text import SafeText
from edgerag.types import FileReport, IngestDone

# As much as the report of some hundred files: a disk that has not even that is told before the work.
_ROOM_BYTES = 65_536
# Characters that JSON may hold raw but that a terminal could obey; lone surrogates are written as escapes anyway.
_RAW_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# A spreadsheet takes a cell that begins so for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class ReportFile:
    """A report that is to be written to ``path``."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError for a path that can be no report, StorageFull where there is no room for it."""
        render = _RENDERERS.get(path.suffix.lower())
        if render is None:
            raise UsageError(
                f"A report cannot be written to {str(path)!r}: its name says neither .json nor .csv.",
                remedy="Name it so, for example report.json.",
            )
        if path.is_dir():
            raise UsageError(f"A report cannot be written to {str(path)!r}: it is a folder.")
        if not path.parent.is_dir():
            raise UsageError(f"A report cannot be written to {str(path)!r}: there is no folder {str(path.parent)!r}.")
        self._render: Callable[[IngestDone], str] = render
        self._path = path
        self._partial = path.with_name(f".{path.name}.partial")
        try:
            self._write(b" " * _ROOM_BYTES, keep=False)
        except OSError as error:
            if is_full(error):
                raise storage_error(error, path) from error
            raise UsageError(
                f"A report cannot be written to {str(path)!r}: the folder {str(path.parent)!r} takes no file"
                f" ({error.strerror or error}).",
                remedy="Name a folder that you may write to.",
            ) from error

    @property
    def withheld(self) -> tuple[str, ...]:
        """Paths that an ingest must not read: the report may lie in a folder of documents."""
        return tuple(os.path.abspath(path) for path in (self._path, self._partial))  # noqa: PTH100

    def write(self, done: IngestDone) -> None:
        """Raises StorageFull; then an older report stands as it was."""
        # Undecodable bytes of names become escapes, which JSON reads back as the same characters.
        try:
            self._write(self._render(done).encode("utf-8", "backslashreplace"), keep=True)
        except OSError as error:
            raise storage_error(error, self._path) from error

    def _write(self, data: bytes, *, keep: bool) -> None:
        """Raises OSError."""
        try:
            with self._partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if keep:
                self._partial.replace(self._path)
                sync_folder(self._path.parent)
        finally:
            with contextlib.suppress(OSError):  # renamed, or never made
                self._partial.unlink()


def file_record(report: FileReport) -> Mapping[str, Any]:
    """One file as the report has it; the keys are COLUMNS."""
    share = report.text_share
    return {
        "path": report.path,
        "state": report.outcome,
        "reason": report.reason,
        "media_type": report.media_type,
        "language": report.language,
        "pages": report.page_count,
        "chunks": report.chunk_count,
        "seconds": round(report.seconds, 3),
        "characters": report.character_count,
        "size_bytes": report.size_bytes,
        "text_share": None if share is None else round(share, 4),
        "warnings": list(report.warnings),
    }


def merged(earlier: IngestDone, later: IngestDone) -> IngestDone:
    """What two ingests, one after the other, say together; of a file the later has the word, if anything happened.
    A file that moved since is told of under its new path alone."""
    moved = {report.moved_from for report in later.reports}
    reports = {report.path: report for report in earlier.reports if report.path not in moved}
    for report in later.reports:
        if report.outcome != "unchanged" or report.path not in reports:
            reports[report.path] = report
    return IngestDone(
        reports=tuple(reports[path] for path in sorted(reports)),
        chunks_embedded=earlier.chunks_embedded + later.chunks_embedded,
        seconds=earlier.seconds + later.seconds,
        interrupted=later.interrupted,
        notes=tuple(dict.fromkeys((*earlier.notes, *later.notes))),
    )


def _json(done: IngestDone) -> str:
    value = {
        JSON_KEY: JSON_VALUE,
        "files": [file_record(report) for report in done.reports],
        "chunks_embedded": done.chunks_embedded,
        "seconds": round(done.seconds, 3),
        "interrupted": done.interrupted,
        "notes": list(done.notes),
    }
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _RAW_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def _csv(done: IngestDone) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    for report in done.reports:
        record = {**file_record(report), "warnings": " ".join(report.warnings)}
        writer.writerow([_cell(record[column]) for column in COLUMNS])
    return table.getvalue()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    if isinstance(value, str):
        surrogates = text.encode("utf-8", "backslashreplace").decode("utf-8")
        text = SafeText().feed(surrogates)
        return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
    return text


_RENDERERS: Mapping[str, Callable[[IngestDone], str]] = {".json": _json, ".csv": _csv}
