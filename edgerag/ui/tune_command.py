"""``edgerag models tune``: measures what runs a chat model fastest here, and says what was taken and why."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from edgerag.errors import UsageError
from edgerag.ui import output, report

if TYPE_CHECKING:
    from edgerag.engine.tuning.record import Measurement, RecipeAnswers, Tuning, Tunings
    from edgerag.session import Session
    from edgerag.types import CancelCheck, ModelFile


def run_tune(session: Session, arguments: argparse.Namespace, cancelled: CancelCheck) -> int:
    """Raises EdgeragError."""
    from edgerag.engine.tuning.gate import DEFAULT_QUESTIONS, FEWEST_QUESTIONS
    from edgerag.engine.tuning.record import Tunings
    from edgerag.engine.tuning.tune import DEFAULT_SECONDS, tune

    questions = arguments.questions or DEFAULT_QUESTIONS
    if questions < FEWEST_QUESTIONS:
        raise UsageError(f"{questions} questions say nothing.", remedy=f"Ask for {FEWEST_QUESTIONS} or more.")
    model = session.catalog.find("chat", arguments.name or session.settings.models.chat)
    tunings = Tunings(session.catalog.folder)
    say: Callable[[str], None] = (lambda _: None) if arguments.quiet else report.say
    say(f"Tuning {model.name} on this machine; nothing else should be busy meanwhile.")
    tuning = tune(
        model,
        tunings,
        seconds=arguments.seconds or DEFAULT_SECONDS,
        requantise=arguments.requantise,
        again=arguments.again,
        context_tokens=session.settings.generation.context_tokens,
        cancelled=cancelled,
        report=lambda measured: say(f"  {measured_line(measured)}"),
    )
    if arguments.kv and not cancelled():
        tuning = _gate(session, model, tuning, tunings, questions, cancelled, say)
    if arguments.json:
        output.write_json(tuning_record(model, tuning))
    elif not arguments.quiet:
        output.write(tuning_text(tuning, name=model.name, file_name=model.path.name))
    if cancelled():
        return report.EXIT_INTERRUPTED
    if not tuning.finished:
        say("Not everything is measured yet; the same command goes on.")
    return report.EXIT_OK


def _gate(
    session: Session,
    model: ModelFile,
    tuning: Tuning,
    tunings: Tunings,
    questions: int,
    cancelled: CancelCheck,
    say: Callable[[str], None],
) -> Tuning:
    from edgerag.engine.tuning.apply import processors
    from edgerag.engine.tuning.budget import Budget
    from edgerag.engine.tuning.gate import run_gate
    from edgerag.engine.tuning.record import tuning_key
    from edgerag.machine.topology import read_topology
    from edgerag.measure.fact_prompts import fact_layout
    from edgerag.types import Sampling

    generation, key = session.settings.generation, tuning_key(model)

    def keep(found: Tuning) -> None:
        tunings.keep(key, found)

    say(f"Asking {questions} made-up questions, with exact and with spliced passages.")
    return run_gate(
        model,
        tuning,
        processors(read_topology(), model_bytes=model.size_bytes),
        layout=fact_layout(generation),
        # Greedy: chance must not decide.
        sampling=Sampling(
            temperature=0, top_p=generation.top_p, repeat_penalty=generation.repeat_penalty, seed=generation.seed
        ),
        budget=Budget(math.inf, cancelled=cancelled),
        keep=keep,
        questions=questions,
        report=lambda sentence: say(f"  {sentence}"),
    )


def tuning_record(model: ModelFile, tuning: Tuning) -> dict[str, Any]:
    """The same as the table, as data."""
    record = dataclasses.asdict(tuning)
    gate = tuning.gate
    if gate is not None:
        record["gate"]["accuracy_exact"] = gate.accuracy_exact
        record["gate"]["accuracy_chosen"] = gate.accuracy_chosen
    return {"model": model.name, "file": model.path.name, **record}


def tuning_text(tuning: Tuning, *, name: str, file_name: str) -> str:
    """What was tried, what it gave, what was taken and why."""
    from edgerag.engine.tuning.choice import WAIT_NAMES

    rows = [("", "tried", "instead of", "prompt tok/s", "answer tok/s", "times", "", "why")]
    rows += [
        (
            measured.what,
            # The sum of all steps is named by what it is, not by its fingerprint.
            "" if measured.what == "all together" else measured.value,
            measured.against,
            _speeds(measured.prefill_tps, measured.against_prefill_tps),
            _speeds(measured.decode_tps, measured.against_decode_tps),
            f"{measured.gain:.2f}" if measured.gain else "",
            measured.verdict,
            measured.why,
        )
        for measured in tuning.measurements
    ]
    choice, gate = tuning.choice, tuning.gate
    taken = [
        ("weights", choice.weights or f"{file_name} as it is"),
        ("flash attention", "on" if choice.flash_attention else "off"),
        ("threads", f"{choice.prefill_threads} for the prompt, {choice.decode_threads} for the answer"),
        ("batch", f"{choice.batch_tokens} tokens, {choice.micro_batch_tokens} at once"),
        ("KV cache", choice.cache_type),
        ("loading", choice.load_mode + ("" if choice.repack else ", weights as they lie in the file")),
        ("waiting threads", WAIT_NAMES[choice.wait_policy]),
        ("lookup", "on" if choice.speculation == "lookup" else "off"),
        ("passages", gate_line(tuning)),
    ]
    state = "finished" if tuning.finished else "not finished: the same command goes on"
    heading = f"{name}: tuned in {tuning.seconds:.0f} s, {state}\n\n"
    lines = output.table(rows) + "\n" + output.table(taken)
    if gate is not None and gate.recipes:
        lines += "\n" + output.table([("passages", "right", "of", "")] + [_recipe(one) for one in gate.recipes])
    return heading + lines


def gate_line(tuning: Tuning) -> str:
    gate = tuning.gate
    if gate is None:
        return "exact: splicing was not tried (edgerag models tune --kv)"
    if not gate.finished:
        return "exact: the trial of splicing is not finished (edgerag models tune --kv)"
    return f"{gate.passages}: {gate.why}"


def _recipe(answers: RecipeAnswers) -> tuple[str, str, str, str]:
    from edgerag.engine.tuning.gate import recipe_name

    how = "exact" if answers.link_tokens < 0 else f"spliced {recipe_name(answers)}"
    return how, str(answers.right), str(len(answers.marks)), "given up: too many wrong" if answers.given_up else ""


def _speeds(now: float, before: float) -> str:
    if not now:
        return ""
    return f"{_rounded(now)} / {_rounded(before)}" if before else _rounded(now)


def _rounded(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.1f}"


def measured_line(measured: Measurement) -> str:
    """One measurement in a sentence."""
    if not measured.against:
        return f"{measured.what}: {measured.prefill_tps:.0f} tok/s of prompt, {measured.decode_tps:.0f} of answer"
    value = "" if measured.what == "all together" else f" {measured.value} instead of {measured.against}"
    return f"{measured.what}{value}: {measured.verdict}. {measured.why}"
