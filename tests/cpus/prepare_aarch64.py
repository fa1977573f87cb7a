"""Makes a Python for aarch64 with all that edgerag runs on, for tests/cpus/emulated.py; nothing of the system changes.

python tests/cpus/prepare_aarch64.py [--folder .cache/aarch64] [--no-llama]

Needs Debian or Ubuntu with python3.11 in its archive (apt-get, dpkg-deb), what builds wheels for aarch64
(tools/prepare.py --wheels --for linux-aarch64), and a network. Packages come as wheels from pip; hnswlib, llama.cpp
with its variants and edgerag with its kernel are those that a bundle for aarch64 holds, half an hour on one core. What
is there is not made again.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tools"))
from building import Missing, compiler  # noqa: E402
from wheels import HNSWLIB, LLAMA_CPP, make_hnswlib, make_llama, make_own  # noqa: E402

_VERSION = "3.11"
_DEBS = (
    *("libc6", "libgcc-s1", "libstdc++6", "libgomp1", "libcrypt1", "zlib1g", "libexpat1", "libssl3", "libsqlite3-0"),
    *("libffi8", "libbz2-1.0", "liblzma5", "libuuid1", "libncursesw6", "libtinfo6", "libreadline8", "libdb5.3"),
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "python3.11"),
)
_PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
_ALSO = ("diskcache", "typing_extensions", "pytest", "pytest-asyncio", "hypothesis")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=CHECKOUT / ".cache" / "aarch64")
    parser.add_argument("--no-llama", action="store_true", help="leave llama.cpp out: the program says that it lacks")
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    if missing:
        sys.exit(f"There is no {' and no '.join(missing)}: this is not Debian.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ready").unlink(missing_ok=True)
    try:
        compiler("aarch64")
        if not (folder / "root/usr/bin/python3.11").exists():
            _python(folder)
        if not (folder / "site/numpy").exists():
            _wheels(folder)
        if not (folder / "site/hnswlib.so").exists():
            _unpack(make_hnswlib("aarch64", _VERSION), folder)
        if not options.no_llama and not list((folder / "site/bin").glob("libggml-cpu*.so")):
            _unpack(make_llama("aarch64"), folder)
        for old in (folder / "site").glob("edgerag*"):
            shutil.rmtree(old)
        _unpack(make_own("aarch64"), folder)
    except Missing as error:
        sys.exit(str(error))
    (folder / "ready").touch()
    sys.stdout.write(f"{folder} is ready.\n")
    return 0


def _python(folder: Path) -> None:
    """Debian's Python and what it links with, unpacked. apt works in a state of its own."""
    apt = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    options = ["-o", "APT::Architecture=arm64", "-o", "APT::Architectures::=arm64", "-o", f"Dir::State={apt}"]
    options += ["-o", f"Dir::State::status={apt / 'status'}", "-o", f"Dir::Cache={apt / 'cache'}"]
    _run("apt-get", *options, "update", "-qq")
    _run("apt-get", *options, "download", "-qq", *_DEBS, folder=apt / "cache")
    for package in sorted((apt / "cache").glob("*.deb")):
        _run("dpkg-deb", "-x", str(package), str(folder / "root"))


def _wheels(folder: Path) -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    built = (LLAMA_CPP.partition("==")[0], HNSWLIB.partition("==")[0])
    wanted = [each for each in project["dependencies"] if re.split("[<>=]", each)[0] not in built]
    platforms = [word for platform in _PLATFORMS for word in ("--platform", platform)]
    options = ["--quiet", "--only-binary=:all:", "--python-version", _VERSION, "--dest", str(folder / "wheels")]
    _run(sys.executable, "-m", "pip", "download", *options, *platforms, *wanted, *_ALSO)
    for wheel in sorted((folder / "wheels").glob("*.whl")):
        _unpack(wheel, folder)


def _unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")


def _run(*command: str, folder: Path = CHECKOUT) -> None:
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main())
