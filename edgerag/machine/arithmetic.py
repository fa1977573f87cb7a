"""How fast this machine multiplies: what reading a prompt waits for, since each token meets all weights.

Measured with a product of two float32 matrices by numpy's own library, on one thread, in a process of its own: that
library can be told its number of threads only before it is loaded, and with several it measures how busy the other
cores are. What llama.cpp makes of it with packed weights is a part of that (engine/recommend.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

_SECONDS = 0.2
_DEADLINE_S = 30.0  # for the process to start on a slow disk
_ROWS = 512  # three matrices of 1 MB: they stay in the caches, as the tiles of a product do
_PACKAGE_ROOT = Path(__file__).resolve().parent.parent.parent
_CHILD = (
    "import sys; sys.path.append(sys.argv[1]); from edgerag.machine.arithmetic import best_product; "
    "print(best_product(float(sys.argv[2])))"
)
# Of the libraries that numpy may be built with.
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


def measure_arithmetic(*, seconds: float = _SECONDS) -> float:
    """Multiplications and additions per second of one thread; 0 where they could not be measured."""
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-c", _CHILD, str(_PACKAGE_ROOT), str(seconds)],
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            check=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **_ONE_THREAD},
        )
        return float(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0.0


def best_product(seconds: float) -> float:
    """What the process measures: the best of as many products as the time allows, one at least."""
    import numpy as np

    left = np.full((_ROWS, _ROWS), 0.5, np.float32)
    right = np.full((_ROWS, _ROWS), 0.25, np.float32)
    product = np.empty_like(left)
    np.matmul(left, right, out=product)  # the first one finds its kernel
    best = float("inf")
    began = time.perf_counter()
    while best == float("inf") or time.perf_counter() - began < seconds:
        started = time.perf_counter()
        np.matmul(left, right, out=product)
        best = min(best, time.perf_counter() - started)
    return float(2 * _ROWS**3 / best)
