"""Child processes that stand still while the work that they are a part of is held."""

from __future__ import annotations

import contextlib
import os
import signal

from edgerag.hold import Hold
from edgerag.types import CancelCheck


def wait_standing_still(hold: Hold, group: int, stopped: CancelCheck) -> None:
    """Stops the processes of ``group``, which this process has started and not waited for, until ``hold`` ends or
    ``stopped()``."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGSTOP)
    try:
        hold.wait(stopped)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGCONT)
