"""Compiles kernel.c with the address and the undefined-behaviour sanitizer, and starts Python with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
KERNEL = CHECKOUT / "edgerag" / "index" / "hnsw" / "kernel.c"
DRIVER = Path(__file__).with_name("damaged_segments.py")
# float-cast-overflow is not part of "undefined"; the cast of a query to 8 bits is what it is for.
SANITIZERS = "-fsanitize=address,undefined,float-cast-overflow"


class NoSanitizers(Exception):
    """This machine has no compiler with sanitizers; the message says what is missing."""


def compiler() -> str:
    """gcc or clang. Raises NoSanitizers."""
    found = next((name for name in ("gcc", "clang") if shutil.which(name)), None)
    if not found:
        raise NoSanitizers("there is no gcc or clang")
    return found


def compile_sanitized(folder: Path, *, source: Path = KERNEL) -> Path:
    """The kernel as a library in ``folder``. Raises NoSanitizers."""
    target = folder / "sanitized.so"
    command = [compiler(), "-std=c11", "-O1", "-g", "-fno-omit-frame-pointer", "-fPIC", "-shared", "-ffp-contract=off"]
    command += [SANITIZERS, "-fno-sanitize-recover=all", "-Wall", "-Wextra"]
    done = subprocess.run([*command, "-o", target, source, "-lm"], capture_output=True, text=True, check=False)
    if done.returncode:
        if "cannot find" in done.stderr or "unrecognized" in done.stderr:
            raise NoSanitizers(done.stderr.strip()[-300:])
        raise RuntimeError(done.stderr)
    return target


def environment() -> dict[str, str]:
    """For a Python that can load the library: its sanitizers must be there before anything else is."""
    libraries = []
    for name in ("libasan.so", "libubsan.so"):
        found = subprocess.run([compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        if "/" not in found.stdout:
            raise NoSanitizers(f"there is no {name}")
        libraries.append(found.stdout.strip())
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        # The interpreter does not free all it has at its end; numpy's buffers are to have red zones around them.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:abort_on_error=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(CHECKOUT),
        "OPENBLAS_NUM_THREADS": "1",
    }


def start(library: Path, *, folder: Path, first: int, count: int) -> subprocess.Popen[str]:
    """Feeds ``count`` damaged inputs, from number ``first`` on, to the library; its last line is JSON."""
    command = [sys.executable, "-X", "faulthandler", str(DRIVER), str(library), str(folder), str(first), str(count)]
    return subprocess.Popen(
        command, env=environment(), cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
