"""Standard output: data for people and for programs. Nothing else is ever written there."""

from __future__ import annotations

import dataclasses
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edgerag.errors import OutputRefused
from edgerag.safe_text import json_text
from edgerag.types import (
    Answer,
    Document,
    Finding,
    Hit,
    LeftOut,
    LibraryStatus,
    LockedLibrary,
    Plan,
    Prefill,
    SegmentBlocks,
    SelectionReport,
    Source,
    Suggestion,
    own_id,
    page_unit,
)
from edgerag.ui.cells import cell_count, padded
from edgerag.ui.place import count_of_pages, full_place, headings_below, in_library, short_path
from edgerag.ui.plain import one_line, plain
from edgerag.ui.plain_marks import bracketed_numbers, foreign_words, passage_words
from edgerag.ui.source_marks import SourceMarks, marks_of

if TYPE_CHECKING:
    from edgerag.engine.catalog import CatalogEntry
    from edgerag.index.documents import Failure

_COPIES_SHOWN = 3
_QUOTE_WIDTH = 300


def write(text: str) -> None:
    """Writes data at once, so that a reader of the pipe sees it as it comes.

    Raises BrokenPipeError when the reader has gone, OutputRefused when nothing can be written.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputRefused(f"Standard output cannot be written: {error.strerror}.") from error


def write_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON document."""
    write(json_text(value, indent=indent) + "\n")


def write_json_line(value: Any) -> None:
    """One JSON document of several, in a line of its own."""
    write_json(value, indent=None)


# ---------------------------------------------------------------- records as JSON values


def answer_record(answer: Answer) -> Mapping[str, Any]:
    return {
        "question": answer.question,
        "answer": answer.text,
        "source_marks": mark_records(answer.text, marks_of(answer)),
        "found": answer.found,
        "stop_reason": answer.stop_reason,
        "sources": [source_record(source) for source in answer.sources],
        "timings_s": {time.stage: round(time.seconds, 4) for time in answer.timings},
        "tokens": dataclasses.asdict(answer.tokens),
        "prefill": None if answer.prefill is None else prefill_record(answer.prefill),
        "model": answer.model,
        "pending_chunks": answer.pending_count,
        "notes": list(answer.notes),
        "instant": [dataclasses.asdict(sentence) for sentence in answer.instant],
        "sentences": [
            {"text": answer.text[sentence.start : sentence.end], **dataclasses.asdict(sentence)}
            for sentence in answer.sentences
        ],
        "thought": answer.thought,
        "plan": None if answer.plan is None else plan_record(answer.plan),
        "probability": None if answer.probability is None else round(answer.probability, 4),
        "nearest": [hit_record(hit) for hit in answer.nearest],
        "exited_early": answer.exited_early,
        "selection": None if answer.selection is None else selection_record(answer.selection),
    }


def mark_records(text: str, marks: SourceMarks) -> list[Mapping[str, int]]:
    """Where in ``text`` a number in brackets is the mark of a source; every other one is of whoever wrote it."""
    return [
        {"source": each.number, "start": each.start, "end": each.end}
        for each in bracketed_numbers(text, marks)
        if each.kind == "mark"
    ]


def selection_record(report: SelectionReport) -> Mapping[str, Any]:
    return {
        "budget_tokens": report.budget_tokens,
        "relevant_tokens": report.relevant_tokens,
        "used_tokens": report.used_tokens,
        "fill": round(report.fill, 4),
        "redundancy": round(report.redundancy, 4),
        "left_out": [{"chunk_id": left.hit.chunk.id, "why": left.why} for left in report.left_out],
    }


def plan_record(plan: Plan) -> Mapping[str, Any]:
    return {
        "kind": plan.kind,
        "broad": plan.broad,
        "entropy_bits": round(plan.entropy_bits, 3),
        "source_count": plan.source_count,
        "search_text": plan.question,
        "added_words": list(plan.added_words),
        "terms": list(plan.terms),
        "forecast": None if plan.forecast is None else dataclasses.asdict(plan.forecast),
    }


def prefill_record(prefill: Prefill) -> Mapping[str, Any]:
    return {
        "kept_tokens": prefill.kept_tokens,
        "restored_tokens": prefill.restored_tokens,
        "approximate_tokens": prefill.approximate_tokens,
        "computed_tokens": prefill.computed_tokens,
        "seconds": round(prefill.seconds, 4),
        "approximate_spans": [list(span) for span in prefill.approximate_spans],
    }


def reuse_words(prefill: Prefill | None) -> str:
    """``512 of them known, 300 approximate``: what of a prompt was not computed; "" when all of it was."""
    if prefill is None:
        return ""
    known = prefill.kept_tokens + prefill.restored_tokens
    parts = [f"{known} of them known"] if known else []
    if prefill.approximate_tokens:
        parts.append(f"{prefill.approximate_tokens} approximate")
    return ", ".join(parts)


def source_record(source: Source) -> Mapping[str, Any]:
    quote_start, chunk_start = source.quote_start, source.hit.chunk.chunk.start
    return {
        "number": source.number,
        "cited": source.cited,
        "quote": source.quote,
        "quote_start": quote_start,
        "quote_end": quote_start + len(source.quote),
        "given": [[chunk_start + start, chunk_start + end] for start, end in source.spans] or None,
        **hit_record(source.hit),
    }


def hit_record(hit: Hit) -> Mapping[str, Any]:
    chunk = hit.chunk.chunk
    return {
        "library": hit.chunk.library,
        "file": hit.chunk.path,
        "also_in": list(hit.chunk.also_in),
        "title": hit.chunk.title,
        "page_first": chunk.page_first,
        "page_last": chunk.page_last,
        "page_unit": None if chunk.page_first is None else page_unit(hit.chunk.media_type),
        "line_first": chunk.line_first,
        "line_last": chunk.line_last,
        "start": chunk.start,
        "end": chunk.end,
        "headings": list(chunk.heading_path),
        "text": chunk.text,
        "hidden": chunk.hidden,
        "chunk_id": own_id(hit.chunk.id),
        "document_id": own_id(hit.chunk.document_id),
        "scores": dataclasses.asdict(hit.scores),
    }


def document_record(document: Document) -> Mapping[str, Any]:
    return {
        **dataclasses.asdict(document),
        "state": _state(document),
        "text_share": None if document.text_share is None else round(document.text_share, 4),
    }


def _state(document: Document) -> str:
    """``pending`` while some of it can be found by its words only."""
    return "pending" if document.pending_count else "ingested"


# ---------------------------------------------------------------- records for people


def sources_text(sources: Sequence[Source]) -> str:
    lines = ["", "Sources"]
    for source in sources:
        mark = "*" if source.cited else " "
        lines.append(f"{mark}[{source.number}] {_where(source.hit, words=foreign_words)}")
        lines += [textwrap.indent(also, "      ") for also in _also_in(source.hit)]
        quote = passage_words(one_line(source.quote, _QUOTE_WIDTH), source.hit.chunk.media_type)
        lines.append(textwrap.indent(f'"{quote}"', "      "))
    return "\n".join(lines) + "\n"


def nearest_text(hits: Sequence[Hit]) -> str:
    """What is nearest to a question of which nothing was found: to look at, not sources."""
    return "\nNearest to it, and no answer:\n" + hits_text(hits, beside_answer=True)


def hits_text(hits: Sequence[Hit], *, beside_answer: bool = False) -> str:
    """``beside_answer``: numbers of the documents are told from marks; paths stay, to be copied."""
    lines = []
    for rank, hit in enumerate(hits, start=1):
        lines.append(f"{rank:>2}. {_where(hit, words=foreign_words if beside_answer else str)}")
        lines += [textwrap.indent(also, "    ") for also in _also_in(hit)]
        text = one_line(hit.chunk.chunk.text, _QUOTE_WIDTH)
        lines.append(textwrap.indent(passage_words(text, hit.chunk.media_type) if beside_answer else text, "    "))
    return "\n".join(lines) + "\n"


def _where(hit: Hit, *, words: Callable[[str], str]) -> str:
    headings = words(" > ".join(headings_below(hit.chunk)))
    where = f"{in_library(hit.chunk)}{short_path(hit.chunk.path)}, {full_place(hit.chunk)}"
    return one_line(f"{where} ({headings})" if headings else where, 200)


def _also_in(hit: Hit) -> list[str]:
    """A line that names the other files with the same content, some of them if they are many; none without any."""
    if not hit.chunk.also_in:
        return []
    shown = ", ".join(short_path(path) for path in hit.chunk.also_in[:_COPIES_SHOWN])
    more = len(hit.chunk.also_in) - _COPIES_SHOWN
    return [one_line(f"also in {shown}" + (f" and {more} more" if more > 0 else ""), 200)]


def status_text(status: LibraryStatus) -> str:
    rows = [
        ("library", status.name),
        ("folder", status.folder),
        ("embedder", f"{status.embedder} ({status.dimension} dimensions)"),
        ("documents", f"{status.document_count}"),
        ("chunks", f"{status.chunk_count}" + (f" ({status.pending_count} pending)" if status.pending_count else "")),
        ("on disk", size(status.size_bytes) + (", encrypted" if status.is_encrypted else "")),
        ("in memory", f"{size(status.resident_bytes)} of a budget of {size(status.budget_bytes)}"),
    ]
    if status.limitation:
        rows.append(("budget", f"cannot be kept to: {status.limitation}"))
    if status.unsealed_count:
        rows.append(("unsealed", f"{status.unsealed_count} vectors, compared one by one"))
    rows += [
        (
            "segment",
            f"{segment.name}: {segment.vector_count} vectors ({segment.dead_count} dead), "
            f"{size(segment.size_bytes)} in {segment.block_count} blocks, {segment.walk}",
        )
        for segment in status.segments
    ]
    return table(rows)


def locked_text(locked: LockedLibrary) -> str:
    return table(
        [
            ("library", locked.name),
            ("folder", locked.folder),
            ("encrypted", f"opened by its {locked.opened_by}; `status --files` asks for it"),
            ("on disk", size(locked.size_bytes)),
        ]
    )


def documents_text(documents: Iterable[Document]) -> str:
    return table(
        [
            (
                f"#{document.id}",
                short_path(document.path),
                count_of_pages(document.page_count, document.media_type),
                f"{document.chunk_count} chunks",
                f"{document.pending_count} pending" if document.pending_count else "",
                ", ".join(document.tags),
            )
            for document in documents
        ]
    )


def files_text(documents: Iterable[Document], failures: Iterable[Failure], left_out: Iterable[LeftOut]) -> str:
    """Every file that is known: what is in it, why it could not be read, or why it was not."""
    rows = [
        (
            f"#{document.id}",
            _state(document),
            short_path(document.path),
            count_of_pages(document.page_count, document.media_type),
            f"{document.chunk_count} chunks"
            + (f" ({document.pending_count} pending)" if document.pending_count else ""),
            f"{document.character_count:,} characters",
            "" if document.text_share is None else f"{document.text_share:.2g} per byte",
            f"{document.seconds:.2f} s" if document.seconds else "",
            document.language,
            ", ".join(document.tags),
            one_line(" ".join(document.warnings), _QUOTE_WIDTH),
        )
        for document in documents
    ]
    rows += [
        ("-", state, short_path(found.path), "", "", "", "", "", "", "", one_line(found.reason, _QUOTE_WIDTH))
        for state, those in (("failed", failures), ("skipped", left_out))
        for found in those
    ]
    return table(rows)


def blocks_text(segments: Iterable[SegmentBlocks]) -> str:
    """A line for each block: what it holds, how much of it is in memory, how it is used."""
    rows = [
        (
            segment.name,
            f"block {block.number}",
            block.kind,
            size(block.size_bytes),
            f"{size(block.resident_bytes)} resident",
            f"{size(block.cached_bytes)} cached",
            f"{block.hits} hits",
            "not used yet" if block.idle_s is None or not block.hits else f"used {block.idle_s:.0f} s ago",
        )
        for segment in segments
        for block in segment.blocks
    ]
    return table(rows)


def findings_text(findings: Iterable[Finding]) -> str:
    return table(
        [
            (finding.severity.upper(), finding.name, f"{finding.message} {finding.remedy}".strip())
            for finding in findings
        ]
    )


def doctor_record(findings: Sequence[Finding], suggestions: Sequence[Suggestion]) -> dict[str, Any]:
    """All checks, the worst of their states, and what the tuning guide says, as values for JSON."""
    states = [finding.state for finding in findings]
    return {
        "state": next((state for state in ("fail", "warn") if state in states), "ok"),
        "findings": [{**dataclasses.asdict(finding), "state": finding.state} for finding in findings],
        "suggestions": [dataclasses.asdict(suggestion) for suggestion in suggestions],
    }


def suggestions_text(suggestions: Iterable[Suggestion]) -> str:
    """What the tuning guide says of this machine: why, what does it, what it brings."""
    lines = [
        f"  {plain(one.why)} Expect: {plain(one.symptom)}.\n    {one.command}\n    {one.effect}." for one in suggestions
    ]
    return "\n".join(["", "From the tuning guide (docs/tuning.md):", *lines]) + "\n" if lines else ""


def models_text(entries: Iterable[CatalogEntry]) -> str:
    return table(
        [
            (
                entry.name,
                entry.kind,
                language_words(entry.languages),
                entry.state,
                size(entry.size_bytes),
                entry.licence,
                entry.detail,
            )
            for entry in entries
        ]
    )


def language_words(languages: Sequence[str]) -> str:
    """``en``, ``de, en``, ``many languages``"""
    return "many languages" if "*" in languages else ", ".join(languages)


def size(size_bytes: int) -> str:
    """``98.4 MB``: decimal units, as in the settings."""
    for unit, divisor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size_bytes >= divisor:
            return f"{size_bytes / divisor:.1f} {unit}"
    return f"{size_bytes} B"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns; control characters in the cells are dropped."""
    if not rows:
        return ""
    cells = [[" ".join(plain(cell).split()) for cell in row] for row in rows]
    widths = [max(cell_count(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ["  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(lines) + "\n"
