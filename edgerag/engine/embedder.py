"""Text becomes unit vectors: one text per call of llama.cpp, with flash attention, on workers of a thread each.

Several sequences in one call were measured and are no faster: attention runs over the whole batch. Two workers of one
thread do the same work as one of two threads where the machine is idle, and more where it is not, as they do not wait
for each other (docs/decisions/021, 035).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from edgerag.engine.fit import check_fit
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.llama import Context, ContextSettings, Model
from edgerag.engine.passages import Between, Tokens, Workers, go_on
from edgerag.engine.tokenizers import own_tokenizer
from edgerag.engine.wordpiece import WordPiece
from edgerag.errors import ModelDamaged, ModelError, ModelWrongKind, UsageError
from edgerag.types import EmbedderIdentity, ModelFile

if TYPE_CHECKING:
    from edgerag.types import Vectors

# A micro-batch must hold a whole text (attention looks both ways), so this is also the longest text.
_LONGEST_TEXT = 8192
# Threads that wait for each other at every layer cost a short text more than they give: a question of 16 tokens takes
# 3.6 ms by one thread and 8 by two, one of 64 the same by both (docs/decisions/021).
_TOKENS_PER_THREAD = 64
# Passages that are computed at once, by the thread that asks: between more of them others are let past.
_FEW = 4
# Each has working memory of its own: 30 MB for a text of 256 tokens. With more cores a worker has several threads.
MOST_WORKERS = 8


def open_embedder(model: ModelFile, *, threads: int, query_threads: int = 0, cpus: Sequence[int] = ()) -> LlamaEmbedder:
    """Loads an embedder. ``query_threads``: for a query, which may come while a model decodes; 0: as for passages.
    ``cpus``: where the threads for passages are held; none: where the system puts them.

    Raises ModelWrongKind, ModelTooLarge or EngineUnavailable before loading, ModelDamaged when llama.cpp refuses the
    file.
    """
    if model.kind != "embedder":
        raise ModelWrongKind(
            f"{model.name} is a chat model and gives no vectors.", remedy="Name an embedder in models.embedder."
        )
    header = read_header(model.path)
    check_fit(header, context_tokens=_window(model), batch_tokens=_window(model), keeps_cache=False)
    return LlamaEmbedder(model, header, threads=threads, query_threads=query_threads or threads, cpus=cpus)


class LlamaEmbedder:
    """An embedder in memory. Any thread may call it."""

    def __init__(
        self, model: ModelFile, header: Header, *, threads: int, query_threads: int, cpus: Sequence[int]
    ) -> None:
        window = _window(model)
        self._threads, self._query_threads, self._cpus = threads, query_threads, tuple(cpus)
        self._model = Model(model.path)
        self._settings = ContextSettings(context_tokens=window, batch_tokens=window, threads=threads, embeddings=True)
        try:
            self._workers = [_Worker(self._model, self._settings)]  # the first also has the queries
        except BaseException:
            self._model.close()
            raise
        self._gathered = threading.Lock()  # of the teams: one computes at a time
        self._teams: dict[int, Workers] = {}  # by the number of workers
        self._wanted_workers = min(threads, MOST_WORKERS)
        self._between: Between = go_on
        self._niceness = 0
        self._making_spare = threading.Lock()
        self._spare: _Worker | None = None
        self._tokenizer = own_tokenizer(self._model, header)
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
        return len(self._tokenizer.encode(text)) if self._tokenizer else self._model.count_tokens(text)

    def embed_query(self, text: str) -> Vectors:
        """(dim,) float32 of unit length. Raises UsageError for a text without a single character to read."""
        tokens = self._tokens("query", text)
        worker = self._workers[0]
        if worker.is_busy:  # with a passage: a question does not wait for it
            worker = self._spare_worker()
        threads = min(self._query_threads, 1 + len(tokens) // _TOKENS_PER_THREAD)
        vector: Vectors = self.unit(worker.compute([tokens], threads=threads), [text])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, dim) float32, unit rows; texts longer than ``max_tokens`` are cut. Raises UsageError for an empty one."""
        passages = self.passage_tokens(texts)
        count = self._wanted_workers
        if len(texts) < max(_FEW, 2 * count):
            return self.unit(self._workers[0].compute(passages, threads=self._threads), texts)
        with self._gathered:
            vectors = self._team(count).compute(passages, dimension=self._identity.dimension)
        return self.unit(vectors, texts)

    def passage_tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """What the model reads of each passage, special tokens included. Raises UsageError for an empty one."""
        return [self._tokens("passage", text) for text in texts]

    def unit(self, vectors: Vectors, texts: Sequence[str]) -> Vectors:
        """``vectors`` of unit length. Raises ModelDamaged for one that has no direction, naming its text."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        usable = np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0)
        if not usable.all():
            text = texts[int(np.argmin(usable))]
            raise ModelDamaged(f"{self._model.path} gives a vector that is not usable for {text[:40]!r}.")
        unit: Vectors = vectors / lengths.astype(np.float32)
        return unit

    def let_past(self, between: Between, *, niceness: int = 0) -> None:
        """From now on ``between`` is called before each passage, and may wait for what goes first; passages are
        computed by threads of that priority."""
        if niceness != self._niceness:
            self.release_workers()  # a thread cannot take back what it gave up
        self._between, self._niceness = between, niceness

    def use_workers(self, count: int) -> None:
        """From now on passages are computed by so many workers, which have the threads between them."""
        self._wanted_workers = max(1, min(count, self._threads))

    def release_workers(self) -> None:
        """Gives back the memory that only passages need: another backend computes them."""
        with self._gathered:
            for team in self._teams.values():
                team.close()
            self._teams.clear()
            for worker in self._workers[1:]:
                worker.close()
            del self._workers[1:]

    def close(self) -> None:
        self.release_workers()
        if self._spare is not None:
            self._spare.close()
            self._spare = None
        self._workers[0].close()
        self._model.close()

    def _spare_worker(self) -> _Worker:
        """One for queries alone, made when it is first wanted; where there is no memory for it, the first."""
        with self._making_spare:
            if self._spare is None:
                try:
                    self._spare = _Worker(self._model, self._settings)
                except ModelError:
                    return self._workers[0]
            return self._spare

    def _team(self, count: int) -> Workers:
        if count not in self._teams:
            while len(self._workers) < count:
                try:
                    self._workers.append(_Worker(self._model, self._settings))
                except ModelError:  # no memory for more: those that are there do it
                    break
            workers = self._workers[:count]
            each = self._threads // len(workers)
            cpus = [self._cpus[n * each : (n + 1) * each] for n in range(len(workers))] if self._cpus else []
            self._teams[count] = Workers(
                [_Share(one, each) for one in workers],
                batch_tokens=0,
                cpus=cpus,
                between=lambda: self._between(),
                niceness=self._niceness,
            )
        return self._teams[count]

    def _tokens(self, role: Literal["query", "passage"], text: str) -> list[int]:
        if not text.strip():
            raise UsageError("An empty text cannot be embedded.")
        before, after = self._ends
        inside = self._encode(self._prompts[role] + text)[: self._window - len(before) - len(after)]
        return [*before, *inside, *after]

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text) if self._tokenizer else self._model.tokenize(text)

    def _special_ends(self) -> tuple[list[int], list[int]]:
        """The tokens that the model wants before and after every text."""
        if isinstance(self._tokenizer, WordPiece):
            return [self._tokenizer.first], [self._tokenizer.last]
        if self._tokenizer:
            return [self._model.bos], [self._model.eos]
        plain, whole = self._model.tokenize("a"), self._model.tokenize("a", add_ends=True)
        begin = next(i for i in range(len(whole)) if whole[i : i + len(plain)] == plain)
        return whole[:begin], whole[begin + len(plain) :]


class _Worker:
    """A context of its own over the shared weights; one text is computed at a time."""

    def __init__(self, model: Model, settings: ContextSettings) -> None:
        self._lock = threading.Lock()
        self._dimension = model.dimension
        self._context = Context(model, settings)

    @property
    def is_busy(self) -> bool:
        return self._lock.locked()

    def compute(self, texts: Sequence[Tokens], *, threads: int) -> Vectors:
        """(n, dim) float32 in the order of ``texts``."""
        # A text of nothing but invisible characters leaves no token in some vocabularies.
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, tokens in enumerate(texts):
            if tokens:
                with self._lock:
                    self._context.use_threads(threads, threads)
                    vectors[row] = self._context.embed(tokens)
        return vectors

    def close(self) -> None:
        with self._lock:
            self._context.close()


class _Share:
    """A worker with its share of the threads."""

    def __init__(self, worker: _Worker, threads: int) -> None:
        self._worker, self._threads = worker, threads

    def compute(self, texts: Sequence[Tokens]) -> Vectors:
        return self._worker.compute(texts, threads=self._threads)


def _window(model: ModelFile) -> int:
    """The longest text in tokens, special tokens included."""
    return min(model.context_tokens or _LONGEST_TEXT, _LONGEST_TEXT)
