"""Tunes one model file on this machine, in the time that is given: the whole of autotune but its commands."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

from edgerag.engine.gguf import Header, read_header
from edgerag.engine.tuning.apply import Processors, first_choice, processors
from edgerag.engine.tuning.budget import Budget, Stopped
from edgerag.engine.tuning.choice import REQUANTISE_TYPES, dimensions, requantised_name, weight_types
from edgerag.engine.tuning.measure import open_bench
from edgerag.engine.tuning.record import Measurement, RequantisedFile, Tuning, Tunings, tuning_key
from edgerag.engine.tuning.requantise import describe_twin, is_as_it_was, make_twin, remove_twin
from edgerag.engine.tuning.search import Search
from edgerag.errors import ModelError, ModelWrongKind, UsageError
from edgerag.machine.topology import read_topology
from edgerag.types import CancelCheck, ModelFile

DEFAULT_SECONDS = 60.0
# What must fit where nobody says what the program will ask for: half of what generation.context_tokens asks by default,
# as that is made smaller where memory is tight (fit.py).
_CONTEXT_TOKENS = 2048


def tune(
    model: ModelFile,
    tunings: Tunings,
    *,
    seconds: float = DEFAULT_SECONDS,
    requantise: str = "",
    again: bool = False,
    context_tokens: int = _CONTEXT_TOKENS,
    cancelled: CancelCheck = lambda: False,
    report: Callable[[Measurement], None] = lambda _: None,
) -> Tuning:
    """Measures for ``seconds`` at most, going on from what is known, and gives the best found so far.

    ``requantise``: a weight type to try, whatever its size and time; ``again``: forgets what was measured.
    Raises UsageError for an unknown type, ModelError (the model cannot be run, or is being tuned by somebody else),
    StorageFull when an asked-for file has no room.
    """
    if model.kind != "chat":
        raise ModelWrongKind(f"{model.name} is an embedder: there is nothing to tune.", remedy="Name a chat model.")
    if requantise and requantise not in REQUANTISE_TYPES:
        raise UsageError(
            f"Weights cannot be requantised to {requantise!r}.", remedy=f"Known: {', '.join(REQUANTISE_TYPES)}."
        )
    budget = Budget(seconds, cancelled=cancelled)
    header = read_header(model.path)
    topology = read_topology()
    cpus = processors(topology, model_bytes=model.size_bytes)
    key = tuning_key(model, topology)
    with _alone(model.path.parent / ".tuning-run.lock", model.name):
        known = current(model, tunings, key)
        if known is None or again:
            first = first_choice(cpus)
            known = Tuning(choice=first, first=first, gate=known.gate if known else None)
        types = _types(known, header, requantise)
        if requantise and requantise in types:
            with contextlib.suppress(Stopped):
                _provide(model, header, requantise, cpus, budget, asked=True)

        described: dict[str, RequantisedFile] = {}

        def whole(tuning: Tuning) -> Tuning:
            return _with_weights(model, tuning, described)

        def keep(tuning: Tuning) -> None:
            tunings.keep(key, whole(tuning))

        def provide(name: str) -> None:
            weight_type = next(one for one in types if requantised_name(model.path.stem, one) == name)
            _provide(model, header, weight_type, cpus, budget, asked=weight_type == requantise)

        with open_bench(model, cpus, budget=budget, provide=provide, context_tokens=context_tokens) as bench:
            search = Search(
                bench,
                dimensions(header, first=known.first, weights=types, most_prefill_threads=len(cpus.prefill)),
                budget=budget,
                keep=keep,
                report=report,
            )
            found = whole(search.run(known))
        for weight_type in types:
            name = requantised_name(model.path.stem, weight_type)
            if found.finished and name not in {found.choice.weights, *tunings.files_in_use()}:
                remove_twin(model, name)
    return found


def current(model: ModelFile, tunings: Tunings, key: str = "") -> Tuning | None:
    """What is known of this model on this machine; None when nothing is, or when a file that it needs has changed."""
    known = tunings.find(key or tuning_key(model))
    if known is not None and not known.choice.can_answer:
        return None
    if known is None or not known.choice.weights:
        return known
    file = known.weights
    return known if file is not None and file.name == known.choice.weights and is_as_it_was(model, file) else None


def needs_tuning(model: ModelFile, tunings: Tunings) -> bool:
    """Whether something is left to measure. Loads nothing."""
    known = current(model, tunings)
    return known is None or not known.finished


def _types(known: Tuning, header: Header, asked: str) -> tuple[str, ...]:
    """What the weights may be turned into; a type that was asked for before stays among what is compared."""
    tried = {m.value for m in known.measurements if m.what == "weights"} & set(REQUANTISE_TYPES)
    found = [*weight_types(header, ""), *sorted(tried), *weight_types(header, asked)]
    return tuple(dict.fromkeys(name for name in found if name != header.weight_type))


def _provide(
    model: ModelFile, header: Header, weight_type: str, cpus: Processors, budget: Budget, *, asked: bool
) -> Path:
    return make_twin(model, header, weight_type, threads=cpus.usual_prefill, budget=budget, asked=asked)


def _with_weights(model: ModelFile, tuning: Tuning, described: dict[str, RequantisedFile]) -> Tuning:
    """With the facts of the twin that is run; each is read through once."""
    name = tuning.choice.weights
    if not name:
        return dataclasses.replace(tuning, weights=None)
    if name not in described:
        before = tuning.weights
        is_known = before is not None and before.name == name and is_as_it_was(model, before)
        described[name] = before if before is not None and is_known else describe_twin(model, name)
    return dataclasses.replace(tuning, weights=described[name])


@contextlib.contextmanager
def _alone(lock_file: Path, name: str) -> Iterator[None]:
    """Two that measure at a time would measure each other. Where nothing can be written, nobody is kept out."""
    try:
        stream = lock_file.open("w", encoding="ascii")
    except OSError:
        yield
        return
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ModelError(
                f"Another process is tuning {name} now.", remedy="Wait until it is done; what it finds is kept."
            ) from None
        yield
