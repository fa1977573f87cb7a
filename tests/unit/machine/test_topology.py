"""What is read from the trees of real machines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.machine import fixtures

from edgerag.machine.caches import describe_caches, last_level_bytes, read_caches
from edgerag.machine.topology import read_topology

MACHINES = [
    fixtures.hybrid_laptop,
    fixtures.dual_socket_server,
    fixtures.raspberry_pi_5,
    fixtures.big_little_board,
    fixtures.container,
    fixtures.container_v1,
    fixtures.cpuset_of_two,
    fixtures.bare_virtual_machine,
    fixtures.offline_cpus,
]


def first_cpus(cores: tuple[object, ...]) -> list[int]:
    return [core.cpus[0] for core in cores]  # type: ignore[attr-defined]


def test_a_hybrid_laptop(tmp_path: Path) -> None:
    topology = read_topology(fixtures.hybrid_laptop(tmp_path))
    assert (topology.logical_count, topology.core_count, topology.thread_count) == (16, 12, 4)
    assert [core.cpus for core in topology.fast_cores] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert first_cpus(topology.slow_cores) == list(range(8, 16))
    assert topology.kinds_source == "cpu_core and cpu_atom"


def test_without_intels_lists_the_frequency_tells_the_kinds(tmp_path: Path) -> None:
    fixtures.hybrid_laptop(tmp_path)
    (tmp_path / "sys/devices/cpu_atom/cpus").unlink()
    topology = read_topology(tmp_path)
    assert len(topology.slow_cores) == 8
    assert topology.kinds_source == "maximum frequency"


def test_favoured_cores_are_no_other_kind(tmp_path: Path) -> None:
    fixtures.raspberry_pi_5(tmp_path)
    fixtures.each(tmp_path, [0], {"cpufreq/cpuinfo_max_freq": "2700000", "cpu_capacity": "1100"})
    assert not read_topology(tmp_path).slow_cores


def test_a_process_on_efficiency_cores_alone_computes_with_them(tmp_path: Path) -> None:
    topology = read_topology(fixtures.hybrid_laptop(tmp_path), allowed=frozenset(range(8, 12)))
    assert (topology.thread_count, len(topology.slow_cores)) == (4, 0)


def test_a_server_with_two_nodes(tmp_path: Path) -> None:
    topology = read_topology(fixtures.dual_socket_server(tmp_path))
    assert (topology.logical_count, topology.core_count) == (64, 32)
    assert [node.memory_bytes for node in topology.nodes] == [64 * 2**30] * 2
    assert [node.distances for node in topology.nodes] == [(10, 21), (21, 10)]
    assert [core.node for core in topology.cores] == [0] * 16 + [1] * 16


def test_a_board_with_cores_that_are_alike(tmp_path: Path) -> None:
    topology = read_topology(fixtures.raspberry_pi_5(tmp_path))
    assert (topology.logical_count, topology.core_count, topology.thread_count) == (4, 4, 4)
    assert (topology.slow_cores, topology.kinds_source, topology.notes) == ((), "", ())


def test_a_board_with_big_and_little_cores(tmp_path: Path) -> None:
    topology = read_topology(fixtures.big_little_board(tmp_path))
    assert first_cpus(topology.fast_cores) == [4, 5, 6, 7]
    assert topology.kinds_source == "cpu_capacity"


def test_a_container_with_a_quota(tmp_path: Path) -> None:
    topology = read_topology(fixtures.container(tmp_path))
    assert (topology.core_count, topology.quota_cores, topology.thread_count) == (8, 1.5, 1)
    assert not topology.has_cpuset


@pytest.mark.parametrize(("text", "threads"), [("300000 100000", 3), ("50000 100000", 1), ("max 100000", 4)])
def test_threads_within_the_quota(tmp_path: Path, text: str, threads: int) -> None:
    fixtures.raspberry_pi_5(tmp_path)
    fixtures.group_v2(tmp_path, "/app", {"app/cpu.max": text})
    assert read_topology(tmp_path).thread_count == threads


def test_a_cpuset(tmp_path: Path) -> None:
    topology = read_topology(fixtures.cpuset_of_two(tmp_path))
    assert (topology.cpus, topology.has_cpuset, topology.thread_count) == ({2, 3}, True, 2)


def test_a_cpuset_of_two_siblings_is_one_core(tmp_path: Path) -> None:
    fixtures.cpuset_of_two(tmp_path)
    fixtures.group_v2(tmp_path, "/app", {"app/cpuset.cpus.effective": "2,6"})
    assert read_topology(tmp_path).thread_count == 1


def test_the_affinity_mask_counts_beside_the_cpuset(tmp_path: Path) -> None:
    fixtures.cpuset_of_two(tmp_path)
    assert read_topology(tmp_path, allowed=frozenset({0, 3, 7})).cpus == {3}


def test_a_list_that_leaves_no_cpu_is_not_believed(tmp_path: Path) -> None:
    fixtures.cpuset_of_two(tmp_path)
    fixtures.put(tmp_path, {f"{fixtures.CPU}/online": "40-47"})
    assert read_topology(tmp_path).cpus == {2, 3}


def test_cpus_that_are_offline_do_not_count(tmp_path: Path) -> None:
    assert read_topology(fixtures.offline_cpus(tmp_path)).cpus == {0, 1, 2, 3}


def test_a_virtual_machine_that_tells_nothing_says_what_was_assumed(tmp_path: Path) -> None:
    topology = read_topology(fixtures.bare_virtual_machine(tmp_path))
    assert (topology.core_count, topology.thread_count, topology.nodes) == (2, 2, ())
    assert topology.notes == ("Which CPUs share a core is not told here: each counts as a core.",)
    assert read_caches(topology.cpus, tmp_path) == ()


def test_without_any_file_there_is_still_a_topology(tmp_path: Path) -> None:
    topology = read_topology(tmp_path / "absent")
    assert topology.thread_count >= 1
    assert topology.notes


def test_caches_are_counted_once(tmp_path: Path) -> None:
    caches = read_caches(range(16), fixtures.hybrid_laptop(tmp_path))
    assert describe_caches(caches) == (
        "L1d 4 x 48 KiB, L1d 8 x 32 KiB, L2 4 x 1.25 MiB, L2 2 x 2 MiB, L3 18 MiB (CPUs 0-15)"
    )
    assert last_level_bytes(caches) == 18 * 2**20


def test_caches_of_two_sockets_add_up(tmp_path: Path) -> None:
    assert last_level_bytes(read_caches(range(64), fixtures.dual_socket_server(tmp_path))) == 48 * 2**20


@pytest.mark.parametrize("machine", MACHINES)
def test_garbage_in_every_file_still_gives_a_topology(tmp_path: Path, machine: Callable[[Path], Path]) -> None:
    files = [file for file in machine(tmp_path).rglob("*") if file.is_file()]
    for garbage in (b"", b"-1\n", b"0-\n", b"9" * 30, b"\xff\x00\n0::/\0\n"):
        for file in files:
            file.write_bytes(garbage)
        topology = read_topology(tmp_path, allowed=frozenset({0, 1}))
        assert topology.cpus == {0, 1}
        assert topology.thread_count >= 1
        assert read_caches(topology.cpus, tmp_path) == ()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_garbage_in_one_file_still_gives_a_topology(tmp_path: Path, data: st.DataObject) -> None:
    if not (tmp_path / "sys").exists():
        fixtures.hybrid_laptop(tmp_path)
        fixtures.group_v2(tmp_path, "/app", {"app/cpu.max": "250000 100000", "app/cpuset.cpus.effective": "0-9"})
    # One CPU's files stand for those of all.
    files = [file for file in tmp_path.rglob("*") if file.is_file() and not re.search(r"/cpu[1-9]", str(file))]
    file = data.draw(st.sampled_from(sorted(files)))
    before = file.read_bytes()
    file.write_bytes(data.draw(st.binary(max_size=30) | st.sampled_from([b"0-9", b"0", b"-1", b"5-2", b"max"])))
    topology = read_topology(tmp_path, allowed=frozenset(range(16)))
    file.write_bytes(before)
    placed = [cpu for core in topology.cores for cpu in core.cpus]
    assert placed
    assert len(placed) == len(set(placed)), "no CPU is on two cores"
    assert topology.thread_count >= 1


def test_this_machine_can_be_read() -> None:
    topology = read_topology()
    assert 1 <= topology.thread_count <= topology.core_count <= topology.logical_count
