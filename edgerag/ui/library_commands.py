"""``edgerag library``: whether its files are whole, making few segments of many, and changing its embedder."""

from __future__ import annotations

import argparse
import dataclasses
import threading
from typing import TYPE_CHECKING

from edgerag.changeover import duration
from edgerag.errors import LibraryError
from edgerag.session import Session
from edgerag.types import MergeReport, ReembedDone, ReembedPrice, ReembedProgress
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


def reembed(session: Session, arguments: argparse.Namespace, stop: threading.Event) -> int:
    """Changes the library over to another embedder; ``stop`` is set when the user has had enough. Raises
    EdgeragError."""
    if arguments.discard:
        found = session.discard_reembedding()
        report.say("Thrown away." if found else "There is nothing to throw away.")
        return report.EXIT_OK
    if arguments.estimate:
        price = session.reembed_price(arguments.embedder)
        if arguments.json:
            output.write_json(dataclasses.asdict(price))
        report.say(price_sentence(price))
        return report.EXIT_OK
    done: ReembedDone | None = None
    with report.progress_bar(quiet=arguments.quiet) as bar:
        for event in session.reembed(arguments.embedder, cancelled=stop.is_set):
            match event:
                case ReembedProgress():
                    bar.show_reembed(event)
                case ReembedDone():
                    done = event
    assert done is not None, "it ends with what was done"
    if arguments.json:
        output.write_json(dataclasses.asdict(done))
    if done.interrupted:
        report.say(
            "Interrupted. The library is searched as before; what was made is kept, and the same command goes on there."
        )
        return report.EXIT_INTERRUPTED
    report.say(
        f"{done.chunks_embedded:,} of {done.chunks_total:,} passages embedded in {report.clock(done.seconds)}; "
        f"the library is now searched with {done.embedder!r}."
    )
    wanted = session.settings.models.embedder
    if wanted and wanted != done.embedder:
        report.say(f"note: models.embedder names {wanted!r}; set it to {done.embedder!r}, or an ingest is refused.")
    return report.EXIT_OK


def price_sentence(price: ReembedPrice) -> str:
    """How long it takes, of what, and whether there is room."""
    begun = price.chunks_total - price.chunks_left
    left = (
        f"{price.chunks_left:,} of {price.chunks_total:,} passages are left"
        if begun
        else (f"{price.chunks_total:,} passages")
    )
    return (
        f"{price.embedder}: {left}, about {duration(price.seconds)} on this machine; up to "
        f"{output.size(price.room_bytes)} beside the index in use, {output.size(price.free_bytes)} are free."
    )


def _segments(count: int) -> str:
    return "1 segment" if count == 1 else f"{count:,} segments"
