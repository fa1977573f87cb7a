"""The embedder of an ingest: begins with llama.cpp, and goes on with what is fastest here once passages are many.

A question, and a folder of a few files, never wait for a trial or load a second library. Vectors come out the same
whichever computes them, so a run may change over in its midst, and fall back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from edgerag.engine.embedder import LlamaEmbedder
from edgerag.engine.passages import Workers
from edgerag.engine.tuning.embed_trial import TRIED_PASSAGES, PassagePlan
from edgerag.errors import ModelError
from edgerag.types import EmbedderIdentity

if TYPE_CHECKING:
    from edgerag.types import Vectors

# Changing over costs two seconds of loading, a trial eight: some hundred passages are embedded in that time.
MANY_PASSAGES = 300


class BulkEmbedder:
    """An Embedder over another one, which stays its owner's. One thread embeds passages."""

    def __init__(
        self,
        base: LlamaEmbedder,
        *,
        decide: Callable[[Sequence[str]], PassagePlan],
        open_workers: Callable[[PassagePlan], Workers],
        at_once: bool = False,
    ) -> None:
        """``decide`` gives the plan, with a few of the passages to try it on; ``open_workers`` what another backend
        than llama.cpp computes with. ``at_once``: not only when passages are many."""
        self._base = base
        self._decide, self._open_workers = decide, open_workers
        self._recent: list[str] = []
        self._left = 0 if at_once else MANY_PASSAGES  # passages until it is decided
        self._decided = False
        self._workers: Workers | None = None
        self.trouble = ""  # why it went back to llama.cpp, in a sentence

    @property
    def identity(self) -> EmbedderIdentity:
        return self._base.identity

    @property
    def max_tokens(self) -> int:
        return self._base.max_tokens

    def count_tokens(self, text: str) -> int:
        return self._base.count_tokens(text)

    def embed_query(self, text: str) -> Vectors:
        return self._base.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, dim) float32, unit rows; texts longer than ``max_tokens`` are cut. Raises UsageError for an empty one."""
        if not self._decided:
            self._recent = [*self._recent, *texts][-TRIED_PASSAGES:]
            if self._left <= 0:
                self._settle()
            self._left -= len(texts)
        if self._workers is not None:
            tokens = self._base.passage_tokens(texts)
            try:
                return self._base.unit(self._workers.compute(tokens, dimension=self.identity.dimension), texts)
            except ModelError as error:
                self._fall_back(error)
        return self._base.embed_passages(texts)

    def close(self) -> None:
        """Ends what it opened itself."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None

    def _settle(self) -> None:
        self._decided = True
        plan = self._decide([text for text in self._recent if text.strip()])
        self._recent = []
        if plan.backend == "llama.cpp":
            self._base.use_workers(plan.workers)
            return
        try:
            self._workers = self._open_workers(plan)
            self._base.release_workers()
        except ModelError as error:
            self._fall_back(error)

    def _fall_back(self, error: ModelError) -> None:
        self.trouble = f"Passages are embedded by llama.cpp: {error.message}"
        self.close()
