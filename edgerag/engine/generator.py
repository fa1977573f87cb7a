"""A chat model at work: prompt in, text out, whole characters at a time."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import hashlib
import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Literal

import numpy as np

from edgerag.engine.encode import ChatEncoder
from edgerag.engine.fit import WhenTight, fit
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.kvcache import SEQUENCES, PromptCache, Recompute
from edgerag.engine.llama import Context, ContextSettings, LoadMode, Model, Sampler
from edgerag.engine.llama.threads import ThreadPool, make_pool
from edgerag.engine.lookup import LONGEST_DRAFT, DraftLength, Lookup
from edgerag.engine.probe import engine_fingerprint
from edgerag.engine.sampling import SamplingWishes, model_sampling, resolve
from edgerag.engine.states.store import StateStore
from edgerag.engine.stops import StopStrings
from edgerag.engine.token_clock import TokenClock
from edgerag.engine.watch import Watch
from edgerag.errors import Cancelled, ModelDamaged, ModelWrongKind, UsageError
from edgerag.types import (
    CancelCheck,
    EncodedChat,
    Generated,
    Judgement,
    Message,
    ModelFile,
    PassageSpan,
    Prefill,
    Sampling,
    TokenStore,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Prefill is as fast as with more (docs/decisions/020), and the buffers for it stay small.
BATCH_TOKENS = 512
# Of a text whose likelihood is asked for. A question is shorter, and for each llama.cpp holds a row of logits.
WEIGHED_TOKENS = 48
_TOKENS_VERSION = "1"  # of how texts are tokenised here: see encode.py
_STATES_VERSION = "2"  # of what a state holds: see PassageSpan and kvcache.py


@dataclass(frozen=True, slots=True)
class GeneratorSettings:
    """How a chat model is run."""

    context: ContextSettings
    decode_cpus: tuple[int, ...] = ()  # logical processors, one thread on each; () leaves them to the system
    prefill_cpus: tuple[int, ...] = ()
    load_mode: LoadMode = "auto"
    repack: bool = True
    when_tight: WhenTight = "refuse"  # when the context does not fit into the free memory
    passages: Literal["exact", "spliced"] = "exact"  # see kvcache.py
    link_tokens: int = 0
    recompute: Recompute = "none"
    speculation: Literal["lookup", "off"] = "lookup"
    prefill_tps: float = 0.0  # tokens of a prompt per second as measured before; 0: not known


def plain_settings(*, context_tokens: int, threads: int) -> GeneratorSettings:
    """Without anything that was measured on this machine."""
    return GeneratorSettings(
        context=ContextSettings(context_tokens=context_tokens, batch_tokens=BATCH_TOKENS, threads=threads)
    )


def open_generator(
    model: ModelFile,
    settings: GeneratorSettings,
    *,
    states: StateStore | None = None,
    tokens: TokenStore | None = None,
) -> LlamaGenerator:
    """Loads a chat model. ``states``: where computed passages are kept; ``tokens``: where their tokens are.

    Raises ModelWrongKind, ModelTooLarge or EngineUnavailable before loading, ModelDamaged when llama.cpp refuses the
    file or its chat template cannot be used.
    """
    if model.kind != "chat":
        raise ModelWrongKind(
            f"{model.name} is an embedder and cannot answer.", remedy="Name a chat model in models.chat."
        )
    header = read_header(model.path)
    window = min(settings.context.context_tokens, header.context_tokens or settings.context.context_tokens)
    context = dataclasses.replace(
        settings.context,
        context_tokens=window,
        batch_tokens=min(window, settings.context.batch_tokens),
        sequences=SEQUENCES,
        output_tokens=max(LONGEST_DRAFT + 1, WEIGHED_TOKENS),
    )
    fitting = fit(header, context, when_tight=settings.when_tight)
    settings = dataclasses.replace(settings, context=fitting.settings)
    return LlamaGenerator(model, header, settings, states=states, tokens=tokens, note=fitting.note)


class LlamaGenerator:
    """A chat model in memory. Any thread may call it; one answer is made at a time."""

    def __init__(
        self,
        model: ModelFile,
        header: Header,
        settings: GeneratorSettings,
        *,
        states: StateStore | None,
        tokens: TokenStore | None = None,
        note: str = "",
    ) -> None:
        self._name = model.name
        self._settings = settings
        asks = model_sampling(header)
        self._wishes = asks.wishes
        self._told_once = tuple(filter(None, (note, *asks.ignored)))  # with the first answer
        self._lock = threading.Lock()
        with contextlib.ExitStack() as undo:
            self._model = Model(model.path, load_mode=settings.load_mode, repack=settings.repack)
            undo.callback(self._model.close)
            if not self._model.has_decoder:
                raise ModelWrongKind(f"{model.path} only reads text: it cannot answer.")
            self._chat = ChatEncoder(
                self._model,
                name=model.name,
                template=header.chat_template,
                store=tokens,
                scope=_tokens_scope(model),
            )
            undo.callback(self._chat.close)
            self._pools = _pools(settings)
            for pool in self._pools or ():
                undo.callback(pool.close)
            self._context = Context(self._model, settings.context, pools=self._pools)
            undo.pop_all()
        self._cache = PromptCache(
            self._context,
            store=states,
            scope=_scope(model, settings),
            link_tokens=settings.link_tokens,
            recompute=settings.recompute,
        )
        self._prefill_s = 1 / settings.prefill_tps if settings.prefill_tps else None  # per token

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int:
        """Never more than was asked for, than the model was trained for, or than fits."""
        return self._settings.context.context_tokens

    def count_tokens(self, text: str) -> int:
        return self._model.count_tokens(text)

    def encode_chat(self, messages: Sequence[Message]) -> EncodedChat:
        """The conversation in the model's chat format. Raises ModelDamaged when its template fails on it."""
        return self._chat.encode(messages)

    def encode_text(self, text: str) -> tuple[int, ...]:
        """``text`` in tokens, none of which has a meaning to the model beyond the text."""
        return tuple(self._chat.plain_tokens(text))

    def reading_s(self, chat: EncodedChat) -> float | None:
        """See :class:`edgerag.types.Generator`. The speed is that of the last prompts, and before the first one that
        was measured when the model was tuned."""
        with self._lock:
            per_token = self._cache.seconds_per_token or self._prefill_s
            if per_token is None:
                return None
            return per_token * self._cache.uncomputed(
                chat.tokens, chat.passages, splice=self._settings.passages == "spliced"
            )

    def prepare(self, messages: Sequence[Message]) -> None:
        """Computes what the prompt of ``messages`` begins with, unless the cache holds more than that already."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            opening = self._chat.opening(messages)
            if opening and self._cache.tokens[: len(opening)] != opening:
                context = self._settings.context
                self._context.use_threads(context.threads, context.prefill_threads or context.threads)
                self._cache.fill(opening, splice=False, cancelled=lambda: False)
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Empties the cache; what is saved stays saved."""
        with self._lock:
            self._cache.forget()

    def saved(self) -> None:
        """Waits until all that was computed so far is saved."""
        self._chat.saved()
        self._cache.saved()

    def generate(
        self,
        tokens: Sequence[int],
        *,
        passages: Sequence[PassageSpan] = (),
        max_tokens: int,
        sampling: Sampling,
        cancelled: CancelCheck,
    ) -> Iterator[Generated]:
        """See :class:`edgerag.types.Generator`. ``cancelled`` is asked from a thread of its own while
        llama.cpp computes. Raises UsageError when prompt and answer do not fit the context."""
        if not tokens or max_tokens < 1:
            raise UsageError(f"A prompt of {len(tokens)} tokens and an answer of {max_tokens} make no sense.")
        if len(tokens) + max_tokens > self.context_tokens:
            raise UsageError(
                f"A prompt of {len(tokens)} tokens and an answer of {max_tokens} do not fit a context of "
                f"{self.context_tokens} tokens.",
                remedy="Ask for a shorter answer (generation.answer_tokens) or set generation.context_tokens higher.",
            )
        return self._generate(list(tokens), tuple(passages), max_tokens, sampling, cancelled)

    def weigh(
        self,
        tokens: Sequence[int],
        *,
        passages: Sequence[PassageSpan] = (),
        words: Sequence[str],
        others: Sequence[str],
        cancelled: CancelCheck,
    ) -> Judgement:
        """See :class:`edgerag.types.Weighing`."""
        wanted, against = self._first_tokens(words), self._first_tokens(others)
        both = wanted & against
        wanted, against = wanted - both, against - both
        if not wanted or not against:
            raise ModelWrongKind(f"{self._name} cannot tell {' '.join(words)} from {' '.join(others)} by one token.")
        (logits,), is_whole = self._logits(tokens, passages, cancelled, rows=1)
        odds = _log_sum(logits[sorted(wanted)]) - _log_sum(logits[sorted(against)])
        return self._judgement(odds, is_whole)

    def likelihood(
        self,
        tokens: Sequence[int],
        text: str,
        *,
        passages: Sequence[PassageSpan] = (),
        cancelled: CancelCheck,
    ) -> Judgement:
        """See :class:`edgerag.types.Weighing`."""
        reply = self._chat.plain_tokens(text)[:WEIGHED_TOKENS]
        if not reply:
            return Judgement(0.0)
        all_logits, is_whole = self._logits([*tokens, *reply[:-1]], passages, cancelled, rows=len(reply))
        total = sum(float(row[token]) - _log_sum(row) for row, token in zip(all_logits, reply, strict=True))
        return self._judgement(total, is_whole)

    def _logits(
        self, tokens: Sequence[int], passages: Sequence[PassageSpan], cancelled: CancelCheck, *, rows: int
    ) -> tuple[list[NDArray[np.float32]], bool]:
        """Those behind each of the last ``rows`` tokens, and whether no passage was restored."""
        if not 0 < len(tokens) < self.context_tokens:
            raise UsageError(f"A prompt of {len(tokens)} tokens does not fit a context of {self.context_tokens}.")
        with self._lock, Watch(self._context, cancelled) as watch:
            threads = self._settings.context.threads
            self._context.use_threads(threads, self._settings.context.prefill_threads or threads)
            # One passage, at home: where it is restored it is exact, and splicing would compute the last one anew.
            prefill = self._cache.fill(
                list(tokens), tuple(passages), splice=False, cancelled=watch.cancelled, rows=rows
            )
            found = [self._context.logits(row) for row in range(-rows, 0)]
        return found, not prefill.restored_tokens

    def _judgement(self, log_odds: float, is_whole: bool) -> Judgement:
        if not math.isfinite(log_odds):
            raise ModelDamaged(f"{self._model.path} gives logits that are not numbers.")
        return Judgement(log_odds, is_whole=is_whole)

    def _first_tokens(self, words: Sequence[str]) -> set[int]:
        return {tokens[0] for tokens in map(self._chat.plain_tokens, words) if tokens}

    def close(self) -> None:
        """Frees the memory; waits for an answer that is being made, and for states that are being saved."""
        with self._lock:
            self._chat.close()
            self._cache.close()
            self._context.close()
            for pool in self._pools or ():
                pool.close()
            self._model.close()

    # ------------------------------------------------------------ an answer

    def _generate(
        self,
        tokens: list[int],
        passages: tuple[PassageSpan, ...],
        max_tokens: int,
        sampling: Sampling,
        cancelled: CancelCheck,
    ) -> Iterator[Generated]:
        with self._lock, Watch(self._context, cancelled) as watch, self._sampler(sampling) as sampler:
            threads = self._settings.context.threads
            self._context.use_threads(threads, self._settings.context.prefill_threads or threads)
            try:
                prefill = self._cache.fill(
                    tokens, passages, splice=self._settings.passages == "spliced", cancelled=watch.cancelled
                )
            except Cancelled:
                yield Generated(text="", token_count=0, stop="cancelled")
                return
            self._context.use_threads(threads, threads)  # a draft is decoding too
            yield Generated(text="", token_count=0, stop=None, prefill=self._with_notes(prefill))
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            stops = StopStrings(self._chat.stops)
            count = 0
            stop: Literal["end", "length", "cancelled"] = "length"
            clock = TokenClock()
            for token in self._tokens(tokens, max_tokens, sampler, watch, clock):
                if token is None:
                    stop = "cancelled"
                    break
                if self._model.is_end(token):
                    stop = "end"
                    break
                count += 1
                began_ns = perf_counter_ns()
                text = stops.feed(decoder.decode(self._model.piece(token)))
                timing = clock.token(detokenise_ns=perf_counter_ns() - began_ns)
                yield Generated(text=text, token_count=count, stop=None, timing=timing)
                if stops.reached:
                    stop = "end"
                    break
            rest = stops.feed(decoder.decode(b"", final=True)) + stops.finish()
            yield Generated(text=rest, token_count=count, stop=stop)

    def _tokens(
        self, prompt: Sequence[int], max_tokens: int, sampler: Sampler, watch: Watch, clock: TokenClock
    ) -> Iterator[int | None]:
        """The tokens of the answer, ``max_tokens`` at most; None when it was cancelled.

        What is drafted is decoded together with the token before it, and each token is sampled from the row that it
        has there: the sampler sees the same logits, one after the other, as without drafts.
        """
        drafting = self._settings.speculation == "lookup" and self._context.is_divisible
        lookup: Lookup | None = None
        drafts = DraftLength()
        token = clock.sampled(sampler.sample, self._context)
        left = max_tokens
        while True:
            yield token
            left -= 1
            if left == 0:
                return
            draft: list[int] = []
            match = 0
            if drafting and lookup is None:
                lookup = Lookup(prompt)  # the first token does not wait for it
            if lookup is not None:
                lookup.add(token)
                draft, match = lookup.propose(min(LONGEST_DRAFT, left - 1))
                draft = draft[: drafts.best(match)] if draft else draft
            held = len(self._cache.tokens)
            if watch.cancelled() or not clock.decoded(self._cache.append, [token, *draft]):
                yield None
                return
            right = 0
            token = clock.sampled(sampler.sample, self._context, 0)
            while right < len(draft) and token == draft[right]:
                yield token
                left -= 1
                if left == 0:
                    self._cache.trim(held + 1 + right)
                    return
                if lookup is not None:
                    lookup.add(token)
                right += 1
                token = clock.sampled(sampler.sample, self._context, right)
            if draft:
                drafts.learn(match, right=right, drafted=len(draft))
                self._cache.trim(held + 1 + right)

    @contextlib.contextmanager
    def _sampler(self, sampling: Sampling) -> Iterator[Sampler]:
        asked = SamplingWishes(
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            min_p=sampling.min_p,
            repeat_penalty=sampling.repeat_penalty,
        )
        chosen = resolve(asked, self._wishes)
        sampler = Sampler(
            self._model,
            temperature=chosen.temperature,
            top_k=chosen.top_k,
            top_p=chosen.top_p,
            min_p=chosen.min_p,
            repeat_penalty=chosen.repeat_penalty,
            penalty_tokens=chosen.penalty_tokens,
            seed=sampling.seed,
        )
        try:
            yield sampler
        finally:
            sampler.close()

    def _with_notes(self, prefill: Prefill) -> Prefill:
        """What had to be changed to load the model is told once, with the first answer."""
        told, self._told_once = self._told_once, ()
        return dataclasses.replace(prefill, notes=(*told, *prefill.notes)) if told else prefill


def _log_sum(logits: NDArray[np.float32]) -> float:
    """The logarithm of the sum of their exponentials."""
    most = float(logits.max())
    return most + math.log(float(np.exp(logits - most).sum(dtype=np.float64)))


def _pools(settings: GeneratorSettings) -> tuple[ThreadPool, ThreadPool] | None:
    """Threads on the processors of the plan, for decoding and for prefill; None where the system places them."""
    made = [make_pool(cpus) for cpus in (settings.decode_cpus, settings.prefill_cpus)]
    pools = [pool for pool in made if pool is not None]
    if len(pools) == len(made):
        return pools[0], pools[1]
    for pool in pools:
        pool.close()
    return None


def _tokens_scope(model: ModelFile) -> str:
    """All that the tokens of a text depend on: the file's vocabulary, and how this engine reads it."""
    parts = (_TOKENS_VERSION, model.sha256, engine_fingerprint())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _scope(model: ModelFile, settings: GeneratorSettings) -> str:
    """All that a saved state depends on but its tokens: weights, how they are computed, engine and processor.

    Spliced and exact prompts keep their states apart: where cells of other passages lie between those of a state and
    what is before them, llama.cpp adds up in another order, and exact prompts shall not depend on that.
    """
    context = settings.context
    how = (
        settings.passages,
        context.cache_type,
        str(context.flash_attention),
        str(settings.repack),
        engine_fingerprint(),
    )
    parts = (_STATES_VERSION, model.sha256, *how)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
