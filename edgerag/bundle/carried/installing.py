"""A bundle becomes a folder in which edgerag runs: an environment, models, libraries, and a command that uses them.

    FOLDER/bin/edgerag    the command; it keeps models, libraries and settings in FOLDER
    FOLDER/venv           Python's environment with the wheels
    FOLDER/models, FOLDER/indexes

Promises: no network is used; every byte of the bundle is compared before any of it is used, and what is used is the
copy that was compared, each wheel once more when it is unpacked; whatever stops it, the command is not there before all
else is, and the next run begins anew.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from . import contents, packs
from .contents import Head
from .machine import fitting, here
from .manifest import File, Manifest, Target
from .minisign import PublicKey
from .refused import Refused

_ARRIVING = ".arriving"  # where the files lie while they are compared; it also says that FOLDER is not finished
_MADE = ("venv", "models", "indexes", "bin", _ARRIVING)
# All native libraries, and at work those that may have been compiled for one processor: what one of them lacks on this
# machine, or this machine for one of them, is said now, and not by the first question.
_LOADED = """
from edgerag.machine.cpu import check_processor
check_processor()
import llama_cpp, hnswlib, numpy, lxml.etree, pypdfium2, edgerag.ui.cli
from edgerag.engine.llama import describe_engine
from edgerag.index.hnsw.build import exercise
describe_engine()
exercise()
"""
Progress = Callable[[int, int], None]


def install(
    path: Path,
    folder: Path,
    *,
    key: PublicKey | None,
    say: Callable[[str], None],
    progress: Progress,
    probe: str = _LOADED,
) -> Head:
    """Makes ``folder`` out of the bundle at ``path``. Raises Refused.

    ``probe`` is what the new Python runs at the end, to see that it works.
    """
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay as they were named
    with contents.opened(path) as bundle:
        head = contents.head(bundle, str(path), key)
        target = fitting(head.manifest, here())
        packs.check_can_unpack(head.manifest)
        _make_room(folder, head.manifest, target)
        try:
            staged = folder / _ARRIVING
            wanted = _wanted_files(head.manifest, target)
            contents.check(
                bundle, head.manifest, str(path), sink=lambda file: _sink(staged, file, wanted), progress=progress
            )
            _install_checked(folder, head.manifest, target, say, probe)
        except OSError as error:
            _clear(folder)
            raise Refused(
                f"{folder} cannot be written: {error.strerror or error}.", remedy="Make room, or name another folder."
            ) from error
        except BaseException:
            _clear(folder)
            raise
    return head


def _make_room(folder: Path, manifest: Manifest, target: Target) -> None:
    """Raises Refused where ``folder`` holds anything but what an earlier run left unfinished, or room is wanting."""
    try:
        if (folder / _ARRIVING).is_dir() and not (folder / "bin" / "edgerag").exists():
            _clear(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Refused(f"{folder} is not empty.", remedy="Name a new folder.")
        free = shutil.disk_usage(folder).free
        wanted, wheels = _wanted_files(manifest, target), _wheels(manifest, target)
        needed = target.unpacked_bytes + sum(file.size_bytes for file in manifest.files if file.name in wanted)
        needed += sum(wheel.size_bytes for pack in manifest.packs for wheel in pack.wheels if wheel.name in wheels)
        needed += sum(file.size_bytes for file in manifest.files if file.name.startswith("libraries/"))
        if free < needed:
            raise Refused(
                f"{folder} needs {needed / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free.", remedy="Make room."
            )
        (folder / _ARRIVING).mkdir()
    except OSError as error:
        raise Refused(f"{folder} cannot be made: {error.strerror or error}.", remedy="Name another folder.") from error


def _wheels(manifest: Manifest, target: Target) -> set[str]:
    return {manifest.pip, *target.wheels}


def _wanted_files(manifest: Manifest, target: Target) -> set[str]:
    """Of the bundle: the wheels of one of version 2 are among them, those of a newer one lie in its packs."""
    files = _wheels(manifest, target)
    files |= {pack.file for pack in packs.packs_of(manifest, files)}
    files |= {model.file for model in manifest.models}
    return files | {library.file for library in manifest.libraries}


def _sink(staged: Path, file: File, wanted: set[str]) -> BinaryIO | None:
    if file.name not in wanted:
        return None
    path = staged / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("xb")


def _install_checked(folder: Path, manifest: Manifest, target: Target, say: Callable[[str], None], probe: str) -> None:
    staged, python = folder / _ARRIVING, folder / "venv" / "bin" / "python"
    wheels = _wheels(manifest, target)
    for pack in packs.packs_of(manifest, wheels):
        say(f"Unpacking {pack.file}")
        packs.unpack(pack, staged, wheels)
        (staged / pack.file).unlink()
    say(f"Making the environment for {target.words}")
    _run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder / "venv")], folder)
    say(f"Installing {len(target.wheels)} wheels")
    pip = [str(python), str(staged / manifest.pip / "pip"), "--isolated", "--disable-pip-version-check", "--no-input"]
    offline = ["--no-index", "--no-cache-dir", "--quiet", "--find-links", str(staged / "wheels")]
    _run([*pip, "install", *offline, *(str(staged / wheel) for wheel in target.wheels)], folder)
    shutil.rmtree(staged / "wheels")  # room for the libraries
    _run([str(python), "-P", "-c", probe], folder)
    (folder / "models").mkdir()
    (folder / "indexes").mkdir()
    (folder / "bin").mkdir()
    launcher = staged / "edgerag"
    launcher.write_text(_launcher(folder), encoding="utf-8")
    launcher.chmod(0o755)
    for model in manifest.models:
        if model.shipped:
            (staged / model.file).replace(folder / model.file)
        else:
            say(f"Adding the model {model.name}")
            _run([str(launcher), "models", "add", str(staged / model.file), "--name", model.name], folder)
    for library in manifest.libraries:
        say(f"Importing the library {library.name}")
        file = str(staged / library.file)
        _run([str(launcher), "library", "import", file, "--name", library.name, "--quiet"], folder)
    launcher.replace(folder / "bin" / "edgerag")
    shutil.rmtree(staged)


def _launcher(folder: Path) -> str:
    return (
        "#!/bin/sh\n"
        "# edgerag of this folder: models, libraries and settings lie here, unless EDGERAG_HOME names another.\n"
        f"EDGERAG_HOME=${{EDGERAG_HOME:-{shlex.quote(str(folder))}}}\n"
        "export EDGERAG_HOME\n"
        "unset PYTHONPATH PYTHONHOME  # nothing but what was installed here\n"
        f'exec {shlex.quote(str(folder / "venv" / "bin" / "python"))} -P -m edgerag "$@"\n'
    )


def _run(command: Sequence[str], folder: Path) -> None:
    """Raises Refused with the last words of a command that fails."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON", "EDGERAG_"))}
    # The settings of pip on this machine may name an index; temporary files go where there is room.
    environ |= {"PIP_CONFIG_FILE": os.devnull, "TMPDIR": str(folder / _ARRIVING)}
    done = subprocess.run(  # noqa: S603 - what runs is Python, pip and edgerag, out of files that were compared
        command, capture_output=True, check=False, stdin=subprocess.DEVNULL, env=environ
    )
    if done.returncode == -signal.SIGILL:
        raise Refused(
            "It could not be installed: a library in it was built for another processor than this one.",
            remedy="Make the bundle of wheels for any processor: python3 tools/prepare.py --wheels. Nothing was left.",
        )
    if done.returncode:
        lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        shared = next((line for line in lines if "cannot open shared object" in line), "")
        raise Refused(
            f"It could not be installed: {(shared or (lines or ['exit code ' + str(done.returncode)])[-1])[:500]}",
            remedy="Install that library with the system's own packages." if shared else "Nothing was left behind.",
        )


def _clear(folder: Path) -> None:
    """The folder itself stays where it was, with what is not ours. The mark goes last."""
    for name in _MADE:
        shutil.rmtree(folder / name, ignore_errors=True)  # what cannot be deleted is found by the next run
