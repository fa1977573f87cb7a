"""A choice becomes the settings that a model is opened with."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from edgerag.engine.generator import GeneratorSettings
from edgerag.engine.llama import ContextSettings
from edgerag.engine.tuning.choice import Choice
from edgerag.engine.tuning.record import Tuning
from edgerag.machine.plan import plan_cores
from edgerag.machine.topology import Topology
from edgerag.types import KvMode, ModelFile, WhenTight

# Where the user asks for splicing and no gate has passed (docs/decisions/026).
_UNTESTED_LINK_TOKENS = 0


@dataclass(frozen=True, slots=True)
class Processors:
    """The logical CPUs that threads are given, in the order in which they are taken."""

    prefill: tuple[int, ...]  # fast cores first
    decode: tuple[int, ...]
    usual_prefill: int  # how many the plan takes by itself
    pinned: bool


def processors(topology: Topology, *, model_bytes: int = 0, threads: int = 0) -> Processors:
    """``threads``: the setting machine.threads; as many are taken, whatever was measured."""
    plan = plan_cores(topology, threads=threads, model_bytes=model_bytes)
    every = plan_cores(topology, threads=threads, model_bytes=model_bytes, prefill="all")
    return Processors(every.prefill_cpus, plan.decode_cpus, len(plan.prefill_cpus), plan.pinned)


def first_choice(cpus: Processors) -> Choice:
    """What is run where nothing was measured."""
    return Choice(prefill_threads=cpus.usual_prefill, decode_threads=len(cpus.decode))


def context_settings(choice: Choice, *, context_tokens: int, sequences: int = 1) -> ContextSettings:
    return ContextSettings(
        context_tokens=context_tokens,
        batch_tokens=choice.batch_tokens,
        micro_batch_tokens=choice.micro_batch_tokens,
        threads=choice.decode_threads,
        prefill_threads=choice.prefill_threads,
        sequences=sequences,
        flash_attention=choice.flash_attention,
        cache_type=choice.cache_type,
    )


def pinned_cpus(choice: Choice, cpus: Processors) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For decoding and for prefill; empty where the system places the threads."""
    if not cpus.pinned:
        return (), ()
    return cpus.decode[: choice.decode_threads], cpus.prefill[: choice.prefill_threads]


def choice_settings(
    choice: Choice, cpus: Processors, *, context_tokens: int, when_tight: WhenTight = "refuse"
) -> GeneratorSettings:
    """How a generator is opened for ``choice``; passages exactly."""
    decode_cpus, prefill_cpus = pinned_cpus(choice, cpus)
    return GeneratorSettings(
        context=context_settings(choice, context_tokens=context_tokens),
        decode_cpus=decode_cpus,
        prefill_cpus=prefill_cpus,
        load_mode=choice.load_mode,
        repack=choice.repack,
        when_tight=when_tight,
        speculation=choice.speculation,
    )


def tuned_settings(
    tuning: Tuning | None,
    topology: Topology,
    *,
    model_bytes: int,
    context_tokens: int,
    kv: KvMode = "auto",
    threads: int = 0,
    when_tight: WhenTight = "shrink",
) -> GeneratorSettings:
    """How the program opens a chat model: as tuned, or as planned where nothing was measured yet.

    ``threads``: the setting machine.threads; it stands above what was measured.
    """
    cpus = processors(topology, model_bytes=model_bytes, threads=threads)
    choice = tuning.choice if tuning else first_choice(cpus)
    if threads:
        chosen = first_choice(cpus)
        choice = dataclasses.replace(
            choice, prefill_threads=chosen.prefill_threads, decode_threads=chosen.decode_threads
        )
    gate = tuning.gate_in_force if tuning else None
    passed = gate is not None and gate.passages == "spliced"
    passages = kv if kv != "auto" else "spliced" if passed else "exact"
    link_tokens, recompute = (gate.link_tokens, gate.recompute) if gate and passed else (_UNTESTED_LINK_TOKENS, "none")
    return dataclasses.replace(
        choice_settings(choice, cpus, context_tokens=context_tokens, when_tight=when_tight),
        passages=passages,
        link_tokens=link_tokens if passages == "spliced" else 0,
        recompute=recompute if passages == "spliced" else "none",
        prefill_tps=tuning.prefill_tps if tuning else 0.0,
    )


def tuned_model(model: ModelFile, tuning: Tuning | None) -> ModelFile:
    """The file that is to be opened: the model's own, or the requantised one in its place."""
    file = tuning.weights if tuning else None
    if tuning is None or file is None or tuning.choice.weights != file.name:
        return model
    return dataclasses.replace(
        model, path=model.path.parent / file.name, size_bytes=file.size_bytes, sha256=file.sha256
    )
