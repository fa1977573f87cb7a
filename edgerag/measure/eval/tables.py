"""A result and a comparison as tables, for the screen and for Markdown alike. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgerag.measure.eval.compare import Comparison, Row

_HALVES = {"all": "all questions", "tune": "the half to tune on", "report": "the half to report"}
_ANSWERS = {
    "exact_match": "exact match",
    "f1": "F1",
    "holds_gold": "answer holds the gold answer",
    "sources_hold_gold": "a source holds the gold answer",
    "citation_precision": "citation precision",
    "citation_recall": "citation recall",
}
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def heading(record: Mapping[str, Any]) -> str:
    """What was judged, in one line."""
    judged = f"{record['set']}: {record['figures']['questions']:,} questions ({_HALVES[record['half']]})"
    return f"{judged}, {record['documents']:,} documents, {record['chunks']:,} passages; {record['embedder']}"


def result_tables(record: Mapping[str, Any]) -> list[Table]:
    """The figures of :func:`~edgerag.measure.eval.result.result_record`; what was not asked has no table."""
    figures = record["figures"]
    tables = []
    if stages := figures["stages"]:
        names = list(next(iter(stages.values())))
        tables.append(
            Table(
                f"Ranking ({figures['judged']:,} questions)",
                ("stage", *names),
                tuple((stage, *(f"{values[name]:.3f}" for name in names)) for stage, values in stages.items()),
            )
        )
    if rows := _refusal_rows(figures["refusal"]):
        tables.append(Table("Refusal", ("questions", "number", "error", "rate"), rows))
    if figures["answers"]:
        # Without a model the sentences of the sources are the answer.
        title = f"Answers ({record['chat'] or 'the sentences of the sources'})"
        rows = tuple((_ANSWERS[name], f"{value:.3f}") for name, value in figures["answers"].items())
        tables.append(Table(title, ("measure", "mean"), rows))
    if latency := figures["latency_ms"]:
        rows = tuple(
            (stage.replace("_", " "), *(f"{values[p]:.1f}" for p in ("p50", "p95", "p99")))
            for stage, values in latency.items()
        )
        tables.append(Table("Milliseconds", ("stage", "p50", "p95", "p99"), rows))
    return tables


def comparison_table(comparison: Comparison, *, names: Sequence[str]) -> Table:
    """A line for each measure; ``names`` are what to call the two."""
    return Table(
        f"{comparison.questions:,} questions that both have",
        ("measure", "n", *names, "difference", "95 %", "better/worse", "p", ""),
        tuple(_comparison_row(row) for row in comparison.rows),
    )


def comparison_notes(comparison: Comparison) -> list[str]:
    """How to read it, in sentences."""
    notes = [
        "p: how often chance alone makes a difference as large (paired randomisation test); * below 0.05, "
        "** also when all these measures are looked at together (Holm)."
    ]
    if comparison.only_first or comparison.only_second:
        notes.append(
            f"Left out: {comparison.only_first:,} questions that only the first has, "
            f"{comparison.only_second:,} that only the second has."
        )
    return notes


def _comparison_row(row: Row) -> tuple[str, ...]:
    difference = row.difference
    stars = "**" if row.p_together < SIGNIFICANT else "*" if difference.p < SIGNIFICANT else ""
    return (
        row.measure.replace("_", " "),
        f"{difference.count:,}",
        f"{row.first:.4f}",
        f"{row.second:.4f}",
        f"{difference.mean:+.4f}",
        f"{difference.low:+.4f} to {difference.high:+.4f}",
        f"{difference.better}/{difference.worse}",
        f"{difference.p:.4f}",
        stars,
    )


def _refusal_rows(refusal: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    rows = [
        ("answerable", refusal["answerable"], "refused", refusal["answerable_refused"]),
        ("unanswerable", refusal["unanswerable"], "answered", refusal["unanswerable_answered"]),
        *(
            (f"of {name}, over these documents", group["questions"], "answered", group["answered"])
            for name, group in refusal["foreign"].items()
        ),
    ]
    return tuple((name, f"{count:,}", error, f"{rate:.3f}") for name, count, error, rate in rows if rate is not None)
