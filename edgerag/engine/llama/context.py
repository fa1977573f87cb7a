"""The working memory of one model: its KV cache, its compute buffers, and what is computed in them."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from edgerag.engine.llama.model import Model
from edgerag.engine.llama.threads import ThreadPool, own_affinity
from edgerag.errors import ModelError, ModelTooLarge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgerag.types import Vectors

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]
# ggml_type
_CACHE_TYPES: dict[CacheType, int] = {
    "f32": 0,
    "f16": 1,
    "q4_0": 2,
    "q4_1": 3,
    "q5_0": 6,
    "q5_1": 7,
    "q8_0": 8,
    "bf16": 30,
}


# Which tokens of a batch give logits; a number: so many at the end.
Outputs = Literal["none", "last", "all"] | int


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """How a context is made. ``batch_tokens`` is the most that one call of ``decode`` takes."""

    context_tokens: int
    batch_tokens: int
    threads: int  # for one token at a time
    prefill_threads: int = 0  # for more; 0: the same
    micro_batch_tokens: int = 0  # computed at once; 0: the whole batch
    sequences: int = 1  # how many token sequences share the cache
    flash_attention: bool = True
    cache_type: CacheType = "f16"  # of K and V
    embeddings: bool = False
    ranks: bool = False  # what is pooled goes through the classifier head: see Context.rank
    output_tokens: int = 0  # the most of a batch whose logits are asked for; 0: all


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens that follow each other in one sequence."""

    tokens: Sequence[int]
    position: int  # of the first
    sequence: int = 0


class Context:
    """Not thread safe, but for :meth:`abort`."""

    def __init__(
        self,
        model: Model,
        settings: ContextSettings,
        *,
        pools: tuple[ThreadPool, ThreadPool] | None = None,
    ) -> None:
        """``pools``: threads for decoding and for prefill, which must outlive the context.

        Raises ModelError when llama.cpp refuses, mostly for want of memory.
        """
        self._model = model
        self._api = model._api
        self.settings = settings
        batch = settings.batch_tokens
        parameters = self._api.llama_context_default_params()
        parameters.n_ctx = settings.context_tokens
        parameters.n_batch = batch
        parameters.n_ubatch = min(settings.micro_batch_tokens or batch, batch)
        parameters.n_seq_max = settings.sequences
        # Sequences share one cache, so that cells can be handed from one to the other.
        parameters.kv_unified = settings.sequences > 1
        parameters.n_threads = settings.threads
        parameters.n_threads_batch = settings.prefill_threads or settings.threads
        parameters.type_k = parameters.type_v = _CACHE_TYPES[settings.cache_type]
        parameters.embeddings = settings.embeddings
        if settings.ranks:
            parameters.pooling_type = self._api.LLAMA_POOLING_TYPE_RANK
        parameters.n_outputs_max = settings.output_tokens
        parameters.no_perf = True
        parameters.swa_full = True  # a sliding-window cache that forgot could not be trimmed and re-used
        parameters.flash_attn_type = (
            self._api.LLAMA_FLASH_ATTN_TYPE_ENABLED
            if settings.flash_attention
            else self._api.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        model._library.mark()
        self._handle: int | None = self._api.llama_init_from_model(model.handle, parameters)
        if not self._handle and model._library.lacked_memory():
            raise ModelTooLarge(
                f"The memory for a context of {settings.context_tokens} tokens cannot be had: "
                f"{model._library.complaint()}.",
                remedy="Set generation.context_tokens lower, or close other programs.",
            )
        if not self._handle:
            raise ModelError(
                f"llama.cpp cannot make a context of {settings.context_tokens} tokens for {model.path}: "
                f"{model._library.complaint() or 'it gives no reason'}.",
                remedy="Ask for a smaller context (generation.context_tokens).",
            )
        self._pools = pools
        if pools is not None:
            attach = self._api._lib.llama_attach_threadpool  # not among the binding's own functions
            attach.argtypes, attach.restype = [ctypes.c_void_p] * 3, None
            attach(self._handle, pools[0].handle, pools[1].handle)
        self._memory = self._api.llama_get_memory(self._handle)
        self.batch_tokens = batch
        self.context_tokens = int(self._api.llama_n_ctx(self._handle))
        # Whether passages can be saved, put back and moved one by one: not in a recurrent state, nor where positions
        # are not turned into the keys.
        self.is_divisible = (
            bool(self._memory)
            and settings.sequences > 1
            and bool(self._api.llama_memory_can_shift(self._memory))
            and not self._api.llama_model_is_recurrent(model.handle)
            and not self._api.llama_model_is_hybrid(model.handle)
        )
        self._buffers = _Batch(self._api, batch)
        self._abort_flag = ctypes.create_string_buffer(2)  # a character and the terminator: see abortable

    @property
    def handle(self) -> int:
        if self._handle is None:
            raise ValueError("the context is closed")
        return self._handle

    def close(self) -> None:
        if self._handle is not None:
            if self._pools is not None:
                detach = self._api._lib.llama_detach_threadpool
                detach.argtypes, detach.restype = [ctypes.c_void_p], None
                detach(self._handle)
            self._api.llama_free(self._handle)
            self._handle = None

    # ------------------------------------------------------------ computing

    def use_threads(self, single: int, several: int) -> None:
        """As many threads from now on for one token, and for several at once."""
        self._api.llama_set_n_threads(self.handle, single, several)

    def decode(self, tokens: Sequence[int], *, position: int) -> bool:
        """Puts ``tokens`` (at most ``batch_tokens``) into sequence 0 of the cache behind ``position`` and computes
        the logits of the last. False when it was aborted; the cache is then as :meth:`held` says."""
        return self.decode_runs([Run(tokens, position)])

    def decode_runs(self, runs: Sequence[Run], *, outputs: Outputs = "last", padding_tokens: int = 0) -> bool:
        """Several runs at once (at most ``batch_tokens`` together), each behind what its sequence holds and in sight
        of that alone; the logits of the last tokens, of all, or of none. False when it was aborted.

        ``padding_tokens``: so many more, of no meaning, are computed behind the last run; they stay in the cache until
        they are trimmed.
        """
        count = self._buffers.fill(runs, outputs=outputs, padding=padding_tokens)
        with self._on_own_processors():
            code = int(self._api.llama_decode(self.handle, self._buffers.batch))
        if code == 2:
            return False
        if code != 0:
            raise ModelError(
                f"llama.cpp failed to decode {count} tokens at {runs[0].position} with {self._model.path} "
                f"(code {code}): {self._model._library.complaint() or 'it gives no reason'}."
            )
        return True

    def logits(self, row: int = -1) -> NDArray[np.float32]:
        """(vocabulary,) float32 of one token of the last batch, or counted from the end (-1) of those that give logits;
        a copy."""
        pointer = self._api.llama_get_logits_ith(self.handle, row)
        if not pointer:
            raise ValueError(f"row {row} of the last batch has no logits")
        return np.ctypeslib.as_array(pointer, (self._model.vocabulary_size,)).copy()

    def _on_own_processors(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._pools is None else own_affinity()

    # ------------------------------------------------------------ the cache

    def held(self, sequence: int = 0) -> int:
        """One more than the last position of ``sequence`` in the cache."""
        return int(self._api.llama_memory_seq_pos_max(self._memory, sequence)) + 1

    def span(self, sequence: int) -> tuple[int, int]:
        """The first position of ``sequence`` in the cache and one more than the last; (-1, 0) when it is empty."""
        return int(self._api.llama_memory_seq_pos_min(self._memory, sequence)), self.held(sequence)

    def trim(self, position: int, sequence: int = 0) -> bool:
        """Forgets everything from ``position`` on. False if this model's cache cannot forget a part."""
        return bool(self._api.llama_memory_seq_rm(self._memory, sequence, position, -1))

    def forget(self, sequence: int, start: int = -1, end: int = -1) -> bool:
        """Forgets the positions ``start`` to ``end`` of ``sequence`` (-1: all of that side)."""
        return bool(self._api.llama_memory_seq_rm(self._memory, sequence, start, end))

    def share(self, source: int, target: int, start: int = -1, end: int = -1) -> None:
        """Lets ``target`` see the cells of ``source`` at those positions too; nothing is copied."""
        self._api.llama_memory_seq_cp(self._memory, source, target, start, end)

    def shift(self, sequence: int, start: int, end: int, by: int) -> None:
        """Moves cells to other positions; the keys are turned to them before the next decode."""
        self._api.llama_memory_seq_add(self._memory, sequence, start, end, by)

    def clear(self) -> None:
        """Forgets everything."""
        self._api.llama_memory_clear(self._memory, True)

    def save(self, sequence: int) -> bytearray:
        """The cells of ``sequence`` as llama.cpp writes them; for :meth:`restore` in a context of the same model and
        cache type. Raises ModelError when llama.cpp cannot."""
        size = int(self._api.llama_state_seq_get_size(self.handle, sequence))
        data = bytearray(size)
        target = (ctypes.c_uint8 * size).from_buffer(data)
        written = int(self._api.llama_state_seq_get_data(self.handle, target, size, sequence))
        del target  # or the bytearray could not be resized
        if written != size or not size:
            raise ModelError(f"llama.cpp cannot save the state of {self._model.path}.")
        return data

    def restore(self, data: memoryview, sequence: int) -> bool:
        """Puts saved cells into ``sequence``, in place of what it held. False when they do not fit into the cache or
        are not of this model; the sequence is then empty."""
        buffer = np.frombuffer(data, np.uint8)
        pointer = buffer.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        read = int(self._api.llama_state_seq_set_data(self.handle, pointer, len(buffer), sequence))
        if read != len(buffer):
            self.forget(sequence)
            return False
        return True

    # ------------------------------------------------------------ stopping

    @contextlib.contextmanager
    def abortable(self) -> Iterator[None]:
        """While open, :meth:`abort` (from any thread) makes a running ``decode`` return False.

        llama.cpp asks a callback between two operations of its graph, a thousand times per batch. A
        Python callback would wait for the interpreter lock each time, so C's own ``strlen`` is given
        instead: it is "true" as soon as the flag's first character is set.
        """
        self._abort_flag[0] = b"\0"
        callback = ctypes.cast(ctypes.CDLL(None).strlen, type(self._api.llama_context_default_params().abort_callback))
        self._api.llama_set_abort_callback(self.handle, callback, ctypes.addressof(self._abort_flag))
        try:
            yield
        finally:
            self._api.llama_set_abort_callback(self.handle, type(callback)(), None)

    def abort(self) -> None:
        self._abort_flag[0] = b"\1"

    # ------------------------------------------------------------ embedding

    def embed(self, tokens: Sequence[int]) -> Vectors:
        """The pooled vector of one text, as the model gives it (not of unit length)."""
        vector = self._pooled(tokens, self._model.dimension)
        if vector is None:
            raise ModelError(f"Embedding {len(tokens)} tokens with {self._model.path} was aborted.")
        return vector

    def rank(self, tokens: Sequence[int], *, rows: NDArray[np.float32] | None = None) -> Vectors | None:
        """What the classifier head says of one text, (classes,); None when it was aborted. With ``rows`` (n, dim) the
        model reads these in place of the vectors that it has for ``tokens``."""
        return self._pooled(tokens, self._model.class_count, rows)

    def _pooled(self, tokens: Sequence[int], size: int, rows: NDArray[np.float32] | None = None) -> Vectors | None:
        self._buffers.fill([Run(tokens, 0)], outputs="all")
        run = self._api.llama_decode if self._memory else self._api.llama_encode
        if self._memory:
            self.clear()
        with self._on_own_processors(), self._buffers.reading(rows):
            code = run(self.handle, self._buffers.batch)
        if code == 2:
            return None
        if code != 0:
            raise ModelError(
                f"llama.cpp failed to read {len(tokens)} tokens with {self._model.path}: "
                f"{self._model._library.complaint() or 'it gives no reason'}."
            )
        pointer = self._api.llama_get_embeddings_seq(self.handle, 0)
        if not pointer:
            raise ModelError(f"{self._model.path} gives no pooled vector; it is neither an embedder nor a reranker.")
        return np.ctypeslib.as_array(pointer, (size,)).astype(np.float32, copy=True)


class _Batch:
    """A ``llama_batch`` over arrays of our own: filling it is five copies, not five writes per token."""

    def __init__(self, api: Any, size: int) -> None:
        self._size = size
        self._tokens = np.zeros(size, np.int32)
        self._positions = np.zeros(size, np.int32)
        self._sequence_counts = np.ones(size, np.int32)
        self._sequences = np.zeros(size, np.int32)
        self._sequence_pointers = self._sequences.ctypes.data + 4 * np.arange(size, dtype=np.uintp)
        self._outputs = np.zeros(size, np.int8)
        self.batch = api.llama_batch()
        for name, array in (
            ("token", self._tokens),
            ("pos", self._positions),
            ("n_seq_id", self._sequence_counts),
            ("seq_id", self._sequence_pointers),
            ("logits", self._outputs),
        ):
            kind = dict(api.llama_batch._fields_)[name]
            setattr(self.batch, name, ctypes.cast(array.ctypes.data, kind))

    def fill(self, runs: Sequence[Run], *, outputs: Outputs, padding: int = 0) -> int:
        """Gives how many tokens the runs have. Raises ValueError when the batch is empty or too large."""
        count = sum(len(run.tokens) for run in runs)
        if not 0 < count <= self._size - padding:
            raise ValueError(f"{count} tokens in one batch of at most {self._size - padding}")
        end = 0
        for run in runs:
            start, end = end, end + len(run.tokens)
            self._tokens[start:end] = run.tokens
            self._positions[start:end] = np.arange(run.position, run.position + end - start)
            self._sequences[start:end] = run.sequence
        last = {"none": 0, "last": 1, "all": count}.get(outputs, 0) if isinstance(outputs, str) else min(outputs, count)
        self._outputs[: count - last] = 0
        self._outputs[count - last : count] = 1
        if padding:
            padded = slice(count, count + padding)
            self._tokens[padded] = self._tokens[count - 1]
            self._positions[padded] = self._positions[count - 1] + np.arange(1, padding + 1)
            self._sequences[padded] = self._sequences[count - 1]
            self._outputs[padded] = 0
        self.batch.n_tokens = count + padding
        return count

    @contextlib.contextmanager
    def reading(self, rows: NDArray[np.float32] | None) -> Iterator[None]:
        """While open, ``rows`` stand in place of the tokens, where there are any."""
        if rows is None:
            yield
            return
        assert rows.dtype == np.float32 and rows.flags.c_contiguous and len(rows) == self.batch.n_tokens
        token = self.batch.token
        self.batch.token = None
        self.batch.embd = ctypes.cast(rows.ctypes.data, type(self.batch.embd))
        try:
            yield
        finally:
            self.batch.token, self.batch.embd = token, None
