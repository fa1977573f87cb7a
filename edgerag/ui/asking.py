"""An answer on the command line: its text to standard output, what surrounds it to the terminal alone.

Only where both streams are a terminal is anything shown before the answer: the sentences of the documents,
dimmed, while the model loads and reads, and one line that counts what a reasoning model thinks. In a pipe
and in a file the answer is alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence

from edgerag.ask.instant import instant_text
from edgerag.types import AnswerDelta, AskEvent, InstantAnswer, PlanMade, PromptReady, Source, ThoughtDelta
from edgerag.ui import output
from edgerag.ui.cells import wrapped
from edgerag.ui.plain import plain
from edgerag.ui.plain_marks import MarkedStream, marked_text
from edgerag.ui.source_marks import source_marks

_WIDEST = 100  # columns: longer lines are hard to read
_INDENT = "  "
_DIM, _PLAIN, _ERASE_LINE = "\x1b[2m", "\x1b[0m", "\r\x1b[K"
_SHOW_THOUGHTS_EVERY_S = 0.2


class AnswerPrinter:
    """Shows the events of one question as they come."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at_terminal = sys.stdout.isatty() and sys.stderr.isatty()
        self._dim = self._at_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self._evidence = ""  # as it was shown
        self._instant = InstantAnswer((), ())
        self._is_apart = True  # nothing stands above that is to be told from what follows
        self._has_text = False
        self._is_counting = False
        self._text = MarkedStream()
        self._words = 0
        self._thinking_since: float | None = None
        self._shown_at = 0.0

    def show(self, event: AskEvent) -> None:
        match event:
            case PlanMade():
                self._is_counting = event.plan.kind == "aggregate"
            case PromptReady():
                self._is_counting = False  # there was nothing to be counted
                self._know(event.prompt.sources)
            case InstantAnswer():
                self._instant = event
                self._know(event.sources)
                if self._at_terminal and event.sentences:
                    self._evidence = instant_text(event.sentences)
                    shown = marked_text(plain(self._evidence), self._text.marks)
                    self._to_terminal(self._dimmed(_evidence_lines(shown)))
                    self._is_apart = False
            case ThoughtDelta() if self._at_terminal:
                self._think(event.text)
            case AnswerDelta():
                self._end_thoughts()
                # Without a model the documents' sentences are the answer: they need not stand there twice.
                if event.text != self._evidence:
                    self._set_apart()
                    self._has_text = True
                    output.write(self._text.feed(plain(event.text)))

    def finish(self) -> None:
        """Ends the answer's last line, if it has one: without a model it may be what stands there already."""
        self._end_thoughts()
        rest = self._text.finish()
        if rest or self._has_text or not (self._evidence and self._at_terminal):
            self._set_apart()
            output.write(f"{rest}\n")

    def _set_apart(self) -> None:
        """An empty line between the sentences of the documents and what follows them."""
        if not self._is_apart:
            self._to_terminal("\n")
            self._is_apart = True

    def _know(self, sources: Sequence[Source]) -> None:
        """What may be marked from here on; of its own numbers the answer's filter has let through those of sources."""
        numbers = [source.number for source in sources]
        self._text.marks = source_marks(sources, numbers, self._instant.sentences, at_end_alone=self._is_counting)

    def _think(self, text: str) -> None:
        now = self._clock()
        if self._thinking_since is None:
            self._set_apart()
            self._thinking_since, self._shown_at = now, now - _SHOW_THOUGHTS_EVERY_S
        self._words += len(text.split())
        if self._dim and now - self._shown_at >= _SHOW_THOUGHTS_EVERY_S:
            self._shown_at = now
            self._to_terminal(_ERASE_LINE + self._dimmed(self._thought_line(now)))

    def _end_thoughts(self) -> None:
        if self._thinking_since is None:
            return
        line = self._dimmed(self._thought_line(self._clock()))
        self._to_terminal(f"{_ERASE_LINE if self._dim else ''}{line}\n\n")
        self._thinking_since = None

    def _thought_line(self, now: float) -> str:
        since = now if self._thinking_since is None else self._thinking_since
        return f"thinking … {self._words} words, {now - since:.0f} s"

    def _dimmed(self, text: str) -> str:
        return f"{_DIM}{text}{_PLAIN}" if self._dim else text

    def _to_terminal(self, text: str) -> None:
        with contextlib.suppress(OSError):  # nobody is left to see it, and the answer matters more
            sys.stderr.write(text)
            sys.stderr.flush()


def _evidence_lines(text: str) -> str:
    width = min(_WIDEST, shutil.get_terminal_size().columns)
    paragraphs = [
        "\n".join(wrapped(paragraph, width, first=_INDENT, others=_INDENT)) for paragraph in text.split("\n\n")
    ]
    return "\n".join(["From the documents:", *paragraphs, ""])
