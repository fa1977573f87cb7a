"""Makes `.venv` ready: checks what the machine has, builds what must be built, installs, fetches models.

    python3 tools/prepare.py [--dev] [--no-models]
    python3 tools/prepare.py --wheels

Needs nothing but Python's standard library, and says what is missing together with the command
that installs it. Doing it again costs a moment: a stamp in `.venv` remembers what it was made from.
Two packages have no ready wheels that run on every processor, so they are built here, once, into
`.cache/wheels`: llama-cpp-python with its CPU variants chosen at run time, and hnswlib without
-march=native. `--wheels` makes sure that both lie there, with edgerag's own, for `edgerag bundle create`: run on
another machine, it makes what a bundle for that one needs. An interpreter that already has a working llama-cpp-python
keeps it: `.venv` then sees that interpreter's packages.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
VENV = CHECKOUT / ".venv"
WHEELS = CHECKOUT / ".cache" / "wheels"
LOGS = CHECKOUT / ".cache" / "logs"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".prepared"

OLDEST_PYTHON = (3, 11)
LLAMA_CPP = "llama-cpp-python==0.3.36"
HNSWLIB = "hnswlib==0.8.0"
# All CPU variants as libraries of their own, the best one chosen when the program starts.
PORTABLE_LLAMA = "-DGGML_NATIVE=OFF -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON"
# Two of llama.cpp's variants for ARM are compiled with SME, which gcc knows since version 14.
SME = "-march=armv9.2-a+sme"
VARIANTS_FILE = "vendor/llama.cpp/ggml/src/CMakeLists.txt"
LLAMA_WORKS = (
    "import llama_cpp; llama_cpp.llama_backend_init(); version = llama_cpp.__version__.split('.'); "
    "assert version[:2] == ['0', '3'] and int(version[2]) >= 36"
)

# Requirement, what its build is told, and how long that takes.
BUILT = (
    (LLAMA_CPP, {"CMAKE_ARGS": PORTABLE_LLAMA}, "5 to 15 minutes"),
    (HNSWLIB, {"HNSWLIB_NO_NATIVE": "1"}, "a minute"),
)

INSTALL_COMMANDS = {
    "debian": "sudo apt install build-essential python3-dev python3-venv",
    "fedora": "sudo dnf install gcc-c++ make python3-devel",
    "suse": "sudo zypper install gcc-c++ make python3-devel",
    "arch": "sudo pacman -S base-devel python",
    "alpine": "sudo apk add build-base linux-headers python3-dev",
}
HEARTBEAT_S = 20


class Missing(Exception):
    """Something that this script cannot provide itself."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dev", action="store_true", help="with what the tests and checks need")
    parser.add_argument("--no-models", action="store_true", help="leave the models alone")
    parser.add_argument(
        "--wheels", action="store_true", help="only build the wheels that a bundle for this machine needs"
    )
    arguments = parser.parse_args()
    try:
        check_python()
        if arguments.wheels:
            build_wheels()
            return 0
        prepare_venv(dev=arguments.dev)
        if not arguments.no_models:
            run([str(PYTHON), "-m", "edgerag", "models", "pull"])
    except Missing as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"\nThis command failed (exit code {error.returncode}): {' '.join(error.cmd)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; the same command goes on where it stopped.", file=sys.stderr)
        return 130
    return 0


def check_python() -> None:
    if sys.version_info < OLDEST_PYTHON:
        raise Missing(
            f"Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed; this is {sys.version.split()[0]}.\n"
            "Name another one: make demo PYTHON=/path/to/python3.11"
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        raise Missing(f"Python's venv module is missing. Install it: {install_command()}") from None


def prepare_venv(*, dev: bool) -> None:
    """Raises Missing, or CalledProcessError when an install step fails."""
    wanted = stamp(dev=dev)
    if STAMP.is_file() and STAMP.read_text(encoding="utf-8") in (wanted, stamp(dev=True)) and works("import edgerag"):
        return
    if not works("import pip"):
        inherit = works(LLAMA_WORKS, python=Path(sys.executable))
        print("Making .venv" + (", with the llama-cpp-python of this interpreter" if inherit else ""), flush=True)
        options = ["--system-site-packages"] if inherit else []
        run([sys.executable, "-m", "venv", "--clear", *options, str(VENV)])
    STAMP.unlink(missing_ok=True)
    for (requirement, environment, minutes), check in zip(BUILT, (LLAMA_WORKS, "import hnswlib"), strict=True):
        if not works(check):
            install_built(requirement, environment, minutes=minutes)
    print("Installing edgerag and its dependencies", flush=True)
    target = ".[dev]" if dev else "."
    run([str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--editable", target])
    STAMP.write_text(wanted, encoding="utf-8")


def install_built(requirement: str, environment: dict[str, str], *, minutes: str) -> None:
    """Installs a package from a wheel that was built on this machine; builds it if it is not cached."""
    name = requirement.partition("==")[0].replace("-", "_")
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    cached = [*pip, "install", "--no-deps", "--no-index", "--find-links", str(WHEELS), requirement]
    if any(WHEELS.glob(f"{name}-*.whl")) and subprocess.run(cached, capture_output=True, check=False).returncode == 0:
        return
    build(requirement, environment, minutes=minutes)
    run(cached)


def build(requirement: str, environment: dict[str, str], *, minutes: str) -> None:
    """Puts the wheel into the cache. Raises Missing."""
    name = requirement.partition("==")[0].replace("-", "_")
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    check_compiler()
    WHEELS.mkdir(parents=True, exist_ok=True)
    # pip's own cache does not know the build options, so a wheel in it may be for one processor only.
    command = [*pip, "wheel", "--no-deps", "--no-cache-dir", "--no-binary", name.replace("_", "-")]
    print(f"Building {requirement} for any processor, once ({minutes})", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = requirement
        if requirement == LLAMA_CPP and platform.machine() in ("aarch64", "arm64") and not compiles(SME):
            source = str(source_without_sme(requirement, Path(scratch)))
        watch([*command, "--wheel-dir", str(WHEELS), source], environment, LOGS / f"build-{name}.log")


def compiles(flag: str) -> bool:
    """Whether the C++ compiler knows ``flag``. Raises Missing where there is none."""
    command = [*compiler(), flag, "-fsyntax-only", "-x", "c++", os.devnull]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def source_without_sme(requirement: str, folder: Path) -> Path:
    """The sources of llama-cpp-python, unpacked in ``folder``, whose variants this compiler can compile. What they
    leave out, processors with SME, run the variant with SVE2."""
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    run([*pip, "--no-binary", "llama-cpp-python", "--dest", str(folder), requirement])
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    source = next(path for path in folder.iterdir() if path.is_dir())
    variants = source / VARIANTS_FILE
    variants.write_text(without_sme(variants.read_text(encoding="utf-8")), encoding="utf-8")
    return source


def without_sme(cmake: str) -> str:
    """llama.cpp's list of variants without those for SME."""
    lines = cmake.splitlines(keepends=True)
    return "".join(line for line in lines if not ("ggml_add_cpu_backend_variant(" in line and "SME" in line))


def build_wheels() -> None:
    """Those that no index has, for this machine and Python. Raises Missing, CalledProcessError."""
    if not works("import pip"):
        run([sys.executable, "-m", "venv", str(VENV)])
    for requirement, environment, minutes in BUILT:
        if not is_cached(requirement):
            build(requirement, environment, minutes=minutes)
    for old in WHEELS.glob("edgerag-*.whl"):
        old.unlink()
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    run([*pip, "--wheel-dir", str(WHEELS), "."])
    print(f"The wheels are in {WHEELS}", flush=True)


def is_cached(requirement: str) -> bool:
    """Whether a wheel for this Python lies there: pip says, which reads the tags of their names."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [str(PYTHON), "-m", "pip", "--isolated", "download", "--quiet", "--no-deps", "--no-index"]
        command = [*pip, "--find-links", str(WHEELS), "--dest", folder, requirement]
        return WHEELS.is_dir() and subprocess.run(command, capture_output=True, check=False).returncode == 0


def check_compiler() -> None:
    compiler()
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        raise Missing(f"The headers of this Python (Python.h) are missing. Install them: {install_command()}")


def compiler() -> list[str]:
    """The command of the C++ compiler. Raises Missing where there is none."""
    command = (os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), "")).split()
    if not command or shutil.which(command[0]) is None:
        raise Missing(f"A C++ compiler is missing. Install it: {install_command()}")
    return command


def install_command() -> str:
    try:
        release = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        release = ""
    known = " ".join(line.partition("=")[2].strip('"') for line in release.splitlines() if line.startswith("ID"))
    known = known.replace("ubuntu", "debian").replace("rhel", "fedora").replace("centos", "fedora")
    for family, command in INSTALL_COMMANDS.items():
        if family in known:
            return command
    return "a C++ compiler, make, and the development package of Python, by your system's package manager"


def watch(command: list[str], environment: dict[str, str], log: Path) -> None:
    """Runs a long command, its output into a log, with a sign of life; shows the log's end if it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT)
        while True:
            try:
                code = process.wait(HEARTBEAT_S)
                break
            except subprocess.TimeoutExpired:
                print(f"  ... {time.monotonic() - started:.0f} s", flush=True)
            except BaseException:
                process.kill()
                process.wait()
                raise
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        raise Missing("\n".join([*lines[-25:], "", f"The build failed; the whole log: {log.relative_to(CHECKOUT)}"]))


def works(code: str, python: Path = PYTHON) -> bool:
    if not python.exists():
        return False
    return subprocess.run([str(python), "-c", code], capture_output=True, cwd=CHECKOUT, check=False).returncode == 0


def stamp(*, dev: bool) -> str:
    sources = ("pyproject.toml", "hatch_build.py", "edgerag/index/hnsw/kernel.c", "tools/prepare.py")
    made_from = b"".join((CHECKOUT / source).read_bytes() for source in sources)
    # Its scripts name their interpreter by path: a .venv that was moved is installed into again.
    return f"{hashlib.sha256(made_from).hexdigest()} {sys.version} {VENV} dev={dev}\n"


def run(command: list[str]) -> None:
    subprocess.run(command, cwd=CHECKOUT, check=True)


if __name__ == "__main__":
    sys.exit(main())
