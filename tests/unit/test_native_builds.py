"""A library that was built for another processor ends a child, never this program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgerag import native_builds
from edgerag.errors import ProcessorUnfit

# Dies as a library does whose instructions this processor lacks.
FOREIGN = "import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n"
OLD = """
import sys
from edgerag.machine import cpu
cpu.read_processor = lambda: cpu.Processor("x86_64", "Core 2", (), ("POPCNT", "SSE4.2"))
from edgerag.ui.cli import main
code = main(["search", "pump"])
print(code, sorted({"numpy", "hnswlib", "llama_cpp", "lxml", "cryptography"} & set(sys.modules)))
"""


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose hnswlib was built for another processor, and which children look into first."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "hnswlib.py").write_text(FOREIGN, encoding="utf-8")
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{before}" if before else str(folder))
    return folder


def no_child(*_: object, **__: object) -> None:
    raise AssertionError("it was tried again")


def test_what_works_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert native_builds.find_trouble(tmp_path, "hnswlib") is None
    monkeypatch.setattr(subprocess, "run", no_child)
    assert native_builds.find_trouble(tmp_path, "hnswlib") is None
    with pytest.raises(AssertionError, match="tried again"):  # of the other library nothing is known yet
        native_builds.find_trouble(tmp_path, "llama.cpp")


def test_another_processor_or_build_is_tried_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert native_builds.find_trouble(tmp_path, "hnswlib") is None
    monkeypatch.setattr(native_builds, "engine_fingerprint", lambda: "another")
    monkeypatch.setattr(subprocess, "run", no_child)
    with pytest.raises(AssertionError, match="tried again"):
        native_builds.find_trouble(tmp_path, "hnswlib")


@pytest.mark.usefixtures("foreign")
def test_a_build_for_another_processor_is_a_sentence_and_not_remembered(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ProcessorUnfit, match=r"hnswlib was built for another processor.*HNSWLIB_NO_NATIVE"):
            native_builds.check_builds(tmp_path, ("hnswlib",))
    assert not (tmp_path / "build.json").exists()


def test_no_folder_is_made_for_what_is_remembered(tmp_path: Path) -> None:
    assert native_builds.find_trouble(tmp_path / "home" / "models", "hnswlib") is None
    assert not (tmp_path / "home").exists()


def test_what_is_broken_otherwise_is_left_to_its_user(tmp_path: Path, foreign: Path) -> None:
    (foreign / "hnswlib.py").write_text("raise ImportError('no such thing')\n", encoding="utf-8")
    assert native_builds.find_trouble(tmp_path, "hnswlib") is None
    assert not (tmp_path / "build.json").exists()


@pytest.mark.usefixtures("foreign")
def test_an_ingest_ends_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "pump.txt").write_text("The pump is red.", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "edgerag", "ingest", str(tmp_path / "pump.txt")],
        env={**os.environ, "EDGERAG_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert done.stderr.startswith("edgerag: hnswlib was built for another processor")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "home").exists()


def test_an_old_processor_is_told_before_any_native_library_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", OLD], capture_output=True, text=True, check=False)
    assert done.stdout == "4 []\n", done.stderr
    assert done.stderr.startswith("edgerag: This processor (Core 2) lacks POPCNT, SSE4.2")
    assert len(done.stderr.splitlines()) == 1
