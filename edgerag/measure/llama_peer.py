"""llama-cpp-python as its users have it: the ``Llama`` class with its defaults, in this process.

It loads the same weights with the same number of threads; what it does with them is its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import llama_cpp

from edgerag.engine.llama import describe_engine


class PlainLlama:
    """One model, ready to answer."""

    def __init__(self, path: Path, *, context_tokens: int, threads: int) -> None:
        describe_engine()  # a build with loadable backends has none until somebody loads them
        self._llama = llama_cpp.Llama(
            str(path), n_ctx=context_tokens, n_threads=threads, n_threads_batch=threads, verbose=False
        )

    def first_token_s(self, tokens: Sequence[int]) -> float:
        """Seconds until the first token of the answer to a prompt that nothing is known of."""
        self._llama.reset()
        began = time.perf_counter()
        next(self._llama.generate(list(tokens), temp=0.0, reset=True))
        return time.perf_counter() - began

    def prefill_tps(self, tokens: Sequence[int]) -> float:
        """Tokens per second of a prompt."""
        self._llama.reset()
        began = time.perf_counter()
        self._llama.eval(list(tokens))
        return len(tokens) / (time.perf_counter() - began)

    def close(self) -> None:
        self._llama.close()
