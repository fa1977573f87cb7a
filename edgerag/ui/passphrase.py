"""Asks for passphrases in the terminal: never in an argument, which others see, nor in the inherited environment."""

from __future__ import annotations

import getpass
import os
import sys
import warnings
from collections.abc import Callable

from edgerag.errors import UsageError
from edgerag.ui.plain import one_line

_NAME_WIDTH = 80


def asking_passphrase() -> Callable[[str], str] | None:
    """What asks for the passphrase of the library of that name, unseen; None where there is no terminal to ask in."""
    return _ask if _has_terminal() else None


def new_passphrase(name: str) -> str:
    """Asked for twice. Raises UsageError where nobody can be asked, and where the two differ."""
    if not _has_terminal():
        raise UsageError(
            "Nobody can be asked for a passphrase here.",
            remedy="Run it in a terminal, or take a key file: --new-key-file FILE.",
        )
    first = _read(f"New passphrase for library {one_line(name, _NAME_WIDTH)}: ")
    if first != _read("Once more: "):
        raise UsageError("The two are not the same; nothing was changed.")
    return first


def _ask(name: str) -> str:
    return _read(f"Passphrase of library {one_line(name, _NAME_WIDTH)}: ")


def _read(prompt: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)  # it would be seen while it is typed
        try:
            return getpass.getpass(prompt)
        except (EOFError, getpass.GetPassWarning):
            return ""
        except UnicodeDecodeError:
            raise UsageError(
                "What was typed is no text in the encoding of this terminal.",
                remedy="Set the terminal and LANG to the same encoding (UTF-8), or take a key file.",
            ) from None


def _has_terminal() -> bool:
    """As getpass sees it: a terminal that belongs to this process, whatever standard input is."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return sys.stdin is not None and sys.stdin.isatty()
    return True
