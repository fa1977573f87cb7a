from __future__ import annotations

import errno
from pathlib import Path

import pytest

from edgerag.machine.disk import storage_error, sync_folder


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "The disk is full"),
        (errno.EDQUOT, "The disk is full"),
        (errno.EFBIG, "The disk is full"),
        (errno.EACCES, "The file system refused"),
        (errno.EROFS, "The file system refused"),
    ],
)
def test_a_refused_write_says_why_and_where(number: int, says: str) -> None:
    error = storage_error(OSError(number, "for a reason"), Path("/somewhere/file"))
    assert error.message == f"{says} while working on /somewhere/file: for a reason."
    assert "Free some space" in error.remedy


def test_a_folder_is_synced_or_the_failure_is_told(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "absent")
