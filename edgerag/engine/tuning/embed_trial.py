"""Which backend embeds passages fastest on this machine: a trial of a few seconds on passages of the user's own.

The ways to do it take turns in a process of its own, so that a library that crashes or hangs fails alone, and one that
loses is not left in memory. What computes other vectors than llama.cpp (cosine below 0.999) is refused, so that vectors
of different backends can stand in one library. What was found is kept per machine, model file and library versions.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from edgerag.engine.embed_torch import BATCH_TOKENS, TorchBert, torch_version, why_not
from edgerag.engine.embedder import MOST_WORKERS, LlamaEmbedder, open_embedder
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.passages import Between, Workers, go_on
from edgerag.engine.tuning.budget import Budget, Stopped
from edgerag.engine.tuning.child import run_child
from edgerag.engine.tuning.kept import Kept
from edgerag.engine.tuning.record import tuning_key
from edgerag.errors import ModelError
from edgerag.machine.cpu import read_processor
from edgerag.machine.memory import available_bytes
from edgerag.types import ModelFile

if TYPE_CHECKING:
    from edgerag.types import Vectors

LEAST_COSINE = 0.999  # to llama.cpp's vectors: less would be felt when the two stand in one library
TRIED_PASSAGES = 32  # as many as ingest embeds together
SECONDS = 5.0  # for measuring; loading comes on top
_DEADLINE_S = 45.0  # for all of it: torch may come from a slow disk
_ROUNDS = 5
# On a slow machine fewer passages are tried, so that a run takes about as long; as many as keep every worker busy.
_RUN_S = 0.5
_FEWEST = 2 * MOST_WORKERS
_LEAST_GAIN = 1.1  # over what stands before it: less is noise, and does not pay for another library in memory
# What torch, weights and buffers add, measured (docs/decisions/035). It is not tried where that would be felt.
_TORCH_BYTES = 320_000_000
_SPARE_SHARE = 2
_MOST_KEPT = 32
_MULTIPLIES_BF16 = frozenset({"AVX-512BF16", "AMX-BF16", "bf16"})

Backend = Literal["llama.cpp", "torch"]


@dataclass(frozen=True, slots=True)
class PassagePlan:
    """How passages are embedded."""

    backend: Backend
    workers: int
    threads: int  # of each worker
    arithmetic: Literal["", "bf16", "f32"] = ""  # of torch

    def __post_init__(self) -> None:
        if (
            not 1 <= self.workers <= MOST_WORKERS
            or self.threads < 1
            or (self.backend == "torch") != bool(self.arithmetic)
        ):
            raise ValueError(f"{self} cannot be run")

    def __str__(self) -> str:
        kind = f"{self.backend} {self.arithmetic}".strip()
        return f"{kind}, {self.workers} x {self.threads} threads"


@dataclass(frozen=True, slots=True)
class Tried:
    """One plan as it was measured."""

    plan: PassagePlan
    passages_per_s: float = 0.0
    gain: float = 0.0  # times as fast as the first plan, the median of rounds in turns
    cosine: float = 0.0  # the least, to the vectors of the first plan
    why: str = ""  # it was refused


@dataclass(frozen=True, slots=True)
class Trial:
    """What is known of one model file on one machine."""

    plan: PassagePlan
    tried: tuple[Tried, ...]


class Trials(Kept[Trial]):
    """The trials kept in a models folder. Making one reads nothing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, name="embedding", kind=Trial, most=_MOST_KEPT)


def trial_key(model: ModelFile, *, threads: int) -> str:
    """Names the machine, the file, the libraries and the threads that may be used."""
    return f"{tuning_key(model)}-torch {torch_version() or 'none'}-{threads}"


def plans(
    header: Header, *, threads: int, torch: bool, features: Sequence[str], free_bytes: int
) -> tuple[PassagePlan, ...]:
    """What is worth trying, beginning with what is done without a trial. Pure."""
    shapes = [(min(threads, MOST_WORKERS), threads // min(threads, MOST_WORKERS))]
    if threads > 1:
        shapes.append((1, threads))
    found = [PassagePlan("llama.cpp", workers, each) for workers, each in shapes]
    if torch and not why_not(header) and free_bytes >= _SPARE_SHARE * _TORCH_BYTES:
        arithmetic: Literal["bf16", "f32"] = "bf16" if _MULTIPLIES_BF16.intersection(features) else "f32"
        found += [PassagePlan("torch", workers, each, arithmetic) for workers, each in shapes]
    return tuple(found)


def choose(tried: Sequence[Tried]) -> PassagePlan:
    """The fastest that was not refused; an earlier one where a later one is not clearly faster. Pure."""
    best, best_gain = tried[0].plan, 1.0
    for one in tried[1:]:
        if not one.why and one.gain >= _LEAST_GAIN * best_gain:
            best, best_gain = one.plan, one.gain
    return best


def run_trial(model: ModelFile, passages: Sequence[str], *, threads: int, seconds: float = SECONDS) -> Trial:
    """Tries the plans in a process of its own. Raises ModelError when that fails, Stopped when it takes too long."""
    task = {
        "model": {**dataclasses.asdict(model), "path": str(model.path)},
        "passages": list(passages[-TRIED_PASSAGES:]),
        "threads": threads,
        "seconds": seconds,
    }
    found = run_child("embed_trial", task, budget=Budget(_DEADLINE_S, cancelled=lambda: False))
    tried = tuple(Tried(**{**one, "plan": PassagePlan(**one["plan"])}) for one in found["tried"])
    return Trial(choose(tried), tried)


def remembered_trial(
    model: ModelFile, passages: Sequence[str], *, trials: Trials, threads: int, fallback: PassagePlan
) -> PassagePlan:
    """The plan that is remembered for this machine, else what a trial on ``passages`` finds, which is remembered.
    ``fallback`` where the trial fails: one that took too long is remembered too, one that crashed is tried again."""
    key = trial_key(model, threads=threads)
    known = trials.find(key)
    if known is not None:
        return known.plan
    try:
        found = run_trial(model, passages, threads=threads)
    except Stopped:
        found = Trial(fallback, (Tried(fallback, why=f"The trial took more than {_DEADLINE_S:.0f} s."),))
    except ModelError:
        return fallback  # the embedder that is open works, and nobody has asked for another
    trials.keep(key, found)
    return found.plan


def work(task: dict[str, Any]) -> dict[str, Any]:
    """In the child process."""
    path, languages = Path(task["model"]["path"]), tuple(task["model"]["languages"])
    model = ModelFile(**{**task["model"], "path": path, "languages": languages})
    header, threads = read_header(path), task["threads"]
    wanted = plans(
        header,
        threads=threads,
        torch=bool(torch_version()),
        features=read_processor().features,
        free_bytes=available_bytes(),
    )
    embedder = open_embedder(model, threads=threads)
    loaded: list[TorchBert] = []  # once for all plans

    def ready(plan: PassagePlan) -> Callable[[Sequence[str]], Vectors]:
        if plan.backend == "llama.cpp":
            return run_of(plan, embedder, header)
        if not loaded:
            loaded.append(open_torch(plan, header))
        return by_torch(plan, embedder, loaded[0])

    tried = measure(wanted, ready, task["passages"], seconds=task["seconds"])
    embedder.close()
    return {"tried": [dataclasses.asdict(one) for one in tried]}


def run_of(plan: PassagePlan, embedder: LlamaEmbedder, header: Header) -> Callable[[Sequence[str]], Vectors]:
    """Embeds passages by ``plan``. Raises what TorchBert does."""
    if plan.backend == "torch":
        return by_torch(plan, embedder, open_torch(plan, header))

    def by_llama(texts: Sequence[str]) -> Vectors:
        embedder.use_workers(plan.workers)
        return embedder.embed_passages(texts)

    return by_llama


def by_torch(plan: PassagePlan, embedder: LlamaEmbedder, bert: TorchBert) -> Callable[[Sequence[str]], Vectors]:
    """Embeds passages with ``bert``, which other plans may use too."""
    workers = torch_workers(plan, bert)

    def run(texts: Sequence[str]) -> Vectors:
        vectors = workers.compute(embedder.passage_tokens(texts), dimension=embedder.identity.dimension)
        return embedder.unit(vectors, texts)

    return run


def open_torch(plan: PassagePlan, header: Header) -> TorchBert:
    """The weights in torch. Raises what TorchBert does."""
    assert plan.arithmetic, "a plan of torch says how it computes"
    return TorchBert(header, arithmetic=plan.arithmetic)


def torch_workers(
    plan: PassagePlan, bert: TorchBert, cpus: Sequence[int] = (), *, between: Between = go_on, niceness: int = 0
) -> Workers:
    """``bert`` as ``plan`` says, held on ``cpus`` if there are any, by threads of that priority; ``between`` is called
    before each job."""
    bert.use_threads(plan.threads)
    held = [cpus[n * plan.threads : (n + 1) * plan.threads] for n in range(plan.workers)] if cpus else []
    return Workers([bert] * plan.workers, batch_tokens=BATCH_TOKENS, cpus=held, between=between, niceness=niceness)


def measure(
    wanted: Sequence[PassagePlan],
    ready: Callable[[PassagePlan], Callable[[Sequence[str]], Vectors]],
    passages: Sequence[str],
    *,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Tried]:
    """Every plan by turns, until ``seconds`` are over or all rounds are done; ``ready`` loads what one needs.

    What raises ModelError or gives other vectors is refused; the first plan's error is raised.
    """
    began = clock()
    first = wanted[0]
    runs = {first: ready(first)}
    expected = runs[first](passages)  # not timed: the first run of each makes ready
    start = clock()
    runs[first](passages[:_FEWEST])
    per_second = len(passages[:_FEWEST]) / max(clock() - start, 1e-9)
    cosines, refused = {first: 1.0}, dict.fromkeys(wanted, "")
    for plan in wanted[1:]:
        try:
            run = ready(plan)
            cosines[plan] = float(np.min(np.sum(run(passages) * expected, axis=1)))
        except ModelError as error:
            refused[plan] = error.message
            continue
        if cosines[plan] < LEAST_COSINE:
            refused[plan] = f"Its vectors differ from llama.cpp's: cosine {cosines[plan]:.5f}."
        else:
            runs[plan] = run
    timed = passages[: max(_FEWEST, int(per_second * _RUN_S))]
    times: dict[PassagePlan, list[float]] = {plan: [] for plan in runs}
    for number in range(_ROUNDS):
        if number and clock() - began > seconds:
            break
        for plan, taken in times.items():
            start = clock()
            runs[plan](timed)
            taken.append(clock() - start)
    return [
        _tried(plan, times.get(plan, []), times[first], len(timed), cosines.get(plan, 0.0), refused[plan])
        for plan in wanted
    ]


def _tried(
    plan: PassagePlan, taken: Sequence[float], first: Sequence[float], count: int, cosine: float, why: str
) -> Tried:
    if not taken:
        return Tried(plan, cosine=round(cosine, 6), why=why)
    # Of ratios within a round: what slows the whole machine down cancels out.
    gain = math.exp(statistics.median(math.log(one / other) for one, other in zip(first, taken, strict=True)))
    return Tried(plan, round(count / statistics.median(taken), 1), round(gain, 3), round(cosine, 6), why)
