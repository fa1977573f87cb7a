"""What is copied of an answer's rows: the text as it is, without what only the width of the window made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgerag.ui.tui.answer_rows import AnswerRow


def copied(rows: Sequence[AnswerRow], span_of: Callable[[int], tuple[int, int] | None]) -> str:
    """``span_of``: from which character to before which a row is selected, -1 for its end; None where it is not."""
    parts: list[str] = []
    told = False  # the row of a table that is at work stands there whole
    for y, row in enumerate(rows):
        span = span_of(y)
        if span is None:
            continue
        text = row.content.plain
        first, last = span[0], len(text) if span[1] < 0 else span[1]
        in_table = row.whole is not None
        if in_table and row.goes_on and told:
            continue
        told = in_table and not row.goes_on and first <= row.lead and last >= len(text)
        if parts:
            parts.append("\n" if in_table else row.joint)
        if told:
            parts.append(text[first : row.lead] + (row.whole or ""))
        else:
            parts.append(text[max(first, row.lead) if row.goes_on else first : last])
    return "".join(parts)
