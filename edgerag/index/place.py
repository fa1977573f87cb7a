"""The folder of a library that is open, as it was when it was opened: whether it is still the same.

Encrypting, decrypting and rekeying put another folder in its place in one step (encrypting.py), while others may have
it open. To them the files that lie there now look damaged, and are whole: they are of another key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from edgerag.errors import EdgeragError, LibraryReplaced


class Place:
    """To be made before anything in the folder is opened."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = _identity(folder)

    def is_same(self) -> bool:
        """A folder that is not there yet, or not any more, is not another one."""
        now = _identity(self._folder)
        return None in (now, self._seen) or now == self._seen

    def check(self) -> None:
        """Raises LibraryReplaced where another folder lies there now."""
        if not self.is_same():
            raise self._replaced()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """What goes wrong in the block for that reason is said so. Raises LibraryReplaced in place of it."""
        try:
            yield
        except EdgeragError as error:
            if not self.is_same():
                raise self._replaced() from error
            raise

    def _replaced(self) -> LibraryReplaced:
        return LibraryReplaced(
            f"The library in {self._folder} was encrypted, decrypted or given another key by another process just now.",
            remedy="Do it again: nothing is damaged.",
        )


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        stat = folder.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
