"""For which machines and Pythons a bundle is made, and which wheels they take.

PEP 425 has the tags, PEP 600 those of manylinux. A target is known by its name alone: nothing is asked of the machine
that makes the bundle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.tags import Tag

from edgerag.errors import UsageError

PLATFORMS = ("linux-x86_64", "linux-aarch64")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Of RHEL 9 and newer than that of no system that is still looked after but RHEL 8; what is built here needs as much.
NEWEST_GLIBC = 34
_OLD_NAMES = {"manylinux1": 5, "manylinux2010": 12, "manylinux2014": 17}
_MANYLINUX = re.compile(r"manylinux_2_(\d+)_(.+)")


@dataclass(frozen=True, slots=True)
class BundleTarget:
    platform: str  # "linux-x86_64"
    python: str  # "3.11"

    @property
    def words(self) -> str:
        return f"Python {self.python} on {self.platform}"

    @property
    def machine(self) -> str:
        return self.platform.partition("-")[2]

    @property
    def minor(self) -> int:
        return int(self.python.partition(".")[2])

    @property
    def markers(self) -> dict[str, str]:
        """What environment markers of requirements (PEP 508) are compared with."""
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.0",
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": "linux",
        }

    @property
    def pip_options(self) -> list[str]:
        """Makes pip look for this target and not for itself. The oldest C library stands first."""
        platforms = [f"manylinux_2_{minor}_{self.machine}" for minor in range(5, NEWEST_GLIBC + 1)]
        platforms[1:1] = [f"{old}_{self.machine}" for old in _OLD_NAMES]
        options = ["--only-binary=:all:", "--implementation", "cp", "--python-version", self.python]
        for abi in (f"cp3{self.minor}", "abi3", "none"):
            options += ["--abi", abi]
        for platform in platforms:
            options += ["--platform", platform]
        return options


def parse_targets(platforms: Sequence[str], pythons: Sequence[str]) -> tuple[BundleTarget, ...]:
    """Each with each. Raises UsageError for one that is not known."""
    for given, known, what in ((platforms, PLATFORMS, "machine"), (pythons, PYTHONS, "Python")):
        for each in given:
            if each not in known:
                raise UsageError(
                    f"{each!r} is no {what} that bundles are made for.", remedy=f"Known: {', '.join(known)}."
                )
    return tuple(
        BundleTarget(platform, python) for platform in dict.fromkeys(platforms) for python in dict.fromkeys(pythons)
    )


def rank(tags: Iterable[Tag], target: BundleTarget) -> tuple[int, int] | None:
    """How well a wheel of these tags fits, the lowest best; None where it does not."""
    ranks = [each for each in (_rank(tag, target) for tag in tags) if each is not None]
    return min(ranks, default=None)


def needed_glibc(tags: Iterable[Tag], target: BundleTarget) -> int | None:
    """The minor version of the C library that the tags promise to need; None where they promise nothing."""
    promised = [_platform_glibc(tag.platform, target) for tag in tags if _rank(tag, target) is not None]
    known = [minor for minor in promised if minor is not None and minor >= 0]
    return min(known, default=None)


def _rank(tag: Tag, target: BundleTarget) -> tuple[int, int] | None:
    glibc = _platform_glibc(tag.platform, target)
    if glibc is None:
        return None
    if tag.interpreter == tag.abi == f"cp3{target.minor}":
        return 0, glibc
    match = re.fullmatch(r"cp3(\d+)", tag.interpreter)
    if match and tag.abi == "abi3" and int(match[1]) <= target.minor:
        return 100 - int(match[1]), glibc
    if match and tag.abi == "none" and int(match[1]) == target.minor:
        return 200, glibc
    match = re.fullmatch(r"py3(\d*)", tag.interpreter)
    if match and tag.abi == "none" and int(match[1] or 0) <= target.minor:
        return 300, glibc
    return None


def _platform_glibc(platform: str, target: BundleTarget) -> int | None:
    """Minor version of glibc; -1 for a plain ``linux`` wheel, which promises none, 0 for any platform; None where it
    does not fit."""
    if platform == "any":
        return 0
    if platform == f"linux_{target.machine}":
        return -1
    for old, minor in _OLD_NAMES.items():
        if platform == f"{old}_{target.machine}":
            return minor
    match = _MANYLINUX.fullmatch(platform)
    if match and match[2] == target.machine and int(match[1]) <= NEWEST_GLIBC:
        return int(match[1])
    return None
