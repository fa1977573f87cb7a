"""`make test-cpus`: the program on processors that are not here, under QEMU's user emulation.

python tests/cpus/emulated.py [--only NAME ...] [--aarch64 FOLDER] [--foreign FOLDER] [--kernel-tests]

Each processor starts the installed program, asks doctor, ingests, searches and answers (with a chat model of random
weights); one below what packages are compiled for must end with one sentence. Children run under the emulator, too: the
interpreter is a script that starts it. What cannot be run here is named as skipped with its reason. QEMU's emulation
(7.2) has no AVX-512: this machine's own processor stands for that where it has it. For aarch64 a folder is needed that
tests/cpus/prepare_aarch64.py makes. `--foreign` names a folder with a hnswlib that was built for this machine's
processor alone (-march=native): on Haswell it must be refused with one sentence. Slow: some minutes for each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "bench"), str(Path(__file__).parent)]
from interpreter import without_emulator, write_interpreter  # noqa: E402
from random_model import write_model  # noqa: E402
from record import record  # noqa: E402

Expected = Literal["works", "refused"]
_STEP_S = 1200  # emulation is some twenty times as slow
_TEXT = "# Pump P-40\n\nThe noise level of the pump is 58 dB(A). The lid screws need a torque of 12 Nm.\n"
_QUESTION = "What is the noise level of the pump?"
_KERNEL_TESTS = ("tests/unit/index/hnsw/test_same_hits.py", "tests/unit/index/hnsw/test_kernel.py")


@dataclass(frozen=True, slots=True)
class Cpu:
    name: str  # as QEMU calls it
    stands_for: str
    architecture: str = "x86_64"
    expected: Expected = "works"


CPUS = (
    Cpu("qemu64", "x86-64 as it was in 2003, with SSE3", expected="refused"),
    Cpu("core2duo", "SSSE3, no SSE4", expected="refused"),
    Cpu("Nehalem", "SSE4.2 only"),
    Cpu("SandyBridge", "AVX only"),
    Cpu("Haswell", "AVX2"),
    Cpu("native", "this machine, not emulated"),
    Cpu("cortex-a53", "ARMv8.0", architecture="aarch64"),
    Cpu("cortex-a76", "ARMv8.2 with dotprod", architecture="aarch64"),
    Cpu("max", "all that QEMU has of ARM: SVE2, i8mm, bf16", architecture="aarch64"),
)


@dataclass(slots=True)
class Row:
    """What one processor did."""

    cpu: str
    stands_for: str
    architecture: str
    passed: bool = False
    skipped: str = ""
    features: str = ""
    engine: str = ""
    kernel: str = ""
    steps: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor with a Python, in a folder of its own."""

    python: Path
    home: Path
    paths: tuple[Path, ...]
    chat: Path

    def edgerag(self, *arguments: str, first: Path | None = None) -> subprocess.CompletedProcess[str]:
        return self.run("-P", "-m", "edgerag", *arguments, first=first)

    def run(self, *arguments: str, first: Path | None = None) -> subprocess.CompletedProcess[str]:
        """What QEMU itself has to say is left out of standard error. OPENBLAS_CORETYPE and its like stay outside: they
        would tell numpy of another processor."""
        paths = [*([first] if first else []), *self.paths]
        environment = {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "EDGERAG_HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(self.home),
            "EDGERAG_MODELS_CHAT": str(self.chat),
            "EDGERAG_RETRIEVAL_VECTOR_DEADLINE_MS": "0",  # both legs, however slow
        }
        done = subprocess.run(
            [str(self.python), *arguments],
            env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=_STEP_S,
        )  # fmt: skip
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout, without_emulator(done.stderr))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", choices=[cpu.name for cpu in CPUS])
    parser.add_argument("--aarch64", type=Path, default=CHECKOUT / ".cache" / "aarch64", metavar="FOLDER")
    parser.add_argument("--foreign", type=Path, metavar="FOLDER", help="holds a hnswlib built with -march=native here")
    parser.add_argument("--kernel-tests", action="store_true", help="run the kernel's tests on each, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="edgerag-cpus-") as folder:
        chat = write_model(Path(folder), size="tiny")
        for cpu in CPUS:
            if options.only and cpu.name not in options.only:
                continue
            row = Row(cpu.name, cpu.stands_for, cpu.architecture)
            rows.append(row)
            row.skipped = _why_not(cpu, options.aarch64)
            if not row.skipped:
                machine = _machine(cpu, Path(folder) / cpu.name, options.aarch64, chat)
                began = time.monotonic()
                _try(cpu, machine, row, options)
                row.seconds = round(time.monotonic() - began, 1)
            _print(row)
    figures = {"rows": [asdict(row) for row in rows], "passed": all(row.passed or row.skipped for row in rows)}
    target = record("cpus", figures, parameters={"qemu": _version()}, file=options.json)
    sys.stdout.write(f"{target}\n")
    return 0 if figures["passed"] else 1


def _why_not(cpu: Cpu, aarch64: Path) -> str:
    """Why this processor cannot be tried here; "" where it can."""
    if cpu.name == "native":
        return ""
    if shutil.which(f"qemu-{cpu.architecture}") is None:
        return f"there is no qemu-{cpu.architecture} (Debian: apt install qemu-user)"
    if cpu.architecture == "aarch64" and not (aarch64 / "ready").exists():
        return f"there is no Python for it in {aarch64} (python tests/cpus/prepare_aarch64.py makes one)"
    if cpu.architecture == "x86_64" and os.uname().machine != "x86_64":
        return "its packages are not installed on this machine"
    return ""


def _machine(cpu: Cpu, folder: Path, aarch64: Path, chat: Path) -> Machine:
    home = folder / "home"
    (home / "models").mkdir(parents=True)
    for name in ("manifest.toml", "all-minilm-l6-v2.gguf"):
        (home / "models" / name).symlink_to((CHECKOUT / "models" / name).resolve())
    if cpu.name == "native":
        return Machine(Path(sys.executable), home, (CHECKOUT,), chat)
    python = folder / "bin" / "python"
    if cpu.architecture == "aarch64":
        root = aarch64 / "root"
        write_interpreter(
            python, cpu=cpu.name, architecture=cpu.architecture, python=root / "usr/bin/python3.11", root=root
        )
        return Machine(python, home, (aarch64 / "site",), chat)
    # A virtual environment whose interpreter is the script: Python finds its packages by pyvenv.cfg.
    write_interpreter(python, cpu=cpu.name, architecture=cpu.architecture, python=Path(sys.executable).resolve())
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", folder)
    (folder / "lib").symlink_to(Path(sys.prefix) / "lib")
    return Machine(python, home, (CHECKOUT,), chat)


def _try(cpu: Cpu, machine: Machine, row: Row, options: argparse.Namespace) -> None:
    document = machine.home / "pump.md"
    document.write_text(_TEXT, encoding="utf-8")
    if cpu.expected == "refused":
        for name, arguments in {"doctor": ["doctor"], "ingest": ["ingest", str(document)]}.items():
            done = machine.edgerag(*arguments)
            row.sentence = done.stderr
            plain = done.returncode == 4 and done.stderr.startswith("edgerag: This processor") and not done.stdout
            row.steps[name] = "refused" if plain and len(done.stderr.splitlines()) == 1 else _failure(done)
        row.passed = set(row.steps.values()) == {"refused"}
        return
    step = _Steps(machine, row)
    step("start", ["models", "list", "--json"], lambda text: json.loads(text) is not None)
    step("doctor", ["doctor", "--json"], lambda text: _note_doctor(row, json.loads(text)))
    step("ingest", ["ingest", str(document), "--quiet"], lambda _: True)
    step("search", ["search", _QUESTION, "--json"], lambda text: "58 dB(A)" in text)
    step("ask", ["ask", _QUESTION, "--json"], lambda text: "58 dB(A)" in json.dumps(json.loads(text)["sources"]))
    if options.kernel_tests:
        done = machine.run("-P", "-m", "pytest", "-p", "no:cacheprovider", *_KERNEL_TESTS)
        row.steps["kernel tests"] = done.stdout.strip().splitlines()[-1] if done.returncode == 0 else _failure(done)
    if options.foreign and cpu.name == "Haswell":
        done = machine.edgerag("ingest", str(document), first=options.foreign)
        row.sentence = done.stderr
        plain = done.returncode == 4 and "built for another processor" in done.stderr
        row.steps["foreign build"] = "refused" if plain and len(done.stderr.splitlines()) == 1 else _failure(done)
    row.passed = not any(result.startswith("FAILED") for result in row.steps.values())


class _Steps:
    def __init__(self, machine: Machine, row: Row) -> None:
        self._machine, self._row = machine, row

    def __call__(self, name: str, arguments: list[str], is_right: Any) -> None:
        done = self._machine.edgerag(*arguments)
        right = done.returncode == 0 and bool(is_right(done.stdout))
        self._row.steps[name] = "ok" if right else _failure(done)


def _note_doctor(row: Row, found: dict[str, Any]) -> bool:
    findings = {finding["name"]: finding["message"] for finding in found["findings"]}
    row.features = findings["cpu"].rpartition("): ")[2]
    row.engine, row.kernel = findings["engine"], findings["index"]
    return "variant" in row.engine or "one build" in row.engine


def _failure(done: subprocess.CompletedProcess[str]) -> str:
    return f"FAILED (exit code {done.returncode}): {(done.stderr or done.stdout).strip()[-300:]}"


def _print(row: Row) -> None:
    if row.skipped:
        sys.stdout.write(f"{row.cpu:12} skipped: {row.skipped}\n")
        return
    steps = ", ".join(f"{name} {result}" for name, result in row.steps.items())
    lines = [f"{row.cpu:12} {'passed' if row.passed else 'FAILED'} in {row.seconds:.0f} s ({row.stands_for}): {steps}"]
    lines += [f"{'':12} {text}" for text in (row.features, row.engine, row.kernel, row.sentence) if text]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _version() -> str:
    program = shutil.which("qemu-x86_64") or shutil.which("qemu-aarch64")
    if program is None:
        return "none"
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
