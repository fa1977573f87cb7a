"""Paths as they are typed, pasted or dropped, and their completion."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from edgerag.errors import UsageError
from edgerag.locations import is_there, user_path
from edgerag.ui.tui import shown

_MOST_COMPLETIONS = 200  # more are noise; typing on narrows them


@dataclass(frozen=True, slots=True)
class Completion:
    typed: str  # what the input holds once it is taken
    label: str
    is_folder: bool


def complete(value: str) -> list[Completion]:
    """Folders, then files, that continue ``value``; hidden ones only once a dot is typed.

    A name that an input field cannot hold as it is (control characters) is left out; its folder can
    be added instead. A folder that cannot be read completes to nothing.
    """
    head, slash, prefix = value.rpartition("/")
    try:
        with os.scandir(user_path((head + slash) or ".")) as entries:
            found = [
                (entry.name, entry.is_dir())
                for entry in entries
                if entry.name.startswith(prefix) and (prefix or not entry.name.startswith("."))
            ]
    except (OSError, ValueError, UsageError):
        return []
    found = [(name, is_folder) for name, is_folder in found if shown.is_typable(name)]
    found.sort(key=lambda item: (not item[1], item[0].casefold()))
    return [
        Completion(typed=head + slash + name + ("/" if is_folder else ""), label=name, is_folder=is_folder)
        for name, is_folder in found[:_MOST_COMPLETIONS]
    ]


def common_continuation(value: str, completions: list[Completion]) -> str:
    """The longest text that every completion begins with; ``value`` itself if nothing can be added."""
    names = sorted(completion.typed for completion in completions)
    if not names:
        return value
    first, last = names[0], names[-1]  # what these two share, all between them share
    length = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    return first[:length] if length > len(value) else value


def parse(value: str) -> list[Path]:
    """The paths that ``value`` names: one as it stands, or several quoted as a shell or a drop gives them."""
    value = value.strip()
    if not value:
        return []
    whole = _path(value)
    if is_there(whole):
        return [whole]
    try:
        words = shlex.split(value)
    except ValueError:  # a lone quote: it is part of the name
        return [whole]
    several = [_path(word) for word in words]
    return several if several and all(is_there(path) for path in several) else [whole]


def _path(word: str) -> Path:
    if word.startswith("file://"):
        word = unquote(urlsplit(word).path)
    if word.startswith("~//"):  # an absolute path typed behind the "~/" that the box begins with
        word = word[2:]
    try:
        return user_path(word)
    except UsageError:  # ~somebody who is not here
        return Path(word)
