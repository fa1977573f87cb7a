"""Text becomes unit vectors: one text per call of llama.cpp, with flash attention.

Several sequences in one call were measured and are slower: attention runs over the whole batch
(MEASURED.md, docs/decisions/021).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from edgerag.engine.fit import check_fit
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.llama import Context, ContextSettings, Model
from edgerag.engine.wordpiece import WordPiece
from edgerag.errors import ModelDamaged, ModelWrongKind, UsageError
from edgerag.types import EmbedderIdentity, ModelFile

if TYPE_CHECKING:
    from edgerag.types import Vectors

# A micro-batch must hold a whole text (attention looks both ways), so this is also the longest text.
_LONGEST_TEXT = 8192


def open_embedder(model: ModelFile, *, threads: int, query_threads: int = 0) -> LlamaEmbedder:
    """Loads an embedder. ``query_threads``: for a query, which may come while a model decodes; 0: as for passages.

    Raises ModelWrongKind, ModelTooLarge or EngineUnavailable before loading, ModelDamaged when llama.cpp refuses the
    file.
    """
    if model.kind != "embedder":
        raise ModelWrongKind(
            f"{model.name} is a chat model and gives no vectors.", remedy="Name an embedder in models.embedder."
        )
    header = read_header(model.path)
    check_fit(header, context_tokens=_window(model), batch_tokens=_window(model), keeps_cache=False)
    return LlamaEmbedder(model, header, threads=threads, query_threads=query_threads or threads)


class LlamaEmbedder:
    """An embedder in memory. Any thread may call it; one text is computed at a time."""

    def __init__(self, model: ModelFile, header: Header, *, threads: int, query_threads: int) -> None:
        window = _window(model)
        self._lock = threading.Lock()
        self._threads, self._query_threads = threads, query_threads
        self._model = Model(model.path)
        try:
            self._context = Context(
                self._model,
                ContextSettings(context_tokens=window, batch_tokens=window, threads=threads, embeddings=True),
            )
        except BaseException:
            self._model.close()
            raise
        self._word_piece = (
            WordPiece(self._model.vocabulary()) if header.text("tokenizer.ggml.model", "") == "bert" else None
        )
        self._ends = self._special_ends()
        self._prompts = {role: header.text(f"edgerag.{role}_prompt", "") for role in ("query", "passage")}
        self._identity = EmbedderIdentity(
            name=model.name,
            weights_sha256=model.weights_sha256,
            dimension=self._model.dimension,
            languages=model.languages,
        )
        prompt_tokens = self.count_tokens(self._prompts["passage"]) if self._prompts["passage"] else 0
        self._max_tokens = window - len(self._ends[0]) - len(self._ends[1]) - prompt_tokens
        self._window = window

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    def count_tokens(self, text: str) -> int:
        return len(self._word_piece.encode(text)) if self._word_piece else self._model.count_tokens(text)

    def embed_query(self, text: str) -> Vectors:
        """(dim,) float32 of unit length. Raises UsageError for a text without a single character to read."""
        return self._embed(self._prompts["query"], text, threads=self._query_threads)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, dim) float32, unit rows; texts longer than ``max_tokens`` are cut. Raises UsageError for an empty one."""
        vectors = np.empty((len(texts), self._identity.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._embed(self._prompts["passage"], text, threads=self._threads)
        return vectors

    def close(self) -> None:
        with self._lock:
            self._context.close()
            self._model.close()

    def _embed(self, prompt: str, text: str, *, threads: int) -> Vectors:
        if not text.strip():
            raise UsageError("An empty text cannot be embedded.")
        before, after = self._ends
        inside = self._encode(prompt + text)[: self._window - len(before) - len(after)]
        tokens = [*before, *inside, *after]
        with self._lock:
            self._context.use_threads(threads, threads)
            # A text of nothing but invisible characters leaves no token in some vocabularies.
            vector = self._context.embed(tokens) if tokens else np.zeros(self._identity.dimension, np.float32)
        length = float(np.linalg.norm(vector))
        if not np.isfinite(length) or length == 0:
            raise ModelDamaged(f"{self._model.path} gives a vector that is not usable for {text[:40]!r}.")
        return vector / np.float32(length)

    def _encode(self, text: str) -> list[int]:
        return self._word_piece.encode(text) if self._word_piece else self._model.tokenize(text)

    def _special_ends(self) -> tuple[list[int], list[int]]:
        """The tokens that the model wants before and after every text."""
        if self._word_piece:
            return [self._word_piece.first], [self._word_piece.last]
        plain, whole = self._model.tokenize("a"), self._model.tokenize("a", add_ends=True)
        begin = next(i for i in range(len(whole)) if whole[i : i + len(plain)] == plain)
        return whole[:begin], whole[begin + len(plain) :]


def _window(model: ModelFile) -> int:
    """The longest text in tokens, special tokens included."""
    return min(model.context_tokens or _LONGEST_TEXT, _LONGEST_TEXT)
