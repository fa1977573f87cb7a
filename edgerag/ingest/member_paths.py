"""How a file inside another is called: ``mail.eml!/report.zip!/table.csv``, the file on the disk first.

Pure. A folder's name may end in "!" too, so which part is the file on the disk is asked, not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgerag.types import MEMBER_MARK


def member_path(outer: str, member: Sequence[str]) -> str:
    """The path of a member; of no member, the file's own."""
    return MEMBER_MARK.join((outer, *member))


def outer_path(path: str, is_file: Callable[[str], bool]) -> str:
    """The file on the disk that ``path`` lies in; "" when it lies in none of those that ``is_file`` knows."""
    end = path.find(MEMBER_MARK)
    while end >= 0:
        if is_file(path[:end]):
            return path[:end]
        end = path.find(MEMBER_MARK, end + 1)
    return ""
