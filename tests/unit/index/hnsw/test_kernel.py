"""The compiled library itself: what is loaded and what is not, and its checksums."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from edgerag.index.hnsw.kernel import LIBRARY_FILE, load_kernel, supported_paths

ROOT = Path(__file__).parents[4]


def test_the_best_instructions_of_this_processor_are_taken() -> None:
    kernel = load_kernel()
    assert kernel is not None, f"{LIBRARY_FILE.name} was not compiled; `make prepare-dev` does it"
    names = supported_paths(kernel.library)
    assert next(iter(names)) == "scalar"
    assert kernel.path_name == list(names)[-1]
    for name in names:
        named = load_kernel(name)
        assert named is not None
        assert named.path_name == name


def test_instructions_that_there_are_not_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no instructions 'mmx' here; it has scalar"):
        load_kernel("mmx")


def test_where_there_is_no_kernel_none_is_loaded(tmp_path: Path) -> None:
    assert load_kernel(file=tmp_path / "missing.so") is None
    text = tmp_path / "text.so"
    text.write_text("this is no library")
    assert load_kernel(file=text) is None
    empty = tmp_path / "empty.so"
    empty.touch()
    assert load_kernel(file=empty) is None


@pytest.mark.parametrize("source", ["int er_abi(void) { return 9999; }", "int other(void) { return 1; }"])
def test_a_library_of_another_version_is_not_loaded(tmp_path: Path, source: str) -> None:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    (tmp_path / "other.c").write_text(source)
    library = tmp_path / f"other{len(source)}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "other.c"], check=True)
    assert load_kernel(file=library) is None


def test_checksums_are_those_of_zlib(path_name: str) -> None:
    kernel = load_kernel(path_name)
    assert kernel is not None
    random = np.random.default_rng(2)
    data = random.integers(256, size=200_000, dtype=np.uint8)
    for size in [*range(300), *random.integers(300, 100_000, size=60).tolist()]:
        for start in (0, 1, 7, 13):
            part = data[start : start + size]
            assert kernel.crc32(part) == zlib.crc32(part.tobytes()), (size, start)
    crc = expected = 0
    for size in (0, 5, 64, 63, 4096, 1, 129):
        crc, expected = kernel.crc32(data[:size], crc), zlib.crc32(data[:size].tobytes(), expected)
        assert crc == expected
