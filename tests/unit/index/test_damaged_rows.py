"""SQLite keeps any value in any column, so a row can hold what nobody wrote there."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from edgerag.errors import EdgeragError, LibraryDamaged
from edgerag.index.documents import DAMAGED_FACTS
from edgerag.index.library import Library
from edgerag.types import Filter

NOT_A_LIST = ("'12'", "'1.5'", "'{}'", "'[3]'", "x'00'")
VALUES = {
    "documents.pages": NOT_A_LIST,
    "documents.headings": NOT_A_LIST,
    "documents.warnings": ("'12'", "'1.5'"),
    "documents.text_length": ("'many'", "1.5"),
    "document_texts.body": ("-1", "'text'"),
    "chunks.heading_path": ("'12'",),
    "chunks.context": ("'12'",),
    "chunks.start": ("'x'", "0.5"),
    "segments.file": ("x'00ff'", "'../../00000001.hnsw'", "'/etc/passwd'"),
    "segments.row_count": ("-1", "0", "1e300", "'many'"),
    "segments.size_bytes": ("'much'", "7"),
    "segments.id": ("77",),
    "chunks.segment_id": ("NULL", "''", "'x'"),
    "chunks.segment_row": ("NULL", "'x'", "1e300", "-1"),
    "tombstones.segment_row": ("'x'", "1e300", "x'00'", "-1"),
    "vectors.vector": ("1.5", "'text'", "x'00'"),
    "chunks.kv_version": ("0", "-1", "1.5", "'x'"),
    "kv_retired.version": ("0", "1.5", "'x'"),
    "kv_retired.document": ("'../../x'", "x'00'"),
    "kv_outbox.document": ("'../../x'", "x'00'", "7"),
    "kv_outbox.ordinal": ("-1", "'x'", "3"),
    "kv_outbox.version": ("0", "'x'"),
}


def uses(library: Library, material: Any) -> list[Callable[[], object]]:
    filtered = Filter(tags=("t",))
    reads: list[Callable[[], object]] = [
        lambda: library.search_vectors(material.vector("q"), limit=5, ef_search=50, where=filtered),
        lambda: [library.parsed_document(document.id) for document in library.documents()],
        lambda: library.chunks([1, 2, 3]),
        library.status,
        library.blocks,
        library.kv_changes,
    ]
    put = [partial(material.put, library, path, [f"changed{i}" for i in range(9)]) for path in ("/docs/a", "/docs/b")]
    return [*reads, library.compact, *put, lambda: library.remove_documents([1])]


@pytest.mark.parametrize(("column", "value"), [(column, value) for column in VALUES for value in VALUES[column]])
def test_a_value_that_nobody_wrote_is_damage_and_no_crash(opened: Any, material: Any, column: str, value: str) -> None:
    library = opened()
    material.put(library, "/docs/a", [f"subject{i}" for i in range(30)], tags=["t"])
    material.embed_pending(library)
    library.seal()
    removed = material.put(library, "/docs/b", [f"other{i}" for i in range(3)])
    material.embed_pending(library)
    library.seal()
    library.remove_documents([removed])
    material.put(library, "/docs/c", ["not sealed"])
    material.embed_pending(library)
    library.close()
    segment_file = library.folder / "segments" / "00000001.hnsw"
    table, name = column.split(".")
    with contextlib.closing(sqlite3.connect(library.folder / "library.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute(f"UPDATE OR IGNORE {table} SET {name} = {value}")

    reader = opened(mode="read")
    assert "error" in {finding.severity for finding in reader.verify()}
    if table == "segments" and name == "file":
        with pytest.raises(LibraryDamaged, match="segment file"):
            opened()
        assert segment_file.exists(), "what a damaged row does not list is not left over"
        return
    with contextlib.suppress(LibraryDamaged):
        writer = opened()
        for use in uses(writer, material):
            with contextlib.suppress(EdgeragError):
                use()


@pytest.mark.parametrize("column", ["path", "title"])
def test_the_list_of_documents_says_what_is_not_what_was_stored(opened: Any, material: Any, column: str) -> None:
    library = opened()
    material.put(library, "/docs/a", ["the red pump"])
    material.put(library, "/docs/b", ["the blue valve"])
    assert not [document for document in library.documents() if DAMAGED_FACTS in document.warnings]
    with library._store.writing() as db:
        db.execute(f"UPDATE documents SET {column} = {column} || '*' WHERE path = '/docs/a'")
    assert [DAMAGED_FACTS in document.warnings for document in library.documents()] == [True, False]
