"""How the tools run commands, find compilers, and say what is missing together with what installs it.

Needs nothing but Python's standard library.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
VENV = CHECKOUT / ".venv"
PYTHON = VENV / "bin" / "python"
LOGS = CHECKOUT / ".cache" / "logs"
MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())

INSTALL_COMMANDS = {
    "debian": "sudo apt install build-essential python3-dev python3-venv",
    "fedora": "sudo dnf install gcc-c++ make python3-devel",
    "suse": "sudo zypper install gcc-c++ make python3-devel",
    "arch": "sudo pacman -S base-devel python",
    "alpine": "sudo apk add build-base linux-headers python3-dev",
}
HEARTBEAT_S = 20
GRACE_S = 5


class Missing(Exception):
    """Something that the tools cannot provide themselves."""


def compiler(machine: str = MACHINE, *, language: str = "c++") -> list[str]:
    """The command of the compiler for ``machine``; ``language`` is "c++" or "c". Raises Missing where there is none."""
    if machine != MACHINE:
        return [_cross_compiler(machine, language)]
    variable, names = ("CXX", ("c++", "g++", "clang++")) if language == "c++" else ("CC", ("cc", "gcc", "clang"))
    command = (os.environ.get(variable) or next(filter(shutil.which, names), "")).split()
    if not command or shutil.which(command[0]) is None:
        raise Missing(f"A {language.upper()} compiler is missing. Install it: {install_command()}")
    return command


def _cross_compiler(machine: str, language: str) -> str:
    """As Debian calls it. Others ship compilers for other machines without a C library."""
    name = f"{machine}-linux-gnu-{'g++' if language == 'c++' else 'gcc'}"
    if shutil.which(name) is None:
        raise Missing(
            f"The compiler for {machine} is missing ({name}). Install it on Debian or Ubuntu: "
            f"sudo apt install g++-{machine.replace('_', '-')}-linux-gnu\n"
            "On another system build on such a machine: python3 tools/prepare.py --wheels"
        )
    return name


def complaint(command: Sequence[str], *flags: str, code: str = "") -> str:
    """The first error that this C++ compiler has about ``code`` with ``flags``; "" where it takes it."""
    whole = [*command, *flags, "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(whole, input=code, text=True, capture_output=True, check=False)
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line), (lines or [f"exit code {done.returncode}"])[0])
    return first if done.returncode else ""


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


def watch(command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Runs a long command, its output into a log, with a sign of life. Raises Missing with the log's end if it
    fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("wb") as output:
        # A group of its own, ended with all that it started: a compiler left behind would go on beside the next one.
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        while True:
            try:
                code = process.wait(HEARTBEAT_S)
                break
            except subprocess.TimeoutExpired:
                print(f"  ... {time.monotonic() - started:.0f} s", flush=True)
            except BaseException:
                _end_group(process)
                raise
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        raise Missing("\n".join([*lines[-25:], "", f"The build failed; the whole log: {log.relative_to(CHECKOUT)}"]))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Asks first: ninja then takes away what is half written."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    process.wait()


def works(code: str, python: Path = PYTHON) -> bool:
    if not python.exists():
        return False
    return subprocess.run([str(python), "-c", code], capture_output=True, cwd=CHECKOUT, check=False).returncode == 0


def run(command: Sequence[str]) -> None:
    """Raises CalledProcessError."""
    subprocess.run(command, cwd=CHECKOUT, check=True)
