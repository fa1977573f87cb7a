"""What stands below an answer: how it ended, what to know of it, its figures."""

from __future__ import annotations

from textual.content import Content

from edgerag.types import CUT, Answer
from edgerag.ui.place import member_name, place
from edgerag.ui.plain import plain
from edgerag.ui.tui import shown
from edgerag.ui.tui.answer_doubts import DOUBT_SIGN, Doubt
from edgerag.ui.tui.facts import counted, timing_figure

_DOUBTS_SHOWN = 3
_DOUBT_WIDTH = 60


def unsupported(answer: Answer) -> list[Doubt]:
    """The sentences that stand in no source, where they are in the text as it is shown."""
    return [
        Doubt(answer.text[sentence.start : sentence.end], len(plain(answer.text[: sentence.start])))
        for sentence in answer.sentences
        if sentence.support == "unsupported"
    ]


def foot_content(answer: Answer) -> Content:
    lines: list[Content] = []
    go_on = " Ctrl+G goes on with it." if answer.can_go_on else ""
    notes = list(answer.notes)
    match answer.stop_reason:
        case "cancelled":
            lines.append(Content.styled(f"Stopped.{go_on}", "$text-warning"))
        case "length":
            # Where it is known, a note says at how many tokens, and why there.
            cut = next((note for note in notes if note.startswith(CUT)), f"{CUT}.")
            notes = [note for note in notes if note != cut]
            lines.append(shown.text(f"{cut}{go_on}", "$text-warning"))
    lines += [shown.text(note, "$text-warning") for note in notes]
    lines += _doubts(answer)
    for hit in answer.nearest:
        where = f"Nearest, and no answer: {member_name(hit.chunk.path)}, {place(hit.chunk)}: "
        lines.append(shown.line(where + hit.chunk.chunk.text, _DOUBT_WIDTH, "$foreground 70%"))
    if answer.pending_count:
        pending = f"{counted(answer.pending_count, 'chunk')} not yet searchable by meaning."
        lines.append(Content.styled(pending, "$foreground 70%"))
    figures = [timing_figure(answer)]
    if answer.tokens.answer:
        figures.append(f"{answer.tokens.answer} tokens")
    if any(figures):
        lines.append(shown.text(" · ".join(figure for figure in figures if figure), "$foreground 70%"))
    return Content("\n").join(lines)


def _doubts(answer: Answer) -> list[Content]:
    """What the sign means, and why it is there."""
    doubted = [sentence for sentence in answer.sentences if sentence.support == "unsupported"]
    lines: list[Content] = []
    for sentence in doubted[:_DOUBTS_SHOWN]:
        words = shown.line(answer.text[sentence.start : sentence.end], _DOUBT_WIDTH, "$foreground 75%")
        reason = shown.text(sentence.reason, "$text-warning")
        lines.append(Content.assemble(DOUBT_SIGN, " not in the sources: “", words, "” ", reason))
    if len(doubted) > _DOUBTS_SHOWN:
        lines.append(Content.styled(f"and {len(doubted) - _DOUBTS_SHOWN} more", "$text-warning"))
    return lines
