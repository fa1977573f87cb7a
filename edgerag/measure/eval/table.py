"""Questions about one's own documents, in a CSV or TSV file that a spreadsheet can write.

A header of ``question`` and any of ``id``, ``file``, ``page``, ``text``, ``answer``, ``answerable``. A row says where
the answer stands: in which file, on which page of it (slide, row), in a passage that holds which text; and what it is.
Rows with the same question belong together: each place counts, any answer is right. ``answerable`` is "no" for a
question that the documents do not answer; nothing else is expected of it then.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from edgerag.errors import UsageError
from edgerag.measure.eval.sets import Expected, Question, QuestionSet, can_be_asked, place_by_text

COLUMNS = ("question", "id", "file", "page", "text", "answer", "answerable")
_YES, _NO = frozenset({"", "yes", "true", "1"}), frozenset({"no", "false", "0"})
_DELIMITERS = ("\t", ",", ";")  # the last is what spreadsheets write where the comma is the decimal sign


def read_table(file: Path, content: str) -> QuestionSet:
    """The questions of a file. Raises UsageError, naming line and fault."""
    header = content.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    # newline="": line ends inside of quotes stay as they are.
    rows = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    questions: dict[str, Question] = {}
    columns: list[str] = []
    try:
        for row in rows:
            place = f"{file}, line {rows.line_num}"
            if not columns:
                columns = _columns(row, place)
            elif any(cell.strip() for cell in row):
                if len(row) != len(columns):
                    raise UsageError(f"{place}: {len(row)} fields, and the header has {len(columns)}.")
                read = _question(dict(zip(columns, map(str.strip, row), strict=True)), place)
                known = questions.get(read.text)
                questions[read.text] = read if known is None else _joined(known, read)
    except csv.Error as error:
        raise UsageError(f"{file}, line {rows.line_num}: {error}.") from None
    if not questions:
        raise UsageError(f"{file} has no questions.")
    by_id: dict[str, Question] = {}
    for question in questions.values():
        other = by_id.setdefault(question.id, question)
        if other is not question:
            raise UsageError(f"{question.origin}: another question has the id {question.id!r} already.")
    return QuestionSet(file.stem, (), tuple(questions.values()))


def _columns(row: list[str], place: str) -> list[str]:
    columns = [cell.strip().casefold() for cell in row]
    if unknown := [column for column in columns if column not in COLUMNS]:
        raise UsageError(f"{place}: unknown column {unknown[0]!r}.", remedy=f"Known: {', '.join(COLUMNS)}.")
    if len(set(columns)) < len(columns):
        raise UsageError(f"{place}: a column stands there twice.")
    if "question" not in columns:
        raise UsageError(f"{place}: no column 'question'.", remedy=f"The first line names columns: {','.join(COLUMNS)}")
    return columns


def _question(row: Mapping[str, str], place: str) -> Question:
    text = row["question"]
    if not can_be_asked(text):
        raise UsageError(f"{place}: the question is empty.")
    file, page, passage, answer = (row.get(column, "") for column in ("file", "page", "text", "answer"))
    expects = bool(file or page or passage or answer)
    said = row.get("answerable", "").casefold()
    if said not in _YES | _NO:
        raise UsageError(f"{place}: answerable is {row['answerable']!r}, not yes or no.")
    if said in _NO and expects:
        raise UsageError(f"{place}: not answerable, and yet something is expected.")
    if said in _YES and not expects:
        raise UsageError(f"{place}: nothing is expected.", remedy="Give file, page, text or answer; or answerable: no.")
    if page and not (page.isascii() and page.isdigit() and int(page) > 0):
        raise UsageError(f"{place}: the page {page!r} is no number from 1 on.")
    if page and not file:
        raise UsageError(f"{place}: a page without a file.")
    # Of a row with an answer alone, every passage that holds it is right.
    sought = passage if file or passage else answer
    expected = (Expected(file, int(page) if page else None, sought),) if expects else ()
    number = place_by_text(text)
    return Question(
        id=row.get("id") or f"{number:08x}",
        text=text,
        expected=expected,
        answers=(answer,) if answer else (),
        place=number,
        origin=place,
    )


def _joined(one: Question, other: Question) -> Question:
    """Two rows with the same question."""
    if one.answerable != other.answerable:
        raise UsageError(f"{other.origin}: the same question is answerable in one row and not in another.")
    return Question(
        id=one.id,
        text=one.text,
        expected=tuple(dict.fromkeys((*one.expected, *other.expected))),
        answers=tuple(dict.fromkeys((*one.answers, *other.answers))),
        place=one.place,
        origin=one.origin,
    )
