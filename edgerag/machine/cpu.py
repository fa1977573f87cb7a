"""What this processor can do, told before any native library is loaded."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")

# Kernel flag -> the name used in this program, in the order in which they are shown.
_FEATURES = {
    "sse4_2": "SSE4.2",
    "avx": "AVX",
    "f16c": "F16C",
    "fma": "FMA",
    "avx2": "AVX2",
    "avx_vnni": "AVX-VNNI",
    "avx512f": "AVX-512F",
    "avx512bw": "AVX-512BW",
    "avx512vl": "AVX-512VL",
    "avx512vbmi": "AVX-512VBMI",
    "avx512_vnni": "AVX-512VNNI",
    "avx512_bf16": "AVX-512BF16",
    "amx_tile": "AMX",
    "asimd": "NEON",
    "asimddp": "dotprod",
    "i8mm": "i8mm",
    "sve": "SVE",
}


@dataclass(frozen=True, slots=True)
class Processor:
    architecture: str
    model: str
    features: tuple[str, ...]


def read_processor(cpuinfo: Path = _CPUINFO) -> Processor:
    """The processor as the kernel describes it; on systems without /proc, its architecture alone."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    flags: set[str] = set()
    model = ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            flags.update(value.split())
        elif name.strip() in ("model name", "Model") and not model:
            model = value.strip()
    return Processor(
        architecture=platform.machine(),
        model=model or platform.processor() or "unknown",
        features=tuple(shown for flag, shown in _FEATURES.items() if flag in flags),
    )
