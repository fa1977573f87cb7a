"""A filter as SQL: the documents that a search may look into.

Both legs use the same statement: the keyword leg joins it, the vector leg reads from it which rows of
each segment may be returned. Nothing is filtered after a search, so that it gives as many hits as were
asked for.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgerag.errors import UsageError
from edgerag.index.documents import known_languages
from edgerag.index.store import damaged_row, sql_text
from edgerag.index.tags import known_tags, normal_tag
from edgerag.types import MEMBER_MARK, Filter

# Each path is a branch of one expression, whose depth SQLite bounds (1,000).
_MOST_PATHS = 200
_TAGS_NAMED = 20  # in a message; all of them can be more than a screen holds
_LIST = "`edgerag status --files` lists the documents and their tags."


@dataclass(frozen=True, slots=True)
class Matching:
    """``SELECT d.id ...`` for the documents of a filter, to be put in brackets, and its parameters."""

    select: str
    parameters: tuple[object, ...]


def matching(where: Filter) -> Matching:
    """The statement for a filter whose tags are in their normal spelling; it holds no text of the user's."""
    conditions: list[str] = []
    parameters: list[object] = []
    if where.document_ids:
        conditions.append("d.id IN (SELECT value FROM json_each(?))")
        parameters.append(json.dumps(where.document_ids))
    if where.paths:
        branches = []
        for path in where.paths:
            # "0" is what follows "/": the ranges are everything below the folder, or in the archive, and the index on
            # path serves them.
            stem = path.rstrip("/")
            branches.append("d.path = CAST(? AS TEXT)")
            parameters.append(sql_text(path))
            for below in (stem + "/", stem + MEMBER_MARK):
                branches.append("(d.path > CAST(? AS TEXT) AND d.path < CAST(? AS TEXT))")
                parameters += [sql_text(below), sql_text(below[:-1] + "0")]
        conditions.append(f"({' OR '.join(branches)})")
    if where.tags:
        conditions.append(
            "d.id IN (SELECT document_id FROM document_tags WHERE tag IN (SELECT value FROM json_each(?)))"
        )
        parameters.append(json.dumps(where.tags))
    if where.languages:
        conditions.append("d.language IN (SELECT value FROM json_each(?))")
        parameters.append(json.dumps(where.languages))
    # The text put into the statement is fixed; what the user gave is in the parameters.
    return Matching(f"SELECT d.id FROM documents d WHERE {' AND '.join(conditions) or '1'}", tuple(parameters))  # noqa: S608


def checked_filter(db: sqlite3.Connection, where: Filter) -> Filter:
    """``where`` with its tags and languages in their normal spelling.

    Raises UsageError for a tag, path, id or language that no document has, and for a combination that leaves none.
    """
    if len(where.paths) > _MOST_PATHS:
        raise UsageError(f"A filter takes {_MOST_PATHS} paths at most, not {len(where.paths)}.")
    tags = tuple(dict.fromkeys(map(normal_tag, where.tags)))
    known = known_tags(db)
    for tag in tags:
        if tag not in known:
            more = f" and {len(known) - _TAGS_NAMED} more" if len(known) > _TAGS_NAMED else ""
            remedy = (
                f"Known: {', '.join(known[:_TAGS_NAMED])}{more}."
                if known
                else "No document has a tag: `edgerag ingest --tag NAME PATH`."
            )
            raise UsageError(f"No document in the library has the tag {tag!r}.", remedy=remedy)
    for path in where.paths:
        if not _count(db, Filter(paths=(path,))):
            raise UsageError(f"The library holds no document at or below {path!r}.", remedy=_LIST)
    for document_id in where.document_ids:
        if not _count(db, Filter(document_ids=(document_id,))):
            raise UsageError(f"There is no document #{document_id} in the library.", remedy=_LIST)
    languages = _checked_languages(db, where.languages)
    checked = Filter(where.document_ids, where.paths, tags, languages)
    if not _count(db, checked):
        raise UsageError("No document in the library matches all of the filters together.", remedy=_LIST)
    return checked


def _checked_languages(db: sqlite3.Connection, codes: Sequence[str]) -> tuple[str, ...]:
    languages = tuple(dict.fromkeys(code.strip().lower() for code in codes))
    if not languages:
        return ()
    known = known_languages(db)
    for language in languages:
        if language not in known:
            raise UsageError(
                f"No document in the library is in the language {language!r}.",
                remedy=f"Languages of its documents: {', '.join(known)}. They are ISO codes, such as en, de, zh.",
            )
    return languages


def _count(db: sqlite3.Connection, where: Filter) -> int:
    chosen = matching(where)
    statement = f"SELECT count(*) FROM ({chosen.select} LIMIT 1)"  # noqa: S608 - fixed text, see matching()
    (count,) = db.execute(statement, chosen.parameters).fetchone()
    return int(count)


def sealed_rows(db: sqlite3.Connection, where: Filter) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """(segment id, rows) of the sealed chunks of the documents that match.

    SQLite joins the numbers to one text for each segment: 30,000 rows take 20 ms so, and 80 ms one by one.
    """
    chosen = matching(where)
    groups = db.execute(
        "SELECT c.segment_id, group_concat(c.segment_row) FROM chunks c"  # noqa: S608 - fixed text, see matching()
        f" WHERE c.document_id IN ({chosen.select}) AND c.state = 2 GROUP BY c.segment_id",
        chosen.parameters,
    )
    for segment_id, rows in groups:
        try:
            yield int(segment_id), np.fromstring(rows, dtype=np.int64, sep=",")
        except (TypeError, ValueError) as error:
            raise damaged_row(str(error)) from error
