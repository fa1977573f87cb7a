"""What the processor says of itself, where a program cannot trust the kernel's word for it.

/proc/cpuinfo is about the machine, and a program may run on less: in an emulator, or with features masked. On x86_64
the C library has asked the processor (CPUID, and XGETBV for what the system saves) before the program began, and
hands out what it found; on aarch64 the kernel tells each program in its auxiliary vector. Neither loads a library:
what is called lies in this process already.

glibc, sysdeps/x86/include/cpu-features.h and sys/platform/x86.h (2.33); Linux, arch/arm64/include/uapi/asm/hwcap.h and
Documentation/arch/arm64/elf_hwcaps.rst; getauxval(3).
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from pathlib import Path

# CPUID leaves as glibc numbers them, the register in which a bit stands (eax, ebx, ecx, edx), the bit; by the name that
# the kernel has for it. Numbers of leaves only ever grow: they are part of the C library's interface.
_LEAF_1, _LEAF_7, _LEAF_80000001, _LEAF_7_1 = 0, 1, 2, 6
_EAX, _EBX, _ECX, _EDX = range(4)
_X86 = {
    "pni": (_LEAF_1, _ECX, 0),  # SSE3
    "ssse3": (_LEAF_1, _ECX, 9),
    "fma": (_LEAF_1, _ECX, 12),
    "cx16": (_LEAF_1, _ECX, 13),
    "sse4_1": (_LEAF_1, _ECX, 19),
    "sse4_2": (_LEAF_1, _ECX, 20),
    "popcnt": (_LEAF_1, _ECX, 23),
    "avx": (_LEAF_1, _ECX, 28),
    "f16c": (_LEAF_1, _ECX, 29),
    "lahf_lm": (_LEAF_80000001, _ECX, 0),
    "avx2": (_LEAF_7, _EBX, 5),
    "avx512f": (_LEAF_7, _EBX, 16),
    "avx512bw": (_LEAF_7, _EBX, 30),
    "avx512vl": (_LEAF_7, _EBX, 31),
    "avx512vbmi": (_LEAF_7, _ECX, 1),
    "avx512_vnni": (_LEAF_7, _ECX, 11),
    "amx_bf16": (_LEAF_7, _EDX, 22),
    "amx_tile": (_LEAF_7, _EDX, 24),
    "amx_int8": (_LEAF_7, _EDX, 25),
    "avx_vnni": (_LEAF_7_1, _EAX, 4),
    "avx512_bf16": (_LEAF_7_1, _EAX, 5),
}
_LEAF_BYTES, _USABLE = 32, 16  # four words of what there is, then four of what the system lets programs use

_AT_HWCAP, _AT_HWCAP2 = 16, 26
_ARM = {
    "asimd": (_AT_HWCAP, 1),
    "asimddp": (_AT_HWCAP, 20),
    "sve": (_AT_HWCAP, 22),
    "sve2": (_AT_HWCAP2, 1),
    "i8mm": (_AT_HWCAP2, 13),
    "bf16": (_AT_HWCAP2, 14),
}


def known_flags() -> frozenset[str]:
    """All that can be asked about."""
    return frozenset(_X86) | frozenset(_ARM)


def usable_flags(system: Path = Path("/")) -> frozenset[str] | None:
    """Those of the flags above that this process may use; None where nobody can tell (another C library or system)."""
    if sys.platform != "linux":
        return None
    machine = platform.machine()
    if machine == "x86_64":
        return _x86_flags()
    if machine == "aarch64":
        return arm_flags(system / "proc/self/auxv")
    return None


def _x86_flags() -> frozenset[str] | None:
    try:
        leaf_of = ctypes.CDLL(None).__getattr__("__x86_get_cpuid_feature_leaf")
    except (OSError, AttributeError):
        return None  # not glibc, or one before 2.33
    leaf_of.argtypes, leaf_of.restype = [ctypes.c_uint], ctypes.c_void_p
    leaves = {}
    for number in {leaf for leaf, _, _ in _X86.values()}:
        address = leaf_of(number)
        if not address:
            return None
        leaves[number] = struct.unpack("<4I", ctypes.string_at(address, _LEAF_BYTES)[_USABLE:])
    return frozenset(flag for flag, (leaf, register, bit) in _X86.items() if leaves[leaf][register] >> bit & 1)


def arm_flags(vector: Path) -> frozenset[str] | None:
    """Those in the auxiliary vector of a program: pairs of 64-bit words, kind and value, as in the file ``vector``."""
    try:
        data = vector.read_bytes()
    except OSError:
        return None
    values = dict(struct.iter_unpack("<2Q", data[: len(data) // 16 * 16]))
    return frozenset(flag for flag, (kind, bit) in _ARM.items() if values.get(kind, 0) >> bit & 1)
