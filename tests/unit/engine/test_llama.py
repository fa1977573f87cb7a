"""A missing or useless library is a sentence with a remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from edgerag.engine.llama import describe_engine

_TRY = """
import sys
{before}
from edgerag.engine.llama import describe_engine
from edgerag.errors import EngineUnavailable
try:
    describe_engine()
except EngineUnavailable as error:
    print(error.message, "|", error.remedy)
"""


def attempt(before: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _TRY.format(before=before)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.stderr == ""
    return done.stdout


def test_the_engine_tells_its_version_and_nothing_is_printed() -> None:
    assert describe_engine().startswith("llama-cpp-python 0.3.")
    assert attempt("") == ""


def test_without_the_package_it_says_how_to_get_it() -> None:
    said = attempt("sys.modules['llama_cpp'] = None")
    assert said.startswith("llama-cpp-python is not usable")
    assert "make prepare" in said


def test_a_broken_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "libllama.so").write_bytes(b"not a library")
    said = attempt(f"import os; os.environ['LLAMA_CPP_LIB_PATH'] = {str(tmp_path)!r}")
    assert said.startswith("The llama.cpp library cannot be loaded")
    assert "libllama.so" in said


def test_a_library_without_a_backend_for_this_processor_is_named() -> None:
    said = attempt("import edgerag.engine.llama.library as llama; llama._backend_folders = lambda package: []")
    assert said.startswith("llama.cpp has no backend that runs on this processor.") or said == ""  # "": built in
