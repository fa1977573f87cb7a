"""What helps and what hinders on this machine: each finding with its remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from edgerag.config import MemorySettings, ModelSettings, Share
from edgerag.errors import EdgeragError
from edgerag.machine.bandwidth import measure_bandwidth
from edgerag.machine.caches import describe_caches, read_caches
from edgerag.machine.cpu import read_processor
from edgerag.machine.kernel_files import name_cpus
from edgerag.machine.limits import read_limits
from edgerag.machine.memory import available_bytes, total_bytes
from edgerag.machine.nodes import NumaNode
from edgerag.machine.plan import CorePlan, plan_cores
from edgerag.machine.topology import Topology, read_topology
from edgerag.native_builds import NativeLibrary, find_trouble
from edgerag.offline import guard
from edgerag.types import Finding, LibraryStatus, LockedLibrary

if TYPE_CHECKING:
    from edgerag.engine.catalog import Catalog

# The smallest default setup (models, contexts, index budget) stays under this.
_COMFORTABLE_BYTES = 1_000_000_000
_FINDING_OF: dict[NativeLibrary, str] = {"llama.cpp": "engine", "hnswlib": "index"}
_BANDWIDTH_S = 0.2  # hardly felt; half of it fills the buffer


def machine_findings(threads: int, *, model_bytes: int = 0) -> list[Finding]:
    """What this machine is and how it will be used, bandwidth of the memory included (measured in a fifth of a second).

    ``threads`` is the setting; 0 leaves the number to the plan. ``model_bytes``: the chat model; 0: not known.
    """
    processor = read_processor()
    topology = read_topology()
    free, total = available_bytes(), total_bytes()
    plan = plan_cores(topology, threads=threads, model_bytes=model_bytes)
    findings = [
        Finding("cpu", "ok", f"{processor.model} ({processor.architecture}): {', '.join(processor.features) or '-'}"),
        Finding("cores", "ok", _cores_line(topology), figure=topology.core_count, unit="cores"),
        *(Finding("cores", "info", note) for note in topology.notes),
    ]
    caches = describe_caches(read_caches(topology.cpus))
    findings.append(Finding("caches", "ok", caches) if caches else Finding("caches", "info", "not told by this system"))
    if len(topology.nodes) > 1:
        findings += [Finding("NUMA", "ok", _node_line(node, topology.nodes)) for node in topology.nodes]
    if free < _COMFORTABLE_BYTES:
        findings.append(
            Finding(
                "memory",
                "warning",
                f"{free / 1e9:.1f} GB free of {total / 1e9:.1f} GB",
                "Close other programs, or use smaller models.",
                figure=free,
                unit="bytes",
            )
        )
    else:
        line = f"{free / 1e9:.1f} GB free of {total / 1e9:.1f} GB"
        findings.append(Finding("memory", "ok", line, figure=free, unit="bytes"))
    findings.append(_bandwidth_finding(plan))
    findings += read_limits(topology.cpus)
    findings.append(Finding("plan", "ok", _plan_line(plan)))
    findings += [Finding("plan", "info", reason) for reason in plan.reasons]
    if "AVX2" not in processor.features and processor.architecture == "x86_64":
        findings.append(
            Finding("cpu speed", "warning", "No AVX2: answers will be slow.", "Use the smallest models you can.")
        )
    return findings


def offline_finding() -> Finding:
    """Whether this process is shut off from every network, and by whom."""
    if not guard.is_shut_off():
        return Finding("offline", "info", "The program that runs this one has not been shut off from networks.")
    if guard.kernel_refuses():
        return Finding("offline", "ok", "no network: refused by the kernel and by Python (`doctor --offline-proof`)")
    return Finding(
        "offline",
        "warning",
        "no network for Python code; this kernel holds no native code back",
        "Where that must be certain, run it as `unshare -rn edgerag ...`.",
    )


def _cores_line(topology: Topology) -> str:
    parts = [f"{topology.core_count} physical, {topology.logical_count} logical"]
    if topology.slow_cores:
        parts.append(f"{len(topology.fast_cores)} performance and {len(topology.slow_cores)} efficiency cores")
    if topology.has_cpuset:
        parts.append(f"the control group allows {name_cpus(topology.cpus)}")
    if topology.quota_cores is not None:
        parts.append(f"quota of {topology.quota_cores:.1f} cores")
    return ", ".join(parts)


def _node_line(node: NumaNode, nodes: tuple[NumaNode, ...]) -> str:
    line = f"node {node.number}: {name_cpus(node.cpus)}, {node.memory_bytes / 1e9:.1f} GB"
    if len(node.distances) != len(nodes):
        return line
    others = zip(nodes, node.distances, strict=True)
    return line + "".join(
        f", {distance / 10:.1f}x as far to node {other.number}" for other, distance in others if other is not node
    )


def _plan_line(plan: CorePlan) -> str:
    def threads(cpus: tuple[int, ...]) -> str:
        count = f"{len(cpus)} thread{'s' if len(cpus) > 1 else ''}"
        return f"{count} on {name_cpus(cpus)}" if plan.pinned else count

    beside = f"retrieval beside it with {threads(plan.retrieval_cpus)}"
    retrieval = "retrieval shares them" if plan.shares else beside
    return f"prefill with {threads(plan.prefill_cpus)}, decoding with {threads(plan.decode_cpus)}, {retrieval}"


def _bandwidth_finding(plan: CorePlan) -> Finding:
    cpus = plan.decode_cpus
    report = measure_bandwidth([len(cpus)], cpus=cpus if plan.pinned else (), seconds=_BANDWIDTH_S)
    best = report.best
    if best is None:
        return Finding("bandwidth", "info", report.method)
    gigabytes = best.bytes_per_s / 1e9
    return Finding(
        "bandwidth",
        "ok",
        f"{gigabytes:.0f} GB/s of memory for {best.threads} thread{'s' if best.threads > 1 else ''}: "
        f"a model of 1 GB decodes about {gigabytes:.0f} tokens/s at best ({report.method})",
        figure=best.bytes_per_s,
        unit="bytes/s",
    )


def engine_findings(models: Path) -> list[Finding]:
    """The engine, and the builder of the index if it would die here. ``models``: the folder of models."""
    troubles = {library: find_trouble(models, library) for library in get_args(NativeLibrary)}
    findings = [
        Finding(_FINDING_OF[library], "error", trouble.message, trouble.remedy)
        for library, trouble in troubles.items()
        if trouble is not None
    ]
    return findings if troubles["llama.cpp"] is not None else [_engine_finding(), *findings]


def _engine_finding() -> Finding:
    from edgerag.engine.llama import describe_engine

    try:
        return Finding("engine", "ok", describe_engine())
    except EdgeragError as error:
        return Finding("engine", "error", error.message, error.remedy)


def model_findings(catalog: Catalog, settings: ModelSettings) -> list[Finding]:
    findings = []
    wanted = [("chat", settings.chat), ("embedder", settings.embedder)]
    if settings.reranker:
        wanted.append(("reranker", settings.reranker))
    for kind, name in wanted:
        try:
            model = catalog.find(kind, name)  # type: ignore[arg-type]
        except EdgeragError as error:
            findings.append(Finding(f"{kind} model", "error", error.message, error.remedy))
        else:
            line = f"{model.name}, {model.size_bytes / 1e6:.0f} MB"
            findings.append(Finding(f"{kind} model", "ok", line, figure=model.size_bytes, unit="bytes"))
    return findings


def index_finding() -> Finding:
    """Which instructions search the index."""
    from edgerag.index.hnsw.kernel import LIBRARY_FILE, load_kernel

    kernel = load_kernel()
    if kernel is not None:
        return Finding("index", "ok", f"searched by the compiled kernel ({kernel.path_name})")
    why = f"{LIBRARY_FILE.name} does not fit this machine" if LIBRARY_FILE.exists() else "its kernel was not compiled"
    return Finding(
        "index",
        "warning",
        f"searched by numpy, the same hits but slowly: {why}.",
        "Install a C compiler, then install edgerag again.",
    )


def budget_finding(settings: MemorySettings, budget_bytes: int, limitation: str) -> Finding:
    """The ceiling on the memory of the index; ``limitation`` says why it does not hold here, or is empty."""
    share = f" ({settings.budget} of what is free)" if isinstance(settings.budget, Share) else ""
    message = f"{budget_bytes / 1e6:.0f} MB{share} for the index"
    if not limitation:
        return Finding("memory.budget", "ok", message, figure=budget_bytes, unit="bytes")
    return Finding(
        "memory.budget",
        "warning",
        f"{message}, which cannot be kept to here: {limitation}.",
        "The system may still reclaim what the index holds; nothing else is affected.",
        figure=budget_bytes,
        unit="bytes",
    )


def locked_finding(locked: LockedLibrary) -> Finding:
    """An encrypted library that nobody opened: nothing is asked for the sake of a check."""
    return Finding(
        "library",
        "info",
        f"{locked.name}: encrypted, opened by its {locked.opened_by}, {locked.size_bytes / 1e6:.1f} MB on disk; not"
        " looked into.",
        "`edgerag library verify` asks for it, and checks all of it.",
        figure=locked.size_bytes,
        unit="bytes",
    )


def encryption_findings() -> list[Finding]:
    """Of an encrypted library: what keeps it from being opened here, whatever its key."""
    from edgerag.encryption.database import require_available

    try:
        require_available()
    except EdgeragError as error:
        return [Finding("encryption", "error", error.message, error.remedy)]
    return []


def library_findings(
    read_status: Callable[[], LibraryStatus | None], check_embedder: Callable[[], None]
) -> list[Finding]:
    try:
        status = read_status()
        if status is None:
            return [Finding("library", "info", "No library yet.", "Make one: edgerag ingest FOLDER")]
        check_embedder()
    except EdgeragError as error:
        return [Finding("library", "error", error.message, error.remedy)]
    findings = [
        Finding(
            "library",
            "ok",
            f"{status.name}: {status.document_count} documents, {status.chunk_count} chunks, "
            f"{status.size_bytes / 1e6:.1f} MB on disk",
            figure=status.chunk_count,
            unit="chunks",
        )
    ]
    if status.pending_count:
        findings.append(
            Finding(
                "library",
                "warning",
                f"{status.pending_count} chunks are found by keyword only: they have no vector yet.",
                "Run the same `edgerag ingest` again; it goes on where it stopped.",
                figure=status.pending_count,
                unit="chunks",
            )
        )
    return findings
