"""The program as a process of its own on a machine that is small, slow or odd."""

from __future__ import annotations

import atexit
import contextlib
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
MODELS = ("manifest.toml", "all-minilm-l6-v2.gguf", "smollm2-135m-instruct.gguf")
TWO_GIBIBYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Machine:
    """What is different on it."""

    prefix: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None  # in the child, before the program


@dataclass(frozen=True, slots=True)
class Home:
    """A home of its own, with the real models."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Home:
        (folder / "models").mkdir(parents=True)
        for name in MODELS:
            (folder / "models" / name).symlink_to((CHECKOUT / "models" / name).resolve())
        return cls(folder)

    def run(self, *arguments: str | Path, machine: Machine | None = None) -> subprocess.CompletedProcess[str]:
        machine = machine or Machine()
        ours = ("EDGERAG_", "PYTHON", "LD_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        environment |= {
            "EDGERAG_HOME": str(self.folder),
            "EDGERAG_RETRIEVAL_VECTOR_DEADLINE_MS": "0",  # both legs, however slow
            "PYTHONPATH": str(CHECKOUT),
            **machine.environment,
        }
        return subprocess.run(
            [*machine.prefix, sys.executable, "-m", "edgerag", *map(str, arguments)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=machine.before,
        )

    def works(self, *arguments: str | Path, machine: Machine | None = None) -> str:
        """Runs it, which must go well without a traceback, and gives both of its streams."""
        done = self.run(*arguments, machine=machine)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr


def of_memory(size_bytes: int) -> Machine:
    """Address space is what a process is refused; resident memory of a control group is only taken from it."""
    return Machine(before=lambda: resource.setrlimit(resource.RLIMIT_AS, (size_bytes, size_bytes)))


def of_one_core() -> Machine:
    core = min(os.sched_getaffinity(0))
    return Machine(before=lambda: os.sched_setaffinity(0, {core}))


def in_control_group(size_bytes: int) -> Machine:
    """Skips where none can be made. It goes when the tests end."""
    name = f"edgerag-test-{os.getpid()}"
    root = Path("/sys/fs/cgroup")
    folder, limit = (root / name, "memory.max")
    if (root / "memory").is_dir():  # the older hierarchy
        folder, limit = (root / "memory" / name, "memory.limit_in_bytes")
    try:
        folder.mkdir(exist_ok=True)
        (folder / limit).write_text(str(size_bytes), encoding="ascii")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    atexit.register(_remove, folder)
    return Machine(before=lambda: _enter(folder))


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):  # a process is still in it
        folder.rmdir()


def _enter(folder: Path) -> None:
    (folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def with_mounts(script: str) -> Machine:
    """In a mount namespace in which the shell ``script`` was run; skips where that is not allowed."""
    alone = ("unshare", "-rm", "sh", "-ec")
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    done = subprocess.run([*alone, f"{script}\ntrue"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no mount namespace is allowed here: {done.stderr.strip()}")
    return Machine(prefix=(*alone, f'{script}\nexec "$@"', "sh"))


def with_shim(library: Path, **settings: int) -> Machine:
    """``library``: shim.c, compiled; ``settings``: what it reads from the environment, without SMALL_."""
    values = {f"SMALL_{name.upper()}": str(value) for name, value in settings.items()}
    return Machine(environment={"LD_PRELOAD": str(library), **values})


def compiled_shim(folder: Path) -> Path:
    target = folder / "small.so"
    command = ["cc", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(target), str(HERE / "shim.c"), "-ldl"]
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    subprocess.run(command, check=True)
    return target
