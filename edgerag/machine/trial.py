"""Native code that may end the process is tried in a child first: then only the child dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_PACKAGE_ROOT = Path(__file__).resolve().parent.parent.parent
_CHILD = "import sys; sys.path.append(sys.argv[1]); "


def tried(code: str, *arguments: str, deadline_s: float) -> subprocess.CompletedProcess[bytes]:
    """A child that ran ``code`` with this package in reach, and what it printed; ``arguments`` are sys.argv[2:]. Raises
    subprocess.TimeoutExpired where it had not ended after ``deadline_s``."""
    # -P: files of the current folder must not pass for modules. No backtrace: ggml would start a debugger.
    return subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-P", "-c", _CHILD + code, str(_PACKAGE_ROOT), *arguments],
        capture_output=True,
        timeout=deadline_s,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},
    )


def foreign_build(library: str, exit_code: int) -> str:
    """What to say of a child that died of an instruction that this processor lacks; "" for every other end."""
    if exit_code != -signal.SIGILL:
        return ""
    return f"{library} was built for another processor than this one (it died of SIGILL)."
