"""What this machine and Python are, and which part of a bundle is for them."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from dataclasses import dataclass

from .manifest import Manifest, Target
from .refused import Refused

_SAME_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Here:
    platform: str  # "linux-x86_64"
    python: str  # "3.11"
    glibc: tuple[int, int] | None  # None where another C library is in use
    trouble: str = ""  # what makes this Python one that no wheel is for

    @property
    def words(self) -> str:
        return f"Python {self.python} on {self.platform}"


def here() -> Here:
    machine = platform.machine().lower()
    trouble = ""
    if sys.implementation.name != "cpython":
        trouble = f"this Python is {platform.python_implementation()}, and CPython is needed"
    elif sysconfig.get_config_var("Py_GIL_DISABLED"):
        trouble = "this Python is built without its global lock, and an ordinary one is needed"
    elif sys.maxsize < 2**32:
        trouble = "this Python has 32 bits, and 64 are needed"
    return Here(
        f"{platform.system().lower()}-{_SAME_MACHINE.get(machine, machine)}",
        f"{sys.version_info.major}.{sys.version_info.minor}",
        _glibc(),
        trouble,
    )


def fitting(manifest: Manifest, machine: Here) -> Target:
    """The part that is for ``machine``. Raises Refused with one sentence about why there is none."""
    offered = ", ".join(target.words for target in manifest.targets) or "nothing"
    for target in manifest.targets:
        if (target.platform, target.python) != (machine.platform, machine.python):
            continue
        if machine.trouble:
            raise Refused(f"This bundle is for {offered}; {machine.trouble}.")
        needed = f"glibc {target.glibc[0]}.{target.glibc[1]}"
        if machine.glibc is None:
            raise Refused(f"This bundle needs {needed} or newer, and this Python runs on another C library.")
        if machine.glibc < target.glibc:
            raise Refused(
                f"This bundle needs {needed} or newer, and here is glibc {machine.glibc[0]}.{machine.glibc[1]}.",
                remedy="Make it on a machine with an older system.",
            )
        return target
    raise Refused(
        f"This bundle is for {offered}; here is {machine.words}.",
        remedy="Run it with a Python that it is for, or have one made with --for and --python.",
    )


def _glibc() -> tuple[int, int] | None:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        major, minor = version.split(".")[:2]
        return (int(major), int(minor)) if name == "glibc" else None
    except (ValueError, OSError):  # musl knows no such name
        return None
