"""Where the time of an answer goes: stages, reading against writing, the same in other weights, cores."""

from __future__ import annotations

import dataclasses
import os
import statistics
import time
from collections.abc import Callable, Mapping

from edgerag.ask.latency import observation_of
from edgerag.ask.pipeline import ask
from edgerag.engine.generator import GeneratorSettings, LlamaGenerator
from edgerag.engine.llama import quantize
from edgerag.errors import EdgeragError
from edgerag.machine.plan import plan_cores
from edgerag.machine.topology import read_topology
from edgerag.measure.assembly import many_sources, measure_assembly
from edgerag.measure.field.overlapping import overlap
from edgerag.measure.field.scratch import Scratch
from edgerag.measure.field.series import PartResult, Versus, timed
from edgerag.types import Answer, AnswerDone, Message, Sampling

_GREEDY = Sampling(temperature=0.0, top_p=1.0, repeat_penalty=1.0, seed=0)
_READ_TOKENS = 256  # of a prompt whose speed is measured
_WRITTEN_TOKENS = 32
_WEIGHTS = ("Q4_0", "Q8_0", "F16")
# Larger ones take minutes and gigabytes to requantise.
_LARGEST_REQUANTISED_BYTES = 700_000_000
_SOURCES_PER_PROMPT = 20
_SEARCHING = ("plan", "keyword", "words", "embed", "vector", "fuse", "rerank")


def never() -> bool:
    return False


def answered(bench: Scratch, question: str) -> Answer:
    """The answer to ``question``, made as the program makes it."""
    events = ask(
        question,
        library=bench.library,
        embedder=lambda: bench.embedder,
        generator=lambda: bench.generator,
        retrieval=bench.settings.retrieval,
        generation=bench.settings.generation,
        cancelled=never,
    )
    answer = next(event.answer for event in events if isinstance(event, AnswerDone))
    seen = observation_of(answer, answer_tokens=bench.settings.generation.answer_tokens)
    bench.observations += [seen] if seen is not None else []
    return answer


def stages(bench: Scratch) -> PartResult:
    """The share of each stage in the time of an answer."""
    name, turns = "stages", bench.turns()
    first, *asked = bench.questions[: 1 + bench.effort.asked]
    answered(bench, first.question)  # loads the models
    found: list[Answer] = []

    def one(question: str) -> float:
        began = time.perf_counter()
        found.append(answered(bench, question))
        return time.perf_counter() - began

    for question in asked:
        turns.once("answer", lambda question=question: one(question.question))  # type: ignore[misc]
    shares: dict[str, list[float]] = {}
    for answer in found:
        seconds = {time_.stage: time_.seconds for time_ in answer.timings}
        seconds["reading"] = seconds.pop("first_token", 0.0)
        total = seconds.pop("total")
        for stage, taken in seconds.items():
            shares.setdefault(stage, []).append(taken / total)
    figures = {f"share_{stage}": round(statistics.median(values), 4) for stage, values in shares.items()}
    searching = sum(figures.get(f"share_{stage}", 0.0) for stage in _SEARCHING)
    return PartResult(
        name,
        "Which share of an answer's time does each stage take?",
        (turns.series("answer", part=name, unit="s", better="less"),),
        (),
        {**figures, "searching_share": round(searching, 4)},
        (f"Medians over {bench.effort.asked} questions about made-up manuals, answers of at most "
         f"{bench.effort.answer_tokens} tokens; a stage that runs beside another counts as far as it was waited for.",),
    )  # fmt: skip


def reading_and_writing(bench: Scratch) -> PartResult:
    """Prefill against decode: tokens per second, and how far apart."""
    name, turns = "prefill_decode", bench.turns()
    tokens = _prompt_tokens(bench.generator, _READ_TOKENS)

    def read() -> float:
        bench.generator.forget()
        return len(tokens) / _first_token_s(bench.generator, tokens)

    def write() -> float:
        return _decode_tps(bench.generator, tokens, _WRITTEN_TOKENS)

    turns.go({"prefill": read, "decode": write}, rounds=bench.effort.rounds)
    prefill = turns.series("prefill", part=name, unit="tokens/s", better="more")
    decode = turns.series("decode", part=name, unit="tokens/s", better="more")
    return PartResult(
        name,
        "How fast does the model read, and how fast does it write?",
        (prefill, decode),
        (),
        {"mismatch": round(prefill.median / decode.median, 2), "model": bench.chat_model.name},
        (f"Writing one token takes as long as reading {prefill.median / decode.median:.1f}: "
         "what is read once and kept is cheaper than a longer answer.",),
    )  # fmt: skip


def weights(bench: Scratch) -> PartResult:
    """First token with the same model in Q4_0, Q8_0 and F16."""
    name, turns, notes = "weights", bench.turns(), []
    model, _ = bench.tuned
    if model.size_bytes > _LARGEST_REQUANTISED_BYTES:
        return PartResult(
            name,
            "How much sooner does the first word come with smaller weights?",
            notes=(f"Not measured: {model.name} has {model.size_bytes / 1e6:,.0f} MB, too much to make three files of. "
                   "`edgerag models tune --requantise Q4_0` compares two types of it.",),
        )  # fmt: skip
    made: dict[str, LlamaGenerator] = {}
    sizes: dict[str, int] = {}
    try:
        for weight_type in _WEIGHTS:
            file = bench.folder / f"{weight_type}.gguf"
            quantize(model.path, file, weight_type=weight_type, threads=os.cpu_count() or 1, metadata={})
            sizes[weight_type] = file.stat().st_size
            twin = dataclasses.replace(model, path=file, size_bytes=sizes[weight_type])
            made[weight_type] = bench.open_generator(file=twin, change=_exact)
        tokens = _prompt_tokens(made["Q8_0"], _READ_TOKENS)

        def first_token(generator: LlamaGenerator) -> float:
            generator.forget()
            return _first_token_s(generator, tokens)

        turns.go(
            {weight_type: lambda g=generator: first_token(g) for weight_type, generator in made.items()},  # type: ignore[misc]
            rounds=bench.effort.rounds,
        )
    finally:
        for generator in made.values():
            generator.close()
    series = tuple(turns.series(weight_type, part=name, unit="s", better="less") for weight_type in _WEIGHTS)
    notes.append(
        f"{len(tokens)} tokens are read. The three files were made here from {model.path.name}, for their speed: what "
        "they would answer is not that of files made from full weights (`edgerag models add FILE` takes in such)."
    )
    return PartResult(
        name,
        "How much sooner does the first word come with smaller weights?",
        series,
        tuple(
            Versus(weight_type, "F16", f"{name}.{weight_type}", f"{name}.F16")
            for weight_type in _WEIGHTS
            if weight_type != "F16"
        ),
        {f"{weight_type}_bytes": size for weight_type, size in sizes.items()},
        tuple(notes),
    )


def pinning(bench: Scratch) -> PartResult:
    """Threads held on their processors, against threads that the system places."""
    name, question = "pinning", "Does it help to hold threads on their processors?"
    plan = plan_cores(read_topology(), threads=bench.settings.machine.threads)
    if not hasattr(os, "sched_setaffinity"):
        return PartResult(name, question, notes=("Not measured: this system has no call to pin a thread.",))

    def with_cpus(
        decode: tuple[int, ...], prefill: tuple[int, ...]
    ) -> Callable[[GeneratorSettings], GeneratorSettings]:
        return lambda settings: dataclasses.replace(_exact(settings), decode_cpus=decode, prefill_cpus=prefill)

    pinned = bench.open_generator(change=with_cpus(plan.decode_cpus, plan.prefill_cpus))
    try:
        free = bench.open_generator(change=with_cpus((), ()))
        try:
            turns = bench.turns()
            tokens = _prompt_tokens(free, _READ_TOKENS)

            def both(generator: LlamaGenerator) -> float:
                generator.forget()
                return timed(lambda: _run(generator, tokens, room=_WRITTEN_TOKENS // 2))

            turns.go({"pinned": lambda: both(pinned), "unpinned": lambda: both(free)}, rounds=bench.effort.rounds)
        finally:
            free.close()
    finally:
        pinned.close()
    used = ", ".join(map(str, plan.decode_cpus))
    return PartResult(
        name,
        question,
        tuple(turns.series(way, part=name, unit="s", better="less") for way in ("pinned", "unpinned")),
        (Versus("pinned", "unpinned", f"{name}.pinned", f"{name}.unpinned"),),
        {"program_pins": "yes" if plan.pinned else "no"},
        (f"{len(tokens)} tokens read and {_WRITTEN_TOKENS // 2} written, on processors {used}.",),
    )


def assembly(bench: Scratch) -> PartResult:
    """Twenty chunks become a prompt: from stored tokens, and from text."""
    name = "assembly"
    figures = measure_assembly(bench.chat_model, source_count=_SOURCES_PER_PROMPT, runs=10 * bench.effort.rounds)
    flat = {
        f"{way}_{key}": value
        for way, values in figures.items()
        for key, value in values.items()
        if key in ("median_ms", "p99_ms", "p99_cpu_ms", "tokens", "ratio_joined_to_known")
    }
    return PartResult(
        name,
        f"What does it cost to put a prompt of {len(many_sources(_SOURCES_PER_PROMPT))} passages together?",
        figures=flat,
        notes=("known: their tokens are in memory; stored: beside the library, read by a new process; tokenised: each "
               "piece anew; joined: the text of all, as one. The same tokens, but for the last.",),
    )  # fmt: skip


PARTS: Mapping[str, Callable[[Scratch], PartResult]] = {
    "stages": stages,
    "prefill_decode": reading_and_writing,
    "assembly": assembly,
    "weights": weights,
    "pinning": pinning,
    "overlap": overlap,
}


def _exact(settings: GeneratorSettings) -> GeneratorSettings:
    return dataclasses.replace(settings, passages="exact", link_tokens=0, recompute="none", speculation="off")


def _prompt_tokens(generator: LlamaGenerator, count: int) -> tuple[int, ...]:
    text = " ".join(source.hit.chunk.chunk.text for source in many_sources(-(-count // 100)))
    tokens = generator.encode_chat((Message("user", (text,)),)).tokens
    if len(tokens) < count:
        raise EdgeragError(f"{len(tokens)} tokens of made-up text are fewer than {count}.")
    return tokens[:count]


def _run(generator: LlamaGenerator, tokens: tuple[int, ...], *, room: int) -> int:
    count = 0
    for step in generator.generate(tokens, max_tokens=room, sampling=_GREEDY, cancelled=never):
        count = step.token_count
    return count


def _first_token_s(generator: LlamaGenerator, tokens: tuple[int, ...]) -> float:
    return timed(lambda: _run(generator, tokens, room=1))


def _decode_tps(generator: LlamaGenerator, tokens: tuple[int, ...], room: int) -> float:
    """Tokens per second after the first."""
    began, count = 0.0, 0
    for step in generator.generate(tokens, max_tokens=room, sampling=_GREEDY, cancelled=never):
        if step.token_count >= 1 and not began:
            began, first = time.perf_counter(), step.token_count
        count = step.token_count
    seconds = time.perf_counter() - began
    return max(1, count - first) / seconds
