"""``edgerag bundle``: everything for a machine without a network is put together, compared, and installed."""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.bundle.carried.refused import Refused
from edgerag.config import BUNDLE_PASSWORD_VARIABLE
from edgerag.errors import BundleError, UsageError
from edgerag.locations import user_path
from edgerag.ui import output, report

if TYPE_CHECKING:
    from edgerag.bundle.carried.contents import Head
    from edgerag.bundle.carried.minisign import PublicKey
    from edgerag.bundle.create import CarriedLibrary, CarriedModel
    from edgerag.session import Session

NO_MODELS = "none"
_COMPRESSED = frozenset({".bz2", ".gz", ".tgz", ".xz", ".zip", ".zst"})


def run_bundle(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    try:
        match arguments.action:
            case "create":
                return _create(session, arguments)
            case "verify":
                return _verify(arguments)
            case "install":
                return _install(arguments)
            case _:
                return _key(arguments)
    except Refused as error:
        raise BundleError(error.message, remedy=error.remedy) from error


def _create(session: Session, arguments: argparse.Namespace) -> int:
    from edgerag.bundle.create import create
    from edgerag.bundle.gather import this_target
    from edgerag.bundle.keys import read_key
    from edgerag.bundle.targets import parse_targets
    from edgerag.machine.disk import storage_error

    here = this_target()
    targets = parse_targets(_names(arguments.machines) or [here.platform], _names(arguments.python) or [here.python])
    out = user_path(arguments.out)
    if os.path.lexists(out):
        raise UsageError(f"{out} is there already.", remedy="Name another one, or delete it.")
    if out.suffix.lower() in _COMPRESSED:
        raise UsageError(
            f"{out.name}: a bundle is a folder or a .tar file.", remedy="Its parts are compressed already: use .tar."
        )
    if not out.parent.is_dir():
        raise UsageError(f"There is no folder {out.parent}.", remedy="Make it, or name another one.")
    folders = [user_path(folder) for folder in arguments.wheels]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"There is no folder {folder}.", remedy="Name a folder of wheels.")
    key = read_key(user_path(arguments.key), password=_password) if arguments.key else None
    models = _models(session, _names(arguments.models))
    try:
        # Beside it: texts are copied to nowhere else, and there must be room anyway.
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
            libraries = _libraries(session, [*arguments.library, *arguments.carry], Path(scratch), models)
            with report.progress_bar(quiet=arguments.quiet) as bar:
                made = create(
                    out,
                    targets,
                    models=models,
                    libraries=libraries,
                    wheel_folders=folders,
                    key=key,
                    report=report.say,
                    progress=bar.show_bytes,
                )
    except OSError as error:
        raise storage_error(error, out) from error
    if arguments.json:
        output.write_json({"out": str(out), **dataclasses.asdict(made)})
    glibc = max(target.glibc for target in made.manifest.targets)
    signed = f"signed with the key {made.signed_by}" if made.signed_by else "not signed"
    report.say(
        f"{out}: {len(made.manifest.files):,} files, {output.size(made.size_bytes)}, without models and libraries "
        f"{output.size(made.size_without_models_bytes)}; for {', '.join(each.words for each in targets)}, "
        f"glibc {glibc[0]}.{glibc[1]} or newer; {signed}."
    )
    return report.EXIT_OK


def _models(session: Session, names: list[str]) -> list[CarriedModel]:
    """Those that are named, else the defaults of the manifest; each checked as before a question. Raises ModelError."""
    from edgerag.bundle.create import CarriedModel

    manifest = session.catalog.manifest()
    known = {entry.name: entry for entry in session.catalog.entries()}
    if names == [NO_MODELS]:
        return []
    carried = []
    for name in names or [entry.name for entry in manifest.values() if entry.default]:
        if name not in known:
            raise UsageError(f"There is no model {name!r}.", remedy=f"Known: {', '.join(known)}; or {NO_MODELS}.")
        found = session.catalog.find(known[name].kind, name)
        file = manifest[name].file if name in manifest else f"{name}.gguf"
        carried.append(CarriedModel(name, found.path, name in manifest, file, found.licence, known[name].source))
    return carried


def _libraries(session: Session, names: list[str], folder: Path, models: list[CarriedModel]) -> list[CarriedLibrary]:
    """Exported into ``folder``. Raises LibraryError, and UsageError for one that is encrypted."""
    from edgerag.bundle.create import CarriedLibrary
    from edgerag.locations import safe_library_name

    carried = []
    for name in dict.fromkeys(name for each in names for name in _names(each)):
        path = folder / f"{safe_library_name(name)}.edgerag"
        if session.is_encrypted(name):  # the installer has nobody to ask for its key
            raise UsageError(
                f"The library {name} is encrypted: a bundle cannot install it.",
                remedy=f"Carry it beside the bundle: edgerag library export {name} FILE, and import it there.",
            )
        embedder = session.export_library(name, path, progress=lambda _done, _whole: None).embedder.name
        if all(model.name != embedder for model in models):
            report.say(
                f"note: the library {name} is searched by meaning with {embedder!r}, which is not in the bundle."
            )
        carried.append(CarriedLibrary(name, path))
    return carried


def _verify(arguments: argparse.Namespace) -> int:
    from edgerag.bundle.carried import contents, script

    path, key = user_path(arguments.path), _public_key(arguments)
    with contents.opened(path) as bundle, report.progress_bar(quiet=arguments.quiet) as bar:
        head = contents.head(bundle, str(path), key)
        contents.check(bundle, head.manifest, str(path), sink=lambda _: None, progress=bar.show_bytes)
    _tell(arguments, head)
    report.say(script.verdict(head))
    return report.EXIT_OK


def _install(arguments: argparse.Namespace) -> int:
    from edgerag.bundle.carried import script
    from edgerag.bundle.carried.installing import install

    folder = user_path(arguments.to)
    with report.progress_bar(quiet=arguments.quiet) as bar:
        head = install(
            user_path(arguments.path), folder, key=_public_key(arguments), say=report.say, progress=bar.show_bytes
        )
    _tell(arguments, head)
    report.say(script.verdict(head))
    report.say(f"edgerag {head.manifest.edgerag} is installed. Run: {folder / 'bin' / 'edgerag'}")
    return report.EXIT_OK


def _key(arguments: argparse.Namespace) -> int:
    from edgerag.bundle.keys import make_key, public_path
    from edgerag.machine.disk import storage_error

    path = user_path(arguments.file)
    try:
        key = make_key(path)
    except OSError as error:
        raise storage_error(error, path) from error
    report.say(
        f"The secret key {key.name} is in {path}: keep it to yourself, and off the machines that you carry bundles to. "
        f"The public one is in {public_path(path)}: take it there on a way of its own."
    )
    return report.EXIT_OK


def _public_key(arguments: argparse.Namespace) -> PublicKey | None:
    from edgerag.bundle.carried.script import read_key

    return read_key(user_path(arguments.public_key)) if arguments.public_key else None


def _password() -> str:
    try:
        return os.environ.get(BUNDLE_PASSWORD_VARIABLE) or getpass.getpass("Password of the key: ")
    except EOFError as error:
        raise UsageError(
            "The key has a password, and nobody is here to give it.", remedy=f"Set {BUNDLE_PASSWORD_VARIABLE}."
        ) from error


def _tell(arguments: argparse.Namespace, head: Head) -> None:
    if arguments.json:
        output.write_json(dataclasses.asdict(head))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
