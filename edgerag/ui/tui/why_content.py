"""What the inspector shows, as rows of a given width. Pure.

Colour only helps: in the bars each piece begins with its key, and what is slow or runs beside has a sign of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from textual.content import Content

from edgerag.telemetry.frames import OTHER, Frame, TimedAnswer, flame
from edgerag.types import Answer, PromptBudget, PromptPart, PromptPartKind
from edgerag.ui.tui import shown
from edgerag.ui.why import said
from edgerag.ui.why.layout import HEAT_SIGNS, FlameCell, flame_rows, heats, spread, waterfall

_DIM = "$foreground 70%"
_LABEL_CELLS = 18
_DURATION_CELLS = 10
_LEAST_BAR = 10
_LEAST_NAME = 4  # cells of a frame of the flame: below, a part of its name would tell nothing
_PART_STYLES: Mapping[PromptPartKind, tuple[str, str]] = {  # key and colour
    "instruction": ("i", "$secondary"),
    "earlier": ("e", "$warning"),
    "source": ("", "$primary"),
    "best_words": ("b", "$accent"),
    "question": ("q", "$success"),
    "written": ("w", "$warning"),
    "format": ("f", "$foreground"),
}
_SHADED = frozenset({"$primary"})  # that of the sources
_CACHE_STYLES = {"kept": "$success", "restored": "$primary", "approximate": "$warning", "in place": "$secondary"}
# From a token that came with the one before it to a stall.
_HEAT_STYLES = ("$foreground 50%", "$text-success", "$text-primary", "$text-warning", "$text-error")
_BESIDE, _WITHIN = frozenset({"embedder_load", "question_vector"}), frozenset({"prefill"})
_STAGE_STYLES = {"model_load": "$warning", "first_token": "$accent", "prefill": "$accent", "generate": "$success"}
_FRAME_STYLES = {**_STAGE_STYLES, "search": "$primary", "read": "$accent", "check": "$secondary", OTHER: "$foreground"}


def plan_content(answer: Answer, width: int) -> Content:
    lines = [_heading("Plan"), *_pairs(said.plan_lines(answer), width)]
    if missing := said.not_kept(answer):
        lines += [Content(), shown.text(missing, "$text-warning")]
    return Content("\n").join(lines)


# ------------------------------------------------------------ prompt and cache


def budget_content(budget: PromptBudget, width: int) -> Content:
    """The context of the model as one bar, and what its pieces are."""
    rows = [(_key(part), said.part_name(part), part.tokens, _PART_STYLES[part.kind][1]) for part in budget.parts]
    rows.append(("a", "room for answer", budget.answer_room, "$panel-lighten-2"))
    rows.append(("·", "free", budget.free_tokens, ""))
    heading = f"Context of {budget.context_tokens:,} tokens, {budget.prompt_tokens:,} of them the prompt"
    return Content("\n").join([_heading(heading), *_bar_with_legend(rows, budget.context_tokens, width)])


def cache_content(answer: Answer, width: int) -> Content:
    """How the prompt came into the model, and exactly what of it is approximate."""
    lines = [_heading("How the prompt came into the model")]
    ways = list(said.cache_lines(answer))
    if not ways:
        return Content("\n").join([*lines, Content("No model has read anything for this answer.")])
    rows = [(name[0], name, tokens, _CACHE_STYLES[name]) for name, tokens, _ in ways]
    lines += _bar_with_legend(rows, sum(tokens for _, tokens, _ in ways), width)
    lines.append(Content())
    lines += _pairs([(name, words) for name, _, words in ways], width)
    if answer.prefill is not None:
        lines += _pairs([("prefill", said.prefill_words(answer.prefill))], width)
    lines += [Content(), _heading("What is approximate")]
    approximate = said.approximate_lines(answer.trace)
    lines += [Content(line) for line in approximate] or [Content("Nothing: all is as if it had been computed now.")]
    if approximate:
        lines.append(
            Content.styled("These have not seen what stands before them; generation.kv = exact computes all.", _DIM)
        )
    if answer.prefill is not None:
        lines += [shown.text(note, "$text-warning") for note in answer.prefill.notes]
    return Content("\n").join(lines)


def _key(part: PromptPart) -> str:
    return str(part.source) if part.source is not None else _PART_STYLES[part.kind][0]


def _bar_with_legend(rows: Sequence[tuple[str, str, int, str]], whole: int, width: int) -> list[Content]:
    """Key, name, tokens and colour of each piece."""
    cells = spread([float(tokens) for _, _, tokens, _ in rows], max(_LEAST_BAR, width))
    pieces = []
    for place, ((key, _, _, colour), count) in enumerate(zip(rows, cells, strict=True)):
        fill = "·" if key == "·" else " "
        # Two neighbours of a colour are told apart by its shade.
        shade = f"{colour}-lighten-1" if place % 2 and colour in _SHADED else colour
        style = f"$text on {shade}" if colour else _DIM
        pieces.append((key.ljust(count, fill)[:count], style))
    lines = [Content.assemble(*pieces), Content()]
    entries = []
    for key, name, tokens, colour in rows:
        share = tokens / whole if whole else 0.0
        style = f"$text on {colour}" if colour else _DIM
        entries.append(Content.assemble((f" {key:<2}", style), f" {name:<20}{tokens:>6,} {share:>4.0%}"))
    columns = max(1, width // 38)
    height = -(-len(entries) // columns)
    return [*lines, *(Content("   ").join(entries[row::height]) for row in range(height))]


# ------------------------------------------------------------ time


def time_content(answer: Answer, answers: Sequence[TimedAnswer], width: int) -> Content:
    """Waterfall, figures and tokens of ``answer``; the flame of all ``answers``."""
    trace = answer.trace
    if trace is None:
        return shown.text(said.not_kept(answer), "$text-warning")
    lines = [_heading("Stages of this answer"), *_waterfall(answer, width), Content()]
    lines += _pairs(said.time_lines(answer), width)
    if found := heats(trace.token_ns):
        lines += [Content(), _heading("Each token"), _heat_legend(), *_token_map(found, width)]
    if answers:
        lines += [Content(), *_flame(flame(answers), len(answers), width)]
    return Content("\n").join(lines)


def _waterfall(answer: Answer, width: int) -> Iterator[Content]:
    trace = answer.trace
    spans = trace.spans if trace is not None else ()
    cells = max(1, width - _LABEL_CELLS - _DURATION_CELLS)
    rows = waterfall(spans, total_s=said.total_s(answer), cells=cells)
    for row in rows:
        stage = row.span.stage
        sign = "▒" if stage in _BESIDE else "▓" if stage in _WITHIN else "█"
        style = _DIM if stage in _BESIDE else _STAGE_STYLES.get(stage, "$primary")
        yield Content.assemble(
            f"{said.stage(stage):<{_LABEL_CELLS}}{said.seconds_words(row.span.seconds):>8}  ",
            " " * row.offset,
            (sign * row.cells, style),
        )
    if any(row.span.stage in _BESIDE for row in rows):
        yield Content.styled(said.BESIDE, _DIM)


def _heat_legend() -> Content:
    words = ("with the one before (drafted)", "as usual", "slower", "", "a stall, or a whole draft")
    pieces: list[Content | str] = []
    for sign, style, word in zip(HEAT_SIGNS, _HEAT_STYLES, words, strict=True):
        pieces += [Content.styled(sign, style), f" {word}  " if word else " "]
    return Content.assemble(*pieces)


def _token_map(found: Sequence[int], width: int) -> Iterator[Content]:
    """A cell for each token from the second on; before each row the number of its first."""
    per_row = max(_LEAST_BAR, (width - 7) // 10 * 10)
    for start in range(0, len(found), per_row):
        run = found[start : start + per_row]
        yield Content.assemble(
            (f"{start + 2:>5}  ", _DIM), *((HEAT_SIGNS[level], _HEAT_STYLES[level]) for level in run)
        )


def _flame(frame: Frame, count: int, width: int) -> Iterator[Content]:
    which = "this answer" if count == 1 else f"the last {count} answers"
    yield _heading(f"Flame of {which}: {said.seconds_words(frame.seconds)}")
    for row in flame_rows(frame, max(_LEAST_BAR, width)):
        pieces: list[tuple[str, str]] = []
        at = 0
        for cell in row:
            pieces += [(" " * (cell.offset - at), ""), frame_piece(cell, frame.seconds)]
            at = cell.offset + cell.cells
        yield Content.assemble(*pieces)


def frame_piece(cell: FlameCell, whole_s: float) -> tuple[str, str]:
    """A border at the left, then as much of its name as there is room for."""
    name = said.stage(cell.frame.name) if cell.frame.name else "all"
    share = f" {cell.frame.seconds / whole_s:.0%}" if whole_s else ""
    text = f"▏{name}{share}"
    if len(text) > cell.cells:
        text = f"▏{name}"
    if len(text) > cell.cells:
        text = f"{text[: cell.cells - 1]}…" if cell.cells >= _LEAST_NAME else "▏"
    colour = _FRAME_STYLES.get(cell.frame.name, "$primary")
    return text[: cell.cells].ljust(cell.cells), f"$text on {colour}"


# ------------------------------------------------------------ lines


def _heading(text: str) -> Content:
    return Content.styled(text, "bold $text-accent")


def _pairs(lines: Sequence[tuple[str, str]], width: int) -> Iterator[Content]:
    """Name and words; what is too long goes on under the words."""
    room = max(_LEAST_BAR, width - _LABEL_CELLS)
    for name, words in lines:
        first, *rest = shown.text(" ".join(words.split())).wrap(room) if words else [Content()]
        style = "$text-warning" if name == "note" else ""
        yield Content.assemble((f"{name:<{_LABEL_CELLS}}", _DIM), first.stylize(style) if style else first)
        for line in rest:
            yield Content.assemble(" " * _LABEL_CELLS, line.stylize(style) if style else line)
