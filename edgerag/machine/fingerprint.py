"""A short name for all of a machine that measured settings depend on."""

from __future__ import annotations

import hashlib

from edgerag.machine.cpu import Processor
from edgerag.machine.topology import Topology


def machine_fingerprint(processor: Processor, topology: Topology, *, memory_bytes: int) -> str:
    """Sixteen hexadecimal digits: the same after a reboot, others when what was measured may no longer hold.

    ``memory_bytes`` is all memory the process could have (memory.total_bytes); kernels reserve a little more or less
    of it at each start, so whole gigabytes count.
    """
    parts = [
        processor.architecture,
        processor.model,
        *processor.features,
        f"fast {len(topology.fast_cores)} slow {len(topology.slow_cores)} logical {topology.logical_count}",
        f"nodes {max(1, len(topology.nodes))}",
        f"quota {topology.quota_cores} cpuset {topology.has_cpuset}",
        f"memory {round(memory_bytes / 1e9)} GB",
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
