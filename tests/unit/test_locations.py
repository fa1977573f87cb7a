from __future__ import annotations

from pathlib import Path

import pytest

from edgerag.errors import UsageError
from edgerag.locations import Locations, locate


def test_home_variable_comes_first(tmp_path: Path) -> None:
    assert locate({"EDGERAG_HOME": str(tmp_path)}).home == tmp_path


def test_a_checkout_is_its_own_home() -> None:
    assert (locate({}).home / "pyproject.toml").is_file()


@pytest.mark.parametrize("name", ["../up", "", ".", "..", "a b", ".hidden", "x" * 65, "a\n", "-rf"])
def test_a_name_that_could_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    locations = Locations(tmp_path)
    try:
        folder = locations.library_folder(name)
    except UsageError as error:
        assert repr(name) in str(error)
    else:
        assert "/" in name, f"{name!r} gave {folder}"


def test_a_name_with_a_slash_is_a_path(tmp_path: Path) -> None:
    assert Locations(tmp_path).library_folder(str(tmp_path / "stick" / "lib")) == tmp_path / "stick" / "lib"
    assert Locations(tmp_path).library_folder("manuals") == tmp_path / "indexes" / "manuals"
