"""A chat model at work: prompt in, text out, whole characters at a time."""

from __future__ import annotations

import codecs
import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Literal

from edgerag.engine.chat import ChatEncoder
from edgerag.engine.fit import check_fit
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.kvcache import PrefixCache
from edgerag.engine.llama import Context, Model, Sampler
from edgerag.errors import ModelWrongKind, UsageError
from edgerag.types import CancelCheck, Generated, Message, ModelFile, Sampling

# Prefill is as fast as with more (docs/decisions/020), and the buffers for it stay small.
_BATCH_TOKENS = 512
_PENALTY_TOKENS = 64  # of the answer, that the repeat penalty looks back on
_WATCH_S = 0.03  # how often a running computation looks whether it was cancelled


def open_generator(model: ModelFile, *, context_tokens: int, threads: int) -> LlamaGenerator:
    """Loads a chat model. Raises ModelWrongKind, ModelTooLarge or EngineUnavailable before loading,
    ModelDamaged when llama.cpp refuses the file or its chat template cannot be used."""
    if model.kind != "chat":
        raise ModelWrongKind(
            f"{model.name} is an embedder and cannot answer.", remedy="Name a chat model in models.chat."
        )
    header = read_header(model.path)
    window = min(context_tokens, header.context_tokens or context_tokens)
    check_fit(header, context_tokens=window, batch_tokens=min(window, _BATCH_TOKENS))
    return LlamaGenerator(model, header, context_tokens=window, threads=threads)


class LlamaGenerator:
    """A chat model in memory. Any thread may call it; one answer is made at a time."""

    def __init__(self, model: ModelFile, header: Header, *, context_tokens: int, threads: int) -> None:
        self._name = model.name
        self._context_tokens = context_tokens
        self._lock = threading.Lock()
        with contextlib.ExitStack() as undo:
            self._model = Model(model.path)
            undo.callback(self._model.close)
            if not self._model.has_decoder:
                raise ModelWrongKind(f"{model.path} only reads text: it cannot answer.")
            self._chat = ChatEncoder(self._model, name=model.name, template=header.chat_template)
            self._context = Context(
                self._model,
                context_tokens=context_tokens,
                batch_tokens=min(context_tokens, _BATCH_TOKENS),
                threads=threads,
            )
            undo.pop_all()
        self._cache = PrefixCache(self._context)

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int:
        """Never more than was asked for or than the model was trained for."""
        return self._context_tokens

    def count_tokens(self, text: str) -> int:
        return self._model.count_tokens(text)

    def encode_chat(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The conversation in the model's chat format. Raises ModelDamaged when its template fails on it."""
        return self._chat.encode(messages)

    def generate(
        self, tokens: Sequence[int], *, max_tokens: int, sampling: Sampling, cancelled: CancelCheck
    ) -> Iterator[Generated]:
        """See :class:`edgerag.types.Generator`. ``cancelled`` is asked from a thread of its own while
        llama.cpp computes. Raises UsageError when prompt and answer do not fit the context."""
        if not tokens or max_tokens < 1:
            raise UsageError(f"A prompt of {len(tokens)} tokens and an answer of {max_tokens} make no sense.")
        if len(tokens) + max_tokens > self._context_tokens:
            raise UsageError(
                f"A prompt of {len(tokens)} tokens and an answer of {max_tokens} do not fit a context of "
                f"{self._context_tokens} tokens.",
                remedy="Ask for a shorter answer (generation.answer_tokens) or set generation.context_tokens higher.",
            )
        return self._generate(list(tokens), max_tokens, sampling, cancelled)

    def close(self) -> None:
        """Frees the memory; waits for an answer that is being made."""
        with self._lock:
            self._context.close()
            self._model.close()

    def _generate(
        self, tokens: list[int], max_tokens: int, sampling: Sampling, cancelled: CancelCheck
    ) -> Iterator[Generated]:
        with self._lock, _Watch(self._context, cancelled) as watch, self._sampler(sampling) as sampler:
            position = self._cache.keep_common(tokens)
            while position < len(tokens):
                piece = tokens[position : position + self._context.batch_tokens]
                if watch.cancelled() or not self._cache.decode(piece):
                    yield Generated(text="", token_count=0, stop="cancelled")
                    return
                position += len(piece)
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            count = 0
            stop: Literal["end", "length", "cancelled"] | None = None
            while stop is None:
                token = sampler.sample(self._context)
                if self._model.is_end(token):
                    stop = "end"
                    break
                count += 1
                yield Generated(text=decoder.decode(self._model.piece(token)), token_count=count, stop=None)
                if count == max_tokens:
                    stop = "length"
                elif watch.cancelled() or not self._cache.decode([token]):
                    stop = "cancelled"
            yield Generated(text=decoder.decode(b"", final=True), token_count=count, stop=stop)

    @contextlib.contextmanager
    def _sampler(self, sampling: Sampling) -> Iterator[Sampler]:
        sampler = Sampler(
            self._model,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            repeat_penalty=sampling.repeat_penalty,
            penalty_tokens=_PENALTY_TOKENS,
            seed=sampling.seed,
        )
        try:
            yield sampler
        finally:
            sampler.close()


class _Watch:
    """Aborts a running computation as soon as ``check`` says so; a failing check is passed on."""

    def __init__(self, context: Context, check: CancelCheck) -> None:
        self._context = context
        self._check = check
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="cancel-watch", daemon=True)
        self._abortable = context.abortable()

    def cancelled(self) -> bool:
        """Asked between two computations, in the caller's thread."""
        if self._error is not None:
            raise self._error
        return self._check()

    def __enter__(self) -> _Watch:
        self._abortable.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()
        self._abortable.__exit__(None, None, None)

    def _run(self) -> None:
        while not self._ended.wait(_WATCH_S):
            try:
                stop = self._check()
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for the answer
                self._error, stop = error, True
            if stop:
                self._context.abort()
                return
