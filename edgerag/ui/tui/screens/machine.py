"""The machine at work: every core with its load, its kind and what the plan gives it to do; memory, nodes, features.
Refreshed each second."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Static

from edgerag.machine.affinity import thread_affinities
from edgerag.machine.caches import describe_caches, read_caches
from edgerag.machine.cores import Core
from edgerag.machine.cpu import Processor, read_processor
from edgerag.machine.kernel_files import name_cpus
from edgerag.machine.load import CpuLoad
from edgerag.machine.memory import available_bytes, resident_bytes, total_bytes
from edgerag.machine.plan import CorePlan, plan_cores
from edgerag.machine.topology import Topology, read_topology
from edgerag.ui.output import size
from edgerag.ui.tui import shown
from edgerag.ui.tui.ingest_view import bar
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.screens.base import SideScreen

_REFRESH_S = 1.0
_CELL_CELLS = 40  # of one CPU: its number, kind, node, bar, share and tasks
_BAR_CELLS = 10
_BUSY, _VERY_BUSY = 0.5, 0.85
_MOST_REASONS = 8


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What does not change while the program runs."""

    processor: Processor
    topology: Topology
    plan: CorePlan
    caches: str


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """What changes all the time."""

    shares: Mapping[int, float]  # logical CPU -> 0 to 1; empty where that is not told
    free_bytes: int
    total_bytes: int
    resident_bytes: int  # of this process
    affinities: Mapping[int, frozenset[int]]  # thread -> CPUs; empty where that is not told


class MachineScreen(SideScreen):
    """What the kernel tells, beside what the program makes of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("f4", "app.doctor", "Check", tooltip="What helps and what hinders here"),
        Binding("f5", "app.blocks", "Index", tooltip="The index in memory"),
        Binding("f7", "app.models", "Models", tooltip="The models"),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self) -> None:
        super().__init__()
        self._text = Static(Content("Looking …"))
        self._known: tuple[MachineFacts, CpuLoad] | None = None
        self._looking = False

    def compose(self) -> ComposeResult:
        yield Static(Content.styled("This machine", "bold"), classes="title")
        yield VerticalScroll(self._text)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._look()
        self.set_interval(_REFRESH_S, self._look)

    def on_resize(self) -> None:
        self._look()

    def _look(self) -> None:
        if not self._looking:
            self._looking = True
            self.start(self._show(), failed=self._fail)

    async def _show(self) -> None:
        try:
            if self._known is None:
                self._known = await asyncio.to_thread(self._read_facts)
            facts, counting = self._known
            load = await asyncio.to_thread(_read_load, counting)
            library = await asyncio.to_thread(self.session.library_status)
            budget_bytes = self.session.budget_bytes()
        finally:
            self._looking = False
        index_bytes = library.resident_bytes if library else 0
        width = max(1, self._text.container_size.width - 2)
        self._text.update(machine_content(facts, load, index_bytes=index_bytes, budget_bytes=budget_bytes, width=width))

    def _read_facts(self) -> tuple[MachineFacts, CpuLoad]:
        """In a thread."""
        topology = read_topology()
        model = self.edgerag.facts.model
        model_bytes = next((entry.size_bytes for entry in self.session.models() if entry.name == model), 0)
        plan = plan_cores(topology, threads=self.session.settings.machine.threads, model_bytes=model_bytes)
        caches = describe_caches(read_caches(topology.cpus))
        return MachineFacts(read_processor(), topology, plan, caches), CpuLoad()

    def _fail(self, problem: Problem) -> None:
        self._text.update(problem.content())


def _read_load(load: CpuLoad) -> MachineLoad:
    return MachineLoad(load.shares(), available_bytes(), total_bytes(), resident_bytes(), thread_affinities())


def machine_content(
    facts: MachineFacts, load: MachineLoad, *, index_bytes: int, budget_bytes: int, width: int
) -> Content:
    topology, plan = facts.topology, facts.plan
    lines = [
        shown.line(f"{facts.processor.model} ({facts.processor.architecture})", width, "bold"),
        *_wrapped("can", facts.processor.features or ("nothing that is told",), width),
        Content(),
        _heading(f"Cores: {_counts(topology)}"),
        *_core_lines(topology, plan, load.shares, width),
        Content.styled("tasks: p prefill, d decoding, r embedding and retrieval", "$foreground 70%"),
        Content(),
        _heading("Memory"),
        _memory_line("in use", load.total_bytes - load.free_bytes, load.total_bytes, width),
        _memory_line("of it this program", load.resident_bytes, load.total_bytes, width),
        _memory_line("of it the index", index_bytes, budget_bytes, width, of="of its budget of"),
        Content(),
        _heading("Nodes and caches"),
        *_node_lines(topology, width),
        shown.line(f"caches: {facts.caches or 'not told by this system'}", width),
        Content(),
        _heading("Pinning"),
        shown.line(_pinning(topology, load.affinities), width),
        *(shown.line(f"· {reason}", max(width, 200)) for reason in plan.reasons[:_MOST_REASONS]),
    ]
    return Content("\n").join(lines)


def _heading(text: str) -> Content:
    return Content.styled(text, "bold $text-accent")


def _counts(topology: Topology) -> str:
    parts = [f"{topology.core_count} physical, {topology.logical_count} logical"]
    if topology.slow_cores:
        parts.append(f"{len(topology.fast_cores)} performance (P), {len(topology.slow_cores)} efficiency (E)")
    if topology.quota_cores is not None:
        parts.append(f"quota of {topology.quota_cores:g}")
    return ", ".join(parts)


def _core_lines(topology: Topology, plan: CorePlan, shares: Mapping[int, float], width: int) -> list[Content]:
    """One cell for each logical CPU, in as many columns as there is room for, down the columns."""
    cells = [_cpu_cell(cpu, core, topology, plan, shares) for core in topology.cores for cpu in core.cpus]
    columns = max(1, width // _CELL_CELLS)
    height = -(-len(cells) // columns)
    return [Content("").join(cells[row::height]) for row in range(height)]


def _cpu_cell(cpu: int, core: Core, topology: Topology, plan: CorePlan, shares: Mapping[int, float]) -> Content:
    kind = "E" if core.kind == "efficiency" else "P" if topology.slow_cores else " "
    node = f"n{core.node}" if len(topology.nodes) > 1 else "  "
    tasks = "".join(
        letter if cpu in cpus else "·"
        for letter, cpus in (("p", plan.prefill_cpus), ("d", plan.decode_cpus), ("r", plan.retrieval_cpus))
    )
    share = shares.get(cpu)
    busy = share or 0.0
    full, empty = bar(busy, _BAR_CELLS)
    colour = "$text-success" if busy < _BUSY else "$text-warning" if busy < _VERY_BUSY else "$text-error"
    figure = "  ?  " if share is None else f"{share:4.0%} "
    cell = Content.assemble(
        f"CPU {cpu:<4}{kind} {node} ", (full, colour), (empty, "$foreground 25%"), f" {figure}", (tasks, "bold")
    )
    return cell.pad_right(max(0, _CELL_CELLS - cell.cell_length))


def _memory_line(name: str, part: int, whole: int, width: int, *, of: str = "of") -> Content:
    share = part / whole if whole else 0.0
    full, empty = bar(share, min(30, max(5, width - 56)))
    colour = "$text-error" if share > _VERY_BUSY else "$text-primary"
    return Content.assemble(
        f"{name:<20}", (full, colour), (empty, "$foreground 25%"), f" {size(part)} {of} {size(whole)}"
    )


def _node_lines(topology: Topology, width: int) -> list[Content]:
    if len(topology.nodes) < 2:
        return [Content("one NUMA node: all memory is equally near")]
    return [
        shown.line(f"node {node.number}: {name_cpus(node.cpus)}, {size(node.memory_bytes)}", width)
        for node in topology.nodes
    ]


def _pinning(topology: Topology, affinities: Mapping[int, frozenset[int]]) -> str:
    if not affinities:
        return "Which thread runs where is not told by this system."
    held = {thread: cpus for thread, cpus in affinities.items() if cpus < topology.cpus}
    if not held:
        return f"{len(affinities)} threads, none of them held to certain CPUs."
    groups: dict[frozenset[int], int] = {}
    for cpus in held.values():
        groups[cpus] = groups.get(cpus, 0) + 1
    where = ", ".join(f"{count} on {name_cpus(cpus)}" for cpus, count in groups.items())
    return f"{len(affinities)} threads, {len(held)} of them held: {where}."


def _wrapped(name: str, words: tuple[str, ...], width: int) -> list[Content]:
    lines, line = [], f"{name}:"
    for word in words:
        if len(line) + 1 + len(word) > width:
            lines.append(line)
            line = " " * (len(name) + 1)
        line += f" {word}"
    return [Content.styled(text, "$foreground 75%") for text in [*lines, line]]
