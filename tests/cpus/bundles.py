"""`make test-bundle`: one bundle for x86_64 and aarch64, made here, installed on both with no network, and asked.

python tests/cpus/bundles.py [--python 3.11,3.12,3.13] [--cpu cortex-a76] [--aarch64 FOLDER] [--json FILE]

aarch64 is QEMU's user emulation, with the Python that tests/cpus/prepare_aarch64.py makes. The wheels that no index has
are those of tools/prepare.py --wheels --for linux-x86_64,linux-aarch64 --python 3.11,3.12,3.13. On each machine the
bundle's own install.py runs under `unshare -rn` in an empty home, with the Python alone; then doctor, ingest, search
and ask. Then what must be refused: one letter changed in each kind of file, a file that is missing or added, a bundle
for another machine, and one for another Python. Slow: half an hour.
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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "bench"), str(Path(__file__).parent)]
from interpreter import without_emulator, write_interpreter  # noqa: E402
from record import record  # noqa: E402

from edgerag.bundle.carried.manifest import with_digest  # noqa: E402

_MACHINES = ("linux-x86_64", "linux-aarch64")
_EXAMPLES = CHECKOUT / "examples" / "docs"
_QUESTION = "What is the noise level of the pump?"
_FACT = "58 dB(A)"
_EXIT_REFUSED = 6
_LIMIT_BYTES = 200_000_000  # of what a bundle holds without models, for all Pythons on each machine
_STEP_S = 3600  # emulation is some twenty times as slow


@dataclass(slots=True)
class Row:
    """What one machine did with the bundle, or how one damaged bundle was refused."""

    name: str
    passed: bool = True
    steps: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    said: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    python: Path
    home: Path  # empty, and all that children know

    def run(self, *command: str, inside: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """With no network, and nothing of this process's environment."""
        environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", **(inside or {})}
        alone = ["unshare", "-rn", "env", "-i", *(f"{name}={value}" for name, value in environment.items())]
        done = subprocess.run([*alone, *command], capture_output=True, text=True, check=False, timeout=_STEP_S)
        return subprocess.CompletedProcess(command, done.returncode, done.stdout, without_emulator(done.stderr))

    def install(self, bundle: Path, to: Path, key: Path | None = None) -> subprocess.CompletedProcess[str]:
        options = ["--public-key", str(key)] if key else []
        return self.run(str(self.python), str(bundle / "install.py"), "--to", str(to), *options)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", default="3.11,3.12,3.13", help="for which the bundle is made; installed with 3.11")
    parser.add_argument("--cpu", default="cortex-a76", help="QEMU's name of the processor with aarch64")
    parser.add_argument("--aarch64", type=Path, default=CHECKOUT / ".cache" / "aarch64", metavar="FOLDER")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    options = parser.parse_args()
    problem = _why_not(options.aarch64)
    if problem:
        sys.exit(problem)
    with tempfile.TemporaryDirectory(prefix="edgerag-bundles-") as name:
        folder = Path(name)
        maker = _Maker(folder)
        pythons = options.python.split(",")
        small = maker.make("small", _MACHINES, [_here()], models=False)
        bundle = maker.make("bundle", _MACHINES, pythons, models=True)
        sizes = {"one Python": _sizes(small), ", ".join(pythons): _sizes(bundle)}
        sys.stdout.write(json.dumps(sizes, indent=1) + "\n")
        machines = _machines(folder, options)
        rows = [_use(machine, bundle, maker.public_key, folder) for machine in machines]
        rows += list(_refused(machines, bundle, maker, folder, pythons))
    figures = {
        "sizes": sizes,
        "rows": [asdict(row) for row in rows],
        "passed": all(row.passed for row in rows)
        and all(size["without_models_bytes"] < _LIMIT_BYTES for size in sizes.values()),
    }
    qemu = subprocess.run(["qemu-aarch64", "--version"], capture_output=True, text=True, check=True)
    parameters = {"qemu": qemu.stdout.splitlines()[0], "cpu": options.cpu}
    target = record("bundles", figures, parameters=parameters, file=options.json)
    sys.stdout.write(f"{target}\n")
    return 0 if figures["passed"] else 1


def _why_not(aarch64: Path) -> str:
    if os.uname().machine != "x86_64":
        return "This runs on x86_64."
    if shutil.which("qemu-aarch64") is None:
        return "There is no qemu-aarch64 (Debian: apt install qemu-user)."
    if not (aarch64 / "root/usr/bin/python3.11").exists():
        return f"There is no Python for aarch64 in {aarch64} (python tests/cpus/prepare_aarch64.py makes one)."
    if _here() != "3.11":
        return "This runs with Python 3.11, as the one for aarch64 is."
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode:
        return "This needs network namespaces (unshare -rn)."
    return ""


def _here() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


class _Maker:
    """`edgerag bundle`, as this checkout's command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._home = folder / "home"
        (self._home / "models").mkdir(parents=True)
        for model in (CHECKOUT / "models").iterdir():
            (self._home / "models" / model.name).symlink_to(model.resolve())
        self.public_key = folder / "key.pub"
        self._must("bundle", "key", str(folder / "key"))
        self._must("--library", "demo", "ingest", str(_EXAMPLES), "--quiet")

    def make(self, name: str, machines: Sequence[str], pythons: Sequence[str], *, models: bool) -> Path:
        out = self._folder / name
        words = ["--library", "demo", "--key", str(self._folder / "key")] if models else ["--models", "none"]
        self._must("bundle", "create", str(out), "--for", ",".join(machines), "--python", ",".join(pythons), *words)
        return out

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "EDGERAG_HOME": str(self._home), "PYTHONPATH": str(CHECKOUT)}
        command = [sys.executable, "-m", "edgerag", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=CHECKOUT)

    def _must(self, *arguments: str) -> None:
        done = self.run(*arguments)
        sys.stdout.write(done.stderr)
        sys.stdout.flush()
        if done.returncode:
            sys.exit(f"edgerag {arguments[0]} ended with exit code {done.returncode}.")


def _sizes(bundle: Path) -> dict[str, Any]:
    """Bytes of a bundle, of its packs, and of the wheels that each machine and Python takes out of them."""
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    sizes = {file["name"]: file["size_bytes"] for file in manifest["files"]}
    unpacked = {wheel["name"]: wheel["size_bytes"] for pack in manifest["packs"] for wheel in pack["wheels"]}
    heavy = ("models/", "libraries/")
    return {
        "whole_bytes": sum(sizes.values()),
        "without_models_bytes": sum(size for name, size in sizes.items() if not name.startswith(heavy)),
        "packs_bytes": {pack["file"]: sizes[pack["file"]] for pack in manifest["packs"]},
        "wheels_unpacked_bytes": {
            f"{target['platform']} {target['python']}": sum(unpacked[wheel] for wheel in target["wheels"])
            for target in manifest["targets"]
        },
        "glibc": {f"{each['platform']} {each['python']}": each["glibc"] for each in manifest["targets"]},
    }


def _machines(folder: Path, options: argparse.Namespace) -> list[Machine]:
    root: Path = options.aarch64.resolve() / "root"
    emulated = folder / "aarch64" / "bin" / "python3"
    write_interpreter(emulated, cpu=options.cpu, architecture="aarch64", python=root / "usr/bin/python3.11", root=root)
    own = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    machines = [Machine(_MACHINES[0], own, folder / "empty-x86_64"), Machine(_MACHINES[1], emulated, folder / "empty")]
    for machine in machines:
        machine.home.mkdir()
    return machines


def _use(machine: Machine, bundle: Path, key: Path, folder: Path) -> Row:
    row = Row(machine.name)
    installed = folder / f"installed-{machine.name}"
    document = machine.home / "fan.md"
    document.write_text("# Fan F-7\n\nThe fan turns 1450 times per minute.\n", encoding="utf-8")
    # A short answer, and both legs of the search: under emulation neither is fast.
    inside = {"EDGERAG_GENERATION_ANSWER_TOKENS": "16", "EDGERAG_RETRIEVAL_VECTOR_DEADLINE_MS": "0"}

    def step(name: str, call: Callable[[], subprocess.CompletedProcess[str]], right: Callable[[str], bool]) -> None:
        if not row.passed:
            return
        began = time.monotonic()
        done = call()
        row.seconds[name] = round(time.monotonic() - began, 1)
        row.passed = done.returncode == 0 and right(done.stdout)
        row.steps[name] = "ok" if row.passed else _failure(done)
        sys.stdout.write(f"{machine.name} {name}: {row.steps[name]} ({row.seconds[name]:.0f} s)\n")
        sys.stdout.flush()

    def edgerag(*arguments: str) -> Callable[[], subprocess.CompletedProcess[str]]:
        return lambda: machine.run(str(installed / "bin" / "edgerag"), "--library", "demo", *arguments, inside=inside)

    def noted(text: str) -> bool:
        findings = {finding["name"]: finding["message"] for finding in json.loads(text)["findings"]}
        row.said = f"{findings['cpu']}; {findings['engine']}; {findings['index']}"
        return "variant" in findings["engine"]

    step("install", lambda: machine.install(bundle, installed, key), lambda _: True)
    step("doctor", edgerag("doctor", "--json"), noted)
    step("ingest", edgerag("ingest", str(document), "--quiet"), lambda _: True)
    step("search", edgerag("search", "How often does the fan turn?", "--json"), lambda text: "1450 times" in text)
    step("ask", edgerag("ask", _QUESTION, "--json"), lambda text: _FACT in json.dumps(json.loads(text)["sources"]))
    step("verify", edgerag("bundle", "verify", str(bundle), "--public-key", str(key)), lambda _: True)
    return row


def _refused(
    machines: Sequence[Machine], bundle: Path, maker: _Maker, folder: Path, pythons: Sequence[str]
) -> list[Row]:
    """What must be refused, with the name of the file or one sentence."""
    rows = []

    def row(name: str, done: subprocess.CompletedProcess[str], expected: str) -> None:
        said = done.stderr.strip()
        right = done.returncode == _EXIT_REFUSED and expected in said and len(said.splitlines()) == 1
        shown = said.replace(f"{folder}/", "")
        rows.append(Row(name, passed=right, said=shown if right else _failure(done)))
        sys.stdout.write(f"{name}: {'refused' if right else 'FAILED'}: {rows[-1].said}\n")
        sys.stdout.flush()

    def verified() -> subprocess.CompletedProcess[str]:
        done = maker.run("bundle", "verify", str(bundle), "--public-key", str(maker.public_key), "--quiet")
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout, done.stderr)

    emulated = machines[1]
    for name in _one_of_each_kind(bundle):
        path = bundle / name
        before = path.read_bytes()
        middle = len(before) // 2
        path.write_bytes(before[:middle] + bytes([before[middle] ^ 1]) + before[middle + 1 :])
        # What the signature holds is compared before anything in it is believed, names neither.
        signed = name.startswith("manifest.json")
        row(f"a letter of {name}", verified(), "is not what the owner of the key" if signed else f"{name} was changed")
        if name.endswith("linux-aarch64.xz"):
            to = folder / "refused"
            row(f"a letter of {name}, on aarch64", emulated.install(bundle, to, maker.public_key), name)
            if any(to.iterdir()):
                rows[-1].passed = False
        path.write_bytes(before)
    pack = bundle / "packs" / "linux-aarch64.xz"
    aside = pack.rename(folder / pack.name)
    row(f"{pack.name} is missing", verified(), f"packs/{pack.name} is missing")
    row(f"{pack.name} is missing, on aarch64", emulated.install(bundle, folder / "refused"), "is missing")
    aside.rename(pack)
    (bundle / "packs" / "extra.xz").write_bytes(b"x")
    row("a pack was added", verified(), "packs/extra.xz was added")
    (bundle / "packs" / "extra.xz").unlink()
    rows.append(_of_another_wheel(emulated, bundle, folder))
    other = next((python for python in pythons if python != _here()), "")
    if other:
        small = maker.make("other", _MACHINES[1:], [other], models=False)
        for machine in machines:
            said = f"here is Python {_here()} on {machine.name}"
            row(f"for Python {other} on aarch64, on {machine.name}", machine.install(small, folder / "no"), said)
    lacking = maker.run("bundle", "create", str(folder / "none"), "--for", "linux-aarch64", "--python", "3.14")
    # What pip is asked for is said before; the last line is the reason.
    lacking.stderr = lacking.stderr.strip().splitlines()[-1]
    row("a Python that nothing was built for", lacking, "hnswlib")
    return rows


def _of_another_wheel(machine: Machine, bundle: Path, folder: Path) -> Row:
    """A manifest that tells of another wheel than lies in the pack, whole in itself: its list was not made with it."""
    path = bundle / "manifest.json"
    before = path.read_bytes()
    record = json.loads(before)
    record.pop("sha256")
    wheels = [wheel for pack in record["packs"] if "aarch64" in pack["file"] for wheel in pack["wheels"]]
    wheel = next(wheel for wheel in wheels if "hnswlib" in wheel["name"] and "cp311" in wheel["name"])
    wheel["sha256"] = "0" * 64
    path.write_bytes(with_digest(record))
    done = machine.install(bundle, folder / "refused")
    path.write_bytes(before)
    said = done.stderr.strip().splitlines()[-1]
    right = done.returncode == _EXIT_REFUSED and wheel["name"] in said and "packs/linux-aarch64.xz" in said
    row = Row("another wheel in a pack, on aarch64", passed=right, said=said if right else _failure(done))
    sys.stdout.write(f"{row.name}: {'refused' if right else 'FAILED'}: {row.said}\n")
    return row


def _one_of_each_kind(bundle: Path) -> list[str]:
    names = ["manifest.json", "manifest.json.minisig", "install.py", "README.txt", "sbom.cdx.json"]
    patterns = (
        "installer/installing.py", "licences/llama-cpp-python-*/*", "models/*.gguf", "libraries/*",
        "packs/linux-aarch64.xz", "packs/linux-x86_64.xz", "packs/any.xz",
    )  # fmt: skip
    return names + [str(min(bundle.glob(pattern)).relative_to(bundle)) for pattern in patterns]


def _failure(done: subprocess.CompletedProcess[str]) -> str:
    return f"FAILED (exit code {done.returncode}): {(done.stderr or done.stdout).strip()[-500:]}"


if __name__ == "__main__":
    sys.exit(main())
