"""Models are opened as this machine runs them best: on the cores of the plan, as tuning found, near their memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from edgerag.config import GenerationSettings, MachineSettings
from edgerag.engine.bulk import BulkEmbedder
from edgerag.engine.embed_torch import torch_version, why_not
from edgerag.engine.embedder import LlamaEmbedder, open_embedder
from edgerag.engine.generator import GeneratorSettings, LlamaGenerator, open_generator
from edgerag.engine.gguf import read_header
from edgerag.engine.passages import Between, go_on
from edgerag.engine.reranker import LlamaReranker, open_reranker
from edgerag.engine.states.store import StateStore
from edgerag.engine.tuning.apply import tuned_model, tuned_settings
from edgerag.engine.tuning.choice import wait_environment
from edgerag.engine.tuning.embed_trial import (
    PassagePlan,
    Trials,
    open_torch,
    plans,
    remembered_trial,
    torch_workers,
)
from edgerag.engine.tuning.record import Tunings
from edgerag.engine.tuning.tune import current
from edgerag.errors import UsageError
from edgerag.machine.cpu import read_processor
from edgerag.machine.memory import available_bytes
from edgerag.machine.numa import bind_memory
from edgerag.machine.plan import plan_cores
from edgerag.machine.topology import read_topology
from edgerag.types import EmbedBackend, ModelFile, TokenStore


def open_chat_model(
    model: ModelFile,
    *,
    tunings: Tunings,
    machine: MachineSettings,
    generation: GenerationSettings,
    states: StateStore | None,
    tokens: TokenStore | None = None,
) -> LlamaGenerator:
    """Loads a chat model. ``states``: where computed passages are kept; ``tokens``: where their tokens are.

    Raises what ``open_generator`` does."""
    plan = plan_cores(read_topology(), threads=machine.threads, model_bytes=model.size_bytes)
    file, settings = chat_model_settings(model, tunings=tunings, machine=machine, generation=generation)
    with bind_memory(plan.placement):
        return open_generator(file, settings, states=states, tokens=tokens)


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
        return open_embedder(
            model,
            threads=len(plan.prefill_cpus),
            query_threads=len(plan.retrieval_cpus),
            cpus=plan.prefill_cpus if plan.pinned else (),
        )


def open_reranking_model(model: ModelFile, *, machine: MachineSettings) -> LlamaReranker:
    """Loads a reranker on the cores of prefill: nothing else is computed while it reads. Raises what
    ``open_reranker`` does."""
    plan = plan_cores(read_topology(), threads=machine.threads)
    with bind_memory(plan.placement):
        return open_reranker(model, threads=len(plan.prefill_cpus), cpus=plan.prefill_cpus if plan.pinned else ())


def open_bulk_embedder(
    base: LlamaEmbedder,
    model: ModelFile,
    *,
    trials: Trials,
    machine: MachineSettings,
    backend: EmbedBackend,
    between: Between = go_on,
    niceness: int = 0,
) -> BulkEmbedder:
    """The embedder of an ingest over ``base``, which was opened for ``model``. "auto" tries what is fastest here, once
    passages are many, and remembers it in ``trials``; any other ``backend`` is used from the start.
    ``between`` is called between two passages, and may wait; they are computed by threads of that ``niceness``.

    Raises UsageError for a backend that cannot be had.
    """
    base.let_past(between, niceness=niceness)
    plan = plan_cores(read_topology(), threads=machine.threads)
    threads, cpus = len(plan.prefill_cpus), plan.prefill_cpus if plan.pinned else ()
    header = read_header(model.path)
    wanted = plans(
        header,
        threads=threads,
        torch=backend != "llama.cpp" and bool(torch_version()),
        features=read_processor().features,
        free_bytes=available_bytes() if backend == "auto" else sys.maxsize,
    )
    if backend == "torch" and all(one.backend != "torch" for one in wanted):
        raise UsageError(
            "ingest.embed_with asks for torch, which cannot be used: "
            + (why_not(header) if torch_version() else "it is not installed."),
            remedy="Install it (pip install 'edgerag[sentence-transformers]'), or set ingest.embed_with to 'auto'.",
        )

    def decide(passages: Sequence[str]) -> PassagePlan:
        if backend != "auto":
            return next(one for one in wanted if one.backend == backend)
        found = remembered_trial(model, passages, trials=trials, threads=threads, fallback=wanted[0])
        return found if found in wanted else wanted[0]  # the memory may be free no longer

    return BulkEmbedder(
        base,
        decide=decide,
        open_workers=lambda chosen: torch_workers(
            chosen, open_torch(chosen, header), cpus, between=between, niceness=niceness
        ),
        at_once=backend != "auto",
    )
