"""Which cores do what on the machines of fixtures.py, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from unit.machine import fixtures

from edgerag.machine.cores import Core
from edgerag.machine.cpu import Processor
from edgerag.machine.fingerprint import machine_fingerprint
from edgerag.machine.nodes import NumaNode
from edgerag.machine.plan import CorePlan, plan_cores
from edgerag.machine.topology import Topology, read_topology

GIB = 2**30


def plan_of(machine: Callable[[Path], Path], folder: Path, **wishes: int) -> CorePlan:
    # Trees describe Linux machines; the tests run anywhere.
    return plan_cores(replace(read_topology(machine(folder)), can_pin=True), **wishes)  # type: ignore[arg-type]


def said(plan: CorePlan, words: str) -> bool:
    return any(words in reason for reason in plan.reasons)


def test_a_hybrid_laptop_decodes_on_performance_cores(tmp_path: Path) -> None:
    plan = plan_of(fixtures.hybrid_laptop, tmp_path)
    assert plan.prefill_cpus == plan.decode_cpus == (0, 2, 4, 6)
    assert plan.retrieval_cpus == tuple(range(8, 16))
    assert (plan.placement, plan.pinned) == ("none", True)
    assert said(plan, "8 efficiency cores (by cpu_core and cpu_atom) do not decode")
    assert said(plan, "One thread per physical core")


def test_efficiency_cores_help_with_prefill_only_when_measured(tmp_path: Path) -> None:
    topology = read_topology(fixtures.hybrid_laptop(tmp_path))
    plan = plan_cores(topology, prefill="all")
    assert plan.prefill_cpus == (0, 2, 4, 6, *range(8, 16))
    assert plan.decode_cpus == (0, 2, 4, 6)
    assert said(plan, "8 of them help with prefill, as measured")


def test_a_server_stays_on_one_node(tmp_path: Path) -> None:
    plan = plan_of(fixtures.dual_socket_server, tmp_path, model_bytes=5 * GIB)
    assert plan.placement == 0
    assert plan.prefill_cpus == tuple(range(16))
    assert plan.decode_cpus == tuple(range(15))
    assert plan.retrieval_cpus == (15,)
    assert plan.pinned
    assert said(plan, "Only cores and memory of NUMA node 0")


def test_a_model_larger_than_a_node_is_spread_over_all(tmp_path: Path) -> None:
    plan = plan_of(fixtures.dual_socket_server, tmp_path, model_bytes=70 * GIB)
    assert plan.placement == "interleave"
    assert plan.prefill_cpus == tuple(range(32))
    assert said(plan, "by turns")


def test_a_process_of_the_second_node_stays_there(tmp_path: Path) -> None:
    topology = read_topology(fixtures.dual_socket_server(tmp_path), allowed=frozenset(range(16, 32)))
    plan = plan_cores(topology)
    assert plan.placement == 1
    assert plan.prefill_cpus == tuple(range(16, 32))


def test_a_node_of_memory_alone_is_not_computed_on() -> None:
    cores = tuple(Core((cpu,), "performance", 0) for cpu in range(4))
    nodes = (NumaNode(0, frozenset(range(4)), 8 * GIB, ()), NumaNode(1, frozenset(), 64 * GIB, ()))
    topology = Topology(cores, nodes, None, has_cpuset=False, can_pin=True)
    assert plan_cores(topology, model_bytes=GIB).placement == 0
    assert plan_cores(topology, model_bytes=20 * GIB).placement == "interleave"


def test_four_cores_set_one_aside_for_retrieval(tmp_path: Path) -> None:
    plan = plan_of(fixtures.raspberry_pi_5, tmp_path)
    assert (plan.prefill_cpus, plan.decode_cpus, plan.retrieval_cpus) == ((0, 1, 2, 3), (0, 1, 2), (3,))
    assert not plan.shares
    assert said(plan, "CPU 3 to themselves")


def test_big_cores_decode_and_little_ones_retrieve(tmp_path: Path) -> None:
    plan = plan_of(fixtures.big_little_board, tmp_path)
    assert (plan.decode_cpus, plan.retrieval_cpus) == ((4, 5, 6, 7), (0, 1, 2, 3))


def test_a_quota_without_a_cpuset_is_kept_and_not_pinned(tmp_path: Path) -> None:
    plan = plan_of(fixtures.container, tmp_path)
    assert (len(plan.prefill_cpus), len(plan.decode_cpus), plan.shares, plan.pinned) == (1, 1, True, False)
    assert said(plan, "the quota is 1.5 cores")
    assert said(plan, "Not pinned: the quota is time on CPUs that others use too")


def test_retrieval_takes_no_more_than_the_quota_leaves(tmp_path: Path) -> None:
    topology = read_topology(fixtures.hybrid_laptop(tmp_path))
    plan = plan_cores(replace(topology, quota_cores=6.5, has_cpuset=True), prefill="all")
    assert (plan.decode_cpus, plan.retrieval_cpus) == ((0, 2, 4, 6), (8, 9))
    assert len(plan.prefill_cpus) == 6
    plan = plan_cores(replace(topology, quota_cores=4.0, has_cpuset=True))
    assert (plan.decode_cpus, plan.retrieval_cpus) == ((0, 2, 4), (6,)), "no time is left for an efficiency core"


def test_the_node_with_the_most_fast_cores_is_taken() -> None:
    kinds = ["efficiency"] * 6 + ["performance"] * 4
    cores = tuple(Core((cpu,), kind, int(cpu >= 6)) for cpu, kind in enumerate(kinds))  # type: ignore[arg-type]
    nodes = (NumaNode(0, frozenset(range(6)), 8 * GIB, ()), NumaNode(1, frozenset(range(6, 10)), 8 * GIB, ()))
    plan = plan_cores(Topology(cores, nodes, None, has_cpuset=False, can_pin=True))
    assert (plan.placement, plan.prefill_cpus) == (1, (6, 7, 8, 9))


def test_without_pinning_no_cpu_is_named(tmp_path: Path) -> None:
    fixtures.raspberry_pi_5(tmp_path)
    fixtures.group_v2(tmp_path, "/app", {"app/cpu.max": "400000 100000"})
    plan = plan_cores(read_topology(tmp_path))
    assert not plan.pinned
    assert said(plan, "have 1 core to themselves")
    assert not said(plan, "CPU 3")


def test_a_quota_on_two_nodes_leaves_memory_to_the_system(tmp_path: Path) -> None:
    fixtures.dual_socket_server(tmp_path)
    fixtures.group_v2(tmp_path, "/app", {"app/cpu.max": "800000 100000"})
    plan = plan_cores(read_topology(tmp_path))
    assert (plan.placement, len(plan.prefill_cpus), len(plan.decode_cpus)) == ("none", 8, 7)


def test_a_cpuset_is_kept_to(tmp_path: Path) -> None:
    plan = plan_of(fixtures.cpuset_of_two, tmp_path)
    assert plan.decode_cpus == plan.retrieval_cpus == (2, 3)
    assert said(plan, "every CPU is used")


def test_the_setting_stands_above_the_plan(tmp_path: Path) -> None:
    plan = plan_of(fixtures.raspberry_pi_5, tmp_path / "few", threads=2)
    assert plan.prefill_cpus == plan.decode_cpus == (0, 1)
    assert (plan.retrieval_cpus, plan.pinned) == ((3,), False)
    assert plan_of(fixtures.bare_virtual_machine, tmp_path / "two", threads=1).retrieval_cpus == (1,)
    plan = plan_of(fixtures.container, tmp_path / "quota", threads=4)
    assert plan.shares, "the quota leaves nothing over"
    assert len(plan.decode_cpus) == 4
    assert said(plan, "the quota of 1.5 cores will make 4 threads wait")
    plan = plan_of(fixtures.hybrid_laptop, tmp_path / "many", threads=6)
    assert plan.decode_cpus == (0, 2, 4, 6, 8, 9), "fast cores first, then slow ones, siblings last"
    plan = plan_of(fixtures.hybrid_laptop, tmp_path / "most", threads=99)
    assert sorted(plan.decode_cpus) == list(range(16))
    assert said(plan, "asks for 99, but there are 16 CPUs")
    assert plan.shares


def test_more_threads_than_a_node_has_cores_go_to_the_next_node_before_siblings(tmp_path: Path) -> None:
    plan = plan_of(fixtures.dual_socket_server, tmp_path, threads=20)
    assert plan.decode_cpus == tuple(range(20))


def test_a_system_that_cannot_pin(tmp_path: Path) -> None:
    topology = replace(read_topology(fixtures.hybrid_laptop(tmp_path)), can_pin=False)
    plan = plan_cores(topology)
    assert not plan.pinned
    assert said(plan, "this system does not let a program choose")


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    cores, cpu = [], 0
    for _ in range(draw(st.integers(1, 10))):
        width = draw(st.integers(1, 2))
        kind = draw(st.sampled_from(("performance", "efficiency")))
        cores.append(Core(tuple(range(cpu, cpu + width)), kind, draw(st.integers(0, 1))))
        cpu += width
    members = [frozenset(c for core in cores if core.node == number for c in core.cpus) for number in (0, 1)]
    nodes = tuple(NumaNode(n, members[n], draw(st.sampled_from((0, GIB, 8 * GIB))), ()) for n in (0, 1))
    return Topology(
        cores=tuple(cores),
        nodes=nodes[: draw(st.integers(0, 2))],
        quota_cores=draw(st.none() | st.floats(0.1, 12)),
        has_cpuset=draw(st.booleans()),
        can_pin=draw(st.booleans()),
    )


@given(topologies(), st.integers(0, 2**34), st.sampled_from(("fast", "all")))
def test_what_holds_for_every_plan(topology: Topology, model_bytes: int, prefill: str) -> None:
    plan = plan_cores(topology, model_bytes=model_bytes, prefill=prefill)  # type: ignore[arg-type]
    core_of = {cpu: core for core in topology.cores for cpu in core.cpus}
    for cpus in (plan.prefill_cpus, plan.decode_cpus, plan.retrieval_cpus):
        assert cpus
        assert set(cpus) <= topology.cpus
        assert len({core_of[cpu] for cpu in cpus}) == len(cpus), "never two threads on one physical core"
    limit = topology.quota_threads or topology.core_count
    assert len(plan.prefill_cpus) <= limit
    assert len(set(plan.decode_cpus) | set(plan.retrieval_cpus)) <= limit
    if not plan.shares:
        assert not {core_of[cpu] for cpu in plan.retrieval_cpus} & {core_of[cpu] for cpu in plan.decode_cpus}
    assert len({core_of[cpu].kind for cpu in plan.decode_cpus}) == 1
    assert plan.reasons
    if topology.quota_cores is not None and not topology.has_cpuset:
        assert not plan.pinned
    if isinstance(plan.placement, int):
        assert {core_of[cpu].node for cpu in plan.prefill_cpus + plan.retrieval_cpus} == {plan.placement}


@given(topologies(), st.integers(1, 40))
def test_the_setting_counts_up_to_the_cpus_that_there_are(topology: Topology, threads: int) -> None:
    plan = plan_cores(topology, threads=threads)
    assert len(plan.decode_cpus) == len(set(plan.decode_cpus)) == min(threads, topology.logical_count)
    assert plan.retrieval_cpus


def test_the_fingerprint_changes_with_the_machine_and_not_with_a_start(tmp_path: Path) -> None:
    processor = Processor("x86_64", "Example", ("AVX2",))
    topology = read_topology(fixtures.hybrid_laptop(tmp_path))
    print_of = machine_fingerprint(processor, topology, memory_bytes=16_100_000_000)
    assert print_of == machine_fingerprint(processor, read_topology(tmp_path), memory_bytes=16_050_000_000)
    assert len(print_of) == 16
    others = {
        machine_fingerprint(processor, topology, memory_bytes=32_000_000_000),
        machine_fingerprint(replace(processor, features=()), topology, memory_bytes=16_100_000_000),
        machine_fingerprint(replace(processor, model="Other"), topology, memory_bytes=16_100_000_000),
        machine_fingerprint(processor, replace(topology, quota_cores=2.0), memory_bytes=16_100_000_000),
        machine_fingerprint(processor, replace(topology, cores=topology.cores[1:]), memory_bytes=16_100_000_000),
    }
    assert len(others | {print_of}) == 6
