"""``edgerag bench generate``: first words, answers and decoding of one chat model, beside plain llama-cpp-python.

Runs of both alternate in the same minutes, with the same weights and threads; a figure is the median of its runs. The
prompts are those that an answer has: instruction, four passages of about 250 tokens, best words, question.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from edgerag.ask.prompt import assemble
from edgerag.config import GenerationSettings, Settings
from edgerag.engine.catalog import Catalog
from edgerag.engine.generator import GeneratorSettings, LlamaGenerator, open_generator
from edgerag.engine.llama import quantize
from edgerag.engine.opening import chat_model_settings, use_tuned_waiting
from edgerag.engine.states.store import StateStore
from edgerag.engine.tuning.record import Tunings
from edgerag.measure.facts import machine_facts
from edgerag.measure.llama_peer import PlainLlama
from edgerag.measure.questions import FactQuestion, quoting_prompts, sources_of, synthetic_questions, telling_prompts
from edgerag.types import Message, ModelFile, Prompt, Sampling, Turn

CONTEXT_TOKENS = 4096
RUNS = 5
_ANSWER_TOKENS = 48
_DECODED_TOKENS = 96
_PASSAGE_TOKENS = 250
_QUOTES_ASKED = 12
_QUOTED = 150  # characters at the beginning of an answer that make it a quotation
_CANCELS = 60
GREEDY = Sampling(temperature=0.0, top_p=1.0, repeat_penalty=1.1, seed=0)
_STATES_BYTES = 2_000_000_000
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Subject:
    """The model, and how this machine runs it."""

    model: ModelFile
    tuned: GeneratorSettings  # what the program would use
    threads: int


def subject_of(catalog: Catalog, settings: Settings) -> Subject:
    """The chat model of the settings, as the program would run it. Raises ModelError."""
    model = catalog.find("chat", settings.models.chat)
    use_tuned_waiting(model, Tunings(catalog.folder))
    tuned_file, tuned = chat_model_settings(
        model, tunings=Tunings(catalog.folder), machine=settings.machine, generation=settings.generation
    )
    return Subject(tuned_file, tuned, tuned.context.prefill_threads or tuned.context.threads)


def bench_generate(
    subject: Subject, *, questions: Sequence[FactQuestion] = (), parts: Sequence[str] = (), progress: Progress
) -> dict[str, Any]:
    """The figures, by name, as values for JSON. ``questions``: more than the synthetic ones, for the accuracy;
    ``parts``: some of PARTS, all of them if empty."""
    chosen = parts or tuple(PARTS)
    figures: dict[str, Any] = {}
    for name in chosen:
        figures |= PARTS[name](subject, questions, progress)
    return {**figures, "model": subject.model.name, "threads": subject.threads, "machine": machine_facts()}


# ---------------------------------------------------------------- first words


def first_words(subject: Subject, _questions: Sequence[FactQuestion], progress: Progress) -> dict[str, Any]:
    """Seconds from the prompt to the first token: plain, exact, spliced, and of a second turn."""
    asked = synthetic_questions(RUNS + 1, passage_tokens=_PASSAGE_TOKENS, seed=7)
    times: dict[str, list[float]] = {name: [] for name in ("plain", "exact", "spliced", "auto", "turn2", "turn2_plain")}
    reuse: dict[str, Any] = {}
    with (
        _plain(subject.model.path, subject.threads) as plain,
        _opened(subject, passages="exact") as exact,
        _opened(subject, passages="spliced") as spliced,
        _opened(subject, passages="auto") as auto,
    ):
        for run, question in enumerate(asked):
            prompt = _prompt(question, exact)
            figures = {"plain": plain.first_token_s(prompt.tokens)}
            _warm_states(exact, prompt)
            figures["exact"], reuse["exact"] = _first_token(exact, prompt)
            _warm_states(spliced, prompt)
            figures["spliced"], reuse["spliced"] = _first_token(spliced, prompt)
            _warm_states(auto, prompt)
            figures["auto"], reuse["auto"] = _first_token(auto, prompt)
            second = _second_turn(question, prompt, exact)
            figures["turn2"], reuse["turn2"] = _first_token(exact, second, fresh=False)
            figures["turn2_plain"] = plain.first_token_s(second.tokens)
            if run:  # the first only warms up
                for name, seconds in figures.items():
                    times[name].append(seconds)
            progress(
                f"{len(prompt.tokens)} tokens to the first word: "
                + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in figures.items())
            )
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "ttft_plain_s": round(medians["plain"], 4),
        "ttft_exact_s": round(medians["exact"], 4),
        "ttft_spliced_s": round(medians["spliced"], 4),
        "ttft_auto_s": round(medians["auto"], 4),
        "ttft_turn2_s": round(medians["turn2"], 4),
        "ttft_turn2_plain_s": round(medians["turn2_plain"], 4),
        "ratio_exact": _ratio(times["exact"], times["plain"]),
        "ratio_spliced": _ratio(times["spliced"], times["plain"]),
        "ratio_auto": _ratio(times["auto"], times["plain"]),
        "auto": how_spliced(subject),
        "ratio_turn2": _ratio(times["turn2"], times["turn2_plain"]),
        "ttft_runs_s": {name: [round(value, 5) for value in values] for name, values in times.items()},
        "reuse": {name: dataclasses.asdict(prefill) for name, prefill in reuse.items()},
    }


def _warm_states(generator: LlamaGenerator, prompt: Prompt) -> None:
    """Has the states of the prompt's passages computed and kept, as a question about them before has."""
    generator.forget()
    _run(generator, prompt.tokens, prompt.passages, room=1)
    generator.saved()


def _first_token(generator: LlamaGenerator, prompt: Prompt, *, fresh: bool = True) -> tuple[float, Any]:
    """Seconds until the first token is there, and how the prompt came in."""
    if fresh:
        generator.forget()
        generator.prepare(prompt.messages)
    began = time.perf_counter()
    steps = generator.generate(
        prompt.tokens, passages=prompt.passages, max_tokens=_ANSWER_TOKENS, sampling=GREEDY, cancelled=never
    )
    prefill = next(iter(steps)).prefill
    next(steps)
    seconds = time.perf_counter() - began
    for _ in steps:
        pass
    return seconds, prefill


def _second_turn(question: FactQuestion, prompt: Prompt, generator: LlamaGenerator) -> Prompt:
    """The next question about the same sources and one more, behind the model's own answer."""
    said = _run(generator, prompt.tokens, prompt.passages, room=_ANSWER_TOKENS)
    turn = Turn(question.question, said, messages=(*prompt.messages, Message("assistant", (said,))))
    return _prompt(question.followed_up(), generator, history=(turn,))


# ---------------------------------------------------------------- right answers


def accuracy(subject: Subject, questions: Sequence[FactQuestion], progress: Progress) -> dict[str, Any]:
    """The share of questions answered rightly: exact, spliced, and as the program would run the model."""
    sets = {"synthetic": synthetic_questions(100, passage_tokens=_PASSAGE_TOKENS // 2, seed=11)}
    if questions:
        sets["given"] = list(questions)
    figures: dict[str, Any] = {}
    right: dict[str, list[bool]] = {"exact": [], "spliced": [], "auto": []}
    same: list[bool] = []
    with (
        _opened(subject, passages="exact") as exact,
        _opened(subject, passages="spliced") as spliced,
        _opened(subject, passages="auto") as auto,
    ):
        generators = {"exact": exact, "spliced": spliced, "auto": auto}
        for name, asked in sets.items():
            of_set: dict[str, list[bool]] = {mode: [] for mode in generators}
            for number, question in enumerate(asked, start=1):
                prompt = _prompt(question, exact)
                said = {
                    mode: _run(generator, prompt.tokens, prompt.passages, room=_ANSWER_TOKENS)
                    for mode, generator in generators.items()
                }
                same.append(said["exact"] == said["auto"])
                for mode, text in said.items():
                    of_set[mode].append(question.is_answered_by(text))
                if number % 20 == 0:
                    shares = ", ".join(f"{mode} {sum(values)}" for mode, values in of_set.items())
                    progress(f"{name}: {number} of {len(asked)} questions; right: {shares}")
            figures[name] = {"questions": len(asked), **{mode: _share(values) for mode, values in of_set.items()}}
            for mode, values in of_set.items():
                right[mode] += values
    return {
        **{f"accuracy_{mode}": _share(values) for mode, values in right.items()},
        "auto": how_spliced(subject),
        "same_answer": _share(same),
        "accuracy_questions": len(same),
        "accuracy_sets": figures,
    }


def how_spliced(subject: Subject) -> str:
    """What ``generation.kv = auto`` means for this model here."""
    if subject.tuned.passages == "exact":
        return "exact"
    best = "but for the best one" if subject.tuned.recompute == "last" else ""
    return f"spliced {best or f'with {subject.tuned.link_tokens} link tokens'}"


# ---------------------------------------------------------------- speed


def prefill_speed(subject: Subject, _questions: Sequence[FactQuestion], progress: Progress) -> dict[str, Any]:
    """Tokens per second of a prompt: as tuned, and the weights as Q4_1 with the binding's defaults."""
    question = synthetic_questions(1, passage_tokens=300, seed=3)[0]
    runs: dict[str, list[float]] = {"tuned": [], "default": []}
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as folder, _opened(subject, passages="exact") as tuned:
        shipped = Path(folder) / "default.gguf"
        quantize(subject.model.path, shipped, weight_type="Q4_1", threads=subject.threads, metadata={})
        tokens = _prompt(question, tuned).tokens
        with _plain(shipped, subject.threads) as plain:
            for _ in range(RUNS + 1):
                runs["default"].append(plain.prefill_tps(tokens))
                tuned.forget()
                began = time.perf_counter()
                _run(tuned, tokens, (), room=1)
                runs["tuned"].append(len(tokens) / (time.perf_counter() - began))
    medians = {name: statistics.median(values[1:]) for name, values in runs.items()}
    progress(f"prefill: {medians['tuned']:.0f} tokens/s tuned, {medians['default']:.0f} as shipped with defaults")
    return {
        "prefill_tps_tuned": round(medians["tuned"], 1),
        "prefill_tps_default": round(medians["default"], 1),
        "ratio_prefill": _ratio(runs["tuned"][1:], runs["default"][1:]),
        "prefill_tps_runs": {name: [round(value, 2) for value in values[1:]] for name, values in runs.items()},
    }


def decode_speed(subject: Subject, _questions: Sequence[FactQuestion], progress: Progress) -> dict[str, Any]:
    """Tokens per second of answers that quote, and of answers that do not, with and without lookup."""
    figures: dict[str, Any] = {}
    with (
        _opened(subject, passages="exact", speculation="off") as plain,
        _opened(subject, passages="exact", speculation="lookup") as lookup,
    ):
        for kind, prompts in (("quoting", quoting_prompts(_QUOTES_ASKED)), ("telling", telling_prompts(RUNS + 1))):
            rates: dict[str, list[float]] = {"plain": [], "lookup": []}
            same = []
            for messages in prompts:
                tokens = plain.encode_chat(messages).tokens
                measured = {
                    name: _decode_rate(generator, tokens) for name, generator in (("plain", plain), ("lookup", lookup))
                }
                text = measured["plain"][1]
                if kind == "quoting" and text[:_QUOTED] not in str(messages[-1].parts[0]):
                    continue  # the model was asked for a quotation, and wrote something else
                for name, (rate, _) in measured.items():
                    rates[name].append(rate)
                same.append(text == measured["lookup"][1])
            figures[kind] = {
                "decode_tps_plain": round(statistics.median(rates["plain"][1:]), 1),
                "decode_tps_lookup": round(statistics.median(rates["lookup"][1:]), 1),
                "ratio": _ratio(rates["lookup"][1:], rates["plain"][1:]),
                "same_answers": f"{sum(same)} of {len(same)}",
                "tps_runs": {name: [round(value, 2) for value in values[1:]] for name, values in rates.items()},
            }
            progress(f"decode, {kind} answers: {figures[kind]}")
    return {
        "decode_tps_plain": figures["quoting"]["decode_tps_plain"],
        "decode_tps_lookup": figures["quoting"]["decode_tps_lookup"],
        "ratio_decode_quoting": figures["quoting"]["ratio"],
        "ratio_decode_telling": figures["telling"]["ratio"],
        "decode": figures,
    }


def cancelling(subject: Subject, _questions: Sequence[FactQuestion], progress: Progress) -> dict[str, Any]:
    """Milliseconds from the wish to stop until the generator has stopped, at random moments."""
    chance = random.Random(5)  # noqa: S311 - moments to stop at, no secret
    question = synthetic_questions(1, passage_tokens=600, seed=5)[0]
    waits: list[float] = []
    with _opened(subject, passages="exact") as generator:
        prompt = _prompt(question, generator)
        began = time.perf_counter()
        _run(generator, prompt.tokens, (), room=_DECODED_TOKENS)
        whole_s = time.perf_counter() - began
        for _ in range(_CANCELS):
            generator.forget()
            waits.append(_cancelled_after(generator, prompt, chance.uniform(0.02, 0.95) * whole_s))
    waits.sort()
    p99 = waits[min(len(waits) - 1, int(0.99 * len(waits)))]
    progress(f"cancel: p50 {1e3 * statistics.median(waits):.0f} ms, p99 {1e3 * p99:.0f} ms")
    return {
        "cancel_p50_ms": round(1e3 * statistics.median(waits), 1),
        "cancel_p99_ms": round(1e3 * p99, 1),
        "cancels": len(waits),
    }


def _cancelled_after(generator: LlamaGenerator, prompt: Prompt, delay_s: float) -> float:
    wish = threading.Event()
    wished: list[float] = []

    def stop() -> None:
        wished.append(time.perf_counter())
        wish.set()

    timer = threading.Timer(delay_s, stop)
    timer.start()
    for _ in generator.generate(prompt.tokens, max_tokens=_DECODED_TOKENS, sampling=GREEDY, cancelled=wish.is_set):
        pass
    ended = time.perf_counter()
    timer.cancel()
    timer.join()
    return max(0.0, ended - wished[0]) if wished else 0.0


PARTS: dict[str, Callable[[Subject, Sequence[FactQuestion], Progress], dict[str, Any]]] = {
    "first_words": first_words,
    "prefill": prefill_speed,
    "decode": decode_speed,
    "cancel": cancelling,
    "accuracy": accuracy,
}


# ---------------------------------------------------------------- small change


def never() -> bool:
    return False


@contextmanager
def _plain(path: Path, threads: int) -> Iterator[PlainLlama]:
    plain = PlainLlama(path, context_tokens=CONTEXT_TOKENS, threads=threads)
    try:
        yield plain
    finally:
        plain.close()


@contextmanager
def _opened(
    subject: Subject,
    *,
    passages: Literal["exact", "spliced", "auto"],
    speculation: Literal["lookup", "off"] | None = None,
) -> Iterator[LlamaGenerator]:
    """The model as tuned but for what is measured, with a store of its own that is empty. "spliced": every passage,
    without link tokens; "auto": as the program would."""
    context = dataclasses.replace(subject.tuned.context, context_tokens=CONTEXT_TOKENS)
    settings = dataclasses.replace(
        subject.tuned,
        context=context,
        speculation=speculation or subject.tuned.speculation,
    )
    if passages != "auto":
        settings = dataclasses.replace(settings, passages=passages, link_tokens=0, recompute="none")
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as folder:
        states = StateStore(Path(folder), ram_bytes=_STATES_BYTES, disk_bytes=0)
        generator = open_generator(subject.model, settings, states=states)
        try:
            yield generator
        finally:
            generator.close()


def _prompt(question: FactQuestion, generator: LlamaGenerator, history: Sequence[Turn] = ()) -> Prompt:
    settings = GenerationSettings(context_tokens=CONTEXT_TOKENS, answer_tokens=_DECODED_TOKENS, reading_s=0)
    return assemble(
        question.question, sources=sources_of(question), history=history, generator=generator, settings=settings
    )


def _run(generator: LlamaGenerator, tokens: Sequence[int], passages: Sequence[Any], *, room: int) -> str:
    steps = generator.generate(tokens, passages=passages, max_tokens=room, sampling=GREEDY, cancelled=never)
    return "".join(step.text for step in steps)


def _decode_rate(generator: LlamaGenerator, tokens: Sequence[int]) -> tuple[float, str]:
    """Tokens per second after the first, and the text."""
    texts: list[str] = []
    began, count = 0.0, 0
    for step in generator.generate(tokens, max_tokens=_DECODED_TOKENS, sampling=GREEDY_QUOTING, cancelled=never):
        if step.token_count == 1 and not began:
            began = time.perf_counter()
        count = step.token_count
        texts.append(step.text)
    return (count - 1) / (time.perf_counter() - began) if count > 1 else 0.0, "".join(texts)


# A penalty on repetition is a penalty on quoting.
GREEDY_QUOTING = dataclasses.replace(GREEDY, repeat_penalty=1.0)


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of runs that were made one after the other."""
    return round(statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True)), 3)


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
