"""The program on machines that are small, slow or odd: it works, or says in one sentence what it lacks.

Other locales: tests/unit/ui/test_utf8_names.py. Disks that machines share: tests/unit/index/test_shared_disk.py.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import (
    TWO_GIBIBYTES,
    Home,
    Machine,
    compiled_shim,
    in_control_group,
    of_memory,
    of_one_core,
    with_mounts,
    with_shim,
)

from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "examples" / "docs"
QUESTION = "What is the noise level of the pump?"
FACT = "58 dB(A)"
YEAR_S = 365 * 24 * 3600
BUDGET_BYTES = 8_000_000
ROWS = 30_000  # of 384 numbers: more than four times the budget


@pytest.fixture
def small(tmp_path: Path) -> Home:
    return Home.make(tmp_path / "small")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_shim(tmp_path_factory.mktemp("shim"))


def a_day(home: Home, machine: Machine) -> None:
    """Ingest, search, an answer of the default model, a second ingest, and a look at the machine."""
    said = home.works("ingest", DOCS, "--quiet", machine=machine)
    assert " 0 failed" in said
    assert FACT in home.works("search", QUESTION, machine=machine)
    answer = json.loads(home.run("ask", QUESTION, "--json", machine=machine).stdout)
    assert any(FACT in source["text"] for source in answer["sources"]), answer
    assert answer["stop_reason"] in ("end", "length"), answer
    assert "0 ingested" in home.works("ingest", DOCS, "--quiet", machine=machine)
    home.works("doctor", machine=machine)


def test_two_gibibytes_of_address_space(small: Home) -> None:
    a_day(small, of_memory(TWO_GIBIBYTES))


def test_two_gibibytes_in_a_control_group(small: Home) -> None:
    a_day(small, in_control_group(TWO_GIBIBYTES))


def test_a_library_of_four_times_the_budget_is_compacted_in_two_gibibytes(
    small: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.works("ingest", DOCS, "--quiet")
    folder = small.folder / "indexes" / "default"
    monkeypatch.syspath_prepend(str(CHECKOUT / "bench"))
    vectors, sets = import_module("vector_library"), import_module("numpy").random.default_rng(0)
    with sqlite3.connect(folder / "library.sqlite") as db:
        assert db.execute("SELECT count(*) FROM chunks").fetchone()[0] > 0
    db.close()
    reader = open_library(folder, mode="read", residency=Residency(BUDGET_BYTES))
    identity = reader.identity
    reader.close()
    library = open_library(folder, mode="write", identity=identity, residency=Residency(BUDGET_BYTES))
    for start in range(0, ROWS, ROWS // 3):
        rows = sets.standard_normal((ROWS // 3, identity.dimension)).astype("float32")
        rows /= (rows**2).sum(axis=1, keepdims=True) ** 0.5
        vectors.add_rows(library, rows, first=start)
        library.seal()
    library.close()
    before = sum(path.stat().st_size for path in (folder / "segments").glob("*.hnsw"))
    assert before > 4 * BUDGET_BYTES
    limits = of_memory(TWO_GIBIBYTES)
    machine = Machine(before=limits.before, environment={"EDGERAG_MEMORY_BUDGET": f"{BUDGET_BYTES // 10**6} MB"})
    small.works("library", "compact", "--quiet", machine=machine)
    assert len(list((folder / "segments").glob("*.hnsw"))) == 1
    assert FACT in small.works("search", QUESTION, machine=machine)
    small.works("library", "verify", machine=machine)


def test_what_does_not_fit_is_said(small: Home) -> None:
    """With half a gibibyte the model does not fit; passages are still found."""
    small.works("ingest", DOCS, "--quiet")
    small.works("ask", QUESTION)
    done = small.run("ask", QUESTION, machine=of_memory(512 << 20))
    assert "Traceback" not in done.stderr
    assert FACT in done.stdout, done.stdout + done.stderr
    assert "No answer was written" in done.stderr and "memory" in done.stderr
    assert done.returncode == 4


def test_one_core(small: Home) -> None:
    a_day(small, of_one_core())


def test_a_slow_disk(small: Home, shim: Path) -> None:
    """Each sync takes as long as on a worn SD card, each read as on a disk that spins."""
    a_day(small, with_shim(shim, sync_ms=300, read_us=3000))


@pytest.mark.parametrize("jump", [90, 3 * YEAR_S, 60 * YEAR_S], ids=["seconds", "years", "before 1970"])
def test_a_clock_that_jumps(small: Home, shim: Path, jump: int) -> None:
    a_day(small, with_shim(shim, clock_s=jump))


def test_a_clock_that_starts_in_1970_and_is_set_later(small: Home, shim: Path) -> None:
    """As on a board without a battery, before the time is known; then a clock far ahead; then the right one."""
    for clock in (1, 4_200_000_000, 1_700_000_000):
        a_day_again = with_shim(shim, clock_at=clock)
        small.works("ingest", DOCS, "--quiet", machine=a_day_again)
        assert FACT in small.works("ask", QUESTION, machine=a_day_again)
        small.works("trace", "--list", machine=a_day_again)
        small.works("threads", "list", machine=a_day_again)


def test_a_home_that_is_read_only(small: Home) -> None:
    small.works("ingest", DOCS, "--quiet")
    small.works("ask", QUESTION)
    home = small.folder
    machine = with_mounts(f"mount --bind '{home}' '{home}'\nmount -o remount,bind,ro '{home}'")
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    for reading in (["search", QUESTION], ["ask", QUESTION], ["ask", "--no-llm", QUESTION]):
        assert FACT in small.works(*reading, machine=machine)
    for reading in (["status"], ["doctor"], ["library", "verify"], ["models", "list"], ["threads", "list"]):
        small.works(*reading, machine=machine)
    for writing in (["ingest", str(DOCS)], ["library", "compact"], ["config", "set", "generation.temperature", "0.5"]):
        done = small.run(*writing, machine=machine)
        assert done.returncode == 5, done.stdout + done.stderr
        assert "Read-only file system" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_no_shared_memory(small: Home, tmp_path: Path) -> None:
    """/dev/shm is missing on many a container; here nothing can be written there, which is as good as none."""
    (tmp_path / "empty").mkdir()
    script = f"mount --bind '{tmp_path / 'empty'}' /dev/shm\nmount -o remount,bind,ro /dev/shm"
    a_day(small, with_mounts(script))
