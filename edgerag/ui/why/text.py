"""The same as the inspector of the terminal UI, as text for standard output: `edgerag ask --why`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from edgerag.types import Answer, Message, PromptBudget, Trace, TracedHit
from edgerag.ui.cells import padded, wrapped
from edgerag.ui.output import table
from edgerag.ui.place import in_library, member_name, place
from edgerag.ui.plain import one_line, plain
from edgerag.ui.why import said
from edgerag.ui.why.layout import HEAT_SIGNS, heats, spread, waterfall

_WIDTH = 100
_LABEL_CELLS = 18
_BAR_CELLS = 50
_HITS_SHOWN = 25  # of some eighty; --json has all
_PLACE_WIDTH = 60


def why_text(answer: Answer) -> str:
    """Plan, hits, prompt and cache, and where the time went."""
    sections = [("Plan", _pairs(said.plan_lines(answer)))]
    trace = answer.trace
    if missing := said.not_kept(answer):
        sections.append(("Found", f"{missing}\n"))
    elif trace is not None:
        cited = {source.number for source in answer.sources if source.cited}
        sections.append(("Found", hits_text(trace.hits, cited) or "No hits: nothing was searched.\n"))
    if trace is not None and trace.budget is not None:
        sections.append(("Prompt by parts", budget_text(trace.budget)))
        sections.append(("Cache", cache_text(answer)))
    if trace is not None and trace.messages:
        sections.append(("Prompt, word for word", prompt_text(trace.messages)))
    if trace is not None:
        sections.append(("Time", time_text(answer, trace)))
    return "".join(f"\n{name}\n{textwrap.indent(text, '  ')}" for name, text in sections)


def hits_text(hits: Sequence[TracedHit], cited: set[int]) -> str:
    """A table, best first. Ranks stand before scores; - where a leg did not find it."""
    if not hits:
        return ""
    looked = any(traced.hit.scores.second_look is not None for traced in hits)
    heading = ["#", "keyword", "vector", "fused", "reranked", *(["second look"] if looked else []), "about"]
    rows = [(*heading, "became", "passage")]
    for rank, traced in enumerate(hits[:_HITS_SHOWN], start=1):
        rows.append(
            (
                str(rank),
                *hit_cells(traced, looked=looked),
                said.outcome(traced, cited=traced.source in cited),
                one_line(hit_place(traced), _PLACE_WIDTH),
            )
        )
    more = len(hits) - _HITS_SHOWN
    return table(rows) + (f"... and {more} more (--json lists all)\n" if more > 0 else "")


def hit_cells(traced: TracedHit, *, looked: bool) -> list[str]:
    """Keyword, vector, fused, reranked, second look where anything was ``looked`` at, probability."""
    scores = traced.hit.scores
    cells = [
        ranked(scores.keyword_rank, scores.keyword, ".2f"),
        ranked(scores.vector_rank, scores.vector, ".3f"),
        ranked(traced.fused_rank, scores.fused, ".4f"),
        ranked(traced.reranked_rank, scores.reranked, ".1%"),
    ]
    if looked:
        cells.append("-" if scores.second_look is None else f"{scores.second_look:.1%}")
    return [*cells, "-" if traced.probability is None else f"{traced.probability:.0%}"]


def ranked(rank: int | None, score: float | None, form: str) -> str:
    """``1: 7.53``; ``-`` without a rank."""
    return "-" if rank is None or score is None else f"{rank}: {score:{form}}"


def hit_place(traced: TracedHit) -> str:
    stored = traced.hit.chunk
    return f"{in_library(stored)}{member_name(stored.path)}, {place(stored)}"


def budget_text(budget: PromptBudget) -> str:
    """A bar for each part, of the whole context."""
    rows = [(said.part_name(part), part.tokens) for part in budget.parts]
    rows += [("room for answer", budget.answer_room), ("free", budget.free_tokens)]
    cells = spread([float(tokens) for _, tokens in rows], _BAR_CELLS)
    lines = [
        f"{name:<{_LABEL_CELLS + 2}}{tokens:>6}  {'█' * width}"
        for (name, tokens), width in zip(rows, cells, strict=True)
    ]
    lines.append(f"{'context':<{_LABEL_CELLS + 2}}{budget.context_tokens:>6}  tokens of the model")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def cache_text(answer: Answer) -> str:
    lines = [f"{name:<{_LABEL_CELLS + 2}}{tokens:>6}  {words}" for name, tokens, words in said.cache_lines(answer)]
    if answer.prefill is None:
        return "No model has read anything.\n"
    return "\n".join([*lines, said.prefill_words(answer.prefill), *said.approximate_lines(answer.trace)]) + "\n"


def prompt_text(messages: Sequence[Message]) -> str:
    """The messages as they were, each under its role; what the chat format puts around them is not shown."""
    return "".join(f"--- {message.role}\n{plain(''.join(map(str, message.parts))).rstrip()}\n" for message in messages)


def time_text(answer: Answer, trace: Trace) -> str:
    lines = list(_waterfall_lines(answer, trace))
    lines += [f"{name:<{_LABEL_CELLS}}{words}" for name, words in said.time_lines(answer)]
    if found := heats(trace.token_ns):
        signs = "".join(HEAT_SIGNS[level] for level in found)
        lines.append("each token (· drafted, ░ usual, ▒ ▓ slow, █ a stall or a whole draft):")
        lines += wrapped(signs, _WIDTH - 2)
    return "\n".join(lines) + "\n"


def _waterfall_lines(answer: Answer, trace: Trace) -> Iterator[str]:
    rows = waterfall(trace.spans, total_s=said.total_s(answer), cells=_BAR_CELLS)
    for row in rows:
        drawn = " " * row.offset + "█" * row.cells
        yield f"{said.stage(row.span.stage):<{_LABEL_CELLS}}{said.seconds_words(row.span.seconds):>8}  {drawn}"
    if any(said.stage(row.span.stage).endswith("*") for row in rows):
        yield said.BESIDE


def _pairs(lines: Sequence[tuple[str, str]]) -> str:
    return "".join(
        f"{line}\n"
        for name, words in lines
        for line in wrapped(one_line(words, 2_000), _WIDTH, first=padded(name, _LABEL_CELLS), others=" " * _LABEL_CELLS)
    )
