"""What a library can be called: one rule for the settings, the command line and the folder that it lies in."""

from __future__ import annotations

import os
import re
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAMES_ARE = "letters, digits, '.', '_' and '-', beginning with a letter or digit, 64 at most; or a path with a slash"


def check_library_name(name: str) -> None:
    """Raises ValueError, in words that stand behind the name of what was set, for what can name no library."""
    if os.sep not in name:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a library name: {NAMES_ARE}")
        return
    try:
        Path(name).expanduser()
    except RuntimeError:  # ~somebody
        raise ValueError(f"{name!r}: there is no such user") from None
