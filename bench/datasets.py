"""Reads the public data sets that retrieval is judged on, from a folder given by the caller.

The folder is laid out as ``ir/cranfield``, ``ir/scifact``, ``qa/xquad``, ``qa/cmrc2018``, ``qa/pubmedqa`` and
``qa/tatqa``; the files are those that the authors of the sets publish. None of them is part of this repository.
"""

from __future__ import annotations

import csv
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

XQUAD_LANGUAGES = ("en", "de", "es", "ro", "tr", "vi", "ru", "el", "zh", "th", "hi", "ar")
NAMES = (
    *("cranfield", "scifact"),
    *(f"xquad-{language}" for language in XQUAD_LANGUAGES),
    *("cmrc2018", "pubmedqa", "tatqa"),
)


@dataclass(frozen=True, slots=True)
class Text:
    """One document of a set. ``article`` is what it is a paragraph of, where the set has such."""

    id: str
    title: str
    text: str
    article: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """One query and the ids of the documents that answer it. ``answer`` is "" where the set has none."""

    text: str
    relevant: frozenset[str]
    answer: str = ""


@dataclass(frozen=True, slots=True)
class DataSet:
    name: str
    texts: tuple[Text, ...]
    queries: tuple[Query, ...]


def data_folder(argument: str | None) -> Path:
    """The folder named on the command line or in EDGERAG_BENCH_DATA. Exits with a sentence if none."""
    named = argument or os.environ.get("EDGERAG_BENCH_DATA")
    if not named or not Path(named).is_dir():
        raise SystemExit("Name the folder with the data sets: --data DIR, or EDGERAG_BENCH_DATA.")
    return Path(named)


def load(name: str, data: Path) -> DataSet:
    """One set by its name in NAMES."""
    if name == "cranfield":
        return _cranfield(data / "ir" / "cranfield")
    if name in ("scifact", "scifact-train"):
        return _scifact(data / "ir" / "scifact", "train" if name == "scifact-train" else "validation")
    if name == "pubmedqa":
        return _pubmedqa(data / "qa" / "pubmedqa" / "ori_pqal.json")
    if name == "tatqa":
        return _tatqa(data / "qa" / "tatqa" / "tatqa_dataset_dev.json")
    file = squad_file(name, data)
    if file is None:
        raise SystemExit(f"Unknown data set {name!r}. Known: {', '.join(NAMES)}.")
    return _squad(name, file)


def squad_file(name: str, data: Path) -> Path | None:
    """The file of a set that is published in SQuAD's form; None for the others."""
    if name == "cmrc2018":
        return data / "qa" / "cmrc2018" / "cmrc2018_dev.json"
    language = name.removeprefix("xquad-")
    return data / "qa" / "xquad" / f"xquad.{language}.json" if language in XQUAD_LANGUAGES else None


def first_half(data_set: DataSet) -> DataSet:
    """The set without the paragraphs of every second article; the queries stay."""
    kept = tuple(text for text in data_set.texts if text.article % 2 == 0)
    return DataSet(f"{data_set.name}-half", kept, data_set.queries)


def _cranfield(folder: Path) -> DataSet:
    texts = []
    for record in (folder / "cran.all.1400").read_text(encoding="latin-1").split(".I ")[1:]:
        number, _, rest = record.partition("\n")
        title = re.search(r"\.T\n(.*?)\n\.A\n", rest, re.S)
        body = re.search(r"\.W\n(.*)", rest, re.S)
        texts.append(
            Text(number.strip(), " ".join((title[1] if title else "").split()), (body[1] if body else "").strip())
        )
    relevant: dict[int, set[str]] = {}
    for line in (folder / "cranqrel").read_text(encoding="latin-1").splitlines():
        number, document, code = line.split()[:3]
        if int(code) >= 1:  # -1 is unexplained upstream
            relevant.setdefault(int(number), set()).add(document)
    queries = []
    # Judgements count the queries by position, not by the ids that they carry.
    asked = (folder / "cran.qry").read_text(encoding="latin-1").split(".I ")[1:]
    for place, record in enumerate(asked, start=1):
        words = " ".join(record.partition(".W\n")[2].split())
        queries.append(Query(words, frozenset(relevant.get(place, ()))))
    return DataSet("cranfield", tuple(text for text in texts if text.text), tuple(queries))


def _scifact(folder: Path, part: str) -> DataSet:
    csv.field_size_limit(10**8)
    sentence = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.S)  # a printed numpy array, no commas
    with (folder / "corpus_train.csv").open(encoding="utf-8", newline="") as file:
        texts = tuple(
            Text(row["doc_id"], row["title"], " ".join(a or b for a, b in sentence.findall(row["abstract"])))
            for row in csv.DictReader(file)
        )
    relevant: dict[str, tuple[str, set[str]]] = {}
    with (folder / f"claims_{part}.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            relevant.setdefault(row["id"], (row["claim"], set()))[1].update(re.findall(r"\d+", row["cited_doc_ids"]))
    queries = tuple(Query(claim, frozenset(ids)) for claim, ids in relevant.values() if ids or part == "validation")
    return DataSet("scifact" if part == "validation" else "scifact-train", texts, queries)


def _squad(name: str, file: Path) -> DataSet:
    texts: list[Text] = []
    queries: list[Query] = []
    for number, article in enumerate(json.loads(file.read_text(encoding="utf-8"))["data"]):
        for paragraph in article["paragraphs"]:
            identity = str(len(texts))
            texts.append(Text(identity, "", paragraph["context"].strip("\ufeff"), number))
            queries += [
                Query(qa["question"], frozenset({identity}), qa["answers"][0]["text"]) for qa in paragraph["qas"]
            ]
    return DataSet(name, tuple(texts), tuple(queries))


def _pubmedqa(file: Path) -> DataSet:
    """Each question is the title of its abstract, which is therefore left out of it; the conclusion is the answer."""
    records = json.loads(file.read_text(encoding="utf-8"))
    texts = tuple(Text(key, "", "\n\n".join(record["CONTEXTS"])) for key, record in records.items())
    queries = tuple(Query(record["QUESTION"], frozenset({key})) for key, record in records.items())
    return DataSet("pubmedqa", texts, queries)


def _tatqa(file: Path) -> DataSet:
    """A document is a table and the paragraphs around it, the table last."""
    texts: list[Text] = []
    queries: list[Query] = []
    for number, report in enumerate(json.loads(file.read_text(encoding="utf-8"))):
        table = "\n".join(" | ".join(cell for cell in row) for row in report["table"]["table"])
        paragraphs = [p["text"] for p in sorted(report["paragraphs"], key=lambda p: int(p["order"]))]
        texts.append(Text(str(number), "", "\n\n".join([*paragraphs, table]), number))
        for question in report["questions"]:
            # An answer of several spans, or one that has to be computed, stands nowhere word for word.
            spans = question["answer"] if question["answer_type"] == "span" else []
            queries.append(Query(question["question"], frozenset({str(number)}), spans[0] if len(spans) == 1 else ""))
    return DataSet("tatqa", tuple(texts), tuple(queries))
