"""A kept trace as text: every span as a bar, the figures of each, and the tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgerag.telemetry.answer_spans import TOKEN_KINDS
from edgerag.telemetry.spans import GENERATION, INGEST, THREAD, Span, TraceTree, token_row
from edgerag.types import StageSpan
from edgerag.ui.cells import padded, wrapped
from edgerag.ui.plain import one_line
from edgerag.ui.why import said
from edgerag.ui.why.layout import HEAT_SIGNS, heats, quantile, token_gaps_ms, waterfall

_WIDTH = 100
_NAME_CELLS = 34
_BAR_CELLS = 50
_MOST_ROWS = 60  # of a long ingest; the files have all
_MOST_TEXT = 200  # characters of a figure that is text
_MOST_LINE = 4000  # and of all figures of a span


def trace_text(trace: TraceTree) -> str:
    """The waterfall, what it does not explain, the figures, the tokens."""
    root = trace.root
    lines = [f"{one_line(root.name, _MOST_TEXT)} {trace.trace_id}: {said.seconds_words(root.ns / 1e9)}"]
    if root.error:
        lines.append(f"failed: {one_line(root.error, _MOST_TEXT)}")
    lines += ["", *_waterfall_lines(root)]
    share = root.explained_ns() / root.ns if root.ns else 1.0
    lines += ["", f"{share:.1%} of the time is that of a step that is named here.", "", "Figures"]
    lines += [f"  {line}" for line in _figure_lines(root)]
    for span in root.walk():
        if span.name == GENERATION:
            lines += _token_lines(span)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _waterfall_lines(root: Span) -> Iterator[str]:
    """The children as a tree, in the order in which they begin."""
    named = [(span, depth) for span, depth in _tree(root, 0) if depth]
    shown = named[:_MOST_ROWS]
    bars = waterfall(
        [StageSpan(span.name, (span.start_ns - root.start_ns) / 1e9, span.ns / 1e9) for span, _ in shown],
        total_s=max(root.ns, 1) / 1e9,  # one that failed at once has an axis, too
        cells=_BAR_CELLS,
    )
    beside = False
    for (span, depth), bar in zip(shown, bars, strict=True):
        mark = " *" if span.thread else ""
        beside = beside or bool(mark)
        name = one_line("  " * (depth - 1) + span.name.removeprefix("rag.") + mark, _NAME_CELLS)
        drawn = " " * bar.offset + "█" * bar.cells
        yield f"{padded(name, _NAME_CELLS)}{said.seconds_words(span.ns / 1e9):>8}  {drawn}"
    if len(named) > len(shown):
        yield f"... and {len(named) - len(shown):,} more (--perfetto and --html have all)"
    if beside:
        yield said.BESIDE


def _tree(span: Span, depth: int) -> Iterator[tuple[Span, int]]:
    yield span, depth
    for inner in span.inner:
        yield from _tree(inner, depth + 1)


def _figure_lines(root: Span) -> Iterator[str]:
    told: set[str] = set()
    for span in root.walk():
        facts = {key: value for key, value in span.facts.items() if key != THREAD and not isinstance(value, tuple)}
        if not facts or (span.name in told and root.name == INGEST):
            continue
        told.add(span.name)
        figures = "  ".join(
            f"{key.removeprefix(span.name).lstrip('.').removeprefix('rag.')}={one_line(_value_text(value), _MOST_TEXT)}"
            for key, value in facts.items()
        )
        line = one_line(f"{span.name}: {figures}", _MOST_LINE)
        yield from wrapped(line, _WIDTH - 2, others="    ")


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _token_lines(span: Span) -> Iterator[str]:
    """What the tokens took, by parts."""
    stamps = token_row(span, "ns")
    gaps = token_gaps_ms(stamps)
    if not gaps:
        return
    yield ""
    yield f"Tokens: {len(stamps)}, {said.gap_words(gaps)} from one to the next"
    for kind in TOKEN_KINDS:
        if row := [ns / 1e6 for ns in token_row(span, f"{kind}_ns")]:
            figures = f"median {quantile(row, 0.5):8.3f} ms  p95 {quantile(row, 0.95):8.3f} ms"
            yield f"  {kind:<12}{figures}  {_sum_text(row)}"
    yield "each token (· drafted, ░ usual, ▒ ▓ slow, █ a stall or a whole draft):"
    yield from wrapped("".join(HEAT_SIGNS[level] for level in heats(stamps)), _WIDTH - 2)


def _sum_text(row: Sequence[float]) -> str:
    return f"{said.seconds_words(sum(row) / 1000)} in all"
