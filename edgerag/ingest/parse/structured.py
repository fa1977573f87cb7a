"""JSON, JSON Lines, YAML, TOML and XML: the text is the file itself, its named parts are the headings.

Written in one endless line, JSON and XML are laid out again, so that a line can be cited; XML that holds prose is
read without its tags. A warning says so. Nothing has to be well-formed: what is damaged is read as it stands.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace

from edgerag.ingest.parse import json_text, keyed_text, outline, xml_prose, xml_text
from edgerag.ingest.parse.encoding import decode
from edgerag.ingest.parse.source import Source
from edgerag.ingest.parse.text import read_text
from edgerag.types import ParsedDocument

_LINES = frozenset({".jsonl", ".ndjson"})
_YAML = frozenset({".yaml", ".yml"})
# Above this the file is read as it stands: looking for its parts would take longer than embedding them is worth.
MOST_CHARACTERS = 50_000_000
_MOST_CHECKED = 2_000_000  # of TOML, whose reader is slow
# Lines that nobody reads: one is longer than this, and they are so long on average.
_ENDLESS_LINE = 1000
_ENDLESS_MEAN = 400
_LAID_OUT = "It is written in endless lines and was laid out again; line numbers are those of the new layout."


def parse(source: Source) -> ParsedDocument:
    """Raises DocumentEmpty when there is nothing but blanks."""
    extension = source.extension
    if extension not in _LINES | _YAML | {".json", ".toml"}:
        return _xml(source)
    text, warnings = read_text(source)
    document = ParsedDocument(text=text, title=source.fallback_title, media_type="application/json", warnings=warnings)
    if extension in _LINES:
        return replace(document, text=json_text.readable(text), media_type="application/jsonl")
    if extension == ".json":
        return _json(document)
    if extension == ".toml":
        return _toml(replace(document, media_type="application/toml"))
    document = replace(document, media_type="application/yaml")
    if len(text) > MOST_CHARACTERS:
        return document
    return replace(document, headings=outline.headings(keyed_text.yaml_parts(text)))


def _json(document: ParsedDocument) -> ParsedDocument:
    text = json_text.readable(document.text)
    if len(text) > MOST_CHARACTERS:
        return replace(document, text=text)
    warnings = document.warnings
    if _endless(text) and (laid_out := json_text.laid_out(text)).count("\n") > text.count("\n"):
        text, warnings = laid_out, (*warnings, _LAID_OUT)
    parts, whole = json_text.named_parts(text)
    if not whole:
        warnings = (*warnings, "The JSON is damaged or breaks off; it was read as it stands.")
    return replace(document, text=text, headings=outline.headings(parts), warnings=warnings)


def _toml(document: ParsedDocument) -> ParsedDocument:
    text = document.text
    if len(text) > MOST_CHARACTERS:
        return document
    if len(text) <= _MOST_CHECKED:
        try:
            tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            damage = f"The TOML is damaged and was read as it stands: {error}."
            document = replace(document, warnings=(*document.warnings, damage))
    return replace(document, headings=outline.headings(keyed_text.toml_parts(text)))


def _xml(source: Source) -> ParsedDocument:
    guess = decode(source.data)
    if guess.guessed and (declared := xml_text.declared(source.data, wide=guess.encoding.startswith("utf"))):
        source = replace(source, data=source.data.decode(declared, "replace").encode())
    text, warnings = read_text(source)
    document = ParsedDocument(text=text, title=source.fallback_title, media_type="application/xml", warnings=warnings)
    if len(text) > MOST_CHARACTERS:
        return document
    survey = xml_text.survey(text)
    if survey.damage:
        return replace(
            document, warnings=(*warnings, f"The XML is damaged and was read as it stands: {survey.damage}.")
        )
    if survey.is_prose(len(text)):
        return xml_prose.read(document, survey)
    if _endless(text) and (laid_out := xml_text.laid_out(text)):
        text = laid_out
        survey = xml_text.survey(text)
        document = replace(document, text=text, warnings=(*warnings, _LAID_OUT))
    return replace(document, headings=outline.headings(survey.parts))


def _endless(text: str) -> bool:
    lines = text.split("\n")
    return len(text) > _ENDLESS_MEAN * len(lines) and max(map(len, lines)) > _ENDLESS_LINE
