"""A terminal that goes away while the program is not its session: nobody sends it a signal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from edgerag.ui.report import EXIT_INTERRUPTED

DEADLINE_S = 60.0


def test_the_program_ends_when_its_terminal_is_gone(tmp_path: Path, models_folder: Path) -> None:
    (tmp_path / "models").symlink_to(models_folder)
    above, below = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "edgerag"],
        stdin=below,
        stdout=below,
        stderr=below,
        env={**os.environ, "EDGERAG_HOME": str(tmp_path), "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
        start_new_session=True,
    )
    os.close(below)
    seen = b""
    while b"\x1b[?1049h" not in seen:  # the other screen
        seen += os.read(above, 4096)
    os.close(above)
    try:
        assert process.wait(timeout=DEADLINE_S) == EXIT_INTERRUPTED
    finally:
        process.kill()
        process.wait()
