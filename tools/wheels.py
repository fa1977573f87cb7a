"""The wheels that no index has, for this machine or another one, into `.cache/wheels`.

llama-cpp-python with its CPU variants chosen at run time, one for all Pythons; hnswlib without -march=native, one for
each Python; edgerag's own with its compiled kernel. For another machine than this one they are compiled by Debian's
compilers for it. What is there already is not made again, but for edgerag's own. A build of llama.cpp that was stopped
goes on where it stopped. Needs nothing but Python with its venv module.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from building import CHECKOUT, LOGS, MACHINE, Missing, compiler, complaint, run, watch, works
from python_headers import include_flags

WHEELS = CHECKOUT / ".cache" / "wheels"
BUILDS = CHECKOUT / ".cache" / "build"
MACHINES = ("x86_64", "aarch64")
LLAMA_CPP = "llama-cpp-python==0.3.36"
HNSWLIB = "hnswlib==0.8.0"

# All CPU variants as libraries of their own, the best one chosen when the program starts; nothing for pictures.
PORTABLE_LLAMA = "-DGGML_NATIVE=OFF -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON -DLLAVA_BUILD=OFF"
LLAMA_SETTINGS = (
    # A second copy of everything, for those who compile against it; and a third name of each library: a wheel has no
    # links, so each name is a copy.
    "wheel.exclude=lib/**;include/**;llama_cpp/lib/*.so.*.*.*",
    # llama.cpp's own, which the package leaves out.
    "wheel.license-files=LICEN[CS]E*;vendor/llama.cpp/LICENSE;vendor/llama.cpp/licenses/*",
)
# What llama.cpp's programs share, a client for HTTPS among it: a third of the build, and no part of the library.
COMMON = "set(LLAMA_BUILD_COMMON ON CACHE"
# Two of llama.cpp's variants for ARM are compiled with SME, which gcc knows since version 14.
SME = "-march=armv9.2-a+sme"
VARIANTS_FILE = "vendor/llama.cpp/ggml/src/CMakeLists.txt"
# As the package's own build has it, without -march=native; NDEBUG comes from Python's own flags there.
HNSWLIB_FLAGS = (
    *("-O3", "-DNDEBUG", "-std=c++14", "-shared", "-fPIC", "-fvisibility=hidden", "-fopenmp", "-pthread", "-w", "-s"),
    f'-DVERSION_INFO="{HNSWLIB.partition("==")[2]}"',
)
BUILD_TOOLS = ("scikit-build-core[pyproject]>=0.9.2", "cmake>=3.21", "ninja", "hatchling>=1.27")
OWN_SOURCES = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "models/manifest.toml")
MADE_1980 = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def make_wheels(machines: Sequence[str], pythons: Sequence[str]) -> None:
    """Each with each. What cannot be made does not stop the others; at the end Missing names all of it."""
    missing: list[str] = []
    for machine in machines:
        steps: list[Callable[[], Path]] = [partial(make_llama, machine), partial(make_own, machine)]
        steps += [partial(make_hnswlib, machine, python) for python in pythons]
        for step in steps:
            try:
                step()
            except Missing as error:
                missing.append(str(error))
    print(f"The wheels are in {WHEELS}", flush=True)
    if missing:
        raise Missing("\n".join(dict.fromkeys(missing)))


def make_llama(machine: str) -> Path:
    """The wheel of llama-cpp-python. Raises Missing where it cannot be compiled, CalledProcessError from pip."""
    target = WHEELS / f"{_stem(LLAMA_CPP)}-py3-none-linux_{machine}.whl"
    if target.exists():
        return target
    command, c_command = compiler(machine), compiler(machine, language="c")
    folder = BUILDS / f"linux-{machine}"
    source = _unpacked(LLAMA_CPP, folder)
    _edit(source / "CMakeLists.txt", without_common)
    if machine == "aarch64" and complaint(command, SME):
        _edit(source / VARIANTS_FILE, without_sme)
    options = [PORTABLE_LLAMA]
    if machine != MACHINE:
        options += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={machine}"]
        # Libraries of this machine are none of that one.
        options += [f"-DCMAKE_FIND_ROOT_PATH=/usr/{machine}-linux-gnu"]
        options += [f"-DCMAKE_FIND_ROOT_PATH_MODE_{kind}=ONLY" for kind in ("LIBRARY", "INCLUDE")]
    environment = {"CMAKE_ARGS": " ".join(options), "CC": " ".join(c_command), "CXX": " ".join(command)}
    settings = [f"build-dir={folder / 'cmake'}", *LLAMA_SETTINGS]
    print(f"Building {LLAMA_CPP} for any processor of {machine}, once (5 to 30 minutes)", flush=True)
    _pip_wheel(source, machine, environment, settings=settings)
    shutil.rmtree(folder)
    return target


def make_hnswlib(machine: str, python: str) -> Path:
    """The wheel of hnswlib for Python ``python``: one C++ file, compiled and packed. Raises Missing where that Python's
    headers are not there or the compiler fails, CalledProcessError from pip."""
    tag = f"cp{python.replace('.', '')}"
    target = WHEELS / f"{_stem(HNSWLIB)}-{tag}-{tag}-linux_{machine}.whl"
    if target.exists():
        return target
    command = compiler(machine)
    folder = BUILDS / f"hnswlib-{machine}-{python}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        flags = include_flags(python, machine, command, folder)
        print(f"Building {HNSWLIB} for Python {python} on any processor of {machine}, once (a minute)", flush=True)
        source, binding = _unpacked(HNSWLIB, folder), _unpacked_wheel("pybind11", folder)
        flags += [f"-I{binding / 'pybind11/include'}", f"-I{source / 'hnswlib'}"]
        library = folder / "hnswlib.so"
        whole = [*command, *HNSWLIB_FLAGS, *flags, str(source / "python_bindings/bindings.cpp"), "-o", str(library)]
        watch(whole, {}, LOGS / f"build-hnswlib-{machine}-{python}.log")
        # Its headers are compiled into it.
        licence = next(binding.glob("pybind11-*.dist-info/licenses/LICENSE"))
        contents = {
            library.name: library.read_bytes(),
            "{info}/METADATA": (source / "PKG-INFO").read_bytes(),
            "{info}/licenses/LICENSE": (source / "LICENSE").read_bytes(),
            "{info}/licenses/LICENSE-pybind11": licence.read_bytes(),
        }
        write_wheel(target, contents)
    finally:
        shutil.rmtree(folder)
    return target


def make_own(machine: str) -> Path:
    """The wheel of this checkout, with the index's kernel for ``machine``, made anew each time. Raises Missing,
    CalledProcessError from pip.

    It is built from a copy: a kernel for another machine must not come to lie in the checkout.
    """
    folder = BUILDS / f"edgerag-{machine}"
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "_kernel.*")
    shutil.copytree(CHECKOUT / "edgerag", folder / "edgerag", ignore=ignored)
    for name in OWN_SOURCES:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(CHECKOUT / name, folder / name)
    WHEELS.mkdir(parents=True, exist_ok=True)
    for old in WHEELS.glob(f"edgerag-*-linux_{machine}.whl"):
        old.unlink()
    environment = {"CC": " ".join(compiler(machine, language="c")), "EDGERAG_REQUIRE_KERNEL": "1"}
    try:
        _pip_wheel(folder, machine, environment)
    finally:
        shutil.rmtree(folder)
    return next(WHEELS.glob(f"edgerag-*-linux_{machine}.whl"))


def without_common(cmake: str) -> str:
    """llama-cpp-python's build without what only llama.cpp's programs use."""
    return cmake.replace(COMMON, COMMON.replace(" ON ", " OFF "))


def without_sme(cmake: str) -> str:
    """llama.cpp's list of variants without those for SME. Processors with SME then run the variant with SVE2."""
    lines = cmake.splitlines(keepends=True)
    return "".join(line for line in lines if not ("ggml_add_cpu_backend_variant(" in line and "SME" in line))


def _edit(path: Path, change: Callable[[str], str]) -> None:
    """Writes only where there is something to change: what was compiled already is then not compiled again."""
    before = path.read_text(encoding="utf-8")
    if change(before) != before:
        path.write_text(change(before), encoding="utf-8")


def write_wheel(target: Path, contents: Mapping[str, bytes]) -> None:
    """Packs ``contents``, whole or not at all; ``{info}`` in a name is the folder of the wheel's metadata. Its name
    says which tags it gets."""
    name, version, *tags = target.stem.split("-")
    info = f"{name}-{version}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: edgerag\nRoot-Is-Purelib: false\nTag: {'-'.join(tags)}\n"
    files = {path.format(info=info): data for path, data in contents.items()}
    files[f"{info}/WHEEL"] = wheel.encode()
    lines = [f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items()]
    files[f"{info}/RECORD"] = "".join([*lines, f"{info}/RECORD,,\n"]).encode()
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, MADE_1980)
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    unfinished.replace(target)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _pip_wheel(source: Path, machine: str, environment: Mapping[str, str], *, settings: Sequence[str] = ()) -> None:
    """Runs the build of ``source`` with tools of this machine: pip itself would fetch some of the other one."""
    python = _tools()
    # pip's own cache does not know the build options, so a wheel in it may be for one processor only.
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--no-cache-dir"]
    command += ["--no-build-isolation", "--verbose", "--wheel-dir", str(WHEELS)]
    command += [word for setting in settings for word in ("--config-settings", setting)]
    whole = {**environment, "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    if machine != MACHINE:
        whole["_PYTHON_HOST_PLATFORM"] = f"linux-{machine}"  # what sysconfig then calls its platform
    WHEELS.mkdir(parents=True, exist_ok=True)
    name = source.name.partition("-")[0]
    watch([*command, str(source)], whole, LOGS / f"build-{name}-{machine}.log")


def _tools() -> Path:
    """An interpreter with pip and what builds; made once."""
    python = BUILDS / "tools" / "bin" / "python"
    if not works("import pip, scikit_build_core, hatchling, cmake, ninja", python=python):
        run([sys.executable, "-m", "venv", "--clear", str(python.parents[1])])
        run([str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *BUILD_TOOLS])
    return python


def _unpacked(requirement: str, folder: Path) -> Path:
    """The sources of a package in ``folder``; pip only fetches them."""
    source, arriving = folder / _stem(requirement), folder / "arriving"
    if not source.is_dir():
        shutil.rmtree(arriving, ignore_errors=True)
        _download("--no-binary", requirement.partition("==")[0], requirement, folder=arriving)
        with tarfile.open(next(arriving.glob("*.tar.gz"))) as archive:
            archive.extractall(arriving, filter="data")
        (arriving / source.name).rename(source)
    return source


def _unpacked_wheel(name: str, folder: Path) -> Path:
    place = folder / name
    _download("--only-binary=:all:", name, folder=place)
    with zipfile.ZipFile(next(place.glob("*.whl"))) as archive:
        archive.extractall(place)
    return place


def _download(*words: str, folder: Path) -> None:
    pip = [str(_tools()), "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    run([*pip, "--dest", str(folder), *words])


def _stem(requirement: str) -> str:
    """ "llama-cpp-python==0.3.36" -> "llama_cpp_python-0.3.36" """
    return requirement.replace("==", "\0").replace("-", "_").replace("\0", "-")
