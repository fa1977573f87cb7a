"""Which wheels a target needs: edgerag, what it requires, and what that requires in turn.

The versions are those that run here, wherever they do: what is carried is what was tried. Markers are those of the
target ("on Python before 3.13"), never of this machine. Promises: every requirement of every wheel is met by another
wheel, or what is wanting is named.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass, field

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from edgerag.bundle.gather import Gatherer, Wish
from edgerag.bundle.targets import BundleTarget
from edgerag.bundle.wheel import Wheel
from edgerag.errors import BundleError

Installed = Callable[[str], Version | None]

# Extras of edgerag that are carried along where their package is installed here: who has encrypted libraries needs it
# where they are carried to, and it is small. (torch is not.)
_CARRIED_EXTRAS = {"encryption": "sqlcipher3"}


@dataclass(frozen=True, slots=True)
class Closure:
    target: BundleTarget
    wheels: tuple[Wheel, ...]  # edgerag's first
    requires: dict[str, tuple[str, ...]]  # by name: what it needs, by name
    missing: dict[str, str]  # by name, with the version that was wanted: no wheel of these is to be had


@dataclass(slots=True)
class _Work:
    chosen: dict[str, Wheel] = field(default_factory=dict)
    asked: dict[str, SpecifierSet] = field(default_factory=dict)
    by: dict[str, list[tuple[str, SpecifierSet]]] = field(default_factory=dict)
    extras: dict[str, set[str]] = field(default_factory=dict)
    seen: set[tuple[str, str]] = field(default_factory=set)  # package, extra: its requirements were read
    requires: dict[str, set[str]] = field(default_factory=dict)


def close(root: Wheel, target: BundleTarget, gatherer: Gatherer, *, installed: Installed) -> Closure:
    """Raises BundleError where requirements contradict each other or a wheel is damaged."""
    carried = {extra for extra, package in _CARRIED_EXTRAS.items() if installed(package) is not None}
    work = _Work(chosen={root.name: root}, extras={root.name: carried})
    missing: dict[str, str] = {}
    while True:
        known = -1
        while known != len(work.seen):  # one that is read later may ask for an extra of one that was read before
            known = len(work.seen)
            for name in work.chosen:
                _read_requirements(work, name, target)
        wishes = []
        for name, specifiers in work.asked.items():
            if name not in work.chosen and name not in missing:
                here = installed(name)
                fits = here is not None and specifiers.contains(here, prereleases=True)
                wishes.append(Wish(name, specifiers, here if fits else None))
        if not wishes:
            break
        found = gatherer.find(wishes, target)
        work.chosen |= found
        missing |= {wish.name: wish.words for wish in wishes if wish.name not in found}
    _check(work, target)
    requires = {name: tuple(sorted(work.requires.get(name, ()))) for name in work.chosen}
    return Closure(target, tuple(work.chosen.values()), requires, missing)


def installed_version(name: str) -> Version | None:
    """What runs here; None where it is not installed."""
    try:
        return Version(importlib.metadata.version(name))
    except (importlib.metadata.PackageNotFoundError, InvalidVersion):
        return None


def _read_requirements(work: _Work, name: str, target: BundleTarget) -> None:
    """Of the package itself, and of those of its extras that somebody asks for."""
    for extra in ("", *sorted(work.extras.get(name, ()))):
        if (name, extra) in work.seen:
            continue
        work.seen.add((name, extra))
        for text in work.chosen[name].requires:
            try:
                requirement = Requirement(text)
            except InvalidRequirement as error:
                raise BundleError(f"{work.chosen[name].path.name} requires {text!r}, which is nothing.") from error
            if requirement.marker and not requirement.marker.evaluate({**target.markers, "extra": extra}):
                continue
            needed = canonicalize_name(requirement.name)
            work.asked[needed] = work.asked.get(needed, SpecifierSet()) & requirement.specifier
            work.by.setdefault(needed, []).append((name, requirement.specifier))
            work.extras.setdefault(needed, set()).update(requirement.extras)
            work.requires.setdefault(name, set()).add(needed)


def _check(work: _Work, target: BundleTarget) -> None:
    for name, wheel in work.chosen.items():
        for asker, specifiers in work.by.get(name, ()):
            if not specifiers.contains(wheel.version, prereleases=True):
                raise BundleError(
                    f"For {target.words}, {asker} needs {name}{specifiers}, and {name} {wheel.version} was chosen.",
                    remedy=f"Name a folder with a wheel that fits (--wheels), or install {name} here anew.",
                )
        python = SpecifierSet(wheel.requires_python)
        if not python.contains(f"{target.python}.99"):
            raise BundleError(
                f"{wheel.path.name} needs Python {wheel.requires_python}, and the bundle is for {target.words}.",
                remedy="Leave that Python out, or put a wheel that fits into a folder and name it with --wheels.",
            )
