"""Native libraries that would end this process on this processor, told before it loads them.

llama.cpp and hnswlib are compiled for the processor of the machine that compiles them, unless told otherwise, and a
folder or a network home can move: loaded on another one they end the process, by SIGILL, in the middle of whatever that
was doing. So a child process tries them first, once for each build and processor; that it worked is remembered in the
models folder. What a processor lacks for all packages alike is told by machine/cpu.py.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgerag.engine.probe import PORTABLE_ENGINE, engine_fingerprint
from edgerag.engine.tuning.kept import Kept
from edgerag.errors import ProcessorUnfit
from edgerag.machine.trial import foreign_build, tried

NativeLibrary = Literal["llama.cpp", "hnswlib"]
_EXERCISES: dict[NativeLibrary, str] = {
    "llama.cpp": "from edgerag.engine.llama import describe_engine; describe_engine()",
    "hnswlib": "from edgerag.index.hnsw.build import exercise; exercise()",
}
_REMEDIES: dict[NativeLibrary, str] = {
    "llama.cpp": PORTABLE_ENGINE,
    "hnswlib": "Build it for any processor: HNSWLIB_NO_NATIVE=1 pip install --force-reinstall --no-deps --no-cache-dir "
    "--no-binary hnswlib hnswlib",
}
_DEADLINE_S = 120.0  # a cold disk, an emulator; what hangs is left to whoever uses it
_MOST_KEPT = 16  # machines that share one models folder; builds that were replaced


@dataclass(frozen=True, slots=True)
class _Worked:
    """What a child used and lived."""

    libraries: tuple[str, ...]


def check_builds(models: Path, libraries: Sequence[NativeLibrary]) -> None:
    """Raises ProcessorUnfit for the first of ``libraries`` that was built for another processor. ``models``: the folder
    in which it is remembered."""
    for library in libraries:
        if trouble := find_trouble(models, library):
            raise trouble


def find_trouble(models: Path, library: NativeLibrary) -> ProcessorUnfit | None:
    """What would end this process if it used ``library``. What else may be wrong with it is said by its user."""
    memory = Kept(models, name="build", kind=_Worked, most=_MOST_KEPT)
    key = _fingerprint()
    worked = memory.find(key)
    if worked is not None and library in worked.libraries:
        return None
    code = _code_of(library)
    if code is not None and (foreign := foreign_build(library, code)):
        return ProcessorUnfit(foreign, remedy=_REMEDIES[library])
    if code == 0 and models.is_dir():
        memory.keep(key, _Worked(tuple(sorted({*(worked.libraries if worked else ()), library}))))
    return None


def _code_of(library: NativeLibrary) -> int | None:
    """The exit code of a child that used it; None where it did not end."""
    try:
        return tried(_EXERCISES[library], deadline_s=_DEADLINE_S).returncode
    except subprocess.TimeoutExpired:
        return None


def _fingerprint() -> str:
    """Changes when the processor, llama.cpp or hnswlib does."""
    parts = [engine_fingerprint()]
    spec = importlib.util.find_spec("hnswlib")
    if spec is not None and spec.origin:
        stat = Path(spec.origin).stat()
        parts.append(f"{stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
