"""The many ways in which it is said that memory is short, as the one error for it."""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator

from edgerag.errors import MemoryShort

# What CPython says where there was no memory for the exception either.
_NOT_EVEN_AN_ERROR = re.compile("without (?:setting an exception|exception set)")


def memory_short(error: BaseException) -> MemoryShort | None:
    """What to tell in place of an error that says, in one of the ways there are, that memory is short; else None."""
    is_so = (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)  # no room for a process
        or (isinstance(error, ImportError) and "failed to map segment" in str(error))  # nor for a shared library
        or (isinstance(error, SystemError) and _NOT_EVEN_AN_ERROR.search(str(error)) is not None)
    )
    return MemoryShort() if is_so else None


@contextlib.contextmanager
def shortage_told() -> Iterator[None]:
    """Raises MemoryShort in place of an error of the block that says so; every other one goes on as it is."""
    try:
        yield
    except (MemoryError, OSError, ImportError, SystemError) as error:
        if (told := memory_short(error)) is None:
            raise
        raise told from error
