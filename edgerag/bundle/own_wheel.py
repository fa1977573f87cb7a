"""edgerag's own wheel: built where this is a checkout, put together again where edgerag was installed from a wheel.

That for another kind of machine lies in a folder, and must be made of the same source: `other_source` compares them.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from edgerag import __version__
from edgerag.errors import BundleError

_PACKAGE = Path(__file__).resolve().parent.parent
_NOT_OF_THE_WHEEL = ("INSTALLER", "REQUESTED", "direct_url.json", "RECORD")  # written by pip
_OF_THE_MACHINE = re.compile(r"edgerag/index/hnsw/_kernel\.[a-z]+|[^/]+\.dist-info/(WHEEL|RECORD)")
_MADE_1980 = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def checkout() -> Path | None:
    """The source that runs here; None where edgerag is installed."""
    folder = _PACKAGE.parent
    return folder if (folder / "pyproject.toml").is_file() and (folder / "hatch_build.py").is_file() else None


def make_own_wheel(folder: Path) -> Path:
    """Puts the wheel into ``folder``. Raises BundleError."""
    source = checkout()
    return _build(source, folder) if source else _from_installed(folder)


def other_source(wheel: Path, other: Path) -> str:
    """The first file that the two do not have in common, but for what depends on the machine; "" where there is none.
    Raises BundleError for one that is no ZIP file."""
    sums = []
    for path in (wheel, other):
        try:
            with zipfile.ZipFile(path) as archive:
                infos = [info for info in archive.infolist() if not _OF_THE_MACHINE.fullmatch(info.filename)]
                sums.append({(info.filename, info.file_size, info.CRC) for info in infos if not info.is_dir()})
        except (OSError, zipfile.BadZipFile) as error:
            raise BundleError(f"{path} is damaged: {error}.", remedy="Get it again.") from error
    return min((name for name, _, _ in sums[0] ^ sums[1]), default="")


def _build(source: Path, folder: Path) -> Path:
    command = [sys.executable, "-P", "-m", "pip", "wheel", "--no-deps", "--quiet", "--disable-pip-version-check"]
    if importlib.util.find_spec("hatchling"):  # otherwise pip fetches it
        command.append("--no-build-isolation")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603 - our own interpreter and source
        [*command, "--wheel-dir", str(folder), str(source)],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=environ,
    )
    wheels = list(folder.glob("edgerag-*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it made none"]
        raise BundleError(
            f"edgerag's own wheel could not be built from {source}: {lines[-1][:300]}",
            remedy="Run `make prepare-dev` there, which installs what builds it.",
        )
    return wheels[0]


def _from_installed(folder: Path) -> Path:
    """The wheel that pip unpacked, packed again; every file is compared with what pip noted."""
    try:
        found = importlib.metadata.distribution("edgerag")
    except importlib.metadata.PackageNotFoundError as error:
        raise _cannot("it is not installed as a package") from error
    tags = [
        line.partition(":")[2].strip() for line in (found.read_text("WHEEL") or "").splitlines() if line[:4] == "Tag:"
    ]
    kept = []
    for file in found.files or []:
        # Commands that pip made lie outside, as do bytecode and its own notes.
        if ".." in file.parts or file.is_absolute() or file.suffix == ".pyc" or file.name in _NOT_OF_THE_WHEEL:
            continue
        try:
            data = Path(str(file.locate())).read_bytes()
        except OSError as error:
            raise _cannot(f"{file} cannot be read ({error.strerror})") from error
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if file.hash is None or (file.hash.mode, file.hash.value) != ("sha256", digest):
            raise _cannot(f"{file} is not what was installed")
        kept.append((str(file), data, digest))
    if not tags or not any(name == "edgerag/__init__.py" for name, _, _ in kept):
        raise _cannot("it was not installed from a wheel")
    interpreter, abi, _ = tags[0].split("-")
    platforms = ".".join(sorted({tag.split("-")[2] for tag in tags}))
    path = folder / f"edgerag-{__version__}-{interpreter}-{abi}-{platforms}.whl"
    record = f"edgerag-{__version__}.dist-info/RECORD"
    lines = [f"{_quoted(name)},sha256={digest},{len(data)}\n" for name, data, digest in kept]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in [
            *((name, data) for name, data, _ in kept),
            (record, "".join([*lines, f"{record},,\n"]).encode()),
        ]:
            info = zipfile.ZipInfo(name, _MADE_1980)
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return path


def _quoted(name: str) -> str:
    return f'"{name}"' if "," in name else name


def _cannot(why: str) -> BundleError:
    return BundleError(
        f"edgerag's own wheel cannot be taken from what is installed: {why}.",
        remedy="Put its wheel into a folder and name it with --wheels, or run this from a checkout.",
    )
