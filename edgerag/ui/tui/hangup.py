"""Leaves when the terminal is gone.

Where the program is not that terminal's session, no signal says so: Textual's reader would find the end of the file
over and over and keep a core busy, and its writer is dead, so that the app waits for it for ever. Whatever of the app
still runs is not waited for: what it was about is safe on the disk, as after a `kill -9`.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable

from edgerag.ui.report import EXIT_INTERRUPTED

_CLOSING_S = 5.0  # how long what is open may take to be given back


def leave_with_the_terminal(close: Callable[[], None]) -> None:
    """From now on the process ends when standard input is hung up, after ``close`` had its time."""
    if sys.__stdin__ is None or not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(sys.__stdin__.fileno(), 0)  # for nothing but a hang-up, which is told in any case

    def watch() -> None:
        while not any(event & select.POLLHUP for _, event in poll.poll()):
            continue
        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        closing.join(_CLOSING_S)
        os._exit(EXIT_INTERRUPTED)

    threading.Thread(target=watch, name="terminal-watch", daemon=True).start()
