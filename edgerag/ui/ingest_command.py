"""``edgerag ingest``: once, or following the named folders; with its report as a file."""

from __future__ import annotations

import argparse
import dataclasses
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgerag.config import PASSWORD_VARIABLE
from edgerag.errors import UsageError
from edgerag.ingest.report import ReportFile, merged
from edgerag.locations import user_path
from edgerag.machine.courtesy import step_back
from edgerag.session import Session
from edgerag.types import FileReport, IngestDone, IngestProgress, WatchEvent, WatchNote
from edgerag.ui import output, report

_LONGEST_PASSWORD_FILE = 1_000_000  # bytes


def ingest_flags(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings of the section ``ingest`` that the command line gives."""
    flags: dict[str, Any] = {}
    for key in ("ocr", "ocr_languages", "include", "exclude", "max_cpu"):
        value = getattr(arguments, key, None)
        if value:
            flags[key] = value
    if getattr(arguments, "hidden", False):
        flags["hidden"] = True
    if getattr(arguments, "eager", False):
        flags |= {"nice": 0, "polite": False}
    return flags


def run_ingest(session: Session, arguments: argparse.Namespace, stop: threading.Event) -> int:
    """``stop`` is set when the user has had enough. Raises EdgeragError."""
    paths = [user_path(path) for path in arguments.paths]
    file = ReportFile(user_path(arguments.report)) if arguments.report is not None else None
    step_back(session.settings.ingest.nice)
    last: IngestDone | None = None  # of all that was done, where folders are followed
    with report.progress_bar(quiet=arguments.quiet) as bar:
        for event in _events(session, arguments, paths, file, stop):
            match event:
                case IngestProgress():
                    bar.show(event)
                case WatchNote():
                    _show_note(event, arguments)
                case IngestDone():
                    is_first = last is None
                    last = event if last is None else merged(last, event)
                    if file is not None and (is_first or _happened(event)):
                        file.write(last)
                    if arguments.watch and (is_first or _happened(event)):
                        _show_done(event, arguments)
    if last is None:  # stopped before it began
        return report.EXIT_INTERRUPTED
    if not arguments.watch:
        if arguments.json:
            output.write_json(_record(last))
        report.ingest_summary(last)
        if not last.reports and not last.interrupted:
            report.say("Nothing to read there: no files.")
    if last.interrupted:
        return report.EXIT_INTERRUPTED
    return report.EXIT_SOME_FAILED if went_wrong(last.reports, paths) else report.EXIT_OK


def _events(
    session: Session,
    arguments: argparse.Namespace,
    paths: list[Path],
    file: ReportFile | None,
    stop: threading.Event,
) -> Iterator[WatchEvent]:
    run = session.watch if arguments.watch else session.ingest
    return run(
        paths,
        tags=arguments.tag,
        passwords=_passwords(arguments),
        withheld=() if file is None else file.withheld,
        prune=arguments.prune,
        ocr_again=bool(arguments.ocr or arguments.ocr_languages),  # given here and now: it is meant for these files
        cancelled=stop.is_set,
    )


def _passwords(arguments: argparse.Namespace) -> tuple[str, ...]:
    """All that are given, each once. Raises UsageError for a file that cannot be read."""
    given = [*arguments.password, *os.environ.get(PASSWORD_VARIABLE, "").splitlines()]
    if arguments.password_file:
        path = user_path(arguments.password_file)
        try:
            with path.open("rb") as file:
                data = file.read(_LONGEST_PASSWORD_FILE + 1)
        except OSError as error:
            raise UsageError(f"The passwords in {str(path)!r} cannot be read: {error.strerror}.") from error
        if len(data) > _LONGEST_PASSWORD_FILE:
            raise UsageError(
                f"{str(path)!r} is no list of passwords: it is longer than {_LONGEST_PASSWORD_FILE:,} bytes."
            )
        given += data.decode("utf-8-sig", "replace").splitlines()
    return tuple(dict.fromkeys(filter(None, given)))


def went_wrong(reports: tuple[FileReport, ...], named: list[Path]) -> bool:
    """A failed file; or a file that the user named himself and that was not read."""
    by_name = {str(path) for path in named}
    return any(r.outcome == "failed" or (r.outcome == "skipped" and r.path in by_name) for r in reports)


def _happened(done: IngestDone) -> bool:
    return done.interrupted or bool(done.notes) or any(map(_is_news, done.reports))


def _is_news(file: FileReport) -> bool:
    return file.outcome != "unchanged" or bool(file.reason)  # a file that moved has a reason


def _record(done: IngestDone) -> dict[str, Any]:
    return {**dataclasses.asdict(done), "reports": [dataclasses.asdict(r) for r in done.reports]}


def _show_done(done: IngestDone, arguments: argparse.Namespace) -> None:
    """One ingest of many: what it changed."""
    if arguments.json:
        changed = tuple(filter(_is_news, done.reports))
        output.write_json_line({"event": "ingested", **_record(dataclasses.replace(done, reports=changed))})
    report.ingest_summary(done)


def _show_note(note: WatchNote, arguments: argparse.Namespace) -> None:
    if arguments.json:
        output.write_json_line({"event": note.kind, "message": note.message})
    report.say(note.message)
