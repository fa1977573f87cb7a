"""Which wheels a machine and Python take, and what they need."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.tags import parse_tag
from packaging.version import Version
from unit.bundle import craft

from edgerag.bundle.closure import Closure, close
from edgerag.bundle.gather import Gatherer
from edgerag.bundle.targets import BundleTarget, parse_targets, rank
from edgerag.bundle.wheel import read_wheel
from edgerag.errors import BundleError, UsageError

OLD = BundleTarget("linux-x86_64", "3.11")
NEW = BundleTarget("linux-aarch64", "3.13")


@pytest.fixture(autouse=True)
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def closed(folder: Path, requires: list[str], target: BundleTarget = OLD, **installed: str) -> Closure:
    root = read_wheel(craft.wheel(folder, "edgerag", "1.0", requires=requires))
    gatherer = Gatherer([folder], folder / "pip", report=lambda _: None)
    versions = {name: Version(version) for name, version in installed.items()}
    return close(root, target, gatherer, installed=versions.get)


def names(closure: Closure) -> list[str]:
    return sorted(wheel.path.name.split("-py3")[0] for wheel in closure.wheels[1:])


@pytest.mark.parametrize(
    ("tag", "old", "new"),
    [
        ("py3-none-any", True, True),
        ("py2.py3-none-any", True, True),
        ("py2-none-any", False, False),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", True, False),
        ("cp313-cp313-manylinux_2_28_aarch64", False, True),
        ("cp313-cp313t-manylinux_2_28_aarch64", False, False),
        ("cp312-abi3-manylinux_2_17_aarch64", False, True),
        ("cp312-abi3-manylinux2014_x86_64", False, False),
        ("cp310-abi3-manylinux1_x86_64", True, False),
        ("py3-none-linux_x86_64", True, False),
        ("cp311-cp311-musllinux_1_2_x86_64", False, False),
        ("cp311-cp311-macosx_11_0_arm64", False, False),
        ("cp311-cp311-manylinux_2_39_x86_64", False, False),
    ],
)
def test_a_wheel_fits_by_its_tags(tag: str, old: bool, new: bool) -> None:
    assert (rank(parse_tag(tag), OLD) is not None, rank(parse_tag(tag), NEW) is not None) == (old, new)


def test_the_nearest_wheel_is_taken() -> None:
    tags = ["cp311-cp311-manylinux_2_17_x86_64", "cp311-cp311-manylinux_2_28_x86_64", "cp310-abi3-manylinux1_x86_64",
            "py3-none-any"]  # fmt: skip
    assert sorted(tags[1:] + tags[:1], key=lambda tag: rank(parse_tag(tag), OLD) or (0, 0)) == tags


def test_unknown_machines_and_pythons_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="'windows' is no machine"):
        parse_targets(["windows"], ["3.11"])
    with pytest.raises(UsageError, match=r"'2\.7' is no Python"):
        parse_targets(["linux-x86_64"], ["2.7"])
    assert len(parse_targets(["linux-x86_64", "linux-aarch64"], ["3.11", "3.12"])) == 4


def test_markers_and_extras_are_those_of_the_target(tmp_path: Path) -> None:
    for name in ("always", "old", "arm", "soft"):
        craft.wheel(tmp_path, name, "1.0", requires=["soft; extra == 'more'"] if name == "always" else [])
    requires = ["always[more]>=1", "old; python_version < '3.12'", "arm; platform_machine == 'aarch64'"]
    assert names(closed(tmp_path, requires)) == ["always-1.0", "old-1.0", "soft-1.0"]
    assert names(closed(tmp_path, requires, NEW)) == ["always-1.0", "arm-1.0", "soft-1.0"]


def test_an_extra_that_is_asked_for_later_counts(tmp_path: Path) -> None:
    craft.wheel(tmp_path, "a", "1.0", requires=["c; extra == 'x'"])
    craft.wheel(tmp_path, "b", "1.0", requires=["a[x]"])
    craft.wheel(tmp_path, "c", "1.0")
    assert names(closed(tmp_path, ["a", "b"])) == ["a-1.0", "b-1.0", "c-1.0"]


def test_the_version_that_runs_here_is_carried(tmp_path: Path) -> None:
    for version in ("1.0", "1.5", "2.0"):
        craft.wheel(tmp_path, "pumps", version)
    assert names(closed(tmp_path, ["pumps"])) == ["pumps-2.0"]
    assert names(closed(tmp_path, ["pumps"], pumps="1.5")) == ["pumps-1.5"]
    assert names(closed(tmp_path, ["pumps>=2"], pumps="1.5")) == ["pumps-2.0"]


def test_what_encrypted_libraries_need_is_carried_where_it_is_installed(tmp_path: Path) -> None:
    craft.wheel(tmp_path, "sqlcipher3", "0.6.4")
    requires = ['sqlcipher3>=0.6.4; extra == "encryption"', 'torch; extra == "torch"']
    assert names(closed(tmp_path, requires)) == []
    assert names(closed(tmp_path, requires, sqlcipher3="0.6.4", torch="2.4")) == ["sqlcipher3-0.6.4"]


def test_what_is_missing_is_named_with_its_version(tmp_path: Path) -> None:
    craft.wheel(tmp_path, "hnswlib", "0.8.0", tag="cp311-cp311-linux_x86_64")
    assert closed(tmp_path, ["hnswlib>=0.8"], hnswlib="0.8.0").missing == {}
    assert closed(tmp_path, ["hnswlib>=0.8"], NEW, hnswlib="0.8.0").missing == {"hnswlib": "hnswlib 0.8.0"}
    assert closed(tmp_path, ["nowhere>3"]).missing == {"nowhere": "nowhere>3"}


def test_contradictions_are_named(tmp_path: Path) -> None:
    craft.wheel(tmp_path, "a", "1.0", requires=["b<2"])
    craft.wheel(tmp_path, "b", "2.0")
    with pytest.raises(BundleError, match=r"a needs b<2, and b 2\.0 was chosen"):
        closed(tmp_path, ["a", "b"])
    craft.wheel(tmp_path, "late", "1.0", headers=["Requires-Python: >=3.12"])
    assert names(closed(tmp_path, ["late"], NEW)) == ["late-1.0"]
    with pytest.raises(BundleError, match=r"late-1\.0-py3-none-any\.whl needs Python >=3\.12"):
        closed(tmp_path, ["late"])


def test_a_damaged_wheel_is_named(tmp_path: Path) -> None:
    craft.wheel(tmp_path, "pumps", "1.0").write_bytes(b"PK")
    with pytest.raises(BundleError, match=r"pumps-1\.0-py3-none-any\.whl is damaged"):
        closed(tmp_path, ["pumps"])


def test_native_code_says_which_c_library_it_needs(tmp_path: Path) -> None:
    code = {"pumps/core.so": b"\x7fELF GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.14"}
    wheel = read_wheel(craft.wheel(tmp_path, "pumps", "1.0", tag="py3-none-linux_x86_64", files=code))
    assert wheel.symbol_glibc == 34
    assert read_wheel(craft.wheel(tmp_path, "valves", "1.0")).symbol_glibc is None
