"""Speed and quality of one choice on this machine, always beside the one that it would replace.

A piece of work is about half a second, so that two of them see the same machine; how many tokens that is, the model
shows first. A context like that of the program is used: its sequences share one cache.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from edgerag.engine.fit import fit
from edgerag.engine.gguf import read_header
from edgerag.engine.kvcache import SEQUENCES
from edgerag.engine.llama import Context, Model
from edgerag.engine.llama.threads import ThreadPool, make_pool
from edgerag.engine.tuning import drafts, perplexity, waiting
from edgerag.engine.tuning.apply import Processors, context_settings, pinned_cpus
from edgerag.engine.tuning.budget import Budget
from edgerag.engine.tuning.choice import Choice, Decides
from edgerag.engine.tuning.paired import Round, Speed
from edgerag.errors import ModelError, ModelTooLarge
from edgerag.machine.load import OthersLoad
from edgerag.types import ModelFile

_PIECE_S = 0.6
_LEAST_PROMPT, _MOST_PROMPT = 32, 1024  # tokens
_LEAST_ANSWER, _MOST_ANSWER = 4, 48
_WARM_TOKENS = 16
_LONGEST_PIECE_S = 2.5
_QUALITY_S = 8.0  # for the perplexity of one choice


class Measurer(Protocol):
    """What a search asks of the machine."""

    def first(self, choice: Choice) -> Speed:
        """The speed of the choice that all begins with."""
        ...

    def rounds(self, standing: Choice, candidate: Choice, decides: Decides) -> Iterator[Round]:
        """One round after the other, without end. Raises ModelError or StorageFull where the candidate cannot be
        run here, Stopped."""
        ...

    def perplexity(self, choice: Choice) -> float:
        """On the bundled text. Raises ModelError when that would take too long here, Stopped."""
        ...

    def others(self) -> float:
        """How many cores other programs kept busy since this was asked last."""
        ...


@dataclass(slots=True)
class _Opened:
    model: Model
    context: Context


class Bench:
    """Measures one model file. At most two settings are open at a time, and two only where both have room."""

    def __init__(
        self, model: ModelFile, cpus: Processors, *, budget: Budget, provide: Callable[[str], None], context_tokens: int
    ) -> None:
        """``provide`` makes the requantised file of that name; ``context_tokens`` is what the program will ask for,
        which must fit."""
        self._model = model
        self._cpus = cpus
        self._budget = budget
        self._provide = provide
        self._wanted_tokens = context_tokens
        self._models: dict[tuple[object, ...], Model] = {}
        self._opened: dict[Choice, _Opened] = {}
        self._pools: dict[tuple[int, ...], ThreadPool | None] = {}
        self._perplexities: dict[tuple[str, bool, str], float] = {}
        self._quality_count = 0
        self._prose: list[int] = []
        self._prompt_tokens = _LEAST_PROMPT
        self._answer_tokens = _LEAST_ANSWER
        self._speed = Speed()  # the last seen
        self._load = OthersLoad({*cpus.prefill, *cpus.decode})

    def close(self) -> None:
        self._keep()
        for pool in self._pools.values():
            if pool is not None:
                pool.close()
        self._pools.clear()

    # ------------------------------------------------------------ what a search asks

    def first(self, choice: Choice) -> Speed:
        self._gauge(choice)
        return self._measure(choice, "answer", self._prompt_tokens, beside=[choice])

    def rounds(self, standing: Choice, candidate: Choice, decides: Decides) -> Iterator[Round]:
        if not self._speed.prefill_tps:
            self._gauge(standing)
        if standing.wait_policy != candidate.wait_policy:
            self._keep()
            yield from waiting.rounds(
                self._model, self._cpus, standing, candidate, answer_tokens=self._answer_tokens, budget=self._budget
            )
        elif standing.speculation != candidate.speculation:
            tokens = self._tokens(standing)
            self._keep()
            yield from drafts.rounds(
                self._model, self._cpus, standing, candidate, tokens, speed=self._speed, budget=self._budget
            )
        else:
            yield from self._in_turns(standing, candidate, decides)

    def perplexity(self, choice: Choice) -> float:
        known = self._perplexities.get(choice.numerics)
        if known is not None:
            return known
        prose = self._tokens(choice)
        count = self._quality_tokens(len(prose))
        batch = perplexity.BATCH_TOKENS
        settings = replace(
            context_settings(choice, context_tokens=perplexity.WINDOW_TOKENS),
            batch_tokens=batch,
            micro_batch_tokens=batch,
        )
        context = Context(self._open(choice).model, settings, pools=self._pools_of(choice))
        try:
            losses = perplexity.log_losses(context, prose[:count], budget=self._budget)
        finally:
            context.close()
        self._perplexities[choice.numerics] = perplexity.perplexity(losses)
        return self._perplexities[choice.numerics]

    def others(self) -> float:
        return self._load.cores()

    def _quality_tokens(self, most: int) -> int:
        """How much text is read for the perplexity: the same for all choices."""
        if not self._quality_count:
            # Every logit of the text is computed, which is slower than reading a prompt.
            count = min(most, int(self._speed.prefill_tps / 2 * _QUALITY_S))
            if count < perplexity.FEWEST_TOKENS:
                raise ModelError("Its quality cannot be compared: reading enough text would take too long here.")
            self._quality_count = count - count % perplexity.WINDOW_TOKENS if count < most else count
        return self._quality_count

    # ------------------------------------------------------------ pieces of work

    def _gauge(self, choice: Choice) -> None:
        """How many tokens are a piece of work, from ever larger ones."""
        opened = self._open(choice)
        tokens = _WARM_TOKENS
        while True:
            speed = self._prefill(opened, tokens)
            longer = _whole(speed * _PIECE_S)
            if longer <= 2 * tokens or tokens == _MOST_PROMPT:
                break
            tokens = min(longer, 4 * tokens)
        self._learn(Speed(speed, self._decode(opened, _LEAST_ANSWER)))
        self._learn(self._measure(choice, "answer", self._prompt_tokens, beside=[choice]))

    def _learn(self, *speeds: Speed) -> None:
        """The size of the next pieces follows the speed that was seen last: a machine changes its mood."""
        prefill, decode = (max(found, default=0.0) for found in zip(*map(dataclasses.astuple, speeds), strict=True))
        self._speed = Speed(prefill or self._speed.prefill_tps, decode or self._speed.decode_tps)
        self._prompt_tokens = _whole(self._speed.prefill_tps * _PIECE_S)
        self._answer_tokens = round(min(_MOST_ANSWER, max(_LEAST_ANSWER, self._speed.decode_tps * _PIECE_S)))

    def _in_turns(self, standing: Choice, candidate: Choice, decides: Decides) -> Iterator[Round]:
        prompt_tokens = 0
        if standing.micro_batch_tokens != candidate.micro_batch_tokens:
            # Prompts shorter than both sizes would show no difference.
            prompt_tokens = max(standing.micro_batch_tokens, candidate.micro_batch_tokens)
            if prompt_tokens > self._speed.prefill_tps * _LONGEST_PIECE_S:
                raise ModelError(f"A prompt of {prompt_tokens} tokens takes too long here to compare.")
        speeds: dict[Choice, Speed] = {}
        pair = [standing, candidate]
        while True:
            tokens = prompt_tokens or self._prompt_tokens
            for choice in pair:
                self._budget.check()
                speeds[choice] = self._measure(choice, decides, tokens, beside=pair)
            self._learn(*speeds.values())
            yield Round(speeds[standing], speeds[candidate])
            pair.reverse()  # so that neither always comes first

    def _measure(self, choice: Choice, decides: Decides, prompt_tokens: int, *, beside: list[Choice]) -> Speed:
        opened = self._open(choice, beside=beside)
        if decides == "decode":
            return Speed(decode_tps=self._decode(opened, self._answer_tokens))
        prefill_tps = self._prefill(opened, prompt_tokens)
        if decides == "prefill":
            return Speed(prefill_tps)
        return Speed(prefill_tps, self._decode(opened, self._answer_tokens, prompt_held=True))

    def _prefill(self, opened: _Opened, count: int) -> float:
        """Tokens per second of a prompt of ``count`` tokens, which is held afterwards."""
        context, tokens = opened.context, self._text(opened.model, count)
        context.clear()
        began = time.perf_counter()
        for start in range(0, count, context.batch_tokens):
            self._budget.check()
            context.decode(tokens[start : start + context.batch_tokens], position=start)
        return count / (time.perf_counter() - began)

    def _decode(self, opened: _Opened, count: int, *, prompt_held: bool = False) -> float:
        """Tokens per second, one at a time, behind a prompt."""
        context = opened.context
        if not prompt_held:
            self._prefill(opened, _WARM_TOKENS)
        position, tokens = context.held(), self._text(opened.model, count)
        began = time.perf_counter()
        for done, token in enumerate(tokens, start=1):
            self._budget.check()
            context.decode([token], position=position + done - 1)
            if time.perf_counter() - began > _LONGEST_PIECE_S:
                break
        return done / (time.perf_counter() - began)

    def _text(self, model: Model, count: int) -> list[int]:
        if not self._prose:
            self._prose = model.tokenize(perplexity.read_prose(), add_ends=False)
        return (self._prose * (1 + count // len(self._prose)))[:count]

    def _tokens(self, choice: Choice) -> list[int]:
        return self._text(self._open(choice).model, 1) and self._prose

    # ------------------------------------------------------------ what is open

    def _open(self, choice: Choice, *, beside: list[Choice] | None = None) -> _Opened:
        """Opens a choice; ``beside``: those that may stay open."""
        if choice in self._opened:
            return self._opened[choice]
        self._keep(*(beside or ()), choice)
        if choice.weights:
            self._provide(choice.weights)
        path = self._model.path.parent / choice.weights if choice.weights else self._model.path
        header = read_header(path)
        settings = context_settings(choice, context_tokens=self._wanted_tokens, sequences=SEQUENCES)
        key = (choice.weights, choice.load_mode, choice.repack)
        if key not in self._models:
            try:
                fit(header, settings, when_tight="refuse")
            except ModelTooLarge:
                if not self._models:
                    raise
                self._keep()  # it has room when it is alone
                fit(header, settings, when_tight="refuse")
            self._models[key] = Model(path, load_mode=choice.load_mode, repack=choice.repack)
        most = max(_MOST_PROMPT, choice.micro_batch_tokens) + _MOST_ANSWER
        window = min(header.context_tokens or most, most)
        settings = replace(settings, context_tokens=window, batch_tokens=min(choice.batch_tokens, window))
        context = Context(self._models[key], settings, pools=self._pools_of(choice))
        opened = self._opened[choice] = _Opened(self._models[key], context)
        self._prefill(opened, _WARM_TOKENS)  # the weights come from the disk, the buffers are made
        return opened

    def _keep(self, *choices: Choice) -> None:
        """Closes what is open but for ``choices``."""
        for choice in [one for one in self._opened if one not in choices]:
            self._opened.pop(choice).context.close()
        wanted = {(one.weights, one.load_mode, one.repack) for one in choices}
        for key in [key for key in self._models if key not in wanted]:
            self._models.pop(key).close()

    def _pools_of(self, choice: Choice) -> tuple[ThreadPool, ThreadPool] | None:
        found = []
        for cpus in pinned_cpus(choice, self._cpus):
            if cpus not in self._pools:
                self._pools[cpus] = make_pool(cpus)
            found.append(self._pools[cpus])
        decode, prefill = found
        return None if decode is None or prefill is None else (decode, prefill)


@contextlib.contextmanager
def open_bench(
    model: ModelFile, cpus: Processors, *, budget: Budget, provide: Callable[[str], None], context_tokens: int
) -> Iterator[Bench]:
    bench = Bench(model, cpus, budget=budget, provide=provide, context_tokens=context_tokens)
    try:
        yield bench
    finally:
        bench.close()


def _whole(tokens: float) -> int:
    """A multiple of 32 between the least and the most, as the kernels like it."""
    return min(_MOST_PROMPT, max(_LEAST_PROMPT, int(tokens) // 32 * 32))
