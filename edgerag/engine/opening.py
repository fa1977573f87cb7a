"""Models are opened as this machine runs them best: on the cores of the plan, as tuning found, near their memory."""

from __future__ import annotations

import os

from edgerag.config import GenerationSettings, MachineSettings
from edgerag.engine.embedder import LlamaEmbedder, open_embedder
from edgerag.engine.generator import GeneratorSettings, LlamaGenerator, open_generator
from edgerag.engine.states.store import StateStore
from edgerag.engine.tuning.apply import tuned_model, tuned_settings
from edgerag.engine.tuning.choice import wait_environment
from edgerag.engine.tuning.record import Tunings
from edgerag.engine.tuning.tune import current
from edgerag.machine.numa import bind_memory
from edgerag.machine.plan import plan_cores
from edgerag.machine.topology import read_topology
from edgerag.types import ModelFile


def open_chat_model(
    model: ModelFile,
    *,
    tunings: Tunings,
    machine: MachineSettings,
    generation: GenerationSettings,
    states: StateStore | None,
) -> LlamaGenerator:
    """Loads a chat model. ``states``: where computed passages are kept. Raises what ``open_generator`` does."""
    plan = plan_cores(read_topology(), threads=machine.threads, model_bytes=model.size_bytes)
    file, settings = chat_model_settings(model, tunings=tunings, machine=machine, generation=generation)
    with bind_memory(plan.placement):
        return open_generator(file, settings, states=states)


def chat_model_settings(
    model: ModelFile, *, tunings: Tunings, machine: MachineSettings, generation: GenerationSettings
) -> tuple[ModelFile, GeneratorSettings]:
    """The file that is opened for ``model``, which may be a requantised one, and how."""
    tuning = current(model, tunings)
    settings = tuned_settings(
        tuning,
        read_topology(),
        model_bytes=model.size_bytes,
        context_tokens=generation.context_tokens,
        kv=generation.kv,
        threads=machine.threads,
        when_tight=generation.when_tight,
    )
    return tuned_model(model, tuning), settings


def use_tuned_waiting(model: ModelFile, tunings: Tunings) -> None:
    """Lets llama.cpp's threads wait for each other as was found best for ``model``; only before the first model of
    this process is opened, and never against what the user has set."""
    tuning = current(model, tunings)
    if tuning is not None:
        for name, value in wait_environment(tuning.choice.wait_policy).items():
            os.environ.setdefault(name, value)


def open_embedding_model(model: ModelFile, *, machine: MachineSettings) -> LlamaEmbedder:
    """Loads an embedder: passages on all cores, as nothing else is at work then, and a query on those that the plan
    keeps free of decoding. Raises what ``open_embedder`` does."""
    plan = plan_cores(read_topology(), threads=machine.threads)
    with bind_memory(plan.placement):
        return open_embedder(model, threads=len(plan.prefill_cpus), query_threads=len(plan.retrieval_cpus))
