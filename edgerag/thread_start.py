"""A thread that may not start: the system has limits on threads and on memory, and small machines reach them.

Nothing fails for it: whoever starts a thread here does without, and its docstring says how.
"""

from __future__ import annotations

import threading

NO_MORE_THREADS = "the system starts no more threads: it has a limit on their number, or too little memory"


def start_daemon(thread: threading.Thread) -> bool:
    """Starts it as a daemon, for which the end of the program does not wait; False where the system refuses."""
    thread.daemon = True
    try:
        thread.start()
    except RuntimeError:  # "can't start new thread", which is all that Python says
        return False
    return True
