"""A short run of what `make fuzz` does at length, and every path of the kernel against the scalar one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import sanitized

INPUTS = 300


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        sanitized.environment()
        return sanitized.compile_sanitized(tmp_path_factory.mktemp("sanitized"))
    except sanitized.NoSanitizers as reason:
        pytest.skip(str(reason))


@pytest.mark.long
def test_no_damage_crashes_the_kernel_or_makes_it_lie(library: Path, tmp_path: Path) -> None:
    process = sanitized.start(library, folder=tmp_path, first=0, count=INPUTS)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, f"input {(tmp_path / 'number').read_text()}\n{errors[-4000:]}"
    result = json.loads(output)
    assert result["inputs"] == INPUTS
    counts = result["counts"]
    assert counts["answered"] > INPUTS / 3, "most damage is to be searched, not refused at the door"
    assert counts["refused"] > INPUTS / 20
    assert all(counts[f"damage: {kind}"] for kind in ("header", "counts", "levels", "links", "vectors", "tail"))
    assert all(counts[f"damage: {kind}"] for kind in ("bits", "nibbles"))


@pytest.mark.parametrize("number", [3410, 11940])
def test_inputs_that_once_failed(library: Path, tmp_path: Path, number: int) -> None:
    """A damaged factor made an estimate of minus infinity, and the row was lost where all rows are compared."""
    process = sanitized.start(library, folder=tmp_path, first=number, count=1)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors[-4000:]


@pytest.mark.long
def test_a_kernel_without_its_checks_is_found_out(library: Path, tmp_path: Path) -> None:
    """The fuzzing sees what it is there to see: a link that is not compared with the number of rows."""
    check = "if (link >= g->row_count) {"
    source = sanitized.KERNEL.read_text(encoding="utf-8")
    assert source.count(check) == 1
    (tmp_path / "kernel.c").write_text(source.replace(check, "if (0) {"), encoding="utf-8")
    mutant = sanitized.compile_sanitized(tmp_path, source=tmp_path / "kernel.c")
    process = sanitized.start(mutant, folder=tmp_path / "work", first=0, count=INPUTS)
    _, errors = process.communicate(timeout=300)
    assert process.returncode != 0
    assert "AddressSanitizer" in errors


def test_every_path_gives_the_bits_of_the_scalar_one(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    program = tmp_path / "compare_paths"
    source = Path(__file__).with_name("compare_paths.c")
    command = [compiler, "-O2", "-std=c11", "-ffp-contract=off", "-o", program, source, "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    digests = {line.rpartition(" ")[2] for line in done.stdout.splitlines() if "as scalar" in line}
    assert digests == {"6bedafea"}, "the same on every machine; other numbers are another format"
