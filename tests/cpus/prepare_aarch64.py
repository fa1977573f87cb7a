"""Makes a Python for aarch64 with all that edgerag runs on, for tests/cpus/emulated.py; nothing of the system changes.

python tests/cpus/prepare_aarch64.py [--folder .cache/aarch64] [--no-llama]

Needs Debian or Ubuntu with python3.11 in its archive (apt-get, dpkg-deb), gcc and g++ for aarch64, cmake and ninja, and
a network. Packages come as wheels from pip; hnswlib, llama.cpp and the index's kernel are compiled
for it here, llama.cpp with its variants, half an hour on one core. What is there is not made again.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))
from hatch_build import FLAGS, SOURCE  # noqa: E402
from tools.prepare import HNSWLIB, LLAMA_CPP, PORTABLE_LLAMA, VARIANTS_FILE, without_sme  # noqa: E402

_DEBS = (
    *("libc6", "libgcc-s1", "libstdc++6", "libgomp1", "libcrypt1", "zlib1g", "libexpat1", "libssl3", "libsqlite3-0"),
    *("libffi8", "libbz2-1.0", "liblzma5", "libuuid1", "libncursesw6", "libtinfo6", "libreadline8", "libdb5.3"),
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "python3.11", "libpython3.11-dev"),
)
_PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
_ALSO = ("diskcache", "typing_extensions", "pytest", "pytest-asyncio", "hypothesis")
_GCC, _GXX = "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++"
_CMAKE = (
    *("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DCMAKE_BUILD_TYPE=Release"),
    *(f"-DCMAKE_C_COMPILER={_GCC}", f"-DCMAKE_CXX_COMPILER={_GXX}", "-DBUILD_SHARED_LIBS=ON"),
    *PORTABLE_LLAMA.split(),
    *(f"-DLLAMA_BUILD_{part}=OFF" for part in ("TESTS", "TOOLS", "EXAMPLES", "SERVER", "COMMON")),
    *("-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF"),
    *("-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", "-DCMAKE_INSTALL_RPATH=$ORIGIN"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=CHECKOUT / ".cache" / "aarch64")
    parser.add_argument("--no-llama", action="store_true", help="leave llama.cpp out: the program says that it lacks")
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    missing = [name for name in ("apt-get", "dpkg-deb", _GCC, _GXX, "cmake", "ninja") if shutil.which(name) is None]
    if missing:
        sys.exit(f"There is no {', '.join(missing)}. Debian: apt install g++-aarch64-linux-gnu cmake ninja-build")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ready").unlink(missing_ok=True)
    if not (folder / "root/usr/bin/python3.11").exists():
        _python(folder)
    if not (folder / "site/numpy").exists():
        _wheels(folder)
    if not list((folder / "site").glob("hnswlib*.so")):
        _hnswlib(folder)
    if not options.no_llama and not list((folder / "site/bin").glob("libggml-cpu*.so")):
        _llama(folder)
    _edgerag(folder)
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
    options = ["--quiet", "--only-binary=:all:", "--python-version", "3.11", "--dest", str(folder / "wheels")]
    _run(sys.executable, "-m", "pip", "download", *options, *platforms, *wanted, *_ALSO)
    for wheel in sorted((folder / "wheels").glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "site")


def _hnswlib(folder: Path) -> None:
    source = _unpacked(folder, HNSWLIB)
    _run(sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder / "pybind11"), "pybind11")
    python = folder / "root/usr/include"
    includes = [python / "python3.11", python, folder / "pybind11/pybind11/include", source / "hnswlib"]
    includes.append(folder / "site/numpy/_core/include")
    target = folder / "site/hnswlib.cpython-311-aarch64-linux-gnu.so"
    options = ["-O3", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-fopenmp", "-w"]
    options += ['-DVERSION_INFO="0.8.0"', *(f"-I{include}" for include in includes)]
    _run(_GXX, *options, str(source / "python_bindings/bindings.cpp"), "-o", str(target))


def _llama(folder: Path) -> None:
    """The binding as it is, its libraries compiled for aarch64, in the places where its own build puts them."""
    source = _unpacked(folder, LLAMA_CPP)
    build = folder / "llama"
    variants_file = source / VARIANTS_FILE
    # Debian's compilers for other machines are those of before SME.
    variants_file.write_text(without_sme(variants_file.read_text(encoding="utf-8")), encoding="utf-8")
    _run("cmake", "-G", "Ninja", "-S", str(source / "vendor/llama.cpp"), "-B", str(build), *_CMAKE)
    done = subprocess.run(["ninja", "-t", "targets", "all"], cwd=build, capture_output=True, text=True, check=True)
    variants = sorted(set(re.findall(r"^(ggml-cpu-[a-z0-9._]+): phony", done.stdout, re.M)))
    _run("ninja", "llama", "ggml", *variants, folder=build)
    site = folder / "site"
    shutil.copytree(source / "llama_cpp", site / "llama_cpp", dirs_exist_ok=True)
    for place, pattern in ((site / "llama_cpp/lib", "lib*.so*"), (site / "bin", "libggml-cpu-*.so")):
        place.mkdir(exist_ok=True)
        for library in sorted((build / "bin").glob(pattern)):
            if place.name == "bin" or "-cpu-" not in library.name:
                shutil.copy(library, place, follow_symlinks=True)


def _edgerag(folder: Path) -> None:
    """This checkout's package, with its kernel for aarch64; each time anew."""
    target = folder / "site/edgerag"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(CHECKOUT / "edgerag", target, ignore=shutil.ignore_patterns("__pycache__", "_kernel.*"))
    shutil.copy(CHECKOUT / "models/manifest.toml", target)
    kernel = folder / "site" / SOURCE.with_name("_kernel.so")
    _run(_GCC, *FLAGS, "-o", str(kernel), str(CHECKOUT / SOURCE), "-lm")


def _unpacked(folder: Path, requirement: str) -> Path:
    """The sources of a package; pip only fetches them."""
    name = requirement.partition("==")[0]
    place = folder / "sources"
    options = ["--quiet", "--no-deps", "--no-binary", name, "--dest", str(place)]
    _run(sys.executable, "-m", "pip", "download", *options, requirement)
    archive = next(iter(sorted(place.glob(f"{name.replace('-', '_')}-*.tar.gz"))))
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="data")
    return place / archive.name.removesuffix(".tar.gz")


def _run(*command: str, folder: Path = CHECKOUT) -> None:
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main())
