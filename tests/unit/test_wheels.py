"""tools/wheels.py and what it stands on: wheels that no index has, for this machine and others."""

from __future__ import annotations

import base64
import csv
import hashlib
import platform
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
sys.path.insert(0, str(CHECKOUT / "tools"))
import building  # noqa: E402
import prepare  # noqa: E402
import python_headers  # noqa: E402
import wheels  # noqa: E402
from building import Missing  # noqa: E402

from edgerag.bundle.targets import BundleTarget, rank  # noqa: E402
from edgerag.bundle.wheel import read_wheel  # noqa: E402

OTHER = "aarch64" if building.MACHINE == "x86_64" else "x86_64"
THIS = f"3.{sys.version_info.minor}"
VARIANTS = """\
        if (CMAKE_SYSTEM_NAME MATCHES "Linux")
            ggml_add_cpu_backend_variant(armv8.0_1)
            ggml_add_cpu_backend_variant(armv8.6_2    DOTPROD FP16_VECTOR_ARITHMETIC SVE MATMUL_INT8 SVE2)
            ggml_add_cpu_backend_variant(armv9.2_1    DOTPROD FP16_VECTOR_ARITHMETIC SVE MATMUL_INT8 SME)
            ggml_add_cpu_backend_variant(armv9.2_2    DOTPROD FP16_VECTOR_ARITHMETIC SVE MATMUL_INT8 SVE2 SME)
        endif()
        set(SME_IS_NAMED_ELSEWHERE 1)
"""
HEADERS = """\
#define PY_MAJOR_VERSION 3
#define PY_MINOR_VERSION 12
#include <sys/types.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include "pyconfig.h"
"""


def test_the_variants_for_sme_alone_are_left_out() -> None:
    kept = wheels.without_sme(VARIANTS)
    assert [line for line in VARIANTS.splitlines() if line not in kept.splitlines()] == VARIANTS.splitlines()[3:5]
    assert wheels.without_sme(kept) == kept


def test_what_only_programs_of_llama_cpp_use_is_not_built() -> None:
    before = '    set(LLAMA_BUILD_COMMON ON CACHE BOOL "Build llama.cpp common library" FORCE)\n    option(A "b" ON)\n'
    after = '    set(LLAMA_BUILD_COMMON OFF CACHE BOOL "Build llama.cpp common library" FORCE)\n    option(A "b" ON)\n'
    assert wheels.without_common(before) == after
    assert wheels.without_common(after) == after


def test_a_compiler_is_asked_what_it_knows(tmp_path: Path) -> None:
    code = "import sys\nsys.exit('error: no sme here' if 'sme' in sys.argv[1] else 0)\n"
    compiler = script(tmp_path / "compiler", f"#!{sys.executable}\n{code}")
    assert building.complaint([str(compiler)], wheels.SME) == "error: no sme here"
    assert building.complaint([str(compiler)], "-march=armv8-a") == ""


def test_without_a_compiler_that_is_what_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing, match=r"A C\+\+ compiler is missing"):
        building.compiler()
    package = OTHER.replace("_", "-")
    with pytest.raises(Missing, match=rf"(?s){OTHER}-linux-gnu-g\+\+.*sudo apt install g\+\+-{package}-linux-gnu"):
        building.compiler(OTHER)
    script(tmp_path / f"{OTHER}-linux-gnu-gcc", "")
    assert building.compiler(OTHER, language="c") == [f"{OTHER}-linux-gnu-gcc"]


def test_the_headers_of_this_python_are_right_for_this_machine(tmp_path: Path) -> None:
    flags = python_headers.include_flags(THIS, building.MACHINE, building.compiler(), tmp_path)
    assert any((Path(flag.removeprefix("-I")) / "Python.h").is_file() for flag in flags)


def test_headers_are_found_where_the_first_interpreter_of_that_name_does_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """pyenv puts a python3.12 on PATH that only says that there is none."""
    include = headers(tmp_path / "include" / "python3.12")
    script(tmp_path / "shims" / "python3.12", "#!/bin/sh\nexit 127\n")
    script(tmp_path / "bin" / "python3.12", f"#!/bin/sh\necho {include}\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'shims'}:{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(python_headers, "_this", lambda: "3.11")
    flags = python_headers.include_flags("3.12", OTHER, building.compiler(), tmp_path)
    assert flags == [f"-I{include}"]
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    with pytest.raises(Missing, match=r"headers of Python 3\.77 \(Python\.h\) are missing"):
        python_headers.include_flags("3.77", OTHER, building.compiler(), tmp_path)


def test_debian_keeps_the_headers_of_each_machine_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    include = headers(tmp_path / "include" / "python3.12")
    own = tmp_path / "include" / f"{building.MACHINE}-linux-gnu" / "python3.12"
    own.mkdir(parents=True)
    (include / "pyconfig.h").rename(own / "pyconfig.h")
    (include / "pyconfig.h").write_text(f"#include <{OTHER}-linux-gnu/python3.12/pyconfig.h>\n", encoding="utf-8")
    monkeypatch.setattr(python_headers, "_folders", lambda _: iter([include]))
    compiler = building.compiler()
    flags = python_headers.include_flags("3.12", OTHER, compiler, tmp_path / "scratch")
    assert building.complaint(compiler, *flags, code="#include <Python.h>") == ""
    assert python_headers.include_flags("3.12", OTHER, compiler, tmp_path / "scratch") == flags


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("#define SIZEOF_LONG 4", "SIZEOF_LONG"),
        ("#define ALIGNOF_MAX_ALIGN_T 2", "ALIGNOF_MAX_ALIGN_T"),
        ("#define WORDS_BIGENDIAN 1", "a debug build"),
        ("#define Py_GIL_DISABLED 1", "a debug build"),
        ("#undef PY_MINOR_VERSION\n#define PY_MINOR_VERSION 13", "its version"),
    ],
)
def test_headers_of_another_machine_or_python_are_refused(
    wrong: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    include = headers(tmp_path / "python3.12", wrong)
    monkeypatch.setattr(python_headers, "_folders", lambda _: iter([include]))
    with pytest.raises(Missing, match=r"headers of Python 3\.12 are not those") as caught:
        python_headers.include_flags("3.12", OTHER, building.compiler(), tmp_path)
    assert said in str(caught.value)


def test_a_packed_wheel_has_the_tags_of_its_name_and_a_record(tmp_path: Path) -> None:
    target = tmp_path / f"hnswlib-0.8.0-cp312-cp312-linux_{OTHER}.whl"
    metadata = b"Metadata-Version: 2.1\nName: hnswlib\nVersion: 0.8.0\nRequires-Dist: numpy\n"
    contents = {"hnswlib.so": b"\x7fELF GLIBC_2.17", "{info}/METADATA": metadata, "{info}/licenses/LICENSE": b"Yes.\n"}
    wheels.write_wheel(target, contents)
    read = read_wheel(target)
    assert (read.name, str(read.version), read.requires, read.symbol_glibc) == ("hnswlib", "0.8.0", ("numpy",), 17)
    assert rank(read.tags, BundleTarget(f"linux-{OTHER}", "3.12")) is not None
    assert rank(read.tags, BundleTarget(f"linux-{OTHER}", "3.11")) is None
    assert rank(read.tags, BundleTarget(f"linux-{building.MACHINE}", "3.12")) is None
    assert [text for _, text in read.licence_files] == [b"Yes.\n"]
    with zipfile.ZipFile(target) as archive:
        assert f"Tag: cp312-cp312-linux_{OTHER}\n" in archive.read("hnswlib-0.8.0.dist-info/WHEEL").decode()
        record = csv.reader(archive.read("hnswlib-0.8.0.dist-info/RECORD").decode().splitlines())
        noted = {name: digest for name, digest, _ in record}
        assert set(noted) == set(archive.namelist())
        for name, digest in noted.items():
            found = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=").decode()
            assert digest in ("" if name.endswith("RECORD") else f"sha256={found}",)
    before = target.read_bytes()
    wheels.write_wheel(target, contents)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def test_hnswlib_is_compiled_for_the_machine_that_was_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = script(
        tmp_path / f"{OTHER}-linux-gnu-g++",
        f"#!{sys.executable}\nimport sys\nopen(sys.argv[-1], 'w').write(' '.join(sys.argv[1:]))\n",
    )
    source, binding = tmp_path / "source", tmp_path / "binding"
    for path in (source / "PKG-INFO", source / "LICENSE", binding / "pybind11-3.0.dist-info/licenses/LICENSE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Metadata-Version: 2.1\nName: hnswlib\nVersion: 0.8.0\n\n{path.parent.name}", encoding="utf-8")
    monkeypatch.setattr(wheels, "WHEELS", tmp_path / "wheels")
    monkeypatch.setattr(wheels, "BUILDS", tmp_path / "build")
    monkeypatch.setattr(wheels, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(wheels, "compiler", lambda _machine: [str(compiler)])
    monkeypatch.setattr(wheels, "include_flags", lambda *_: ["-I/headers"])
    monkeypatch.setattr(wheels, "_unpacked", lambda *_: source)
    monkeypatch.setattr(wheels, "_unpacked_wheel", lambda *_: binding)
    made = wheels.make_hnswlib(OTHER, "3.12")
    assert made.name == f"hnswlib-0.8.0-cp312-cp312-linux_{OTHER}.whl"
    with zipfile.ZipFile(made) as archive:
        words = archive.read("hnswlib.so").decode().split()
        assert "-march=native" not in words
        assert {"-O3", "-I/headers", "-fopenmp", '-DVERSION_INFO="0.8.0"'} <= set(words)
    assert len(read_wheel(made).licence_files) == 2
    assert list((tmp_path / "build").iterdir()) == []


def test_the_wheel_of_this_checkout_is_built_from_a_copy_without_its_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: dict[str, object] = {}

    def build(source: Path, machine: str, environment: dict[str, str]) -> None:
        seen.update(files=[path for path in source.rglob("*") if path.is_file()], environment=environment)
        (tmp_path / f"edgerag-9-py3-none-linux_{machine}.whl").touch()

    for name in ("edgerag-8-py3-none-linux_aarch64.whl", "edgerag-8-py3-none-linux_x86_64.whl"):
        (tmp_path / name).touch()
    monkeypatch.setattr(wheels, "WHEELS", tmp_path)
    monkeypatch.setattr(wheels, "BUILDS", tmp_path / "build")
    monkeypatch.setattr(wheels, "compiler", lambda machine, *, language: [f"{machine}-{language}"])
    monkeypatch.setattr(wheels, "_pip_wheel", build)
    assert wheels.make_own("aarch64").name == "edgerag-9-py3-none-linux_aarch64.whl"
    names = {path.name for path in seen["files"]}  # type: ignore[attr-defined]
    assert {"pyproject.toml", "hatch_build.py", "kernel.c", "kernel.py", "manifest.toml", "LICENSE"} <= names
    assert not [name for name in names if name.startswith("_kernel")]
    assert seen["environment"] == {"CC": "aarch64-c", "EDGERAG_REQUIRE_KERNEL": "1"}
    # That of the other machine stays.
    assert {path.name for path in tmp_path.glob("*.whl")} == {
        "edgerag-9-py3-none-linux_aarch64.whl", "edgerag-8-py3-none-linux_x86_64.whl",
    }  # fmt: skip


def test_what_cannot_be_made_stops_nothing_else_and_is_said_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = []

    def hnswlib(machine: str, python: str) -> Path:
        if python == "3.12":
            raise Missing("The headers of Python 3.12 (Python.h) are missing.")
        made.append((machine, python))
        return Path()

    def llama(machine: str) -> Path:
        if machine == "aarch64":
            raise Missing("The compiler for aarch64 is missing.")
        return Path()

    monkeypatch.setattr(wheels, "make_hnswlib", hnswlib)
    monkeypatch.setattr(wheels, "make_llama", llama)
    monkeypatch.setattr(wheels, "make_own", lambda machine: made.append((machine, "own")) or Path())
    words = ["prepare.py", "--wheels", "--for", "linux-x86_64,linux-aarch64", "--python", "3.11,3.12,3.13"]
    monkeypatch.setattr(sys, "argv", words)
    assert prepare.main() == 1
    assert made == [(m, each) for m in ("x86_64", "aarch64") for each in ("own", "3.11", "3.13")]
    said = capsys.readouterr().err.strip().splitlines()
    assert said == ["The headers of Python 3.12 (Python.h) are missing.", "The compiler for aarch64 is missing."]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--for", "linux-riscv64"], "'riscv64' is no machine"),
        (["--python", "3.10"], "'3.10' is no version of Python"),
        (["--python", "three"], "'three' is no version of Python"),
    ],
)
def test_machines_and_pythons_that_are_not_known_are_refused(words: list[str], said: str) -> None:
    command = [sys.executable, str(CHECKOUT / "tools" / "prepare.py"), "--wheels", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    alone = subprocess.run([*command[:2], *words], capture_output=True, text=True, check=False)
    assert alone.returncode == 2


def test_without_more_words_the_wheels_are_for_this_machine_and_python(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(prepare, "make_wheels", lambda *each: asked.extend(each))
    monkeypatch.setattr(sys, "argv", ["prepare.py", "--wheels"])
    assert prepare.main() == 0
    assert asked[0] == [{"arm64": "aarch64"}.get(platform.machine(), platform.machine())]
    assert asked[1] == [prepare.python_of_venv()]


def test_a_build_that_is_stopped_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a build starts starts others; a compiler that goes on writes where the next build writes."""
    pids = tmp_path / "pids"
    code = f"sleep 600 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"

    def stop(_: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        while not pids.exists():
            time.sleep(0.01)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", stop)
    with pytest.raises(KeyboardInterrupt):
        building.watch(["sh", "-c", code], {}, tmp_path / "log")
    deadline = time.monotonic() + 60
    left = list(map(int, pids.read_text().split()))
    while any(map(is_running, left)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [pid for pid in left if is_running(pid)] == []


def is_running(pid: int) -> bool:
    """A child of a process that has ended may remain for a moment, as one that nobody has asked after."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def headers(folder: Path, more: str = "") -> Path:
    """What stands in Python's headers as far as it is looked at."""
    folder.mkdir(parents=True)
    (folder / "Python.h").write_text(HEADERS, encoding="utf-8")
    (folder / "pyconfig.h").write_text(f"#define SIZEOF_INT 4\n{more}\n", encoding="utf-8")
    return folder


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
