"""A filter as SQL: the documents that a search may look into.

Both legs use the same condition: the keyword leg asks it of the document of each chunk that has the words, the
vector leg reads by it which rows of each segment may be returned. Nothing is filtered after a search, so that it
gives as many hits as were asked for.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from edgerag.errors import UsageError
from edgerag.file_types import is_extension, media_types_of, normal_type, types_of
from edgerag.index.documents import analysed_before_count, known_languages
from edgerag.index.store import damaged_row, sql_text
from edgerag.index.tags import known_tags, normal_tag
from edgerag.types import MEMBER_MARK, Filter

# Each path is a branch of one expression, whose depth SQLite bounds (1,000).
_MOST_PATHS = 200
# So many are compared with the document of each match; the documents of more are looked up once.
_FEW_PATHS = 4
_TAGS_NAMED = 20  # in a message; all of them can be more than a screen holds
# Of a document: as it says itself, else that of its file.
_DATE = "coalesce(d.dated_ns, d.mtime_ns)"
_LIST = "`edgerag status --files` lists the documents and their tags."


@dataclass(frozen=True, slots=True)
class Matching:
    """What must hold of a row ``d`` of documents, and its parameters."""

    condition: str
    parameters: tuple[object, ...]

    @property
    def select(self) -> str:
        """The ids of the documents, to be put in brackets."""
        # The text put into the statement is fixed; what the user gave is in the parameters.
        return f"SELECT d.id FROM documents d WHERE {self.condition}"  # noqa: S608


def matching(where: Filter) -> Matching:
    """The condition for a filter whose tags and types are in their normal spelling; it holds no text of the user's."""
    conditions: list[str] = []
    parameters: list[object] = []
    if where.document_ids:
        conditions.append("d.id IN (SELECT value FROM json_each(?))")
        parameters.append(json.dumps(where.document_ids))
    if where.paths:
        several = len(where.paths) > _FEW_PATHS
        row = "p" if several else "d"
        branches = []
        for path in where.paths:
            # "0" is what follows "/": the ranges are everything below the folder, or in the archive, and the index on
            # path serves them.
            stem = path.rstrip("/")
            branches.append(f"{row}.path = CAST(? AS TEXT)")
            parameters.append(sql_text(path))
            for below in (stem + "/", stem + MEMBER_MARK):
                branches.append(f"({row}.path > CAST(? AS TEXT) AND {row}.path < CAST(? AS TEXT))")
                parameters += [sql_text(below), sql_text(below[:-1] + "0")]
        any_of = " OR ".join(branches)
        # The text put into the statement is fixed; what the user gave is in the parameters.
        conditions.append(f"d.id IN (SELECT p.id FROM documents p WHERE {any_of})" if several else f"({any_of})")  # noqa: S608
    if where.tags:
        conditions.append(
            "EXISTS (SELECT 1 FROM document_tags t WHERE t.document_id = d.id"
            " AND t.tag IN (SELECT value FROM json_each(?)))"
        )
        parameters.append(json.dumps(where.tags))
    if where.languages:
        conditions.append("d.language IN (SELECT value FROM json_each(?))")
        parameters.append(json.dumps(where.languages))
    if where.types:
        branches = ["d.media_type IN (SELECT value FROM json_each(?))"]
        parameters.append(json.dumps([each for name in where.types for each in media_types_of(name)]))
        for name in filter(is_extension, where.types):
            branches.append("lower(substr(d.path, -?)) = ?")
            parameters += [len(name), name]
        conditions.append(f"({' OR '.join(branches)})")
    if where.since_ns is not None:
        conditions.append(f"{_DATE} >= ?")
        parameters.append(where.since_ns)
    if where.until_ns is not None:
        conditions.append(f"{_DATE} < ?")
        parameters.append(where.until_ns)
    return Matching(" AND ".join(conditions) or "1", tuple(parameters))


def checked_filter(db: sqlite3.Connection, where: Filter) -> Filter:
    """``where`` with its tags, types and languages in their normal spelling.

    Raises UsageError for a tag, path, id, type, date or language that no document has, and for a combination that
    leaves none.
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
    types = tuple(dict.fromkeys(map(normal_type, where.types)))
    for name in types:
        if not _count(db, Filter(types=(name,))):
            raise _no_such_type(db, name)
    if not _count(db, Filter(since_ns=where.since_ns, until_ns=where.until_ns)):
        raise _no_such_date(db)
    languages = _checked_languages(db, where.languages)
    checked = dataclasses.replace(where, tags=tags, types=types, languages=languages)
    if not _count(db, checked):
        raise UsageError("No document in the library matches all of the filters together.", remedy=_LIST)
    return checked


def _checked_languages(db: sqlite3.Connection, codes: Sequence[str]) -> tuple[str, ...]:
    if not codes:
        return ()
    known = known_languages(db)
    languages = tuple(dict.fromkeys(_language_code(code, known) for code in codes))
    for language in languages:
        if not language:
            raise UsageError(
                "A language is empty.", remedy="Name it by its code, for example --lang en, or several with commas."
            )
        if language not in known:
            untold = untold_note(analysed_before_count(db))
            raise UsageError(
                f"No document in the library is in the language {language!r}.",
                remedy=f"Languages of its documents: {', '.join(known)}. They are ISO codes, such as en, de, zh."
                + (untold and f" {untold}"),
            )
    return languages


def _language_code(text: str, known: Sequence[str]) -> str:
    """In small letters; without the country (``en-GB``) where the library knows it so."""
    code = text.strip().lower()
    plain = code.replace("_", "-").partition("-")[0]
    return plain if code not in known and plain in known else code


def untold_note(count: int) -> str:
    """Of documents of an older version of this program, which told no languages; "" when there are none."""
    if not count:
        return ""
    what = "1 document was" if count == 1 else f"{count:,} documents were"
    return (
        f"{what} read by an older version, which told no languages: the next `edgerag ingest` of anything tells them."
    )


def _no_such_type(db: sqlite3.Connection, name: str) -> UsageError:
    if not name:
        return UsageError(
            "A type is empty.", remedy="Name it with a word, for example --type pdf, or several with commas."
        )
    held = types_of(row[0] for row in db.execute("SELECT DISTINCT media_type FROM documents"))
    remedy = f"It holds: {', '.join(held)}." if held else _LIST
    if is_extension(name):
        return UsageError(f"The library holds no document whose name ends in {name!r}.", remedy=remedy)
    if media_types_of(name):
        return UsageError(f"The library holds no document of the type {name!r}.", remedy=remedy)
    shown = "." + name if name.isalnum() else ".log"
    return UsageError(
        f"{name!r} is no type of file.", remedy=f"{remedy} An extension is written with its dot: {shown!r}."
    )


def _no_such_date(db: sqlite3.Connection) -> UsageError:
    first, last = db.execute(f"SELECT min({_DATE}), max({_DATE}) FROM documents d").fetchone()  # noqa: S608 - fixed text
    known = [_day(moment_ns) for moment_ns in (first, last) if isinstance(moment_ns, int)]  # any value in any column
    return UsageError(
        "The library holds no document of that time.",
        remedy=f"Its documents are dated {' to '.join(dict.fromkeys(known))}." if known else _LIST,
    )


def _day(moment_ns: int) -> str:
    """The local day, in ISO 8601."""
    return datetime.fromtimestamp(moment_ns // 10**9, tz=UTC).astimezone().date().isoformat()


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
