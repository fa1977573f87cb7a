"""Questions and answers line by line, on a terminal whose cursor cannot be moved."""

from __future__ import annotations

import sys
from collections.abc import Callable

from edgerag.errors import EdgeragError
from edgerag.ui import report

_WITHOUT_CURSOR = ("", "dumb", "unknown")  # what such a terminal calls itself


def shows_lines_only(term: str) -> bool:
    """Whether TERM names a terminal with which nothing else can be done."""
    return term in _WITHOUT_CURSOR


def run_plain_prompt(answer: Callable[[str], object]) -> int:
    """Gives each line to ``answer``, until an empty one or the end of all."""
    report.say("This terminal shows lines only. Type a question; an empty line ends.")
    while True:
        sys.stderr.write("> ")
        sys.stderr.flush()
        question = sys.stdin.readline().strip()
        if not question:
            return report.EXIT_OK
        try:
            answer(question)
        except EdgeragError as error:
            report.fail(error)
