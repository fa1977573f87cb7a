"""From an answer of the conversation to its inspector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from edgerag.telemetry.frames import TimedAnswer
from edgerag.types import Answer
from edgerag.ui.tui.widgets.conversation import Conversation
from edgerag.ui.why.said import total_s

if TYPE_CHECKING:
    from edgerag.ui.tui.app import EdgeragApp
    from edgerag.ui.tui.screens.inspector import Section

MOST_TIMED = 50  # answers that the flame is of


def timed(answer: Answer) -> TimedAnswer | None:
    """When its stages were; None of one that was kept before that was noted."""
    return None if answer.trace is None else TimedAnswer(answer.trace.spans, total_s(answer))


def inspect(app: EdgeragApp, conversation: Conversation, *, section: Section = "plan") -> None:
    """Opens the inspector of the current answer; nothing where it has none, or not yet."""
    from edgerag.ui.tui.screens.inspector import InspectorScreen  # a tenth of what the start would have to load

    exchange = conversation.current
    if exchange is not None and exchange.answer is not None:
        shown = [each.answer for each in conversation.exchanges if each.answer is not None]
        app.open_screen(InspectorScreen(exchange.answer, _last(app.timed_answers, shown), section=section))


def _last(asked: Sequence[TimedAnswer], shown: Sequence[Answer]) -> list[TimedAnswer]:
    """The answers of this run of the program and those on the screen, each once."""
    kept = [found for answer in shown if (found := timed(answer)) is not None and found not in asked]
    return [*kept, *asked][-MOST_TIMED:]
