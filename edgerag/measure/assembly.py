"""How long a prompt of many chunks takes to put together: from known tokens, from the store, and by tokenising.

The weights are not needed for it: only the vocabulary of the model is loaded, and nothing is computed.
"""

from __future__ import annotations

import dataclasses
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from edgerag.ask.prompt import assemble
from edgerag.config import GenerationSettings
from edgerag.engine.encode import ChatEncoder
from edgerag.engine.gguf import read_header
from edgerag.engine.known_tokens import MOST_TOKENS
from edgerag.engine.llama import Model
from edgerag.errors import EdgeragError
from edgerag.index.token_store import TokenStore
from edgerag.measure.eval.metrics import percentile
from edgerag.measure.questions import sources_of, synthetic_questions
from edgerag.types import EncodedChat, Generator, Message, ModelFile, Prompt, Source

_CHUNK_TOKENS = 160  # the default of chunks.target_tokens
_SEED = 3
_SCOPE = "0" * 32


class Vocabulary:
    """What assembling asks of a chat model, answered by its vocabulary alone."""

    def __init__(
        self, model: Model, template: str, *, context_tokens: int, store: TokenStore | None, most_tokens: int
    ) -> None:
        self.name = "vocabulary"
        self.context_tokens = context_tokens
        self._chat = ChatEncoder(
            model, name=self.name, template=template, store=store, scope=_SCOPE, most_tokens=most_tokens
        )

    def encode_chat(self, messages: Sequence[Message]) -> EncodedChat:
        return self._chat.encode(messages)

    def reading_s(self, _chat: EncodedChat) -> None:
        return None

    def saved(self) -> None:
        self._chat.saved()

    def close(self) -> None:
        self._chat.close()


def measure_assembly(model: ModelFile, *, source_count: int, runs: int) -> dict[str, Any]:
    """The figures, by way, as values for JSON: see bench/prompt_assembly.py. Raises ModelError, EdgeragError where two
    ways gave other tokens."""
    sources = many_sources(source_count)
    settings = GenerationSettings(context_tokens=max(4096, 320 * source_count), answer_tokens=256, reading_s=0)
    template = read_header(model.path).chat_template
    vocabulary = Model(model.path, vocabulary_only=True)
    times: dict[str, list[tuple[float, float]]] = {"known": [], "stored": [], "tokenised": [], "joined": []}
    try:
        with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as folder:

            def opened(*, kept: bool) -> Vocabulary:
                return Vocabulary(
                    vocabulary,
                    template,
                    context_tokens=settings.context_tokens,
                    store=TokenStore(Path(folder)) if kept else None,
                    most_tokens=MOST_TOKENS if kept else 0,
                )

            def prompt_by(generator: Vocabulary) -> Prompt:
                return assemble(
                    "How high is the pressure?",
                    sources=sources,
                    history=(),
                    generator=cast("Generator", generator),  # it answers all that assembling asks
                    settings=settings,
                )

            known, tokenising = opened(kept=True), opened(kept=False)
            wanted = prompt_by(tokenising)
            joined = "".join(str(part) for message in wanted.messages for part in message.parts)
            prompt_by(known)
            known.saved()
            gc.collect()
            gc.freeze()  # what the bench itself holds is not looked through again and again
            for run in range(runs):
                another = opened(kept=True)
                ways: dict[str, Callable[[], Prompt]] = {
                    "known": lambda: prompt_by(known),
                    "stored": lambda another=another: prompt_by(another),  # type: ignore[misc]
                }
                if run % 10 == 0:  # they take long
                    ways["tokenised"] = lambda: prompt_by(tokenising)
                for name, way in ways.items():
                    wall, cpu = time.perf_counter(), time.thread_time()
                    prompt = way()
                    times[name].append((time.perf_counter() - wall, time.thread_time() - cpu))
                    if (prompt.tokens, prompt.passages) != (wanted.tokens, wanted.passages):
                        raise EdgeragError(f"The prompt from {name} chunks has other tokens than that from text.")
                if run % 10 == 0:
                    wall, cpu = time.perf_counter(), time.thread_time()
                    vocabulary.tokenize(joined)
                    times["joined"].append((time.perf_counter() - wall, time.thread_time() - cpu))
                another.close()
            known.close()
    finally:
        gc.unfreeze()
        vocabulary.close()
    figures: dict[str, Any] = {name: _figures(values) for name, values in times.items()}
    figures["prompt"] = {
        "sources": len(wanted.sources),
        "tokens": len(wanted.tokens),
        "ratio_joined_to_known": round(figures["joined"]["median_ms"] / figures["known"]["median_ms"], 1),
        "ratio_tokenised_to_known": round(figures["tokenised"]["median_ms"] / figures["known"]["median_ms"], 1),
    }
    return figures


def many_sources(count: int) -> tuple[Source, ...]:
    """Made-up chunks of the usual length, as the sources of an answer."""
    questions = synthetic_questions(-(-count // 4), passage_tokens=_CHUNK_TOKENS, seed=_SEED)
    sources = [source for question in questions for source in sources_of(question)][:count]
    return tuple(dataclasses.replace(source, number=number) for number, source in enumerate(sources, start=1))


def _figures(values: Sequence[tuple[float, float]]) -> dict[str, Any]:
    wall, cpu = ([1e3 * seconds for seconds in side] for side in zip(*values, strict=True))
    return {
        "runs": len(values),
        "median_ms": round(statistics.median(wall), 4),
        "p99_ms": round(percentile(wall, 99), 4),
        "median_cpu_ms": round(statistics.median(cpu), 4),
        "p99_cpu_ms": round(percentile(cpu, 99), 4),
    }
