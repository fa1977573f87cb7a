"""What a saved state is found by."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A name becomes the name of a file, with a dot, an ending and a process id around it.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_SCOPE = re.compile(r"[0-9a-f]{8,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,119}")
_MOST_LABELS = 64


@dataclass(frozen=True, slots=True)
class StateKey:
    """A state is found only where all three agree. Names hold hashes and numbers, never words of a document."""

    name: str  # of what was computed: "doc-3fa9c1d2e4b5a697-chunk-12-v3" (index/kv_names.py)
    scope: str  # hex fingerprint of what it was computed with: weights, context settings, version of llama.cpp
    tokens_sha256: str  # of the exact tokens before the span and in it

    def __post_init__(self) -> None:
        """Raises ValueError for what can be no key."""
        for value, form, what in (
            (self.name, _NAME, "name of a state"),
            (self.scope, _SCOPE, "scope of a state"),
            (self.tokens_sha256, _SHA256, "SHA-256 in hex"),
        ):
            if not form.fullmatch(value):
                raise ValueError(f"{value!r} is no {what}")


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def is_scope(text: str) -> bool:
    return _SCOPE.fullmatch(text) is not None


def checked_labels(labels: frozenset[str]) -> frozenset[str]:
    """Raises ValueError for what can be no labels."""
    if len(labels) > _MOST_LABELS:
        raise ValueError(f"{len(labels)} labels; {_MOST_LABELS} are the most")
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise ValueError(f"{label!r} is no label")
    return labels
