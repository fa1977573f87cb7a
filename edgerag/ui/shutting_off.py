"""The program shuts itself off from every network before it does anything else.

``edgerag models pull`` and ``edgerag bundle create`` are exempt by name: they run pip, which may download. Nothing else
is.
"""

from __future__ import annotations

import argparse
import os

from edgerag.config import load_settings
from edgerag.errors import EdgeragError
from edgerag.locations import locate
from edgerag.offline import guard
from edgerag.offline.allowed import NOTHING, Allowed, allowed_by

_EXEMPT = frozenset({("models", "pull"), ("bundle", "create")})


def may_use_a_network(arguments: argparse.Namespace) -> bool:
    """The two commands that do so on purpose."""
    return (arguments.command, getattr(arguments, "action", "")) in _EXEMPT


def shut_off(arguments: argparse.Namespace) -> None:
    """For good, unless the command is one that is exempt."""
    if not may_use_a_network(arguments):
        guard.shut_off(_allowed())


def _allowed() -> Allowed:
    """As settings file and environment say."""
    try:
        return allowed_by(load_settings(locate(os.environ).config_file, os.environ, {}))
    except EdgeragError:  # the command itself says what is wrong with them; until then nothing is let through
        return NOTHING
