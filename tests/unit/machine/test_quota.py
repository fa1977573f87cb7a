"""CPU quotas and cpusets of nested control groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.machine import fixtures

from edgerag.machine.quota import read_cpuset, read_quota


def test_a_quota_above_the_own_group_binds(tmp_path: Path) -> None:
    assert read_quota(fixtures.container(tmp_path)) == 1.5, "the own group has 4 cores, two above it 1.5"


def test_a_quota_of_version_1_above_the_own_group(tmp_path: Path) -> None:
    assert read_quota(fixtures.container_v1(tmp_path)) == 3.0


@pytest.mark.parametrize("text", ["max 100000", "100000", "0 100000", "100000 0", "-1 100000", "nonsense here", ""])
def test_what_is_no_quota(tmp_path: Path, text: str) -> None:
    assert read_quota(fixtures.group_v2(tmp_path, "/app", {"app/cpu.max": text})) is None


def test_the_nearest_group_that_tells_gives_the_cpuset(tmp_path: Path) -> None:
    assert read_cpuset(fixtures.cpuset_of_two(tmp_path / "own")) == {2, 3}
    # The controller is not switched on for the own group: that of the group above is in force.
    above = fixtures.group_v2(tmp_path / "above", "/a/b", {"a/cpuset.cpus.effective": "1-2", "a/b/other": ""})
    assert read_cpuset(above) == {1, 2}


def test_without_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert read_quota(tmp_path) is None
    assert read_cpuset(tmp_path) is None
