from __future__ import annotations

from pathlib import Path

import pytest

from edgerag.machine.topology import read_topology


def cpus(folder: Path, siblings: dict[int, str]) -> Path:
    for cpu, text in siblings.items():
        topology = folder / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(text + "\n")
    return folder


def test_smt_siblings_count_as_one_core(tmp_path: Path) -> None:
    folder = cpus(tmp_path, {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7", 4: "0,4", 5: "1,5", 6: "2,6", 7: "3,7"})
    topology = read_topology(folder, tmp_path / "none", frozenset(range(8)))
    assert (topology.logical_count, topology.core_count, topology.thread_count) == (8, 4, 4)


def test_only_the_cores_of_the_affinity_mask_count(tmp_path: Path) -> None:
    folder = cpus(tmp_path, {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"})
    assert read_topology(folder, tmp_path / "none", frozenset({0, 1})).thread_count == 1


@pytest.mark.parametrize(
    ("text", "threads"), [("150000 100000", 1), ("300000 100000", 3), ("50000 100000", 1), ("max 100000", 4)]
)
def test_quota_of_a_version_2_control_group(tmp_path: Path, text: str, threads: int) -> None:
    folder = cpus(tmp_path / "cpu", {n: str(n) for n in range(4)})
    (tmp_path / "cpu.max").write_text(text)
    assert read_topology(folder, tmp_path, frozenset(range(4))).thread_count == threads


def test_quota_of_a_version_1_control_group(tmp_path: Path) -> None:
    folder = cpus(tmp_path / "sys", {n: str(n) for n in range(4)})
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("200000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert read_topology(folder, tmp_path, frozenset(range(4))).thread_count == 2
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert read_topology(folder, tmp_path, frozenset(range(4))).thread_count == 4


def test_without_kernel_files_there_is_still_a_plan(tmp_path: Path) -> None:
    topology = read_topology(tmp_path / "no", tmp_path / "no", frozenset({0, 1, 2}))
    assert 1 <= topology.thread_count <= 3
