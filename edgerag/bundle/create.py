"""A bundle is put together: wheels for each target, models, libraries, licences, the bill of materials, the installer.

Wheels come from folders and pip (gather.py); this is the one part that may use a network, and only through pip.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet

from edgerag import __version__
from edgerag.bundle import carried as carried_package
from edgerag.bundle.carried.manifest import Library, Manifest, Model, Pack, Target, safe_name
from edgerag.bundle.closure import Closure, Installed, close, installed_version
from edgerag.bundle.gather import BUILT, Gatherer, Wish, built_here
from edgerag.bundle.keys import SecretKey, sign
from edgerag.bundle.licences import licence_files
from edgerag.bundle.own_wheel import checkout, make_own_wheel, other_source
from edgerag.bundle.pack import make_packs
from edgerag.bundle.sbom import NAME as SBOM_NAME
from edgerag.bundle.sbom import Carried, sbom
from edgerag.bundle.targets import BundleTarget, needed_glibc, rank
from edgerag.bundle.wheel import Wheel, wheels_in
from edgerag.bundle.write import Content, described, write_bundle
from edgerag.errors import BundleError

INSTALL = """\
# Installs edgerag from this folder, with no network: python3 install.py --to FOLDER
# It needs Python and nothing else. With --verify it only compares every file with manifest.json.
import os
import sys

if sys.version_info < (3, 11):
    sys.exit("edgerag needs Python 3.11 or newer, and this is Python %d.%d." % sys.version_info[:2])
sys.dont_write_bytecode = True  # or there would be files in this folder that are not in its manifest
folder = os.path.dirname(os.path.abspath(__file__))
# Behind Python's own library: a file in this folder takes the place of none of it.
sys.path[:] = [each for each in sys.path if os.path.abspath(each) != folder] + [folder]

from pathlib import Path  # noqa: E402

from installer.script import main  # noqa: E402

sys.exit(main(Path(folder)))
"""
README = """\
edgerag {version}, for machines with no network

    python3 install.py --to FOLDER      installs it into a new folder (needs Python and nothing else)
    python3 install.py --verify         compares every file with manifest.json

With --public-key FILE either also compares the signature. If you do not trust the way that this came, do not run
install.py before somebody else's program has compared it: an edgerag that you have (edgerag bundle verify), or
minisign (minisign -Vm manifest.json -p FILE) and the SHA-256 of the files in manifest.json.

For: {targets}
"""


@dataclass(frozen=True, slots=True)
class CarriedModel:
    name: str
    path: Path
    shipped: bool  # in the manifest of models
    file: str  # what it is called in a models folder
    licence: str
    source: str


@dataclass(frozen=True, slots=True)
class CarriedLibrary:
    name: str
    path: Path  # of the exported file


@dataclass(frozen=True, slots=True)
class Made:
    """What was written."""

    manifest: Manifest
    signed_by: str
    size_bytes: int
    size_without_models_bytes: int


def create(
    out: Path,
    targets: Sequence[BundleTarget],
    *,
    models: Sequence[CarriedModel],
    libraries: Sequence[CarriedLibrary],
    wheel_folders: Sequence[Path],
    key: SecretKey | None,
    report: Callable[[str], None],
    progress: Callable[[int, int], None],
    installed: Installed = installed_version,
) -> Made:
    """Writes the bundle to ``out``. Raises BundleError where wheels are missing, UsageError, StorageFull."""
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
        gatherer = Gatherer([*wheel_folders, *built_here(checkout())], Path(scratch) / "pip", report=report)
        closures = _closures(targets, gatherer, Path(scratch), report, installed)
        pip = _pip(gatherer, targets[0])
        wheels = _all_wheels(closures, pip)
        report(f"Packing {len(wheels)} wheels")
        packs = make_packs(wheels.values(), _machines(closures, pip), Path(scratch), progress=progress)
        return _write(out, closures, pip, packs, models, libraries, key, progress)


def _closures(
    targets: Sequence[BundleTarget],
    gatherer: Gatherer,
    scratch: Path,
    report: Callable[[str], None],
    installed: Installed,
) -> list[Closure]:
    """Raises BundleError, which names all that is missing."""
    wish = Wish("edgerag", SpecifierSet(f"=={__version__}"), None)
    report("Making the wheel of edgerag")
    own, trouble = _own(gatherer, scratch)
    # What was built just now goes before an older one in a folder.
    roots = {target: own if own and rank(own.tags, target) else _known(gatherer, wish, target) for target in targets}
    any_root = own or next((wheel for wheel in roots.values() if wheel), None)
    if any_root is None:
        assert trouble is not None, "it was not made"
        raise trouble
    _check_source(any_root, roots)
    closures, missing = [], []
    unbuilt: list[BundleTarget] = []
    for target, root in roots.items():
        # Where its own wheel is missing another one tells as well what else is.
        closure = close(root or any_root, target, gatherer, installed=installed)
        built = BUILT.intersection(closure.missing) if root else BUILT
        lacking = (() if root else (f"edgerag {__version__}",)) + tuple(closure.missing.values())
        if lacking:
            missing.append(f"for {target.words}: {', '.join(lacking)}")
            unbuilt += [target] if built else []
        closures.append(closure)
    if missing:
        raise BundleError(
            f"There are no wheels {'; '.join(missing)}.",
            remedy=f"In a checkout of edgerag, on Debian or Ubuntu or on such a machine, run `{_prepare(unbuilt)}` and "
            "name the folder .cache/wheels that it fills, or a copy of it, with --wheels."
            if unbuilt
            else "Leave that Python out, or put the wheels into a folder and name it with --wheels.",
        )
    return closures


def _check_source(own: Wheel, roots: Mapping[BundleTarget, Wheel | None]) -> None:
    """Raises BundleError where one of edgerag's wheels is older or newer than what runs here."""
    for target, root in roots.items():
        if root is not None and (name := other_source(own.path, root.path)):
            raise BundleError(
                f"{root.path} was made of another source than what runs here: {name} differs.",
                remedy=f"Make it anew: `{_prepare([target])}`.",
            )


def _prepare(targets: Sequence[BundleTarget]) -> str:
    """The command that builds what no index has."""
    platforms = ",".join(dict.fromkeys(target.platform for target in targets))
    pythons = ",".join(dict.fromkeys(target.python for target in targets))
    return f"python3 tools/prepare.py --wheels --for {platforms} --python {pythons}"


def _own(gatherer: Gatherer, scratch: Path) -> tuple[Wheel | None, BundleError | None]:
    """The wheel of what runs here, or why there is none."""
    (scratch / "own").mkdir()
    try:
        return gatherer.add(make_own_wheel(scratch / "own")), None
    except BundleError as error:
        return None, error


def _known(gatherer: Gatherer, wish: Wish, target: BundleTarget) -> Wheel | None:
    return gatherer.find([wish], target).get(wish.name)


def _pip(gatherer: Gatherer, target: BundleTarget) -> Wheel:
    """The wheel of pip: a system's Python often comes without. The newest; where there is no network, Python's own."""
    found = gatherer.find([Wish("pip", SpecifierSet(), None)], target).get("pip")
    if found is not None:
        return found
    spec = importlib.util.find_spec("ensurepip")  # some systems leave it out
    bundled = Path(spec.origin).parent / "_bundled" if spec and spec.origin else None
    wheels = [wheel for wheel in (wheels_in(bundled) if bundled and bundled.is_dir() else []) if wheel.name == "pip"]
    if not wheels:
        raise BundleError("There is no wheel of pip.", remedy="Put one into a folder and name it with --wheels.")
    return gatherer.add(wheels[0].path)


def _all_wheels(closures: Sequence[Closure], pip: Wheel) -> dict[str, Wheel]:
    """By the name of their file."""
    wheels = {wheel.path.name: wheel for closure in closures for wheel in closure.wheels}
    return wheels | {pip.path.name: pip}


def _machines(closures: Sequence[Closure], pip: Wheel) -> dict[str, frozenset[str]]:
    """By the name of a wheel's file the machines that it is for."""
    machines: dict[str, set[str]] = defaultdict(set)
    for closure in closures:
        for wheel in (*closure.wheels, pip):
            machines[wheel.path.name].add(closure.target.platform)
    return {name: frozenset(found) for name, found in machines.items()}


def _write(
    out: Path,
    closures: Sequence[Closure],
    pip: Wheel,
    packs: Sequence[tuple[Pack, Path]],
    models: Sequence[CarriedModel],
    libraries: Sequence[CarriedLibrary],
    key: SecretKey | None,
    progress: Callable[[int, int], None],
) -> Made:
    wheels = _all_wheels(closures, pip)
    contents: dict[str, Content] = {pack.file: path for pack, path in packs}
    contents |= {f"models/{model.file}": model.path for model in models}
    contents |= {f"libraries/{library.name}.edgerag": library.path for library in libraries}
    contents |= licence_files(wheels.values())
    contents |= _installer()
    words = ", ".join(closure.target.words for closure in closures)
    contents["README.txt"] = README.format(version=__version__, targets=words).encode("ascii")
    contents["install.py"] = INSTALL.encode("ascii")
    hashes = {file.name: file.sha256 for file in described(contents)}
    data = [
        Carried(model.name, "machine-learning-model", f"models/{model.file}", hashes[f"models/{model.file}"],
                model.licence, model.source)
        for model in models
    ]  # fmt: skip
    data += [
        Carried(each.name, "data", f"libraries/{each.name}.edgerag", hashes[f"libraries/{each.name}.edgerag"])
        for each in libraries
    ]
    only_pip = Closure(closures[0].target, (pip,), {pip.name: ()}, {})
    # Of each wheel as its index has it, so that it can be compared with that.
    published = {file.name: file.sha256 for file in described({name: wheel.path for name, wheel in wheels.items()})}
    contents[SBOM_NAME] = sbom([*closures, only_pip], data, hashes=published, version=__version__)
    for name in (*contents, *(f"wheels/{name}" for name in wheels)):
        if not safe_name(name):
            raise BundleError(f"{name!r} is no name for a file of a bundle.", remedy="Leave it out, or rename it.")
    manifest = Manifest(
        edgerag=__version__,
        pip=f"wheels/{pip.path.name}",
        targets=tuple(_target(closure) for closure in closures),
        models=tuple(Model(model.name, f"models/{model.file}", model.shipped) for model in models),
        libraries=tuple(Library(each.name, f"libraries/{each.name}.edgerag") for each in libraries),
        files=described(contents),
        packs=tuple(pack for pack, _ in packs),
    )
    signer = None
    if key is not None:
        comment = f"edgerag bundle {__version__}, {len(manifest.files)} files, for {words}"
        signer = lambda text: sign(text, key, comment=comment)  # noqa: E731
    write_bundle(out, manifest, contents, sign=signer, progress=progress)
    small = sum(file.size_bytes for file in manifest.files if not file.name.startswith(("models/", "libraries/")))
    return Made(manifest, key.name if key else "", manifest.size_bytes, small)


def _installer() -> dict[str, bytes]:
    folder = Path(carried_package.__file__).parent
    return {f"installer/{file.name}": file.read_bytes() for file in sorted(folder.glob("*.py"))}


def _target(closure: Closure) -> Target:
    """What its wheels need of the C library is what they promise, or, of those built here, what their code names."""
    needed = [5]
    for wheel in closure.wheels:
        promised = needed_glibc(wheel.tags, closure.target)
        if promised is None:
            promised = wheel.symbol_glibc
        needed.append(promised or 0)
    return Target(
        platform=closure.target.platform,
        python=closure.target.python,
        glibc=(2, max(needed)),
        unpacked_bytes=sum(wheel.unpacked_bytes for wheel in closure.wheels),
        wheels=tuple(sorted(f"wheels/{wheel.path.name}" for wheel in closure.wheels)),
    )
