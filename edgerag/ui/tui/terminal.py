"""What the terminal says of itself, and what its driver knows. It is asked nothing (docs/decisions/118)."""

from __future__ import annotations

import fcntl
import struct
import sys
import termios
from collections.abc import Mapping
from typing import Literal

Protocol = Literal["kitty", "sixel", "iterm"]  # for pictures

# By TERM, which comes through ssh: the name itself, or what follows it is "-" and more.
_BY_TERM: Mapping[str, Protocol] = {
    "xterm-kitty": "kitty",
    "xterm-ghostty": "kitty",
    "foot": "sixel",
    "mlterm": "sixel",
    "contour": "sixel",
    "yaft": "sixel",
    "wezterm": "iterm",
}
# By TERM_PROGRAM. A terminal that knows several is named by what it shows best and in fewest bytes.
_BY_PROGRAM: Mapping[str, Protocol] = {
    "ghostty": "kitty",
    "iTerm.app": "iterm",
    "WezTerm": "iterm",
    "mintty": "iterm",
}
_BY_LC_TERMINAL: Mapping[str, Protocol] = {"iTerm2": "iterm"}  # sent by ssh, as all that begins with LC_ often is
_KONSOLE_SHOWS_PICTURES = 220400  # KONSOLE_VERSION of 22.04
# What other terminals set that are started from one of those and inherit its variables.
_OF_OTHERS = ("XTERM_VERSION", "VTE_VERSION", "ALACRITTY_WINDOW_ID", "KITTY_WINDOW_ID")
_MULTIPLEXERS = ("tmux", "screen")  # TERM within them, over ssh too
_MULTIPLEXED = ("TMUX", "STY", "ZELLIJ")  # what they set
_NARROWEST, _WIDEST = 2, 200  # pixels of a cell
_LOWEST, _HIGHEST = 4, 400


def protocol(environ: Mapping[str, str]) -> Protocol | None:
    """How it shows pictures, if it says that it does."""
    term = environ.get("TERM", "")
    if is_multiplexed(environ):
        return None
    for name, found in _BY_TERM.items():
        if term == name or term.startswith(f"{name}-"):
            return found
    if (program := environ.get("TERM_PROGRAM", "")) or any(name in environ for name in _OF_OTHERS):
        return _BY_PROGRAM.get(program)
    konsole = environ.get("KONSOLE_VERSION", "")
    if konsole.isdecimal() and int(konsole) >= _KONSOLE_SHOWS_PICTURES:
        return "iterm"  # it knows Sixel, too, but scrolls up below such a picture
    return _BY_LC_TERMINAL.get(environ.get("LC_TERMINAL", ""))


def is_multiplexed(environ: Mapping[str, str]) -> bool:
    """Whether tmux or the like stands between: what is behind it may change, and it lets nothing through unless it is
    told to."""
    return environ.get("TERM", "").startswith(_MULTIPLEXERS) or any(name in environ for name in _MULTIPLEXED)


def cell_pixels() -> tuple[int, int] | None:
    """Width and height of a cell as the terminal's driver has it; None where it does not know."""
    try:
        rows, columns, width, height = struct.unpack(
            "HHHH",
            fcntl.ioctl(sys.__stdout__.fileno(), termios.TIOCGWINSZ, bytes(8)),  # type: ignore[union-attr]
        )
    except (OSError, ValueError, AttributeError):
        return None
    if not (rows and columns):
        return None
    across, down = width // columns, height // rows
    return (across, down) if _NARROWEST <= across <= _WIDEST and _LOWEST <= down <= _HIGHEST else None
