"""llama-cpp-python as its users have it: the ``Llama`` class with its defaults, in a process of its own.

It loads the same weights with the same number of threads; what it does with them is its own, the waiting of its
threads included, which is settled when the library is loaded.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_OURS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # variables that this program sets for itself


class PlainLlama:
    """One model, ready to answer."""

    def __init__(self, path: Path, *, context_tokens: int, threads: int) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", __name__, str(path), str(context_tokens), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if name not in _OURS},
        )
        self._answer()  # it is loaded

    def first_token_s(self, tokens: Sequence[int]) -> float:
        """Seconds until the first token of the answer to a prompt that nothing is known of."""
        return self._ask("first_token", tokens)

    def prefill_tps(self, tokens: Sequence[int]) -> float:
        """Tokens per second of a prompt."""
        return len(tokens) / self._ask("prefill", tokens)

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def _ask(self, what: str, tokens: Sequence[int]) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps([what, list(tokens)])}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> float:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"plain llama-cpp-python ended with code {self._process.wait()}")
        return float(json.loads(line))


def serve(path: str, context_tokens: str, threads: str) -> None:
    """In the other process: seconds for each request."""
    import llama_cpp  # before ours, which settles how threads wait

    from edgerag.engine.llama import describe_engine

    describe_engine()  # a build with loadable backends has none until somebody loads them
    llama: Any = llama_cpp.Llama(
        path, n_ctx=int(context_tokens), n_threads=int(threads), n_threads_batch=int(threads), verbose=False
    )
    _say(0.0)
    for line in sys.stdin:
        what, tokens = json.loads(line)
        llama.reset()
        began = time.perf_counter()
        if what == "first_token":
            next(llama.generate(tokens, temp=0.0, reset=True))
        else:
            llama.eval(tokens)
        _say(time.perf_counter() - began)


def _say(seconds: float) -> None:
    sys.stdout.write(f"{json.dumps(seconds)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(*sys.argv[1:])
