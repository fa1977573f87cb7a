"""Jupyter notebooks (nbformat 3 and 4): Markdown cells as they are, code cells and what they printed, in order.

Code and output stand in fences, so that the whole is Markdown. Of an output the text is kept, up to a bound;
images and widgets are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from edgerag.errors import DocumentDamaged, DocumentEmpty
from edgerag.ingest.parse.markdown import find_headings
from edgerag.ingest.parse.source import Source, clean_text
from edgerag.ingest.parse.text import read_text
from edgerag.types import Heading, ParsedDocument

# Enough for a result or an error; what is longer is a log or a table that nobody reads in the notebook.
_LONGEST_OUTPUT = 2_000
_MOST_HEADING_LEVEL = 6
# The richest first that is text on its own; HTML only comes beside plain text.
_TEXT_TYPES = ("text/markdown", "text/plain", "text/latex")
_ESCAPE_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# A picture inside a cell: nothing but base64 that nobody reads.
_EMBEDDED_IMAGE = re.compile(r"data:image/[\w.+-]{1,40};base64,[A-Za-z0-9+/=\s]{40,}")
_BACKTICKS = re.compile(r"`{3,}")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#-]{1,30}")


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    markdown: bool
    shortened: bool = False


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentDamaged when it is no notebook, DocumentEmpty when nothing stands in its cells."""
    raw, warnings = read_text(source)
    notebook = _loaded(raw)
    pieces: list[str] = []
    headings: list[Heading] = []
    length = 0
    shortened = 0
    for cell in _cells(notebook):
        text = clean_text(cell.text).strip("\n").rstrip()
        if not text.strip():
            continue
        if pieces:
            pieces.append("\n\n")
            length += 2
        if cell.markdown:
            headings.extend(Heading(h.level, h.title, h.start + length) for h in find_headings(text))
        pieces.append(text)
        length += len(text)
        shortened += cell.shortened
    if not pieces:
        raise DocumentEmpty("There is no text in the cells of the notebook.")
    if shortened:
        warnings = (*warnings, f"{shortened} outputs were shortened to {_LONGEST_OUTPUT} characters.")
    return ParsedDocument(
        text="".join(pieces),
        title=headings[0].title if headings and headings[0].level <= 2 else source.fallback_title,
        media_type="application/x-ipynb+json",
        headings=tuple(headings),
        warnings=warnings,
    )


def _loaded(raw: str) -> dict[str, Any]:
    remedy = "Open it in Jupyter and save it again."
    try:
        notebook = json.loads(raw)
    except json.JSONDecodeError as error:
        raise DocumentDamaged(
            f"The notebook breaks off or is damaged in line {error.lineno}.", remedy=remedy
        ) from error
    except RecursionError as error:
        raise DocumentDamaged("The notebook is nested too deeply to be read.") from error
    if not isinstance(notebook, dict) or not isinstance(_raw_cells(notebook), list):
        raise DocumentDamaged("There are no cells in the file: it is no notebook.", remedy=remedy)
    return notebook


def _raw_cells(notebook: dict[str, Any]) -> Any:
    if "cells" in notebook:
        return notebook["cells"]
    sheets = notebook.get("worksheets")  # nbformat 3
    if not isinstance(sheets, list):
        return None
    return [cell for sheet in _dicts(sheets) for cell in _dicts(sheet.get("cells"))]


def _cells(notebook: dict[str, Any]) -> Iterator[_Cell]:
    language = _language(notebook)
    for cell in _dicts(_raw_cells(notebook)):
        kind = cell.get("cell_type")
        text = _joined(cell.get("source", cell.get("input")))
        if kind == "code":
            own = cell.get("language")  # nbformat 3
            yield _Cell(_fenced(text, own if isinstance(own, str) and _LANGUAGE.fullmatch(own) else language), False)
            yield from _outputs(cell)
        elif kind == "heading":  # nbformat 3
            level = cell.get("level")
            level = min(max(level, 1), _MOST_HEADING_LEVEL) if isinstance(level, int) else 1
            yield _Cell(f"{'#' * level} {' '.join(text.split())}", True)
        else:
            yield _Cell(_EMBEDDED_IMAGE.sub("", text), kind == "markdown")


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    for holder, key in (("language_info", "name"), ("kernelspec", "language")):
        facts = metadata.get(holder) if isinstance(metadata, dict) else None
        name = facts.get(key) if isinstance(facts, dict) else None
        if isinstance(name, str) and _LANGUAGE.fullmatch(name):
            return name
    return ""


def _outputs(cell: dict[str, Any]) -> Iterator[_Cell]:
    """What a code cell shows below it. Neighbouring pieces of a stream are one output."""
    stream = ""
    for output in _dicts(cell.get("outputs")):
        if output.get("output_type") == "stream":
            stream += _joined(output.get("text"))
            continue
        yield from _output(stream)
        stream = ""
        yield from _output(_result(output))
    yield from _output(stream)


def _result(output: dict[str, Any]) -> str:
    if output.get("output_type") in ("error", "pyerr"):
        return f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    bundle = output.get("data")
    if isinstance(bundle, dict):
        return next((found for kind in _TEXT_TYPES if (found := _joined(bundle.get(kind)))), "")
    return _joined(output.get("text"))  # nbformat 3


def _output(text: str) -> Iterator[_Cell]:
    text = _EMBEDDED_IMAGE.sub("", _ESCAPE_CODES.sub("", text)).strip("\n")
    if not text.strip():
        return
    long = len(text) > _LONGEST_OUTPUT
    if long:
        cut = text[:_LONGEST_OUTPUT]
        text = cut[: cut.rfind("\n") if "\n" in cut else None].rstrip() + "\n…"
    yield _Cell(_fenced(text, "output"), False, shortened=long)


def _fenced(text: str, info: str) -> str:
    if not text.strip():
        return ""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{text.rstrip()}\n{fence}"


def _joined(value: object) -> str:
    """Text that is kept as one string or as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _dicts(value: object) -> Iterable[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
