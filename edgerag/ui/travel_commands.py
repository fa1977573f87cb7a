"""``edgerag library export``, ``import``, ``backup`` and ``repair``: libraries that leave, arrive and are mended."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgerag.ask.count_text import counted
from edgerag.errors import UsageError
from edgerag.locations import user_path
from edgerag.session import Session
from edgerag.ui import output, report
from edgerag.ui.plain import one_line

if TYPE_CHECKING:
    from edgerag.index.package import Manifest


def export(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    return _leave(session, arguments, arguments.name)


def backup(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    return _leave(session, arguments, session.settings.library.name)


def _leave(session: Session, arguments: argparse.Namespace, name: str) -> int:
    target = user_path(arguments.file)
    if not target.parent.is_dir():
        raise UsageError(f"There is no folder {target.parent}.", remedy="Make it, or name another file.")
    session.unlock_called(name)
    with report.progress_bar(quiet=arguments.quiet) as bar:
        manifest = session.export_library(name, target, progress=bar.show_bytes)
    _tell(arguments, manifest.library, manifest, target)
    report.say(f"{name} is in {target}: {_contents(manifest)}, {output.size(target.stat().st_size)}.")
    return report.EXIT_OK


def import_(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    source = user_path(arguments.file)
    if not source.is_file():
        raise UsageError(f"There is no file {source}.", remedy="Name a file of `edgerag library export`.")
    # A bar would be painted over the question for the passphrase.
    with report.progress_bar(quiet=arguments.quiet or session.is_encrypted_package(source)) as bar:
        name, manifest = session.import_library(source, arguments.name, progress=bar.show_bytes)
    _tell(arguments, name, manifest, source)
    report.say(f"Library {name} is here: {_contents(manifest)}. Ask it with --library {name}.")
    return report.EXIT_OK


def _contents(manifest: Manifest) -> str:
    return (
        f"{counted(manifest.document_count, 'document')}, {counted(manifest.chunk_count, 'passage')}, "
        f"made with the embedder {manifest.embedder.name!r}"
    )


def _tell(arguments: argparse.Namespace, name: str, manifest: Manifest, file: Path) -> None:
    if arguments.json:
        output.write_json({"name": name, "file": str(file), **dataclasses.asdict(manifest)})


def repair(session: Session, arguments: argparse.Namespace) -> int:
    """Exit code 1 if something is lost for good. Raises EdgeragError."""
    database, segments = session.repair_library()
    waiting = sum(segment.lost for segment in segments)
    if arguments.json:
        value: dict[str, Any] = {"database": dataclasses.asdict(database)}
        output.write_json({**value, "segments": [dataclasses.asdict(segment) for segment in segments]})
    if database.state == "whole" and not segments:
        report.say("Nothing to mend: the library is whole.")
    if database.bits:
        report.say(f"Database: {database.bits} flipped bits were put right by its checksums.")
    if database.state == "sums":
        report.say("Checksums: those of the database file did not fit it, or were damaged, and were made anew.")
        report.say("Database: whole. Every row, text and word was compared.")
    if database.state == "put back":
        report.say("Database: put back out of the copy that was made before it began to be brought up; it is whole.")
    if database.state == "rebuilt":
        report.say("Database: written anew out of what could be read, its keyword index out of the texts.")
    for loss in database.losses:
        report.say(f"  {one_line(loss.path, 200)}: {one_line(loss.what, 300)}")
    for segment in segments:
        report.say(f"Segment {segment.file}: {segment.saved:,} vectors saved into a new one, {segment.lost:,} lost.")
    if waiting:
        report.say(f"{waiting:,} passages are found by words only until the next `edgerag ingest` embeds them again.")
    return report.EXIT_SOME_FAILED if database.losses else report.EXIT_OK


COMMANDS: Mapping[str, Callable[[Session, argparse.Namespace], int]] = {
    "export": export,
    "import": import_,
    "backup": backup,
    "repair": repair,
}
