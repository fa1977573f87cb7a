"""The asking side of :mod:`edgerag.measure.child`: starts a process on one core and talks to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from edgerag.errors import EdgeragError

if TYPE_CHECKING:
    from edgerag.types import Vectors

# Libraries that start threads of their own would leave the pinned core crowded.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class PinnedProcess:
    """One measured process. A context manager: the process ends with the block."""

    def __init__(
        self,
        queries: Vectors,
        truth: NDArray[np.int64],
        *,
        core: int | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """``core``: the core to run on; None for the last one that may be used."""
        self._folder = tempfile.TemporaryDirectory(prefix="edgerag-measure-")
        files = [Path(self._folder.name) / name for name in ("queries.npy", "truth.npy")]
        np.save(files[0], np.ascontiguousarray(queries))
        np.save(files[1], truth)
        # Its standard error is ours: what it says when it fails is for the user.
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            [sys.executable, "-m", "edgerag.measure.child", *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_ONE_THREAD, **(environ or {})},
            text=True,
        )
        self.pin([usable_cores()[-1] if core is None else core])

    @property
    def pid(self) -> int:
        return self._process.pid

    def load(
        self, opener: str, file: Path, *, dimension: int, budget_bytes: int = 0, warmed_with: Path | None = None
    ) -> dict[str, Any]:
        """open_ms, rss_bytes, anonymous_bytes, file_bytes."""
        answer: dict[str, Any] = self._ask(
            "load",
            opener,
            file=str(file),
            dimension=dimension,
            budget_bytes=budget_bytes,
            warmed_with=str(warmed_with or ""),
        )
        return answer

    def pin(self, cores: Sequence[int]) -> None:
        self._ask("pin", list(cores))

    def memory(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._ask("memory")
        return answer

    def recall(self, ef: int) -> float:
        return float(self._ask("recall", ef))

    def rate(self, ef: int) -> dict[str, float]:
        answer: dict[str, float] = self._ask("rate", ef)
        return answer

    def latencies(self, ef: int) -> dict[str, float]:
        answer: dict[str, float] = self._ask("latencies", ef)
        return answer

    def most_memory(self, ef: int) -> dict[str, int | None]:
        answer: dict[str, int | None] = self._ask("most_memory", ef)
        return answer

    def threads_rate(self, ef: int, *, threads: int) -> dict[str, float]:
        answer: dict[str, float] = self._ask("threads_rate", ef, threads=threads)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, request: str, /, *arguments: Any, **named: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": request, "with": arguments, "and": named}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._process.wait()
            raise EdgeragError(f"The measured process ended with code {code} at {request!r}.")
        return json.loads(line)


def usable_cores() -> list[int]:
    """The cores that this process may run on; [0] where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
