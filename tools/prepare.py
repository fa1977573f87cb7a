"""Makes `.venv` ready: checks what the machine has, builds what must be built, installs, fetches models.

    python3 tools/prepare.py [--dev] [--no-models]
    python3 tools/prepare.py --wheels [--for linux-x86_64,linux-aarch64] [--python 3.11,3.12,3.13]

Needs nothing but Python's standard library, and says what is missing together with the command
that installs it. Doing it again costs a moment: a stamp in `.venv` remembers what it was made from.
Two packages have no ready wheels that run on every processor, so they are built here, once, into
`.cache/wheels` (wheels.py). `--wheels` makes sure that both lie there, with edgerag's own, for `edgerag bundle create`:
for this machine and Python, or for those that are named. An interpreter that already has a working llama-cpp-python
keeps it: `.venv` then sees that interpreter's packages.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

from building import CHECKOUT, LOGS, MACHINE, PYTHON, VENV, Missing, compiler, install_command, run, watch, works
from wheels import HNSWLIB, LLAMA_CPP, MACHINES, PORTABLE_LLAMA, WHEELS, make_hnswlib, make_llama, make_wheels

STAMP = VENV / ".prepared"
OLDEST_PYTHON = (3, 11)
LLAMA_WORKS = (
    "import llama_cpp; llama_cpp.llama_backend_init(); version = llama_cpp.__version__.split('.'); "
    "assert version[:2] == ['0', '3'] and int(version[2]) >= 36"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dev", action="store_true", help="with what the tests and checks need")
    parser.add_argument("--no-models", action="store_true", help="leave the models alone")
    parser.add_argument(
        "--wheels", action="store_true", help="only build the wheels that a bundle needs and no index has"
    )
    parser.add_argument(
        "--for", dest="machines", type=machines, metavar="MACHINES",
        help="with --wheels: linux-x86_64, linux-aarch64 or both, with a comma (default: this machine)",
    )  # fmt: skip
    parser.add_argument(
        "--python", dest="pythons", type=pythons, metavar="VERSIONS",
        help="with --wheels: versions of Python like 3.11,3.12 (default: this one)",
    )  # fmt: skip
    arguments = parser.parse_args()
    if not arguments.wheels and (arguments.machines or arguments.pythons):
        parser.error("--for and --python go with --wheels")
    try:
        check_python()
        if arguments.wheels:
            make_wheels(arguments.machines or [MACHINE], arguments.pythons or [python_of_venv()])
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


def machines(text: str) -> list[str]:
    """ "linux-x86_64,linux-aarch64" -> ["x86_64", "aarch64"]. Raises ArgumentTypeError."""
    found = [word.strip().removeprefix("linux-") for word in text.split(",")]
    for each in found:
        if each not in MACHINES:
            known = ", ".join(f"linux-{machine}" for machine in MACHINES)
            raise argparse.ArgumentTypeError(f"{each!r} is no machine that wheels are built for ({known})")
    return list(dict.fromkeys(found))


def pythons(text: str) -> list[str]:
    """Raises ArgumentTypeError."""
    found = [word.strip() for word in text.split(",")]
    for each in found:
        match = re.fullmatch(r"3\.(\d{1,2})", each)
        if not match or (3, int(match[1])) < OLDEST_PYTHON:
            raise argparse.ArgumentTypeError(f"{each!r} is no version of Python from 3.11 on, like 3.12")
    return list(dict.fromkeys(found))


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
    for requirement, check in ((LLAMA_CPP, LLAMA_WORKS), (HNSWLIB, "import hnswlib")):
        if not works(check):
            install_built(requirement)
    print("Installing edgerag and its dependencies", flush=True)
    target = ".[dev]" if dev else "."
    run([str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--editable", target])
    STAMP.write_text(wanted, encoding="utf-8")


def install_built(requirement: str) -> None:
    """Installs a package from a wheel that was built on this machine; builds it if it is not cached."""
    name = requirement.partition("==")[0].replace("-", "_")
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    cached = [*pip, "install", "--no-deps", "--no-index", "--find-links", str(WHEELS), requirement]
    if any(WHEELS.glob(f"{name}-*.whl")) and subprocess.run(cached, capture_output=True, check=False).returncode == 0:
        return
    check_compiler()
    if sys.platform != "linux":
        build_with_pip(requirement)
    elif requirement == LLAMA_CPP:
        make_llama(MACHINE)
    else:
        make_hnswlib(MACHINE, python_of_venv())
    run(cached)


def build_with_pip(requirement: str) -> None:
    """Puts the wheel into the cache, on a system that no bundle is made for. Raises Missing where the build fails."""
    name = requirement.partition("==")[0]
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--no-cache-dir"]
    print(f"Building {requirement} for any processor, once (5 to 15 minutes)", flush=True)
    environment = {"CMAKE_ARGS": PORTABLE_LLAMA, "HNSWLIB_NO_NATIVE": "1"}
    command = [*pip, "--no-binary", name, "--wheel-dir", str(WHEELS), requirement]
    watch(command, environment, LOGS / f"build-{name}.log")


def python_of_venv() -> str:
    """The version of the Python in `.venv`, which may be another one than runs this; this one where there is none."""
    python = PYTHON if PYTHON.exists() else sys.executable
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def check_compiler() -> None:
    compiler()
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        raise Missing(f"The headers of this Python (Python.h) are missing. Install them: {install_command()}")


def stamp(*, dev: bool) -> str:
    sources = ("pyproject.toml", "hatch_build.py", "edgerag/index/hnsw/kernel.c", "tools/prepare.py", "tools/wheels.py")
    made_from = b"".join((CHECKOUT / source).read_bytes() for source in sources)
    # Its scripts name their interpreter by path: a .venv that was moved is installed into again.
    return f"{hashlib.sha256(made_from).hexdigest()} {sys.version} {VENV} dev={dev}\n"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # or what was started would go on alone
    sys.exit(main())
