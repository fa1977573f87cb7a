"""Threads as files for other programs: Markdown, HTML and JSON, each with the sources of every answer.

What documents, models and users wrote is text in all of them: it can open no link, load nothing and run nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from edgerag.errors import OutputRefused, UsageError
from edgerag.types import FoundSource, Thread
from edgerag.ui.export.html import to_html
from edgerag.ui.export.json import to_json
from edgerag.ui.export.markdown import to_markdown

ExportFormat = Literal["markdown", "html", "json"]
# The sources of the exchanges, by id, as the library has them today.
FoundSources = Mapping[int, Sequence[FoundSource]]

_BY_SUFFIX: Mapping[str, ExportFormat] = {".md": "markdown", ".html": "html", ".htm": "html", ".json": "json"}
_SUFFIXES: Mapping[ExportFormat, str] = {"markdown": ".md", "html": ".html", "json": ".json"}
_NAME_CHARACTERS = 60


def export(thread: Thread, found: FoundSources, *, form: ExportFormat) -> str:
    """The thread as the text of one file."""
    match form:
        case "markdown":
            return to_markdown(thread, found)
        case "html":
            return to_html(thread, found)
        case "json":
            return to_json(thread, found)


def format_of(path: Path) -> ExportFormat:
    """By the end of the name. Raises UsageError."""
    form = _BY_SUFFIX.get(path.suffix.lower())
    if form is None:
        raise UsageError(
            f"{path.name!r} does not say in which format.", remedy=f"End it in {', '.join(sorted(_BY_SUFFIX))}."
        )
    return form


def file_name(thread: Thread, form: ExportFormat) -> str:
    """``which-torque-do-the-lid-screws-need.md``"""
    words = "-".join(re.findall(r"\w+", thread.head.title.casefold()))[:_NAME_CHARACTERS].strip("-")
    return (words or f"thread-{thread.head.id}") + _SUFFIXES[form]


def write_new(path: Path, text: str) -> None:
    """All of it, or no file. Raises UsageError if there is a file already, OutputRefused if it cannot be written."""
    try:
        # A conversation is its owner's alone until he gives it away.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()  # ours: there was none before
            raise
    except FileExistsError as error:
        raise UsageError(f"{str(path)!r} exists already.", remedy="Name another file.") from error
    except OSError as error:
        raise OutputRefused(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error


FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
