from __future__ import annotations

import errno
from pathlib import Path

import pytest

from edgerag.machine.disk import storage_error, sync_folder


@pytest.mark.parametrize(
    ("number", "says", "remedy"),
    [
        (errno.ENOSPC, "The disk is full", "Free some space"),
        (errno.EDQUOT, "The disk is full", "Free some space"),
        (errno.EFBIG, "The disk is full", "Free some space"),
        (errno.EACCES, "The file system refused", "Make the folder writable"),
        (errno.EROFS, "The file system refused", "Make the folder writable"),
        (errno.ENOENT, "The file system refused", "Make the folder"),
        (errno.EIO, "The file system refused", "Check the disk"),
    ],
)
def test_a_refused_write_says_why_where_and_the_way_out(number: int, says: str, remedy: str) -> None:
    error = storage_error(OSError(number, "for a reason"), Path("/somewhere/file"))
    assert error.message == f"{says} while working on /somewhere/file: for a reason."
    assert error.remedy.startswith(remedy)


def test_a_folder_is_synced_or_the_failure_is_told(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "absent")
