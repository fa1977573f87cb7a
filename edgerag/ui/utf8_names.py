"""The program runs in Python's UTF-8 mode, whatever the locale.

Names of files are bytes, and a library keeps them so, whoever reads it later. Where the locale's encoding is another
one (LC_ALL=C with PYTHONUTF8=0, or an old ISO-8859-1), Python would refuse names that hold other letters, in the middle
of an ingest, and would take a question apart into bytes. The mode is a thing of Python's start, so the program starts
itself once more. Streams keep an encoding that has letters of its own; of one that is only ASCII it is UTF-8, as Python
itself has it for the C locale (PEP 540).
"""

from __future__ import annotations

import codecs
import locale
import os
import sys
from collections.abc import Sequence


def run_with_utf8_names() -> None:
    """Starts this process anew where it has to; returns where it need not, or cannot."""
    if is_utf8(sys.getfilesystemencoding()) or os.environ.get("PYTHONUTF8") == "1" or not sys.executable:
        return
    encoding = locale.getencoding()
    environment = {**os.environ, "PYTHONUTF8": "1"}
    if codecs.lookup(encoding).name != "ascii":
        environment.setdefault("PYTHONIOENCODING", encoding)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    command = [sys.executable, *again(sys.orig_argv[1:])]
    try:
        os.execve(sys.executable, [os.fsencode(word) for word in command], environment)  # noqa: S606 - ourselves
    except OSError:
        return  # no room for another start: on as it is


def again(arguments: Sequence[str]) -> list[str | bytes]:
    """The arguments for a Python that takes them for UTF-8: what names something that is there stays the bytes that it
    is; other words keep their letters."""
    return [each if _is_there(each) else each.encode("utf-8", "surrogateescape") for each in arguments]


def is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def _is_there(argument: str) -> bool:
    try:
        return os.path.lexists(argument)
    except ValueError:  # a NUL in it
        return False
