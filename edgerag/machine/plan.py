"""Which cores do what: a pure function of the topology, with its reasons in sentences.

Prefill is arithmetic and gains from every fast core; decoding waits for memory, and a slow core or a second thread
on the same core holds it up at each barrier. Numbers that only a measurement can tell (whether efficiency cores help
prefill here) are the autotuner's to pass in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from edgerag.machine.cores import Core
from edgerag.machine.kernel_files import name_cpus
from edgerag.machine.nodes import NumaNode
from edgerag.machine.numa import Placement
from edgerag.machine.topology import Topology

# With fewer cores the one set aside would cost decoding more than it saves embedding and retrieval.
_LEAST_TO_SET_ASIDE = 4
# Of a node's memory: the rest is for KV cache, buffers, index and the system.
_NODE_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class CorePlan:
    """Logical CPUs, one per thread; prefill and decoding take turns, retrieval runs beside decoding."""

    prefill_cpus: tuple[int, ...]
    decode_cpus: tuple[int, ...]
    retrieval_cpus: tuple[int, ...]  # of embedding and search; the decode CPUs where they share
    placement: Placement  # of models and KV cache: "none", a NUMA node, or "interleave"
    pinned: bool  # whether threads are to be held on these CPUs; else only their numbers count
    reasons: tuple[str, ...]

    @property
    def shares(self) -> bool:
        """Whether embedding and retrieval use the cores of decoding."""
        return bool(set(self.retrieval_cpus) & set(self.decode_cpus))


def plan_cores(
    topology: Topology,
    *,
    threads: int = 0,
    model_bytes: int = 0,
    prefill: Literal["fast", "all"] = "fast",
) -> CorePlan:
    """The plan for this topology.

    ``threads``: the setting ``machine.threads``, which stands above everything but the number of CPUs; 0: none.
    ``model_bytes``: size of the weights, 0 where it is not known. ``prefill``: "all" if efficiency cores were
    measured to help.
    """
    placement, cores, reasons = _place(topology, model_bytes)
    fast = [core for core in cores if core.kind == "performance"] or list(cores)
    slow = [core for core in cores if core not in fast]
    limit = topology.quota_threads or len(cores)
    if threads:
        order = _in_order(fast, slow, [core for core in topology.cores if core not in cores])
        prefill_cpus = decode_cpus = order[:threads]
        reasons.append(_of_setting(threads, topology, chosen=len(decode_cpus)))
        left = [core for core in [*slow, *reversed(fast)] if not set(core.cpus) & set(decode_cpus)]
        spare = left[:1] if len(decode_cpus) < limit else []
    else:
        count = min(len(fast), limit)
        chosen = fast[:count]
        extra = slow[: limit - count] if prefill == "all" else []
        prefill_cpus = tuple(core.cpus[0] for core in [*chosen, *extra])
        spare = slow[: limit - count] if min(len(cores), limit) >= _LEAST_TO_SET_ASIDE else []
        if not spare and count >= _LEAST_TO_SET_ASIDE:
            spare = [chosen.pop()]
        decode_cpus = tuple(core.cpus[0] for core in chosen)
        reasons += _of_cores(topology, fast, slow, count=count, extra=len(extra))
    retrieval_cpus = tuple(core.cpus[0] for core in spare) or decode_cpus
    pinned, why = _pin(topology, fast, decode_cpus, threads)
    reasons.append(_of_retrieval(retrieval_cpus, shares=not spare, pinned=pinned))
    return CorePlan(
        prefill_cpus=prefill_cpus,
        decode_cpus=decode_cpus,
        retrieval_cpus=retrieval_cpus,
        placement=placement,
        pinned=pinned,
        reasons=(*reasons, why),
    )


def _place(topology: Topology, model_bytes: int) -> tuple[Placement, tuple[Core, ...], list[str]]:
    """Where memory comes from, the cores next to it, and why."""
    nodes = [node for node in topology.nodes if node.memory_bytes]
    if len(nodes) < 2:
        return "none", topology.cores, []
    if _is_shared(topology):
        return "none", topology.cores, ["Memory is left to the system: under this quota threads may run on any node."]

    def cores_of(node: NumaNode) -> tuple[Core, ...]:
        return tuple(core for core in topology.cores if core.node == node.number)

    fitting = [n for n in nodes if cores_of(n) and model_bytes <= n.memory_bytes * _NODE_SHARE]
    if not fitting:
        reason = f"Memory comes from {len(nodes)} NUMA nodes by turns: the model is larger than one of them takes."
        return "interleave", topology.cores, [reason]
    fast = set(topology.fast_cores)
    best = max(fitting, key=lambda n: (len(fast.intersection(cores_of(n))), n.memory_bytes, -n.number))
    reason = f"Only cores and memory of NUMA node {best.number}: the model fits there, other nodes read it more slowly."
    return best.number, cores_of(best), [reason]


def _in_order(*groups: Sequence[Core]) -> tuple[int, ...]:
    """Every CPU: first one of each core, then the siblings."""
    cores = [core for group in groups for core in group]
    first, second = [core.cpus[0] for core in cores], [cpu for core in cores for cpu in core.cpus[1:]]
    return (*first, *second)


def _is_shared(topology: Topology) -> bool:
    """Whether processor time is allotted, but on CPUs that other groups use as well."""
    return topology.quota_cores is not None and not topology.has_cpuset


def _of_setting(threads: int, topology: Topology, *, chosen: int) -> str:
    reason = f"machine.threads asks for {threads}"
    if chosen < threads:
        reason += f", but there are {chosen} CPUs"
    if topology.quota_threads and chosen > topology.quota_threads:
        reason += f"; the quota of {topology.quota_cores:g} cores will make {chosen} threads wait"
    elif chosen > topology.core_count:
        reason += "; some share a physical core"
    return f"{reason}."


def _of_cores(topology: Topology, fast: list[Core], slow: list[Core], *, count: int, extra: int) -> list[str]:
    reasons = []
    if count < len(fast):
        reasons.append(f"No more than {count} at a time: the quota is {topology.quota_cores:g} cores.")
    if any(len(core.cpus) > 1 for core in fast):
        reasons.append("One thread per physical core: two on one share its arithmetic.")
    if slow:
        reasons.append(f"{len(slow)} efficiency cores (by {topology.kinds_source}) do not decode: all would wait.")
        if extra:
            reasons.append(f"{extra} of them help with prefill, as measured.")
    return reasons


def _of_retrieval(cpus: tuple[int, ...], *, shares: bool, pinned: bool) -> str:
    if shares:
        return "Embedding and retrieval share the cores of decoding: there are too few to set one aside."
    where = name_cpus(cpus) if pinned else f"{len(cpus)} core{'s' if len(cpus) > 1 else ''}"
    return f"Embedding and retrieval have {where} to themselves while the model decodes."


def _pin(topology: Topology, fast: list[Core], decode_cpus: tuple[int, ...], threads: int) -> tuple[bool, str]:
    if not topology.can_pin:
        return False, "Not pinned: this system does not let a program choose the CPUs of its threads."
    if _is_shared(topology):
        return False, "Not pinned: the quota is time on CPUs that others use too, and the system knows which are idle."
    if threads and len(decode_cpus) < len(fast):
        return False, "Not pinned: with fewer threads than cores the system finds the idle ones."
    if set(decode_cpus) == topology.cpus:
        return False, "Not pinned: every CPU is used, so there is none to keep away from."
    return True, "Pinned, so that no thread moves to a sibling, a slower core or another's."
