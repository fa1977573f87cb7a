"""A new key file is made when it is needed, once, and taken away only by who made it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from edgerag.encryption.keys import read_key_file
from edgerag.errors import StorageFull, UsageError
from edgerag.session.new_key_file import NewKeyFile


def test_it_is_made_when_it_is_needed_and_not_before(tmp_path: Path) -> None:
    key_file = NewKeyFile(tmp_path / "k")
    assert list(tmp_path.iterdir()) == []
    key_file.make()
    assert [path.name for path in tmp_path.iterdir()] == ["k"]
    assert read_key_file(tmp_path / "k") == key_file.opener
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    key_file.take_back()
    assert list(tmp_path.iterdir()) == []


def test_where_none_can_be_made_it_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "k").write_bytes(b"mine")
    with pytest.raises(UsageError, match="there already"):
        NewKeyFile(tmp_path / "k")
    with pytest.raises(StorageFull):
        NewKeyFile(tmp_path / "nowhere" / "k")


def test_what_somebody_else_made_meanwhile_stays(tmp_path: Path) -> None:
    first, second = NewKeyFile(tmp_path / "k"), NewKeyFile(tmp_path / "k")
    first.make()
    with pytest.raises(UsageError, match="there already"):
        second.make()
    second.take_back()
    assert read_key_file(tmp_path / "k") == first.opener
    (tmp_path / "k").rename(tmp_path / "moved")
    (tmp_path / "k").write_bytes(b"another one" * 9)
    first.take_back()
    assert (tmp_path / "k").exists()
