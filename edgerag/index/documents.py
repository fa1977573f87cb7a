"""Statements about documents: their facts, their text, and the files that could not be read.

The text is kept compressed, in parts of a fixed number of characters, so that showing one passage
of a long document does not unpack all of it.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from edgerag.errors import LibraryDamaged, UsageError
from edgerag.index import word_rules
from edgerag.index.row_sums import check_facts, check_structure, row_sum, sum_document
from edgerag.index.store import damaged_row, sql_text, stored_json
from edgerag.index.unpacked import UnpackedParts
from edgerag.types import MEMBER_MARK, Document, Heading, Page, ParsedDocument

# What a file that could not be read was without: with it, it is tried again though it did not change.
FailureNeeds = Literal["", "password", "ocr"]

# A time that no file has.
UNREAD_NS = -1

# Characters in one part: unpacking one costs about 0.2 ms, and zlib gains little beyond its 32 KiB window.
PART_CHARACTERS = 65_536

_COLUMNS = """
    SELECT d.id, d.path, d.root, d.title, d.media_type, d.content_sha256, d.size_bytes, d.mtime_ns,
        json_array_length(d.pages),
        (SELECT count(*) FROM chunks c WHERE c.document_id = d.id),
        (SELECT count(*) FROM chunks c WHERE c.document_id = d.id AND c.state = 0),
        d.warnings,
        (SELECT json_group_array(tag) FROM (SELECT tag FROM document_tags WHERE document_id = d.id ORDER BY tag)),
        d.text_length, d.content_bytes, d.seconds, d.language, d.dated_ns, d.around_sha256, d.ocr, d.facts_sum
    FROM documents d
"""


DAMAGED_FACTS = "Its path, title, type or date is damaged: run `edgerag library repair`."


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that could not be read, as it was when that was tried."""

    path: str
    reason: str
    size_bytes: int
    mtime_ns: int
    needs: FailureNeeds = ""


@dataclass(frozen=True, slots=True)
class Touched:
    """A document whose file has other facts now, and the same content."""

    document_id: int
    size_bytes: int
    mtime_ns: int
    around_sha256: str = ""
    ocr: str = ""


@dataclass(frozen=True, slots=True)
class ReadContainer:
    """An archive or a mail all of whose members were looked at, as it was then."""

    size_bytes: int
    mtime_ns: int
    limit_bytes: int = 0  # something in it was larger than this limit, and not read; 0: nothing was


@dataclass(frozen=True, slots=True)
class Move:
    """A document whose file has another path now; ``unread`` as of MovedFile."""

    document_id: int
    path: str
    root: str
    unread: bool = False


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A file that has another path now, with the documents that it is or holds, and what failed in it, by old and new
    path. ``unread``: it has to be read all the same, for its title or for what failed in it, and until that is done it
    has the time UNREAD_NS, so that whoever comes after an interruption reads it."""

    old: str
    new: str
    documents: tuple[Move, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    unread: bool = False


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is known of the file that a document came from."""

    path: str
    root: str
    content_sha256: str
    size_bytes: int
    mtime_ns: int
    content_bytes: int = 0
    seconds: float = 0.0
    around_sha256: str = ""
    ocr: str = ""


def all_documents(db: sqlite3.Connection) -> list[Document]:
    return [_document(row) for row in db.execute(_COLUMNS + " ORDER BY d.path, d.id")]


def all_ids(db: sqlite3.Connection) -> list[int]:
    return [row[0] for row in db.execute("SELECT id FROM documents ORDER BY id")]


def document_by_id(db: sqlite3.Connection, document_id: int) -> Document:
    """Raises UsageError if there is none."""
    row = db.execute(_COLUMNS + " WHERE d.id = ?", (document_id,)).fetchone()
    if row is None:
        raise UsageError(
            f"There is no document #{document_id} in the library.", remedy="`edgerag status` lists the documents."
        )
    return _document(row)


def document_by_path(db: sqlite3.Connection, path: str) -> Document | None:
    row = db.execute(_COLUMNS + " WHERE d.path = CAST(? AS TEXT)", (sql_text(path),)).fetchone()
    return None if row is None else _document(row)


def _document(row: Sequence[Any]) -> Document:
    """With a warning that says so where path, title, type or date are not what was stored."""
    *facts, warnings, tags = row[:13]
    facts += [tuple(stored_json(warnings, list)), tuple(stored_json(tags, list)), *row[13:-1]]
    document = Document(*facts)
    named = (document.path, document.root, document.title, document.media_type)
    if row[-1] == row_sum((*named, document.content_sha256, document.dated_ns)):
        return document
    return replace(document, warnings=(*document.warnings, DAMAGED_FACTS))


def known_languages(db: sqlite3.Connection) -> list[str]:
    """Every language that a document has, in alphabetical order."""
    return sorted({language for language, _ in analysed(db)})


def analysed(db: sqlite3.Connection) -> list[tuple[str, int]]:
    """Each pair of language and version of the analysis that documents have.

    One look-up in the index for each pair, where DISTINCT would read it whole.
    """
    rows = db.execute(
        "WITH RECURSIVE pair (language, analysis) AS ("
        " SELECT * FROM (SELECT language, analysis FROM documents ORDER BY language, analysis LIMIT 1)"
        " UNION ALL"
        " SELECT d.language, d.analysis FROM pair p JOIN documents d ON d.id = ("
        "  SELECT n.id FROM documents n WHERE (n.language, n.analysis) > (p.language, p.analysis)"
        "  ORDER BY n.language, n.analysis LIMIT 1))"
        " SELECT language, analysis FROM pair"
    )
    pairs = [(language, analysis) for language, analysis in rows]
    if not all(isinstance(language, str) and isinstance(analysis, int) for language, analysis in pairs):
        raise damaged_row("the language of a document")  # SQLite keeps any value in any column
    return pairs


def write_document(db: sqlite3.Connection, parsed: ParsedDocument, facts: FileFacts) -> int:
    """Inserts it, or replaces facts and text of the document of the same path; its id stays."""
    values = (
        sql_text(facts.root),
        sql_text(parsed.title),
        parsed.media_type,
        facts.content_sha256,
        facts.size_bytes,
        facts.mtime_ns,
        len(parsed.text),
        json.dumps([(page.number, page.start, page.end) for page in parsed.pages]),
        json.dumps([(heading.level, heading.title, heading.start) for heading in parsed.headings]),
        json.dumps(parsed.warnings),
        facts.content_bytes,
        facts.seconds,
        parsed.first_line,
        parsed.language,
        word_rules.VERSION,
        parsed.dated_ns,
        facts.around_sha256,
        facts.ocr,
    )
    row = db.execute("SELECT id FROM documents WHERE path = CAST(? AS TEXT)", (sql_text(facts.path),)).fetchone()
    if row is None:
        cursor = db.execute(
            "INSERT INTO documents (path, root, title, media_type, content_sha256, size_bytes, mtime_ns,"
            " text_length, pages, headings, warnings, content_bytes, seconds, first_line, language, analysis, dated_ns,"
            " around_sha256, ocr)"
            " VALUES (CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),"
            " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (sql_text(facts.path), *values),
        )
        document_id = int(cursor.lastrowid or 0)
    else:
        document_id = int(row[0])
        db.execute(
            "UPDATE documents SET root = CAST(? AS TEXT), title = CAST(? AS TEXT), media_type = ?, content_sha256 = ?,"
            " size_bytes = ?, mtime_ns = ?, text_length = ?, pages = ?, headings = ?, warnings = ?,"
            " content_bytes = ?, seconds = ?, first_line = ?, language = ?, analysis = ?, dated_ns = ?,"
            " around_sha256 = ?, ocr = ? WHERE id = ?",
            (*values, document_id),
        )
        db.execute("DELETE FROM document_texts WHERE document_id = ?", (document_id,))
    sum_document(db, document_id)
    db.executemany(
        "INSERT INTO document_texts (document_id, part, body) VALUES (?, ?, ?)",
        (
            (document_id, part, _pack(parsed.text[start : start + PART_CHARACTERS]))
            for part, start in enumerate(range(0, len(parsed.text), PART_CHARACTERS))
        ),
    )
    return document_id


def analysed_before(db: sqlite3.Connection, *, limit: int) -> list[int]:
    """Ids of documents whose words were made by an older version of the analysis, the first of them."""
    rows = db.execute(
        "SELECT id FROM documents WHERE analysis < ? ORDER BY id LIMIT ?", (word_rules.VERSION, max(0, limit))
    )
    return [row[0] for row in rows]


def analysed_before_count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM documents WHERE analysis < ?", (word_rules.VERSION,)).fetchone()[0])


def set_language(db: sqlite3.Connection, document_id: int, language: str) -> None:
    """Notes what language it is in, and that its words were made by the analysis of now."""
    db.execute(
        "UPDATE documents SET language = ?, analysis = ? WHERE id = ?", (language, word_rules.VERSION, document_id)
    )


def parsed_document(db: sqlite3.Connection, document_id: int) -> ParsedDocument:
    """What was given to write_document. Raises UsageError if there is no such document."""
    document = document_by_id(db, document_id)
    check_facts(db, [document_id])
    check_structure(db, document_id)
    length, pages, headings, first_line = db.execute(
        "SELECT text_length, pages, headings, first_line FROM documents WHERE id = ?", (document_id,)
    ).fetchone()
    try:
        page_spans = tuple(Page(*page) for page in stored_json(pages, list))
        heading_places = tuple(Heading(*heading) for heading in stored_json(headings, list))
    except TypeError as error:
        raise damaged_row(str(error)) from error
    return ParsedDocument(
        text=read_text(db, document_id, start=0, end=length),
        title=document.title,
        media_type=document.media_type,
        pages=page_spans,
        headings=heading_places,
        warnings=document.warnings,
        first_line=first_line,
        language=document.language,
        dated_ns=document.dated_ns,
    )


def read_text(
    db: sqlite3.Connection, document_id: int, *, start: int, end: int, unpacked: UnpackedParts | None = None
) -> str:
    """Characters ``start`` to ``end`` of a document. Raises LibraryDamaged if they are not all there."""
    if not isinstance(start, int) or not isinstance(end, int):  # SQLite keeps any value in any column
        raise damaged_row(f"the span {start!r} to {end!r} of document #{document_id}")
    if start >= end:
        return ""
    numbers = range(start // PART_CHARACTERS, (end - 1) // PART_CHARACTERS + 1)
    kept = [unpacked.find((document_id, number)) for number in numbers] if unpacked is not None else [None]
    parts = [part for part in kept if part is not None]
    if len(parts) < len(numbers):
        rows = db.execute(
            "SELECT body FROM document_texts WHERE document_id = ? AND part BETWEEN ? AND ? ORDER BY part",
            (document_id, numbers[0], numbers[-1]),
        )
        parts = [_unpack(body, document_id) for (body,) in rows]
        if unpacked is not None and len(parts) == len(numbers):
            for number, part, was_kept in zip(numbers, parts, kept, strict=True):
                if was_kept is None:
                    unpacked.keep((document_id, number), part)
    offset = numbers[0] * PART_CHARACTERS
    return _cut("".join(parts), document_id, start - offset, end - offset)


def _cut(part: str, document_id: int, start: int, end: int) -> str:
    text = part[start:end]
    if len(text) != end - start:
        raise LibraryDamaged(
            f"The text of document #{document_id} is cut short.", remedy="Ingest that document's folder again."
        )
    return text


def _pack(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"))


def _unpack(body: bytes, document_id: int) -> str:
    try:
        return zlib.decompress(body).decode("utf-8", "surrogatepass")
    except (TypeError, zlib.error, UnicodeDecodeError) as error:  # TypeError: no bytes
        raise LibraryDamaged(
            f"The text of document #{document_id} is damaged: {error}.", remedy="Ingest that document's folder again."
        ) from error


def touch_documents(db: sqlite3.Connection, touched: Sequence[Touched]) -> None:
    db.executemany(
        "UPDATE documents SET size_bytes = ?, mtime_ns = ?, around_sha256 = ?, ocr = ? WHERE id = ?",
        ((each.size_bytes, each.mtime_ns, each.around_sha256, each.ocr, each.document_id) for each in touched),
    )


def move_document(db: sqlite3.Connection, document_id: int, *, path: str, root: str, unread: bool) -> None:
    """Gives it another path, which no other document may have; ``unread``: and the time UNREAD_NS."""
    db.execute(
        "UPDATE documents SET path = CAST(? AS TEXT), root = CAST(? AS TEXT), mtime_ns = iif(?, ?, mtime_ns)"
        " WHERE id = ?",
        (sql_text(path), sql_text(root), unread, UNREAD_NS, document_id),
    )
    sum_document(db, document_id)


def move_failure(db: sqlite3.Connection, path: str, *, to: str) -> None:
    db.execute(
        "UPDATE OR REPLACE failures SET path = CAST(? AS TEXT) WHERE path = CAST(? AS TEXT)",
        (sql_text(to), sql_text(path)),
    )


def move_container(db: sqlite3.Connection, path: str, *, to: str, unread: bool) -> None:
    """As a document."""
    db.execute(
        "UPDATE OR REPLACE containers SET path = CAST(? AS TEXT), mtime_ns = iif(?, ?, mtime_ns)"
        " WHERE path = CAST(? AS TEXT)",
        (sql_text(to), unread, UNREAD_NS, sql_text(path)),
    )


def delete_document(db: sqlite3.Connection, document_id: int) -> bool:
    """Removes its row and text; its chunks must have been removed before. True if there was one. The archive or mail
    that it is or lies in counts as not read to its end any more."""
    row = db.execute("SELECT path FROM documents WHERE id = ?", (document_id,)).fetchone()
    if row is not None:
        parts = row[0].split(MEMBER_MARK)
        delete_containers(db, [MEMBER_MARK.join(parts[:count]) for count in range(1, len(parts) + 1)])
    return db.execute("DELETE FROM documents WHERE id = ?", (document_id,)).rowcount == 1


def write_failure(db: sqlite3.Connection, failure: Failure) -> None:
    db.execute(
        "INSERT OR REPLACE INTO failures (path, reason, size_bytes, mtime_ns, needs)"
        " VALUES (CAST(? AS TEXT), CAST(? AS TEXT), ?, ?, ?)",
        (sql_text(failure.path), sql_text(failure.reason), failure.size_bytes, failure.mtime_ns, failure.needs),
    )


def all_failures(db: sqlite3.Connection) -> list[Failure]:
    return [
        Failure(*row)
        for row in db.execute("SELECT path, reason, size_bytes, mtime_ns, needs FROM failures ORDER BY path")
    ]


def write_container(db: sqlite3.Connection, path: str, container: ReadContainer) -> None:
    """Notes that all members of an archive or a mail were looked at, as it was then."""
    db.execute(
        "INSERT OR REPLACE INTO containers (path, size_bytes, mtime_ns, limit_bytes) VALUES (CAST(? AS TEXT), ?, ?, ?)",
        (sql_text(path), container.size_bytes, container.mtime_ns, container.limit_bytes),
    )


def all_containers(db: sqlite3.Connection) -> dict[str, ReadContainer]:
    """By path."""
    rows = db.execute("SELECT path, size_bytes, mtime_ns, limit_bytes FROM containers")
    return {path: ReadContainer(*facts) for path, *facts in rows}


def delete_containers(db: sqlite3.Connection, paths: Sequence[str]) -> None:
    db.executemany("DELETE FROM containers WHERE path = CAST(? AS TEXT)", ((sql_text(path),) for path in paths))


def delete_failures(db: sqlite3.Connection, paths: Sequence[str]) -> None:
    db.executemany("DELETE FROM failures WHERE path = CAST(? AS TEXT)", ((sql_text(path),) for path in paths))


def all_mounts(db: sqlite3.Connection) -> list[str]:
    """Folders in which another file system was mounted when they were last looked at, in order."""
    return [path for (path,) in db.execute("SELECT path FROM mounts ORDER BY path")]


def replace_mounts(db: sqlite3.Connection, paths: Sequence[str]) -> None:
    db.execute("DELETE FROM mounts")
    db.executemany("INSERT INTO mounts (path) VALUES (CAST(? AS TEXT))", ((sql_text(path),) for path in paths))
