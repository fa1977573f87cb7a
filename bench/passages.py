"""Sentences of the data sets and documents at hand, as passages to index: each once, in the order of the files.

Sources are the public sets that :mod:`datasets` reads, and plain documents of several formats, whose markup is
taken off by rule of thumb: for an index, a sentence with a stray mark is as good as one without.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import datasets

_SHORTEST, _LONGEST = 25, 600  # characters; shorter ones are labels and list numbers, longer ones tables
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z])|(?<=[。！？])|\n\s*\n|\n(?=[-*#=] )")
# Their texts come later, in another shape: the sentences and their order are what the vector sets are made of.
_SETS_READ_APART = ("pubmedqa", "tatqa")
_DOCUMENTS = ("corpora/rust-book", "docs/text", "docs/rst", "docs/html", "docs/asciidoc", "docs/latex", "docs/code")
_SUFFIXES = frozenset((".md", ".txt", ".rst", ".html", ".htm", ".adoc", ".tex", ".py", ".rs", ".c", ".go", ".java"))


def sentences(text: str) -> list[str]:
    """The sentences of ``text`` of a usual length, white space made even."""
    parts = (" ".join(part.split()) for part in _SENTENCE_END.split(text))
    return [part for part in parts if _SHORTEST <= len(part) <= _LONGEST and sum(map(str.isalpha, part)) >= 12]


def all_sentences(data: Path) -> list[str]:
    """The sentences of every text under ``data`` that is read here; equal ones (letters alone) once."""
    return distinct(sentence for text in _texts(data) for sentence in sentences(text))


def distinct(texts: Iterable[str]) -> list[str]:
    """``texts`` without those whose letters and digits were seen before."""
    seen: dict[str, str] = {}
    for text in texts:
        seen.setdefault("".join(filter(str.isalnum, text.lower())), text)
    return list(seen.values())


def _texts(data: Path) -> Iterator[str]:
    for name in (name for name in datasets.NAMES if name not in _SETS_READ_APART):
        # Some abstracts hold the two characters of an escaped line break.
        yield from (f"{text.title}.\n\n{text.text}".replace("\\n", "\n") for text in datasets.load(name, data).texts)
    yield from _claims(data / "ir" / "scifact")
    for abstract in json.loads((data / "qa" / "pubmedqa" / "ori_pqal.json").read_text(encoding="utf-8")).values():
        yield "\n\n".join([abstract["QUESTION"], *abstract["CONTEXTS"], abstract["LONG_ANSWER"]])
    for report in json.loads((data / "qa" / "tatqa" / "tatqa_dataset_dev.json").read_text(encoding="utf-8")):
        yield from (paragraph["text"] for paragraph in report["paragraphs"])
        yield from (question["question"] for question in report["questions"])
    for folder in _DOCUMENTS:
        for file in sorted((data / folder).rglob("*")):
            if file.suffix in _SUFFIXES:
                yield _plain(file.read_text(encoding="utf-8", errors="replace"), file.suffix)


def _claims(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("claims_*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            yield from (row["claim"] for row in csv.DictReader(lines))


def _plain(text: str, suffix: str) -> str:
    if suffix in (".html", ".htm"):
        text = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", text)
        text = html.unescape(re.sub(r"(?s)</(p|div|li|td|h\d)>", "\n\n", text))
        return re.sub(r"(?s)<[^>]*>", " ", text)
    return text
