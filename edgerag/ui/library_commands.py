"""``edgerag library``: whether the files of a library are whole, and making few segments of many."""

from __future__ import annotations

import argparse
import dataclasses
import threading
from typing import TYPE_CHECKING

from edgerag.errors import LibraryError
from edgerag.session import Session
from edgerag.types import MergeReport
from edgerag.ui import output, report

if TYPE_CHECKING:
    from edgerag.types import Finding


def verify(session: Session, arguments: argparse.Namespace) -> int:
    """One line for each part of the library; each damaged one names file and block. Raises EdgeragError."""
    findings: list[Finding] = session.verify_library()
    if arguments.json:
        output.write_json({"findings": [dataclasses.asdict(finding) for finding in findings]})
    else:
        output.write(output.findings_text(findings))
    damaged = [finding for finding in findings if finding.severity == "error"]
    if damaged:
        report.say(f"{len(damaged)} of {len(findings)} parts of the library are damaged.")
    return LibraryError.exit_code if damaged else report.EXIT_OK


def compact(session: Session, arguments: argparse.Namespace, stop: threading.Event) -> int:
    """Joins the segments; ``stop`` is set when the user has had enough. Raises EdgeragError."""
    with report.progress_bar(quiet=arguments.quiet) as bar:
        done = session.compact_library(progress=bar.show_merge, cancelled=stop.is_set)
    if arguments.json:
        output.write_json(dataclasses.asdict(done))
    for sentence in compaction_sentences(done):
        report.say(sentence)
    if done.cancelled:
        return report.EXIT_INTERRUPTED
    return report.EXIT_SOME_FAILED if done.damaged else report.EXIT_OK


def compaction_sentences(done: MergeReport) -> list[str]:
    """What was done, what was left and why, and what to do next."""
    sentences = []
    if done.rows_written or done.rows_dropped:
        sentences.append(
            f"{_segments(done.segments_before)} became {done.segments_after:,}: {done.rows_written:,} vectors written, "
            f"{done.rows_dropped:,} of removed passages dropped, "
            f"{output.size(done.bytes_before)} became {output.size(done.bytes_after)}."
        )
    elif not done.damaged and not done.cancelled:
        sentences.append(f"Nothing to do: {_segments(done.segments_after)}, as few as can be.")
    sentences += [f"  left as it is: {reason}" for reason in done.damaged]
    if done.damaged:
        sentences.append("Run `edgerag library verify` to see all that is damaged.")
    sentences += [f"note: {note}" for note in done.notes]
    if done.cancelled:
        sentences.append("Interrupted. What was finished stays; the same command goes on from there.")
    return sentences


def _segments(count: int) -> str:
    return "1 segment" if count == 1 else f"{count:,} segments"
