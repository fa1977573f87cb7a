"""A process that holds keys leaves no image of its memory on the disk when it crashes."""

from __future__ import annotations

from contextlib import suppress


def forbid_core_dumps() -> None:
    """For this process and its children from now on, where the system knows such a limit."""
    try:
        import resource  # Windows has none
    except ImportError:
        return
    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
