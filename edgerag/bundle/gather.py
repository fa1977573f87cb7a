"""Where wheels come from: folders that are named, what was built here, and pip.

A wheel in a folder is taken before pip is asked. Two packages never come from pip: what it would provide, or keep in
its cache, may be made for one processor alone (tools/prepare.py builds them for any).
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from edgerag.bundle.targets import BundleTarget, rank
from edgerag.bundle.wheel import Wheel, WheelName, read_wheel, wheels_in
from edgerag.errors import BundleError

BUILT = frozenset({"hnswlib", "llama-cpp-python", "edgerag"})


@dataclass(frozen=True, slots=True)
class Wish:
    """A package that is needed."""

    name: str
    specifiers: SpecifierSet
    installed: Version | None  # what runs here, where it will do: that is what was tried

    @property
    def words(self) -> str:
        return f"{self.name} {self.installed}" if self.installed else f"{self.name}{self.specifiers}"

    @property
    def exact(self) -> SpecifierSet:
        return SpecifierSet(f"=={self.installed}") if self.installed else self.specifiers


class Gatherer:
    """Finds wheels, and remembers those that it has opened. ``scratch`` is where pip puts what it downloads."""

    def __init__(self, folders: Sequence[Path], scratch: Path, *, report: Callable[[str], None]) -> None:
        self._scratch = scratch
        self._report = report
        self._known: list[WheelName] = []
        self._opened: dict[Path, Wheel] = {}
        for folder in folders:
            try:
                self._known += wheels_in(folder)
            except OSError as error:
                raise BundleError(
                    f"{folder} cannot be read: {error.strerror}.", remedy="Name another folder."
                ) from error

    def add(self, path: Path) -> Wheel:
        """Knows one more wheel. Raises BundleError."""
        wheel = self._open(path)
        self._known.append(WheelName(path, wheel.name, wheel.version, wheel.tags))
        return wheel

    def find(self, wishes: Sequence[Wish], target: BundleTarget) -> dict[str, Wheel]:
        """By name; what is nowhere is left out. Raises BundleError for a wheel that is damaged."""
        found = {wish.name: wheel for wish in wishes if (wheel := self._best(wish.name, wish.exact, target))}
        for exact in (True, False):
            left = [wish for wish in wishes if wish.name not in found]
            found |= {
                wish.name: wheel
                for wish in left
                if not exact and (wheel := self._best(wish.name, wish.specifiers, target))
            }
            left = [wish for wish in left if wish.name not in found and wish.name not in BUILT]
            asked = {wish.name: wish.exact if exact else wish.specifiers for wish in left if exact or wish.installed}
            found |= self._download(asked, target)
        return found

    def _best(self, name: str, specifiers: SpecifierSet, target: BundleTarget) -> Wheel | None:
        fitting = [
            (wheel, fit)
            for wheel in self._known
            if wheel.name == name
            and specifiers.contains(wheel.version, prereleases=True)
            and (fit := rank(wheel.tags, target)) is not None
        ]
        if not fitting:
            return None
        newest = max(wheel.version for wheel, _ in fitting)
        best = min((pair for pair in fitting if pair[0].version == newest), key=lambda pair: pair[1])
        return self._open(best[0].path)

    def _open(self, path: Path) -> Wheel:
        if path not in self._opened:
            self._opened[path] = read_wheel(path)
        return self._opened[path]

    def _download(self, asked: dict[str, SpecifierSet], target: BundleTarget) -> dict[str, Wheel]:
        """All at once; where that fails one by one, to know which is missing."""
        if not asked:
            return {}
        self._report(f"pip: {len(asked)} wheels for {target.words}")
        requirements = [f"{name}{specifiers}" for name, specifiers in asked.items()]
        folder = self._scratch / f"{target.platform}-{target.python}"
        if not pip_download(requirements, folder, target) and len(requirements) > 1:
            for requirement in requirements:
                pip_download([requirement], folder, target)
        known = {wheel.path for wheel in self._known}
        if folder.is_dir():
            self._known += [wheel for wheel in wheels_in(folder) if wheel.path not in known]
        found = {name: self._best(name, specifiers, target) for name, specifiers in asked.items()}
        return {name: wheel for name, wheel in found.items() if wheel is not None}


def pip_download(requirements: Sequence[str], folder: Path, target: BundleTarget) -> bool:
    """Whether pip could provide all of them. This is where a network may be used."""
    # -P: or a pip/ or json.py in the working folder would be run instead.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--quiet", "--no-input"]
    done = subprocess.run(  # noqa: S603 - our own interpreter; names come from the metadata of packages
        [*command, "--disable-pip-version-check", *target.pip_options, "--dest", str(folder), "--", *requirements],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode == 0


def built_here(checkout: Path | None) -> list[Path]:
    """The folder of the wheels that tools/prepare.py built, where this is a checkout that has one."""
    folder = checkout / ".cache" / "wheels" if checkout else None
    return [folder] if folder and folder.is_dir() else []


def this_target() -> BundleTarget:
    """The machine and Python that run this."""
    platform = sysconfig.get_platform()
    return BundleTarget(platform, f"{sys.version_info.major}.{sys.version_info.minor}")
