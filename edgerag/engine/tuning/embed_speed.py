"""How fast an embedder reads on this machine: measured for a second or two on passages of the user's own, and kept.

It is there to say beforehand how long it takes to embed a library again. What a trial of backends found
(embed_trial.py) is counted in, because so many passages are embedded with the fastest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgerag.engine.embedder import LlamaEmbedder
from edgerag.engine.tuning.embed_trial import Trials, trial_key
from edgerag.engine.tuning.kept import Kept
from edgerag.engine.tuning.record import tuning_key
from edgerag.types import ModelFile

SECONDS = 1.5
_MOST_KEPT = 32
_TOGETHER = 4  # passages embedded in one call: enough for two workers


@dataclass(frozen=True, slots=True)
class Speed:
    """Of one model file on one machine, by llama.cpp."""

    tokens_per_s: float  # tokens as the library counts them


class Speeds(Kept[Speed]):
    """The speeds kept in a models folder. Making one reads nothing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, name="embedding_speed", kind=Speed, most=_MOST_KEPT)


def tokens_per_s(
    model: ModelFile,
    passages: Sequence[tuple[str, int]],
    *,
    open_embedder: Callable[[], LlamaEmbedder],
    folder: Path,
    threads: int,
) -> float:
    """What is remembered in the models folder, else what embedding ``passages`` (text, tokens) for ``SECONDS`` shows.

    Raises what opening and embedding raise.
    """
    speeds = Speeds(folder)
    key = f"{tuning_key(model)}-{threads}"
    known = speeds.find(key)
    if known is None:
        known = Speed(_measured(passages, open_embedder()))
        speeds.keep(key, known)
    trial = Trials(folder).find(trial_key(model, threads=threads))
    gain = next((one.gain for one in trial.tried if one.plan == trial.plan), 1.0) if trial else 1.0
    return known.tokens_per_s * max(1.0, gain)


def _measured(passages: Sequence[tuple[str, int]], embedder: LlamaEmbedder) -> float:
    try:
        embedder.embed_passages([text for text, _ in passages[:_TOGETHER]])  # the first run makes ready
        began, tokens = time.perf_counter(), 0
        for start in range(0, len(passages), _TOGETHER):
            batch = passages[start : start + _TOGETHER]
            embedder.embed_passages([text for text, _ in batch])
            tokens += sum(count for _, count in batch)
            if time.perf_counter() - began > SECONDS:
                break
        return max(1, tokens) / max(1e-6, time.perf_counter() - began)
    finally:
        embedder.close()
