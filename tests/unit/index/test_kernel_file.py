"""The kernel's file as a disk or a copy can leave it: the index works without it, and nothing dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edgerag.index.hnsw.kernel import LIBRARY_FILE, load_kernel

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.1, 0.5, 0.9, 0.999])
def test_a_kernel_that_was_cut_short_is_not_loaded(tmp_path: Path, share: float) -> None:
    if load_kernel() is None:
        pytest.skip("no kernel was compiled here")
    whole = LIBRARY_FILE.read_bytes()
    file = tmp_path / LIBRARY_FILE.name
    file.write_bytes(whole[: int(len(whole) * share)])
    # In a process of its own, because loading could end it.
    script = f"from edgerag.index.hnsw.kernel import *; print(load_kernel(file=Path({str(file)!r})))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "None"), done.stderr


def test_a_folder_or_a_text_in_its_place_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("not a program")
    assert load_kernel(file=tmp_path / "folder") is None
    assert load_kernel(file=tmp_path / "text") is None
    assert load_kernel(file=tmp_path / "absent") is None
