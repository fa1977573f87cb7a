"""Reads sets of questions in the three formats that people have, and names line and fault of what it cannot read.

- a folder as BEIR publishes it: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/NAME.tsv`` (Thakur et al. 2021);
- a ``.json`` file in SQuAD's form, 1.1 or 2.0; each paragraph is a document;
- a ``.csv`` or ``.tsv`` file about the user's own documents (:mod:`edgerag.measure.eval.table`).
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edgerag.errors import UsageError
from edgerag.measure.eval.sets import Expected, Question, QuestionSet, Text, can_be_asked
from edgerag.measure.eval.table import read_table
from edgerag.safe_text import SafeText

_FORMATS = "Give a BEIR folder, a .json file in SQuAD's form, or a .csv or .tsv file: docs/evaluation.md shows each."
# Which judgements are taken where none are named.
_QRELS_BY_PREFERENCE = ("test", "dev", "validation", "train")


def read_set(path: Path, *, qrels: str = "") -> QuestionSet:
    """The set at ``path``. ``qrels`` names the judgements of a BEIR folder that has several.

    Raises UsageError, naming file, line and fault.
    """
    found = _read_any(path, qrels)
    # It is shown on terminals, and stands in charts and reports.
    return dataclasses.replace(found, name=" ".join(SafeText().feed(found.name).split()) or "questions")


def _read_any(path: Path, qrels: str) -> QuestionSet:
    if path.is_dir():
        return _beir(path, qrels)
    if qrels:
        raise UsageError(f"--qrels is for BEIR folders, and {str(path)!r} is none.")
    match path.suffix.lower():
        case ".json":
            return _squad(path)
        case ".csv" | ".tsv":
            return read_table(path, _read(path))
    if not path.exists():
        raise UsageError(f"There is no file or folder {str(path)!r}.")
    raise UsageError(f"{str(path)!r} is no set of questions.", remedy=_FORMATS)


# ---------------------------------------------------------------- BEIR


def _beir(folder: Path, qrels: str) -> QuestionSet:
    corpus, queries = folder / "corpus.jsonl", folder / "queries.jsonl"
    for file in (corpus, queries):
        if not file.is_file():
            raise UsageError(f"{str(folder)!r} is no BEIR folder: it has no {file.name}.", remedy=_FORMATS)
    texts: dict[str, Text] = {}
    empty = set()
    for place, record in _json_lines(corpus):
        text = Text(_string(record, "_id", place), _optional(record, "title", place), _string(record, "text", place))
        if text.id in texts or text.id in empty:
            raise UsageError(f"{place}: there is a document {text.id!r} already.")
        if text.text.strip():
            texts[text.id] = text
        else:
            empty.add(text.id)
    if not texts:
        raise UsageError(f"{corpus} has no documents.")
    judged = _judgements(_qrels_file(folder, qrels), known=texts.keys() | empty)
    questions: list[Question] = []
    seen: set[str] = set()
    for number, (place, record) in enumerate(_json_lines(queries)):
        identity = _string(record, "_id", place)
        if identity in seen:
            raise UsageError(f"{place}: there is a query {identity!r} already.")
        seen.add(identity)
        if identity in judged:  # a file of queries serves several files of judgements
            expected = tuple(
                Expected(document, grade=grade) for document, grade in judged[identity].items() if grade > 0
            )
            questions.append(
                Question(
                    id=identity,
                    text=_asked(record, "text", place),
                    expected=expected,
                    answers=_answers(record, place),
                    place=number,
                    origin=place,
                )
            )
    if unknown := judged.keys() - seen:
        raise UsageError(f"The judgements of {folder} name the query {min(unknown)!r}, which is not in queries.jsonl.")
    notes = [f"{len(empty)} documents without text were left out."] if empty else []
    # Nothing says that a query without a relevant document has none: nobody may have looked.
    judgeable = tuple(question for question in questions if question.answerable)
    if len(judgeable) < len(questions):
        notes.append(f"{len(questions) - len(judgeable)} queries without a relevant document were left out.")
    return _checked(QuestionSet(folder.name, tuple(texts.values()), judgeable, tuple(notes)), folder)


def _qrels_file(folder: Path, name: str) -> Path:
    found = {file.stem: file for file in sorted((folder / "qrels").glob("*.tsv"))}
    if name:
        if name not in found:
            raise UsageError(f"{folder} has no judgements {name!r}.", remedy=f"It has: {', '.join(found) or 'none'}.")
        return found[name]
    for preferred in _QRELS_BY_PREFERENCE:
        if preferred in found:
            return found[preferred]
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise UsageError(f"{folder} has no judgements: no file qrels/*.tsv.", remedy=_FORMATS)
    raise UsageError(f"{folder} has several judgements.", remedy=f"Choose with --qrels: {', '.join(found)}.")


def _judgements(file: Path, *, known: set[str]) -> dict[str, dict[str, float]]:
    """Grade by document by query."""
    judged: dict[str, dict[str, float]] = {}
    for number, line in enumerate(_read(file).splitlines(), start=1):
        place = f"{file}, line {number}"
        fields = line.split("\t")
        if not line.strip() or (number == 1 and fields[0] == "query-id"):
            continue
        if len(fields) != 3:
            raise UsageError(f"{place}: {len(fields)} fields between tabs, not query, document and grade.")
        query, document, score = fields
        try:
            grade = float(score)
        except ValueError:
            grade = math.nan
        if not math.isfinite(grade):
            raise UsageError(f"{place}: the grade {score[:40]!r} is no number.")
        if document not in known:
            raise UsageError(f"{place}: there is no document {document!r} in corpus.jsonl.")
        judged.setdefault(query, {})[document] = grade
    return judged


def _json_lines(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(where it stands, record) of each line."""
    # Not splitlines(): a text may hold U+2028, which is no end of a line in JSON.
    for number, line in enumerate(_read(file).split("\n"), start=1):
        if line.strip():
            place = f"{file}, line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{place}: not JSON: {error}.") from None
            yield place, _mapping(record, place)


def _answers(record: Mapping[str, Any], place: str) -> tuple[str, ...]:
    metadata = _mapping(record.get("metadata") or {}, f"{place}, metadata")
    answers = metadata.get("answers", [])
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise UsageError(f"{place}: metadata.answers is no list of texts.")
    return tuple(answer for answer in answers if answer.strip())


# ---------------------------------------------------------------- SQuAD


def _squad(file: Path) -> QuestionSet:
    try:
        content = json.loads(_read(file))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: not JSON: {error}.") from None
    texts: list[Text] = []
    questions: list[Question] = []
    for place, article in _items(_mapping(content, str(file)), "data", str(file)):
        for at, paragraph in _items(article, "paragraphs", place):
            # Without the article's title: these questions were written about the paragraph alone.
            text = Text(str(len(texts)), "", _string(paragraph, "context", at).strip("\ufeff"))
            texts.append(text)
            for where, asked in _items(paragraph, "qas", at):
                questions.append(_squad_question(asked, where, text=text.id, place=len(questions)))
    return _checked(QuestionSet(file.stem, tuple(texts), tuple(questions)), file)


def _squad_question(asked: Mapping[str, Any], where: str, *, text: str, place: int) -> Question:
    impossible = asked.get("is_impossible", False)
    answers = tuple(
        dict.fromkeys(
            answer for at, item in _items(asked, "answers", where) if (answer := _string(item, "text", at)).strip()
        )
    )
    if not impossible and not answers:
        raise UsageError(f"{where}: no answer, and is_impossible is not true.")
    return Question(
        id=str(asked.get("id", place)),
        text=_asked(asked, "question", where),
        expected=() if impossible else (Expected(text),),
        answers=() if impossible else answers,
        place=place,
        origin=where,
    )


def _items(record: Mapping[str, Any], key: str, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    items = record.get(key)
    if not isinstance(items, list):
        raise UsageError(f"{place}: {key!r} is no list.", remedy=_FORMATS)
    for number, item in enumerate(items):
        where = f"{place}, {key}[{number}]"
        yield where, _mapping(item, where)


# ---------------------------------------------------------------- both


def _checked(questions: QuestionSet, path: Path) -> QuestionSet:
    if not questions.questions:
        raise UsageError(f"{path} has no questions.")
    seen: set[str] = set()
    for question in questions.questions:
        if question.id in seen:
            raise UsageError(f"{question.origin}: there is a question with the id {question.id!r} already.")
        seen.add(question.id)
    return questions


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8: byte {error.start} of it.", remedy="Save it as UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{str(file)!r} cannot be read: {error.strerror}.") from error


def _mapping(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{place}: no JSON object.", remedy=_FORMATS)
    return value


def _string(record: Mapping[str, Any], key: str, place: str) -> str:
    value = record.get(key)
    if isinstance(value, str):
        return value
    raise UsageError(f"{place}: {key!r} is {'missing' if value is None else 'no text'}.", remedy=_FORMATS)


def _optional(record: Mapping[str, Any], key: str, place: str) -> str:
    return "" if record.get(key) is None else _string(record, key, place)


def _asked(record: Mapping[str, Any], key: str, place: str) -> str:
    text = _string(record, key, place)
    if not can_be_asked(text):
        raise UsageError(f"{place}: the question is empty.")
    return text
