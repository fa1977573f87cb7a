"""What helps and what hinders on this machine: each finding with its remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from edgerag.config import MemorySettings, ModelSettings, Share
from edgerag.errors import EdgeragError
from edgerag.machine.cpu import read_processor
from edgerag.machine.memory import available_bytes, total_bytes
from edgerag.machine.topology import read_topology
from edgerag.types import Finding, LibraryStatus

if TYPE_CHECKING:
    from edgerag.engine.catalog import Catalog

# The smallest default setup (models, contexts, index budget) stays under this.
_COMFORTABLE_BYTES = 1_000_000_000


def machine_findings(threads: int) -> list[Finding]:
    """``threads`` is the setting; 0 leaves the number to the plan."""
    processor = read_processor()
    topology = read_topology()
    free, total = available_bytes(), total_bytes()
    quota = "" if topology.quota_cores is None else f", quota of {topology.quota_cores:.1f} cores"
    findings = [
        Finding("cpu", "ok", f"{processor.model} ({processor.architecture}): {', '.join(processor.features) or '-'}"),
        Finding(
            "cores",
            "ok",
            f"{topology.core_count} physical, {topology.logical_count} logical{quota}; "
            f"{threads or topology.thread_count} threads are used",
        ),
    ]
    if free < _COMFORTABLE_BYTES:
        findings.append(
            Finding(
                "memory",
                "warning",
                f"{free / 1e9:.1f} GB free of {total / 1e9:.1f} GB",
                "Close other programs, or use smaller models.",
            )
        )
    else:
        findings.append(Finding("memory", "ok", f"{free / 1e9:.1f} GB free of {total / 1e9:.1f} GB"))
    if "AVX2" not in processor.features and processor.architecture == "x86_64":
        findings.append(
            Finding("cpu speed", "warning", "No AVX2: answers will be slow.", "Use the smallest models you can.")
        )
    return findings


def engine_findings() -> list[Finding]:
    from edgerag.engine.llama import describe_engine

    try:
        return [Finding("engine", "ok", describe_engine())]
    except EdgeragError as error:
        return [Finding("engine", "error", error.message, error.remedy)]


def model_findings(catalog: Catalog, settings: ModelSettings) -> list[Finding]:
    findings = []
    for kind, name in (("chat", settings.chat), ("embedder", settings.embedder)):
        try:
            model = catalog.find(kind, name)  # type: ignore[arg-type]
        except EdgeragError as error:
            findings.append(Finding(f"{kind} model", "error", error.message, error.remedy))
        else:
            findings.append(Finding(f"{kind} model", "ok", f"{model.name}, {model.size_bytes / 1e6:.0f} MB"))
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
        return Finding("memory.budget", "ok", message)
    return Finding(
        "memory.budget",
        "warning",
        f"{message}, which cannot be kept to here: {limitation}.",
        "The system may still reclaim what the index holds; nothing else is affected.",
    )


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
        )
    ]
    if status.pending_count:
        findings.append(
            Finding(
                "library",
                "warning",
                f"{status.pending_count} chunks are found by keyword only: they have no vector yet.",
                "Run the same `edgerag ingest` again; it goes on where it stopped.",
            )
        )
    return findings
