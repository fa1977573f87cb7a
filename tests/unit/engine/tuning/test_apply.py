"""What was measured becomes what the model is opened with; the user's own settings stand above it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from test_record import FULL, MODEL
from tuning_fakes import FIRST

from edgerag.engine.tuning.apply import first_choice, processors, tuned_model, tuned_settings
from edgerag.engine.tuning.record import Gate, Tuning
from edgerag.machine.cores import Core
from edgerag.machine.plan import plan_cores
from edgerag.machine.topology import Topology

HYBRID = Topology(
    cores=(
        *(Core((2 * n, 2 * n + 1), "performance", 0) for n in range(4)),
        *(Core((8 + n,), "efficiency", 0) for n in range(4)),
    ),
    nodes=(),
    quota_cores=None,
    has_cpuset=False,
    can_pin=True,
)
PLAN = plan_cores(HYBRID)


def test_without_a_tuning_it_is_as_planned() -> None:
    settings = tuned_settings(None, HYBRID, model_bytes=0, context_tokens=2048)
    assert settings.prefill_cpus == PLAN.prefill_cpus
    assert settings.decode_cpus == PLAN.decode_cpus
    assert settings.context.flash_attention
    assert settings.passages == "exact"


def test_as_tuned() -> None:
    choice = dataclasses.replace(
        FIRST,
        prefill_threads=6,
        decode_threads=3,
        micro_batch_tokens=1024,
        batch_tokens=1024,
        cache_type="q8_0",
        load_mode="read",
        repack=False,
        speculation="off",
    )
    settings = tuned_settings(Tuning(choice=choice, first=FIRST), HYBRID, model_bytes=0, context_tokens=4096)
    assert settings.prefill_cpus == (0, 2, 4, 6, 8, 9)  # efficiency cores last
    assert settings.decode_cpus == (0, 2, 4)
    context = settings.context
    assert (context.threads, context.prefill_threads, context.context_tokens) == (3, 6, 4096)
    assert (context.batch_tokens, context.micro_batch_tokens, context.cache_type) == (1024, 1024, "q8_0")
    assert (settings.load_mode, settings.repack, settings.speculation) == ("read", False, "off")


def test_the_setting_of_threads_stands_above_what_was_measured() -> None:
    tuning = Tuning(choice=dataclasses.replace(FIRST, cache_type="q8_0"), first=FIRST)
    settings = tuned_settings(tuning, HYBRID, model_bytes=0, context_tokens=2048, threads=2)
    assert (settings.context.threads, settings.context.prefill_threads) == (2, 2)
    assert settings.context.cache_type == "q8_0"
    assert settings.decode_cpus == ()  # not pinned, by the plan


def test_passages_are_spliced_where_the_gate_passed_or_the_user_says_so() -> None:
    passed = Gate(20, 1, FIRST.numerics_name, finished=True, passages="spliced", link_tokens=32)
    failed = Gate(20, 1, FIRST.numerics_name, finished=True)
    unfinished = dataclasses.replace(passed, finished=False)

    def passages(gate: Gate | None, kv: str) -> tuple[str, int]:
        tuning = Tuning(choice=FIRST, first=FIRST, gate=gate)
        settings = tuned_settings(tuning, HYBRID, model_bytes=0, context_tokens=2048, kv=kv)  # type: ignore[arg-type]
        return settings.passages, settings.link_tokens

    assert passages(passed, "auto") == ("spliced", 32)
    assert passages(passed, "spliced") == ("spliced", 32)
    assert passages(passed, "exact") == ("exact", 0)
    other_weights = dataclasses.replace(passed, numerics="one.tuned-Q4_0.gguf, True, f16")
    for gate in (failed, unfinished, other_weights, None):
        assert passages(gate, "auto") == ("exact", 0)
        assert passages(gate, "spliced") == ("spliced", 0)


def test_the_file_that_is_opened() -> None:
    assert tuned_model(MODEL, None) == MODEL
    assert tuned_model(MODEL, Tuning(choice=FIRST, first=FIRST)) == MODEL
    twin = tuned_model(MODEL, FULL)
    assert twin.path == Path("/models/one.tuned-Q8_0.gguf")
    assert (twin.sha256, twin.size_bytes, twin.name) == ("c" * 64, 10, "one")
    assert twin.weights_sha256 == MODEL.weights_sha256


def test_processors_are_those_of_the_plan() -> None:
    cpus = processors(HYBRID)
    assert cpus.prefill[: cpus.usual_prefill] == PLAN.prefill_cpus
    assert len(cpus.prefill) == 8
    assert first_choice(cpus).decode_threads == len(PLAN.decode_cpus)
