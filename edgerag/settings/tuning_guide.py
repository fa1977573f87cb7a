"""The tuning guide: symptom, figure to look at, knob, expected effect. The one source of docs/tuning.md and of what
`edgerag doctor` suggests.

Each number of an effect was measured by a bench of the source checkout and stands in a file of bench/results; a test
looks them up. :func:`fitting` is pure: which rows fit this machine and these settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgerag.config import Settings
from edgerag.settings.effective import Setting, all_settings, value_text
from edgerag.types import Suggestion

# A prompt of the usual four sources; what reading it takes decides whether a model is fast enough.
_PROMPT_TOKENS = 1_000
# With less memory free than this, the context of the chat model is worth looking at.
_SHORT_OF_MEMORY_BYTES = 2_000_000_000
_CONTEXT_WHEN_SHORT = 2_048
_BUDGET_SHARE = 1 / 4  # of what is free; an index that may take more crowds out the models
_FEW_SOURCES = 6
_NARROW_SEARCH = 40
_STRICT = 0.5
_SHORT_DEADLINE_MS = 30


@dataclass(frozen=True, slots=True)
class Measured:
    """A number of a result file, as it is told."""

    text: str
    file: str  # in bench/results
    path: tuple[str | int, ...]  # to the number in the file
    scale: float = 1.0
    form: str = "{:.2f}"


@dataclass(frozen=True, slots=True)
class Advice:
    """One row. ``knob``: a setting; with ``value``, what to set it to. Without a setting the ``command`` helps."""

    key: str
    symptom: str
    look_at: str
    knob: str
    value: str
    effect: str  # with {} for each number
    numbers: tuple[Measured, ...]
    command: str = ""

    @property
    def does_it(self) -> str:
        """The command that does it."""
        return self.command or f"edgerag config set {self.knob} {self.value}"

    @property
    def told_effect(self) -> str:
        return self.effect.format(*(number.text for number in self.numbers))

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(number.file for number in self.numbers))


@dataclass(frozen=True, slots=True)
class MachineState:
    """What decides which rows fit, beside the settings."""

    free_bytes: int
    has_chat_model: bool
    is_tuned: bool  # `models tune` has measured it on this machine
    is_gated: bool  # `models tune --kv` has decided how passages are joined
    reading_tps: float  # tokens of a prompt per second; 0.0: not known


_GENERATE = "bench_generate-c950f9824942.json"
_PEERS = "index_peers-d275ff729cc8.json"
_LARGE = "large_model-1e5513b3eba6.json"
_POLITE = "ingest-polite-2462d0027bf1.json"
_REFUSAL = "refusal-9b090487c0d1.json"
_SOURCES = "source_count-13489b163d93.json"
_INSTANT = "instant_latency-f39317f7ff56.json"
_LOOK = "second_look_likelihood-f7a2ce9c8cc8.json"

_LATENCY = "latency_model-dc2ef275763d.json"

GUIDE: tuple[Advice, ...] = (
    Advice(
        "tune",
        "the first words come late, on any question",
        "prefill in `edgerag bench ask`",
        "",
        "",
        "prompts are read {} times as fast as with the binding's defaults",
        (Measured("2.16", _GENERATE, ("figures", "ratio_prefill")),),
        command="edgerag models tune",
    ),
    Advice(
        "splice",
        "the first words come late, though the same passages were read before",
        "`prefill.computed_tokens` in `edgerag ask --json`",
        "generation.kv",
        "auto",
        "{} s to the first word of 1,000 known tokens, {} s when all are computed",
        (
            Measured("0.45", _GENERATE, ("figures", "ttft_auto_s")),
            Measured("1.37", _GENERATE, ("figures", "ttft_plain_s")),
        ),
        command="edgerag models tune --kv",
    ),
    Advice(
        "instant",
        "the model is too slow for this machine",
        "`first_token` in the times of `edgerag ask --json`",
        "generation.mode",
        "instant",
        "the documents' own sentences answer in {} ms (median, 101,950 passages), no model is loaded",
        (Measured("14.6", _INSTANT, ("figures", "instant_answer", "p50_ms"), form="{:.1f}"),),
    ),
    Advice(
        "target",
        "an answer has to be there within a time",
        "what was expected, behind the times of `edgerag ask`",
        "generation.target_s",
        "5",
        "no more sources than fit in 95 of 100 cases, after `edgerag bench ask --calibrate`; forecasts were {} % off",
        (Measured("27", _LATENCY, ("figures", "forecast_error"), 100, "{:.0f}"),),
    ),
    Advice(
        "budget",
        "memory runs short, or the index pushes the models out of it",
        "`memory.budget` and `memory` in `edgerag doctor`, `edgerag status --blocks`",
        "memory.budget",
        "10%",
        "200,000 passages are searched in {} MB, where hnswlib takes {} MB",
        (
            Measured("62", _PEERS, ("figures", "c200k", "edgerag", "rss_bytes"), 1e-6, "{:.0f}"),
            Measured("362", _PEERS, ("figures", "c200k", "hnswlib", "rss_bytes"), 1e-6, "{:.0f}"),
        ),
    ),
    Advice(
        "context",
        "the model does not fit into the free memory",
        "`edgerag models recommend`",
        "generation.context_tokens",
        str(_CONTEXT_WHEN_SHORT),
        "7 billion weights in Q4_0 took {} MB with 4,096 tokens and {} MB with 3,072",
        (
            Measured("4,790", _LARGE, ("figures", "8gib", "group_most_bytes"), 1e-6, "{:,.0f}"),
            Measured("4,611", _LARGE, ("figures", "tight", "group_most_bytes"), 1e-6, "{:,.0f}"),
        ),
    ),
    Advice(
        "nice",
        "searches, or other programs, are slow while documents are read in",
        "`total` in the times of `edgerag ask --json` meanwhile",
        "ingest.nice",
        "10",
        "a search beside an ingest takes {} times as long at the 95th percentile, {} times without giving way",
        (
            Measured("1.16", _POLITE, ("figures", "both", "p95_ratio")),
            Measured("1.24", _POLITE, ("figures", "nice", "p95_ratio")),
        ),
    ),
    Advice(
        "deadline",
        "notes say that vectors were not ready in time",
        "`embed` in the times of `edgerag ask --json`",
        "retrieval.vector_deadline_ms",
        "80",
        "on two cores the vector of a question takes {} ms at the 99th percentile",
        (Measured("9.8", _INSTANT, ("figures", "embed", "p99_ms"), form="{:.1f}"),),
    ),
    Advice(
        "width",
        "a passage that is there is not among the hits",
        "recall in `edgerag bench index`",
        "retrieval.ef_search",
        "80",
        "recall {} needs a width of {}, recall {} one of {} (200,000 passages): {} ms a search, and {} ms",
        (
            Measured("0.95", _PEERS, ("figures", "c200k", "at", 0, "edgerag", "recall")),
            Measured("18", _PEERS, ("figures", "c200k", "at", 0, "edgerag", "ef"), form="{:.0f}"),
            Measured("0.99", _PEERS, ("figures", "c200k", "at", 1, "edgerag", "recall")),
            Measured("33", _PEERS, ("figures", "c200k", "at", 1, "edgerag", "ef"), form="{:.0f}"),
            Measured("0.047", _PEERS, ("figures", "c200k", "at", 0, "edgerag", "p50_ms"), form="{:.3f}"),
            Measured("0.058", _PEERS, ("figures", "c200k", "at", 1, "edgerag", "p50_ms"), form="{:.3f}"),
        ),
    ),
    Advice(
        "sources",
        "answers to broad questions lack what stands further down",
        "`selection` in `edgerag ask --json`",
        "retrieval.source_count",
        "9",
        "of two passages that a comparison needs, both are among the first 5 in {} % and among the first 9 in {} %",
        (
            Measured("91", _SOURCES, ("figures", "broad", "within", 5), 100, "{:.0f}"),
            Measured("95", _SOURCES, ("figures", "broad", "within", 9), 100, "{:.0f}"),
        ),
    ),
    Advice(
        "refusal",
        'too often "This is not in these documents.", or too seldom',
        "`probability` in `edgerag ask --json`; `edgerag eval --foreign`",
        "retrieval.found_probability",
        "0.3",
        "{} % of answerable questions refused, {} % of others answered; a higher value refuses more of both",
        (
            Measured("1.0", _REFUSAL, ("figures", "total", "answerable_refused"), 100, "{:.1f}"),
            Measured("8.1", _REFUSAL, ("figures", "total", "unanswerable_answered"), 100, "{:.1f}"),
        ),
    ),
    Advice(
        "second_look",
        "the right passage is found, but not first (tables, reports)",
        "hit@1 in `edgerag eval`",
        "retrieval.second_look",
        "likelihood",
        "hit@1 of TAT-QA {} with it, {} without; it may take `retrieval.second_look_ms`",
        (
            Measured("0.80", _LOOK, ("figures", "tatqa", "report", "by_weight", "0.5", "hit@1")),
            Measured("0.70", _LOOK, ("figures", "tatqa", "report", "by_weight", "0.0", "hit@1")),
        ),
    ),
)


def fitting(settings: Settings, machine: MachineState) -> tuple[Suggestion, ...]:
    """The rows whose symptom is to be expected here, and that are not followed yet."""
    described = {setting.name: setting for setting in all_settings()}
    return tuple(
        Suggestion(
            advice.key, advice.symptom, why, advice.knob, advice.value, advice.does_it, advice.told_effect, advice.files
        )
        for advice in GUIDE
        if (why := _why(advice.key, settings, machine))
        and (advice.command or _now(settings, described[advice.knob]) != advice.value)
    )


def _now(settings: Settings, setting: Setting) -> str:
    return value_text(setting, getattr(getattr(settings, setting.section), setting.key))


def _why(key: str, settings: Settings, machine: MachineState) -> str:
    """What makes the row fit here; "" when nothing does."""
    retrieval, generation = settings.retrieval, settings.generation
    writes = machine.has_chat_model and generation.mode == "model"
    reading_s = _PROMPT_TOKENS / machine.reading_tps if machine.reading_tps else 0.0
    budget = settings.memory.budget_bytes(machine.free_bytes)
    reasons: Mapping[str, tuple[Any, str]] = {
        "tune": (writes and not machine.is_tuned, "The chat model was not measured on this machine."),
        "splice": (
            writes and machine.is_tuned and not machine.is_gated and generation.kv == "auto",
            "Whether known passages may be joined with this model was not tried.",
        ),
        "instant": (
            writes and generation.reading_s and reading_s > generation.reading_s,
            f"The chat model needs {reading_s:.0f} s to read a prompt of {_PROMPT_TOKENS:,} tokens here.",
        ),
        "budget": (
            budget > machine.free_bytes * _BUDGET_SHARE,
            f"The index may take {budget / 1e6:,.0f} MB of the {machine.free_bytes / 1e6:,.0f} MB that are free.",
        ),
        "context": (
            writes and machine.free_bytes < _SHORT_OF_MEMORY_BYTES and generation.context_tokens > _CONTEXT_WHEN_SHORT,
            f"{machine.free_bytes / 1e6:,.0f} MB are free.",
        ),
        "nice": (settings.ingest.nice == 0, "An ingest does not give way to other programs."),
        "deadline": (
            0 < retrieval.vector_deadline_ms < _SHORT_DEADLINE_MS,
            f"The vectors of a question have {retrieval.vector_deadline_ms} ms.",
        ),
        "width": (retrieval.ef_search < _NARROW_SEARCH, f"The index is searched {retrieval.ef_search} wide."),
        "sources": (retrieval.source_count < _FEW_SOURCES, f"An answer gets {retrieval.source_count} sources at most."),
        "refusal": (
            retrieval.found_probability > _STRICT,
            f"Passages below a probability of {retrieval.found_probability:g} are taken to be about something else.",
        ),
    }
    fits, why = reasons.get(key, (False, ""))
    return why if fits else ""


def guide_rows() -> Iterator[Sequence[str]]:
    """The table of docs/tuning.md: symptom, figure, knob, effect, where it was measured."""
    for advice in GUIDE:
        files = ", ".join(f"[{file.rpartition('-')[0]}](../bench/results/{file})" for file in advice.files)
        yield advice.symptom, advice.look_at, f"`{advice.does_it}`", advice.told_effect, files
