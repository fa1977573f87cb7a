"""The schema of ``library.sqlite``, as numbered steps.

``PRAGMA user_version`` is the number of steps applied. Steps are only ever appended; each runs in the
same transaction as the change of the number, so a library is never between two versions. The tables
are described in docs/index-format.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from edgerag.errors import LibraryVersionUnknown
from edgerag.index.row_sums import FACTS, PLACE, STRUCTURE, filling_function

# "ERAG": tells our files from other SQLite files.
APPLICATION_ID = 0x45524147


def as_blobs(columns: str) -> str:
    """As row_sum() takes them in SQL: texts need not be UTF-8, which a function must be given."""
    return ", ".join(f"CAST({column.strip()} AS BLOB)" for column in columns.split(","))


_STEP_1 = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    title TEXT NOT NULL,
    media_type TEXT NOT NULL,
    content_sha256 TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    text_length INTEGER NOT NULL,
    pages TEXT NOT NULL,
    headings TEXT NOT NULL,
    warnings TEXT NOT NULL
);

CREATE TABLE document_texts (
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    part INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (document_id, part)
);

CREATE TABLE segments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file TEXT NOT NULL UNIQUE,
    row_count INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    block_count INTEGER NOT NULL
);

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    heading_path TEXT NOT NULL,
    page_first INTEGER,
    page_last INTEGER,
    line_first INTEGER NOT NULL,
    line_last INTEGER NOT NULL,
    token_count INTEGER NOT NULL,
    context TEXT NOT NULL,
    embedding_key BLOB NOT NULL,
    state INTEGER NOT NULL CHECK (state IN (0, 1, 2)),
    segment_id INTEGER REFERENCES segments (id),
    segment_row INTEGER,
    CHECK ((state = 2) = (segment_id IS NOT NULL) AND (state = 2) = (segment_row IS NOT NULL))
);
CREATE INDEX chunks_of_document ON chunks (document_id, ordinal);
CREATE INDEX chunks_pending ON chunks (id) WHERE state = 0;
CREATE INDEX chunks_pending_of_document ON chunks (document_id) WHERE state = 0;
CREATE INDEX chunks_of_segment ON chunks (segment_id) WHERE segment_id IS NOT NULL;

CREATE TABLE vectors (
    chunk_id INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
    vector BLOB NOT NULL
);

CREATE TABLE tombstones (
    segment_id INTEGER NOT NULL REFERENCES segments (id) ON DELETE CASCADE,
    segment_row INTEGER NOT NULL,
    PRIMARY KEY (segment_id, segment_row)
) WITHOUT ROWID;

CREATE TABLE failures (
    path TEXT PRIMARY KEY,
    root TEXT NOT NULL,
    reason TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL
) WITHOUT ROWID;

CREATE VIRTUAL TABLE chunk_words USING fts5 (
    title, headings, body,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
);
"""

# Tags; a quick count of what is not sealed; the column ``root`` of failures, which nothing read, goes.
_STEP_2 = """
CREATE TABLE document_tags (
    tag TEXT NOT NULL,
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, document_id)
) WITHOUT ROWID;
CREATE INDEX tags_of_document ON document_tags (document_id, tag);
CREATE INDEX chunks_unsealed ON chunks (id) WHERE state = 1;

CREATE TABLE failures_2 (
    path TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO failures_2 (path, reason, size_bytes, mtime_ns) SELECT path, reason, size_bytes, mtime_ns FROM failures;
DROP TABLE failures;
ALTER TABLE failures_2 RENAME TO failures;
"""

# The names of the model's states: see kv_keys.py. What is there gets version 1 without being written anew.
_STEP_3 = """
ALTER TABLE chunks ADD COLUMN kv_version INTEGER NOT NULL DEFAULT 1;

CREATE TABLE kv_retired (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL
);

CREATE TABLE kv_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document TEXT NOT NULL,
    ordinal INTEGER,
    version INTEGER,
    CHECK ((ordinal IS NULL) = (version IS NULL))
);
"""

# Archives and mails that were read to their end; which vectors are there for a text that comes again.
_STEP_4 = """
CREATE TABLE containers (
    path TEXT PRIMARY KEY,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX chunks_by_key ON chunks (embedding_key) WHERE state > 0;
CREATE INDEX documents_by_content ON documents (content_sha256, path);
"""

# Whether some of a chunk cannot be seen in its file.
_STEP_5 = """
ALTER TABLE chunks ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
"""

# What a document was read from, how long that took; files that were found and not read.
_STEP_6 = """
ALTER TABLE documents ADD COLUMN content_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN seconds REAL NOT NULL DEFAULT 0;
CREATE TABLE left_out (
    path TEXT PRIMARY KEY,
    reason TEXT NOT NULL
) WITHOUT ROWID;
"""

# What a file that could not be read was without; where the lines of a part of a text begin to count.
_STEP_7 = """
ALTER TABLE documents ADD COLUMN first_line INTEGER NOT NULL DEFAULT 1;
ALTER TABLE failures ADD COLUMN needs TEXT NOT NULL DEFAULT '';
"""

# The language of each document, and by which version of the analysis its words in chunk_words were made: see
# word_rules.py. The index tells which pairs of both there are without reading every document.
_STEP_8 = """
ALTER TABLE documents ADD COLUMN language TEXT NOT NULL DEFAULT 'unknown';
ALTER TABLE documents ADD COLUMN analysis INTEGER NOT NULL DEFAULT 1;
CREATE INDEX documents_by_language ON documents (language, analysis);
"""

# When a document was written, as it says itself; of what was read before that is not known.
_STEP_9 = """
ALTER TABLE documents ADD COLUMN dated_ns INTEGER;
"""

# By what a text of a protected archive is known to be the present one without a password; which OCR was at hand;
# below which limit something in an archive was too large; where other file systems are mounted below a folder.
_STEP_10 = """
ALTER TABLE documents ADD COLUMN around_sha256 TEXT NOT NULL DEFAULT '';
ALTER TABLE documents ADD COLUMN ocr TEXT NOT NULL DEFAULT '';
ALTER TABLE containers ADD COLUMN limit_bytes INTEGER NOT NULL DEFAULT 0;
CREATE TABLE mounts (
    path TEXT PRIMARY KEY
) WITHOUT ROWID;
"""

# Checksums of what answers are made of: see row_sums.py.
_STEP_11 = """
ALTER TABLE documents ADD COLUMN facts_sum INTEGER;
ALTER TABLE documents ADD COLUMN structure_sum INTEGER;
ALTER TABLE chunks ADD COLUMN sum INTEGER;
"""
# Rows that are there get theirs in the same transaction. Texts need not be UTF-8, which a function must be given.
_FILL_11 = f"""
UPDATE documents SET facts_sum = row_sum({as_blobs(FACTS)}), structure_sum = row_sum({as_blobs(STRUCTURE)});
UPDATE chunks SET sum = row_sum({as_blobs(PLACE)});
"""  # noqa: S608

# See latent_rows.py: what is learned of the library's words. Made when it is next written to.
_STEP_12 = """
CREATE TABLE latent_space (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sum INTEGER NOT NULL,
    method INTEGER NOT NULL,
    passage_count INTEGER NOT NULL,
    last_chunk_id INTEGER NOT NULL,
    dimension INTEGER NOT NULL,
    terms BLOB NOT NULL,
    weights BLOB NOT NULL,
    directions BLOB NOT NULL
);
"""

STEPS: tuple[str, ...] = (
    *(_STEP_1, _STEP_2, _STEP_3, _STEP_4, _STEP_5),
    *(_STEP_6, _STEP_7, _STEP_8, _STEP_9, _STEP_10, _STEP_11, _STEP_12),
)
_FILLS = {_STEP_11: _FILL_11}


def version_of(connection: sqlite3.Connection) -> int:
    """Steps applied so far; 0 is an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_version(connection: sqlite3.Connection, *, where: str, steps: Sequence[str] = STEPS) -> int:
    """The version, if this program can work with it. Raises LibraryVersionUnknown."""
    version = version_of(connection)
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if (version or application) and application != APPLICATION_ID:
        raise LibraryVersionUnknown(
            f"{where} is a database of another program.", remedy="Choose another folder for the library."
        )
    if version > len(steps):
        raise LibraryVersionUnknown(
            f"{where} has version {version} and this program knows versions up to {len(steps)}.",
            remedy="Use the newer edgerag that wrote it, or ingest into a new library.",
        )
    return version


def migrate(
    connection: sqlite3.Connection, *, where: str, steps: Sequence[str] = STEPS, until: int | None = None
) -> None:
    """Brings the schema to the newest version, or to version ``until``; needs a connection outside any transaction."""
    version = check_version(connection, where=where, steps=steps)
    if version < len(steps):
        connection.create_function("row_sum", -1, filling_function, deterministic=True)
    for number in range(version + 1, (len(steps) if until is None else until) + 1):
        # executescript commits whatever is open, so the transaction is part of the script.
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{steps[number - 1]}\n{_FILLS.get(steps[number - 1], '')}\n"
            f"PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {number};\nCOMMIT;"
        )
