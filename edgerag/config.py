"""Settings: one small frozen object per stage, read strictly.

Order, later wins: defaults, ``config.toml`` in the home, environment (``EDGERAG_<SECTION>_<KEY>``,
for example ``EDGERAG_RETRIEVAL_SOURCE_COUNT=6``), command-line flags. An unknown section or key, or
a value of the wrong type or range, is refused by name.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from edgerag.errors import UsageError
from edgerag.library_name import check_library_name
from edgerag.types import (
    DocumentView,
    EmbedBackend,
    GenerationMode,
    KvMode,
    LoopbackEndpoint,
    OcrMode,
    PageGraphics,
    SecondLookBy,
    ThemeName,
    TuneMode,
    VectorType,
    WhenTight,
)

_ENVIRONMENT_PREFIX = "EDGERAG_"
# Of protected documents, one to a line: never a setting, so that no file holds it.
PASSWORD_VARIABLE = "EDGERAG_PASSWORD"  # noqa: S105 - a name
BUNDLE_PASSWORD_VARIABLE = "EDGERAG_BUNDLE_PASSWORD"  # noqa: S105 - of the key that signs bundles
NO_COLOUR_VARIABLE = "NO_COLOR"  # https://no-color.org: set and not empty
_LEAST_BUDGET = 1_000_000  # bytes; less is a unit forgotten, not a budget
# Variables of ours that others read: locations.py, the benches, the build.
_NOT_SETTINGS = frozenset(
    {"EDGERAG_HOME", "EDGERAG_BENCH_CACHE", "EDGERAG_BENCH_DATA", "EDGERAG_REQUIRE_KERNEL"}
    | {PASSWORD_VARIABLE, BUNDLE_PASSWORD_VARIABLE}
)
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?)?B?", re.IGNORECASE)
_SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")
_SIZE_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SWITCHES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_SIZE_UNITS |= {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def parse_size(text: str) -> int:
    """Bytes of ``"512 MB"``, ``"1.5GiB"`` or ``"4096"``. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size such as '512 MB'")
    size = float(match[1]) * _SIZE_UNITS[(match[2] or "").upper()]
    if not math.isfinite(size):
        raise ValueError(f"{text!r} is too large for a size")
    return int(size)


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the memory that is free when the program starts."""

    percent: float

    def __str__(self) -> str:
        return f"{self.percent:g}%"


def parse_budget(text: str) -> int | Share:
    """A size, or the share of ``"10%"``. Raises ValueError."""
    share = _SHARE.fullmatch(text.strip())
    return parse_size(text) if share is None else Share(float(share[1]))


def _between(low: float, high: float, default: Any) -> Any:
    return field(default=default, metadata={"low": low, "high": high})


def _check_one_line(text: str) -> None:
    """Raises ValueError for what nothing on a disk is called and nobody sees on a screen."""
    if text and not text.isprintable():
        raise ValueError(f"{text!r} holds characters that cannot be seen")
    if text != text.strip():
        raise ValueError(f"{text!r} begins or ends with a space")


@dataclass(frozen=True, slots=True)
class LibrarySettings:
    name: str = field(default="default", metadata={"check": check_library_name})
    also: tuple[str, ...] = field(
        default=(), metadata={"check": check_library_name}
    )  # asked together with it; nothing is ever written to them
    # What opens an encrypted library that is opened by a key file.
    key_file: str = field(default="", metadata={"check": _check_one_line})
    # Of vectors that are written from now on. f16 takes half the room and moves a cosine by less than 0.001.
    vectors: VectorType = field(default="f16", metadata={"choices": get_args(VectorType)})


@dataclass(frozen=True, slots=True)
class MemorySettings:
    # Resident pages of the index, in this process. Written as a size, "256 MB", or as a share of what is free, "10%".
    budget: int | Share = field(default=256_000_000, metadata={"budget": True, "low": _LEAST_BUDGET, "high": 2**60})

    def budget_bytes(self, free_bytes: int) -> int:
        """The budget where so much memory is free; never less than the least that can be set."""
        if isinstance(self.budget, Share):
            return max(_LEAST_BUDGET, int(free_bytes * self.budget.percent / 100))
        return self.budget


@dataclass(frozen=True, slots=True)
class ModelSettings:
    # A name from `models list`, or a path; "" takes the first one at hand.
    chat: str = field(default="", metadata={"check": _check_one_line})
    embedder: str = field(default="", metadata={"check": _check_one_line})
    reranker: str = field(default="", metadata={"check": _check_one_line})


@dataclass(frozen=True, slots=True)
class MachineSettings:
    threads: int = _between(0, 1024, 0)  # 0: one per physical core that this process may use
    # Whether the terminal UI measures what runs a model fastest here, while nobody asks anything.
    tune: TuneMode = field(default="idle", metadata={"choices": get_args(TuneMode)})


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    target_tokens: int = _between(16, 8192, 160)
    # Tokens of the heading path put before the text when it is embedded.
    heading_tokens: int = _between(0, 256, 40)


@dataclass(frozen=True, slots=True)
class IngestSettings:
    parse_deadline_s: float = _between(1, 86_400, 120.0)
    parse_memory: int = field(default=2_000_000_000, metadata={"size": True, "low": 2e8, "high": 2**60})
    max_file_size: int = field(default=500_000_000, metadata={"size": True, "low": 1, "high": 2**60})
    # Of text, logs, CSV and JSON Lines, which are read in parts. The most is what parts there can be.
    max_text_size: int = field(default=8_000_000_000, metadata={"size": True, "low": 1, "high": 20_000_000_000})
    batch_chunks: int = _between(1, 4096, 32)  # embedded and committed together
    # "auto" tries for some seconds what is fastest on this machine, when many passages are embedded, and remembers it.
    embed_with: EmbedBackend = field(default="auto", metadata={"choices": get_args(EmbedBackend)})
    # With Tesseract on the machine: "auto" reads pages and pictures without text, "force" every page.
    ocr: OcrMode = field(default="auto", metadata={"choices": get_args(OcrMode)})
    ocr_languages: str = field(
        default="", metadata={"check": _check_one_line}
    )  # as Tesseract names them, "deu+eng"; "" takes what is installed
    hidden: bool = False  # whether files and folders whose names begin with a dot are read
    junk: bool = False  # whether what programs make for themselves is read: node_modules, caches, lock files
    # Patterns as in .gitignore, relative to each named folder. In the environment they stand between commas.
    include: tuple[str, ...] = ()  # empty: every file
    exclude: tuple[str, ...] = ()
    nice: int = _between(0, 19, 10)  # of `edgerag ingest` and of the parser; 0 leaves both as other programs are
    max_cpu: int = _between(1, 100, 100)  # percent of all cores, on average
    polite: bool = False  # whether an ingest waits while others need the machine, or its battery is low


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    source_count: int = _between(1, 50, 9)  # at most; how many a question gets depends on it (ask/kind.py)
    candidate_count: int = _between(1, 1000, 40)
    ef_search: int = _between(1, 4096, 80)
    rrf_k: int = _between(1, 1000, 60)
    # From here on a passage is taken to be about the question. Below even odds: one shown in vain costs a glance, a
    # refusal hides what is there (docs/decisions/042).
    found_probability: float = _between(0, 1, 0.3)
    # How long the vector leg may take once its model is there, the question's embedding included; 0: any time.
    vector_deadline_ms: int = _between(0, 60_000, 80)
    # Who reads the best candidates once more; off, as no model at hand makes the order better (docs/decisions/063).
    second_look: SecondLookBy = field(default="off", metadata={"choices": get_args(SecondLookBy)})
    second_look_ms: int = _between(0, 600_000, 1000)  # once the model is there; 0: any time
    second_look_count: int = _between(1, 50, 10)  # candidates at most
    second_look_weight: float | None = _between(0, 100, None)  # None: as fits who looks (ask/second_look.py)


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    # "instant" loads no chat model: the best sentences of the documents are the whole answer.
    mode: GenerationMode = field(default="model", metadata={"choices": get_args(GenerationMode)})
    context_tokens: int = _between(256, 1_048_576, 4096)
    # When that many do not fit into the free memory: a smaller context, or an error that says what would fit.
    when_tight: WhenTight = field(default="shrink", metadata={"choices": get_args(WhenTight)})
    answer_tokens: int = _between(1, 65_536, 256)
    # How long the model may read before the first word of an answer, where its speed here is known: then sources are
    # shortened to their best sentences, or left out. 0: any time. What is computed already takes none of it.
    reading_s: float = _between(0, 3600, 15.0)
    # How long a whole answer may take, in 95 of 100 cases: decides how many sources and second looks it gets at most,
    # once `bench ask --calibrate` has found what they take here. 0: any time.
    target_s: float = _between(0, 3600, 0.0)
    # Where these are not set, the model's file decides, and where that says nothing, the engine (engine/sampling.py).
    temperature: float | None = _between(0, 2, None)
    top_k: int | None = field(default=None, metadata={"low": 0, "high": 1_000_000, "whole": True})
    top_p: float | None = _between(0, 1, None)
    min_p: float | None = _between(0, 1, None)
    repeat_penalty: float | None = _between(0.5, 3, None)
    seed: int = _between(0, 2**32 - 1, 0)
    kv: KvMode = field(default="auto", metadata={"choices": get_args(KvMode)})
    # For computed passages: in memory while the program runs, and beside the library. 0 keeps none.
    kv_memory: int = field(default=256_000_000, metadata={"size": True, "low": 0, "high": 2**60})
    kv_disk: int = field(default=2_000_000_000, metadata={"size": True, "low": 0, "high": 2**60})


@dataclass(frozen=True, slots=True)
class OfflineSettings:
    # Of this machine itself, to which the program may talk; read once, at the start (offline/allowed.py).
    loopback_ports: tuple[str, ...] = field(default=(), metadata={"ports": True})
    # AF_UNIX sockets, which never leave the machine but may reach a daemon that does. Without them nothing is lost yet.
    local_sockets: bool = True


@dataclass(frozen=True, slots=True)
class UiSettings:
    theme: ThemeName = field(default="dark", metadata={"choices": get_args(ThemeName)})
    # How the next source is opened; the key that changes it while one is open keeps it here.
    document_view: DocumentView = field(default="text", metadata={"choices": get_args(DocumentView)})
    page_graphics: PageGraphics = field(default="auto", metadata={"choices": get_args(PageGraphics)})


@dataclass(frozen=True, slots=True)
class TraceSettings:
    keep: int = _between(0, 100_000, 1000)  # answers, and as many ingests; 0 keeps none
    content: bool = False  # whether the words of question, answer and prompt, and paths, are kept with them
    # Where a collector listens: http://127.0.0.1:4318 or unix:/PATH; "" sends nothing. Nowhere but on this machine.
    otlp: str = field(default="", metadata={"loopback": True})


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    file: str = ""  # written after each answer and ingest, in Prometheus' text format; "" writes none
    port: int = _between(0, 65_535, 0)  # of 127.0.0.1, where they can be read while the program runs; 0: none


@dataclass(frozen=True, slots=True)
class Settings:
    library: LibrarySettings = LibrarySettings()
    memory: MemorySettings = MemorySettings()
    models: ModelSettings = ModelSettings()
    machine: MachineSettings = MachineSettings()
    chunks: ChunkSettings = ChunkSettings()
    ingest: IngestSettings = IngestSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    generation: GenerationSettings = GenerationSettings()
    offline: OfflineSettings = OfflineSettings()
    ui: UiSettings = UiSettings()
    trace: TraceSettings = TraceSettings()
    metrics: MetricsSettings = MetricsSettings()


Overrides = Mapping[str, Mapping[str, Any]]  # section -> key -> value


def load_settings(config_file: Path, environ: Mapping[str, str], flags: Overrides) -> Settings:
    """The settings in force. Raises UsageError naming the file or variable, the key and the value."""
    settings = Settings()
    for section, values in read_config_file(config_file).items():
        settings = _override(settings, section, values, origin=str(config_file))
    for variable, section, key, text in environment_values(environ):
        settings = _override(settings, section, {key: text}, origin=variable)
    for section, values in flags.items():
        settings = _override(settings, section, values, origin="the command line")
    return settings


def environment_values(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Variable, section, key and text of every setting in the environment; nothing is checked. What everybody's
    programs listen to comes first, so that our own variables stand above it."""
    if environ.get(NO_COLOUR_VARIABLE):
        yield NO_COLOUR_VARIABLE, "ui", "theme", "no-colour"
    for variable, text in environ.items():
        if variable.startswith(_ENVIRONMENT_PREFIX) and variable not in _NOT_SETTINGS:
            section, _, key = variable[len(_ENVIRONMENT_PREFIX) :].lower().partition("_")
            yield variable, section, key, text


def checked_value(section: str, key: str, value: Any) -> Any:
    """``value`` as the setting holds it. Raises ValueError with what is wrong with it, KeyError for no setting."""
    part = getattr(Settings(), section, None)
    spec = {f.name: f for f in dataclasses.fields(part)}[key] if part is not None else None
    if spec is None:
        raise KeyError(f"{section}.{key}")
    return _checked(spec, getattr(part, key), value)


def read_config_file(config_file: Path) -> Mapping[str, Any]:
    """What the file holds, unchecked; nothing where there is none. Raises UsageError for what is no TOML."""
    try:
        return tomllib.loads(config_file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, no TOML, too many digits
        raise UsageError(f"Settings file {config_file} cannot be read: {error}.") from error


def _override(settings: Settings, section: str, values: Any, *, origin: str) -> Settings:
    sections = {f.name for f in dataclasses.fields(Settings)}
    if section not in sections:
        raise UsageError(
            f"Unknown settings section {section!r} in {origin}.", remedy=f"Known: {', '.join(sorted(sections))}."
        )
    if not isinstance(values, Mapping):
        raise UsageError(f"Settings section {section!r} in {origin} must hold keys, not {values!r}.")
    part = getattr(settings, section)
    fields = {f.name: f for f in dataclasses.fields(part)}
    checked: dict[str, Any] = {}
    for key, value in values.items():
        if key not in fields:
            raise UsageError(
                f"Unknown setting {section}.{key} in {origin}.", remedy=f"Known: {', '.join(sorted(fields))}."
            )
        try:
            checked[key] = _checked(fields[key], getattr(part, key), value)
        except ValueError as error:
            raise UsageError(f"Setting {section}.{key} in {origin}: {error}.") from error
    return dataclasses.replace(settings, **{section: dataclasses.replace(part, **checked)})


def _checked(spec: dataclasses.Field[Any], default: Any, value: Any) -> Any:
    """``value`` in the type of ``default`` and inside the range of ``spec``. Raises ValueError."""
    if spec.metadata.get("budget"):
        converted: Any = parse_budget(str(value))
        if isinstance(converted, Share):
            if not 0 < converted.percent <= 100:
                raise ValueError(f"{value!r} is not between 0% and 100%")
            return converted
    elif spec.metadata.get("size"):
        converted = parse_size(str(value))
    elif isinstance(default, bool):
        return _checked_switch(value)
    elif isinstance(default, tuple):
        if spec.metadata.get("ports"):
            return _checked_ports(value)
        values = _checked_list(value)
        for each in values if "check" in spec.metadata else ():
            spec.metadata["check"](each)
        return values
    elif isinstance(default, str):
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is not text")
        if "\0" in value:  # no file is called so
            raise ValueError(f"{value!r} holds a NUL character")
        choices = spec.metadata.get("choices", (value,))
        if value not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(map(repr, choices))}")
        if check := spec.metadata.get("check"):
            check(value)
        if value and spec.metadata.get("loopback"):
            LoopbackEndpoint.parse(value)
        return value
    elif isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{value!r} is not a number")
    else:
        whole = isinstance(default, int) or spec.metadata.get("whole", False)
        try:
            converted = float(value)
        except OverflowError:
            raise ValueError("the number is too large") from None
        except ValueError:
            raise ValueError(f"{value!r} is not a {'whole ' if whole else ''}number") from None
        if whole and not converted.is_integer():
            raise ValueError(f"{value!r} is not a whole number")
        if whole:
            converted = int(value) if not isinstance(value, str) else int(converted)
    low, high = spec.metadata["low"], spec.metadata["high"]
    if not low <= converted <= high:  # false for NaN too
        raise ValueError(f"{value!r} is not between {low:g} and {high:g}")
    return converted


def _checked_switch(value: Any) -> bool:
    """Raises ValueError."""
    if isinstance(value, bool):
        return value
    switch = _SWITCHES.get(value.strip().lower()) if isinstance(value, str) else None
    if switch is None:
        raise ValueError(f"{value!r} is not true or false")
    return switch


def _checked_list(value: Any) -> tuple[str, ...]:
    """Raises ValueError."""
    if isinstance(value, str):
        value = tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, list | tuple) and all(isinstance(part, str) and "\0" not in part for part in value):
        return tuple(value)
    raise ValueError(f"{value!r} is not a list of texts")


def _checked_ports(value: Any) -> tuple[str, ...]:
    """Numbers or texts of numbers, as texts. Raises ValueError."""
    numbers = isinstance(value, list) and all(type(part) is int for part in value)
    ports = _checked_list([str(part) for part in value] if numbers else value)
    for port in ports:
        if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
            raise ValueError(f"{port!r} is not a port between 1 and 65535")
    return ports
