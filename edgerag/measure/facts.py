"""What the figures of a run depend on, and nothing that names the machine or its user."""

from __future__ import annotations

import platform
from typing import Any

from edgerag.machine.cpu import read_processor
from edgerag.machine.memory import total_bytes
from edgerag.machine.topology import read_topology


def machine_facts() -> dict[str, Any]:
    """Values for JSON, by name."""
    processor, topology = read_processor(), read_topology()
    return {
        "architecture": processor.architecture,
        "processor": processor.model,
        "features": list(processor.features),
        "logical_cores": topology.logical_count,
        "physical_cores": topology.core_count,
        "memory_bytes": total_bytes(),
        "system": platform.system(),
        "python": platform.python_version(),
    }
