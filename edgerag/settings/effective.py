"""Every setting with the value in force and where that comes from.

The values are those of ``load_settings``; this only adds who had the last word. Flags stand above the environment,
that above the file, that above the defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from edgerag.config import Overrides, Settings, Share, environment_values, load_settings, read_config_file
from edgerag.errors import UsageError
from edgerag.settings.meanings import MEANINGS

Origin = Literal["default", "file", "environment", "flag"]
# When a change made in the running program is felt.
Holds = Literal["at once", "the chat model is loaded again", "after a restart"]

# What is opened or measured once, when the program starts.
_AFTER_RESTART = frozenset(
    {
        "library.name",
        "library.also",
        "memory.budget",
        "machine.threads",
        "machine.tune",
        "offline.loopback_ports",
        "offline.local_sockets",
        "generation.kv_memory",
        "generation.kv_disk",
        "metrics.port",
    }
)
# What a chat model is opened with.
RELOADING = frozenset(
    {
        "models.chat",
        "generation.context_tokens",
        "generation.when_tight",
        "generation.kv",
        "generation.target_s",  # decides whether passages are exact
    }
)
_SIZE_UNITS = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as it is described; the same for everybody."""

    section: str
    key: str
    meaning: str
    default: Any
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    is_size: bool = False  # a number of bytes, or for memory.budget a share

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def is_switch(self) -> bool:
        return isinstance(self.default, bool)

    @property
    def can_be_unset(self) -> bool:
        """Whether not being set is a value of its own."""
        return self.default is None

    @property
    def holds(self) -> Holds:
        if self.name in _AFTER_RESTART:
            return "after a restart"
        return "the chat model is loaded again" if self.name in RELOADING else "at once"

    @property
    def allowed(self) -> str:
        """What can be set, for people."""
        if self.choices:
            return ", ".join(self.choices)
        if self.is_switch:
            return "true, false"
        if isinstance(self.default, tuple):
            return "a list: commas between its parts"
        if self.low is None or self.high is None:
            return "text"
        if self.is_size:
            return f"a size such as 512 MB, from {size_text(int(self.low))}"
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Effective:
    """A setting's value in force, and who had the last word."""

    setting: Setting
    value: Any
    origin: Origin
    where: str  # the file or the variable; "" for defaults
    in_file: bool  # whether the file has it, in force or not

    @property
    def text(self) -> str:
        return value_text(self.setting, self.value)

    @property
    def is_overridden(self) -> bool:
        """Whether what the file says counts for nothing."""
        return self.origin in ("environment", "flag")


@dataclass(frozen=True, slots=True)
class SettingsSources:
    """What the settings of this process are read from."""

    config_file: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    flags: Overrides = field(default_factory=dict)

    def load(self) -> Settings:
        """Raises UsageError naming what is wrong and where."""
        return load_settings(self.config_file, self.environ, self.flags)

    def effective(self) -> list[Effective]:
        """Every setting, in the order of the sections. Raises UsageError."""
        settings = self.load()
        in_file = {(s, k) for s, values in read_config_file(self.config_file).items() for k in values}
        variables = {(section, key): name for name, section, key, _ in environment_values(self.environ)}
        flags = {(section, key) for section, values in self.flags.items() for key in values}
        found = []
        for setting in all_settings():
            place = (setting.section, setting.key)
            origin: Origin = "default"
            where = ""
            if place in flags:
                origin, where = "flag", "the command line"
            elif place in variables:
                origin, where = "environment", variables[place]
            elif place in in_file:
                origin, where = "file", str(self.config_file)
            value = getattr(getattr(settings, setting.section), setting.key)
            found.append(Effective(setting, value, origin, where, in_file=place in in_file))
        return found

    def find(self, name: str) -> Effective:
        """The setting of that name, as it stands. Raises UsageError."""
        setting = find_setting(name)
        return next(one for one in self.effective() if one.setting == setting)


def all_settings() -> tuple[Setting, ...]:
    """In the order of config.py."""
    return tuple(_described())


def _described() -> Iterator[Setting]:
    defaults = Settings()
    for section in dataclasses.fields(Settings):
        part = getattr(defaults, section.name)
        for spec in dataclasses.fields(part):
            metadata = spec.metadata
            yield Setting(
                section=section.name,
                key=spec.name,
                meaning=MEANINGS[f"{section.name}.{spec.name}"],
                default=getattr(part, spec.name),
                choices=metadata.get("choices", ()),
                low=metadata.get("low"),
                high=metadata.get("high"),
                is_size=bool(metadata.get("size") or metadata.get("budget")),
            )


def felt_now(before: Settings, after: Settings) -> Settings:
    """``after``, but what holds only after a restart as it was ``before``."""
    sections = {}
    for section in dataclasses.fields(Settings):
        old, new = getattr(before, section.name), getattr(after, section.name)
        names = [key.name for key in dataclasses.fields(old) if f"{section.name}.{key.name}" in _AFTER_RESTART]
        sections[section.name] = dataclasses.replace(new, **{name: getattr(old, name) for name in names})
    return Settings(**sections)


def find_setting(name: str) -> Setting:
    """Raises UsageError for a name that no setting has."""
    known = {setting.name: setting for setting in all_settings()}
    if name not in known:
        section = name.partition(".")[0]
        near = [other for other in known if other.startswith(f"{section}.")] or [*known]
        raise UsageError(f"There is no setting {name!r}.", remedy=f"Known: {', '.join(near)}.")
    return known[name]


def value_text(setting: Setting, value: Any) -> str:
    """As it is typed by a person; "" for what is not set."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, Share):
        return str(value)
    if setting.is_size:
        return size_text(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def size_text(size_bytes: int) -> str:
    """The shortest text that stands for exactly so many bytes: ``256 MB``, ``1.5 GB``, ``4096``."""
    for unit, factor in _SIZE_UNITS:
        if size_bytes >= factor:
            text = f"{size_bytes / factor:.2f}".rstrip("0").rstrip(".")
            if float(text) * factor == size_bytes:
                return f"{text} {unit}"
    return str(size_bytes)
