"""What this processor can do, told before any native library is loaded."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from edgerag.errors import ProcessorUnfit
from edgerag.machine.cpuid import known_flags, usable_flags

_HERE = Path("/")

# Kernel flag -> the name used in this program, in the order in which they are shown. The kernel names the AMX parts
# apart: tiles are the registers, without an arithmetic of their own.
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
    "amx_int8": "AMX-INT8",
    "amx_bf16": "AMX-BF16",
    "asimd": "NEON",
    "neon": "NEON",  # 32-bit kernels
    "asimddp": "dotprod",
    "i8mm": "i8mm",
    "bf16": "bf16",  # of ARM; x86 has it inside AVX-512 and AMX
    "sve": "SVE",
    "sve2": "SVE2",
}

# (implementer, part) of ARM's main ID register -> name, as `lscpu` tells them (util-linux, sys-utils/lscpu-arm.c).
_ARM_CORES = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD04): "Cortex-A35",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0A): "Cortex-A75",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD0D): "Cortex-A77",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD42): "Cortex-A78AE",
    (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD46): "Cortex-A510",
    (0x41, 0xD47): "Cortex-A710",
    (0x41, 0xD48): "Cortex-X2",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4B): "Cortex-A78C",
    (0x41, 0xD4D): "Cortex-A715",
    (0x41, 0xD4E): "Cortex-X3",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD80): "Cortex-A520",
    (0x41, 0xD81): "Cortex-A720",
    (0x41, 0xD82): "Cortex-X4",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x61, 0x022): "Apple M1 Icestorm",
    (0x61, 0x023): "Apple M1 Firestorm",
    (0x61, 0x024): "Apple M1 Pro Icestorm",
    (0x61, 0x025): "Apple M1 Pro Firestorm",
    (0x61, 0x028): "Apple M1 Max Icestorm",
    (0x61, 0x029): "Apple M1 Max Firestorm",
    (0x61, 0x032): "Apple M2 Blizzard",
    (0x61, 0x033): "Apple M2 Avalanche",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1a",
}
# What wheels are compiled for: x86-64-v2 (numpy since 2.0), which processors have since 2009 (Intel) and 2011 (AMD).
# ARM has in every core of 64 bits what they are compiled for.
_NEEDED = {
    "x86_64": {
        "cx16": "CMPXCHG16B",
        "lahf_lm": "LAHF",
        "popcnt": "POPCNT",
        "pni": "SSE3",
        "ssse3": "SSSE3",
        "sse4_1": "SSE4.1",
        "sse4_2": "SSE4.2",
    }
}
_MOST_KINDS = 4  # of cores in one processor; more in a file is damage


@dataclass(frozen=True, slots=True)
class Processor:
    architecture: str
    model: str  # "unknown" where nothing tells
    features: tuple[str, ...]
    lacking: tuple[str, ...] = ()  # what the packages need and it has not; empty where nothing tells


def read_processor(system: Path = _HERE) -> Processor:
    """The processor as the kernel describes it, its features as it says itself where it can be asked; on systems
    without /proc, its architecture alone.

    A feature counts where one core has it: kernels run programs only where all cores that they may use agree.
    """
    try:
        text = (system / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    flags: set[str] = set()
    model = implementer = ""
    cores: dict[str, None] = {}  # names in the order of the first core of each
    for line in text.splitlines():
        name, _, value = (part.strip() for part in line.partition(":"))
        if name in ("flags", "Features"):
            flags.update(value.split())
        elif name in ("model name", "Model") and not model:
            model = value
        elif name == "CPU implementer":
            implementer = value
        elif name == "CPU part" and len(cores) < _MOST_KINDS:
            cores[_arm_core(implementer, value)] = None
    usable = usable_flags() if system == _HERE else None
    if usable is not None:
        flags = flags - known_flags() | usable
    needed = _NEEDED.get(platform.machine(), {}) if flags else {}
    parts = " + ".join(name for name in cores if name)
    if parts and model:
        model = f"{model} ({parts})"  # the board, and what is on it
    return Processor(
        architecture=platform.machine(),
        model=model or parts or platform.processor() or "unknown",
        features=tuple(dict.fromkeys(shown for flag, shown in _FEATURES.items() if flag in flags)),
        lacking=tuple(shown for flag, shown in needed.items() if flag not in flags),
    )


def check_processor() -> None:
    """Raises ProcessorUnfit where this processor lacks what every package is compiled for. Loads nothing."""
    processor = read_processor()
    if processor.lacking:
        raise ProcessorUnfit(
            f"This processor ({processor.model}) lacks {', '.join(processor.lacking)}, and edgerag's packages are "
            "compiled for processors that have them (x86-64-v2, from about 2009 on).",
            remedy="Use a newer machine.",
        )


def _arm_core(implementer: str, part: str) -> str:
    """The name of a core; its numbers, where it has no name here; empty for what are no numbers."""
    try:
        key = (int(implementer, 16), int(part, 16))
    except ValueError:
        return ""
    return _ARM_CORES.get(key, f"implementer {key[0]:#04x} part {key[1]:#05x}")
