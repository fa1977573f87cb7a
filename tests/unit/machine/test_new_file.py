"""A new file is there as a whole or not at all, and nothing is replaced by it."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from edgerag.machine.new_file import put_new


def test_it_is_its_owners_and_all_of_it(tmp_path: Path) -> None:
    put_new(tmp_path / "new", b"words")
    assert (tmp_path / "new").read_bytes() == b"words"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [tmp_path / "new"]


@pytest.mark.parametrize("links", [True, False])
def test_nothing_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    put_new(tmp_path / "here", b"before")
    with pytest.raises(FileExistsError):
        put_new(tmp_path / "here", b"after")
    assert (tmp_path / "here").read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [tmp_path / "here"]


@pytest.mark.parametrize("links", [True, False])
def test_without_room_there_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            put_new(tmp_path / "new", b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


def refuse(*_: Any, **__: Any) -> None:
    """As FAT does."""
    raise OSError(errno.EPERM, "Operation not permitted")
