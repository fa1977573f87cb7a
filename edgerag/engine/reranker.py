"""A cross-encoder at work: question and passage go through the model together, and a classifier head judges the pair.

One pair per call of llama.cpp, as for embedders: attention runs over a whole batch, so several at once are no faster.

llama.cpp reads every token of a BERT as one of the first segment. Models that were trained with two segments would
judge by half of what they know, so for these the vectors of the second text's tokens are given in place of the tokens,
with the difference of the two segments added: what llama.cpp adds then makes it the second one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgerag.engine.fit import check_fit
from edgerag.engine.gguf import Header, TensorPlace, read_header
from edgerag.engine.llama import Context, ContextSettings, Model
from edgerag.engine.llama.threads import make_pool
from edgerag.engine.pairs import Pair, PairEncoder
from edgerag.engine.watch import Watch
from edgerag.errors import Cancelled, ModelDamaged, ModelWrongKind
from edgerag.types import CancelCheck, Judgement, ModelFile, StoredChunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgerag.types import Vectors

# The longest pair. A chunk has 160 tokens or so, and the working memory for a pair grows with its square.
LONGEST_PAIR = 1024
# What a probability that is written as 0 or 1 is taken for: float32 has no more digits.
_LEAST_PROBABILITY = 1e-7
_WORDS, _SEGMENTS = "token_embd.weight", "token_types.weight"


def open_reranker(model: ModelFile, *, threads: int, cpus: Sequence[int] = ()) -> LlamaReranker:
    """Loads a reranker. ``cpus``: where its threads are held; none: where the system puts them.

    Raises ModelWrongKind, ModelTooLarge or EngineUnavailable before loading, ModelDamaged when llama.cpp refuses the
    file.
    """
    if model.kind != "reranker":
        raise ModelWrongKind(f"{model.name} judges no pairs.", remedy="Name a reranker in models.reranker.")
    header = read_header(model.path)
    window = min(model.context_tokens or LONGEST_PAIR, LONGEST_PAIR)
    check_fit(header, context_tokens=window, batch_tokens=window)
    return LlamaReranker(model, header, window=window, threads=threads, cpus=cpus)


class LlamaReranker:
    """A reranker in memory. Any thread may call it; one pair is judged at a time."""

    def __init__(self, model: ModelFile, header: Header, *, window: int, threads: int, cpus: Sequence[int]) -> None:
        self._name = model.name
        self._lock = threading.Lock()
        self._model = Model(model.path)
        self._pool = None
        try:
            self._positive = _positive_class(self._model)
            self._pairs = PairEncoder(self._model, header, window=window)
            self._segments = _Segments(header)
            settings = ContextSettings(
                context_tokens=window, batch_tokens=window, threads=threads, embeddings=True, ranks=True
            )
            self._pool = make_pool(cpus)
            pools = None if self._pool is None else (self._pool, self._pool)
            self._context = Context(self._model, settings, pools=pools)
        except BaseException:
            if self._pool is not None:
                self._pool.close()
            self._model.close()
            raise

    @property
    def name(self) -> str:
        return self._name

    def judge(self, question: str, passage: StoredChunk, *, cancelled: CancelCheck) -> Judgement:
        """Raises Cancelled, ModelDamaged for a model that gives what is no number, ModelError."""
        return Judgement(self.log_odds(question, passage.chunk.embedding_text, cancelled=cancelled))

    def log_odds(self, question: str, passage: str, *, cancelled: CancelCheck = lambda: False) -> float:
        """That ``passage`` answers ``question``; what :meth:`judge` says of a chunk, for any text."""
        pair = self._pairs.encode(question, passage)
        rows = self._segments.rows(pair)
        with self._lock, Watch(self._context, cancelled) as watch:
            classes = None if watch.cancelled() else self._context.rank(pair.tokens, rows=rows)
        if classes is None:
            watch.cancelled()  # passes on what the check raised
            raise Cancelled("Reading a passage was cancelled.")
        found = _log_odds(classes, self._positive)
        if not math.isfinite(found):
            raise ModelDamaged(f"{self._model.path} judges a pair by what is no number.")
        return found

    def close(self) -> None:
        with self._lock:
            self._context.close()
            if self._pool is not None:
                self._pool.close()
            self._model.close()


class _Segments:
    """The vectors of tokens with the second segment told, for models that have segments."""

    def __init__(self, header: Header) -> None:
        """Raises ModelDamaged for tables that do not fit each other."""
        segments, words = header.tensors.get(_SEGMENTS), header.tensors.get(_WORDS)
        self._difference: NDArray[np.float32] | None = None
        if segments is None or words is None or len(segments.shape) != 2 or segments.shape[0] < 2:
            return
        table = _values(_raw(header, segments), segments)
        if len(words.shape) != 2 or table.shape[1] != words.shape[1]:
            raise ModelDamaged(f"{header.path} has segments of {table.shape[1]} values, but words of {words.shape}.")
        self._difference = table[1] - table[0]
        self._table, self._place = _raw(header, words), words

    def rows(self, pair: Pair) -> NDArray[np.float32] | None:
        """(n, dim); None where the tokens say all."""
        if self._difference is None or pair.second == len(pair.tokens):
            return None
        vectors = _values(self._table[pair.tokens], self._place)
        vectors[pair.second :] += self._difference
        return np.ascontiguousarray(vectors)


def _raw(header: Header, place: TensorPlace) -> NDArray[np.uint8]:
    """(rows, bytes of a row), mapped from the file."""
    rows = place.shape[0]
    return np.memmap(header.path, dtype=np.uint8, mode="r", offset=place.offset, shape=(rows, place.size_bytes // rows))


def _values(raw: NDArray[np.uint8], place: TensorPlace) -> NDArray[np.float32]:
    import gguf

    kind: Any = gguf.GGMLQuantizationType[place.type_name]
    values: NDArray[np.float32] = gguf.quants.dequantize(np.ascontiguousarray(raw), kind)
    return values.astype(np.float32)


def _positive_class(model: Model) -> int:
    """Which class says that the passage answers. Raises ModelWrongKind for a classifier of something else."""
    labels = [model.class_label(number).casefold() for number in range(model.class_count)]
    if "yes" in labels:
        return labels.index("yes")
    if model.class_count not in (1, 2):
        raise ModelWrongKind(
            f"{model.path} sorts texts into {model.class_count} classes, which is no judgement of a passage."
        )
    return model.class_count - 1  # of two without names the second is the positive one, as in transformers


def _log_odds(classes: Vectors, positive: int) -> float:
    """One class gives the log odds themselves. Of two the difference, or where llama.cpp has made probabilities of them
    (it does for Qwen3) that of their logarithms."""
    values = classes.astype(np.float64)
    if len(values) == 1:
        return float(values[0])
    if (values >= 0).all() and abs(values.sum() - 1) < 1e-3:
        values = np.log(np.clip(values, _LEAST_PROBABILITY, 1.0))
    others = np.delete(values, positive)
    return float(values[positive] - np.logaddexp.reduce(others))
