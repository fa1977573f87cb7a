"""The names of the model's states: a name stands for one text, and what is out of date is told."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgerag.index import kv_keys, migrations
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.index.store import Store
from edgerag.types import KvChanges

A = hashlib.sha256(b"/docs/a").hexdigest()[:16]


class Sink:
    """Takes what it is told; says that it is done unless told otherwise."""

    def __init__(self, *, done: bool = True) -> None:
        self.done = done
        self.told: list[KvChanges] = []

    def __call__(self, changes: KvChanges) -> bool:
        self.told.append(changes)
        return self.done

    def names(self) -> tuple[list[str], list[str]]:
        return [n for c in self.told for n in c.deprecated], [n for c in self.told for n in c.dropped]


def keys(library: Library, path: str) -> list[str]:
    with library._store.reading() as db:
        rows = db.execute(
            "SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE d.path = ? ORDER BY c.ordinal",
            (path,),
        )
        ids = [row[0] for row in rows]
    return [chunk.kv_key for chunk in library.chunks(ids)]


def short(names: list[str]) -> list[str]:
    """``chunk.version`` of each."""
    return [name.split("-chunk-")[1].replace("-v", ".") for name in names]


# ---------------------------------------------------------------- names


def test_a_chunk_is_named_by_path_ordinal_and_version(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", ["one", "two"])
    assert keys(library, "/docs/a") == [f"doc-{A}-chunk-0-v1", f"doc-{A}-chunk-1-v1"]
    assert [chunk.kv_key for chunk in library.pending_chunks(9)] == keys(library, "/docs/a")
    assert keys(opened(mode="read"), "/docs/a") == keys(library, "/docs/a")
    assert not library.kv_changes()


def test_what_is_edited_counts_up_and_what_is_not_stays(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", ["one", "two", "three"])
    material.put(library, "/docs/b", ["one"])
    before = keys(library, "/docs/a")
    material.put(library, "/docs/a", ["one", "TWO", "three"])
    assert short(keys(library, "/docs/a")) == ["0.1", "1.2", "2.1"]
    assert library.kv_changes().deprecated == (before[1],)
    material.put(library, "/docs/a", ["one", "TWO", "three"], content_sha256="1", mtime_ns=99)
    assert short(keys(library, "/docs/a")) == ["0.1", "1.2", "2.1"]
    material.put(library, "/docs/a", ["one", "TWO", "three"], title="Another title")
    assert short(keys(library, "/docs/a")) == ["0.2", "1.3", "2.2"], "the title stands in the prompt"
    assert short(keys(library, "/docs/b")) == ["0.1"]


def test_headings_that_the_embedded_text_leaves_out_count_too(opened: Any, material: Any) -> None:
    import dataclasses

    library = opened()
    parsed, (chunk,) = material.document(["one"])
    facts = {"path": "/docs/a", "root": "/", "content_sha256": "0", "size_bytes": 1, "mtime_ns": 1}
    library.put_document(parsed, [chunk], **facts)
    library.put_document(parsed, [dataclasses.replace(chunk, heading_path=("Top", "Below"))], **facts)
    assert short(keys(library, "/docs/a")) == ["0.2"]
    assert library.chunks([1])[0].id == 1, "the vector stays: what is embedded is the same"


def test_a_chunk_that_moves_in_its_document_is_a_new_one_where_it_is(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", ["one", "two"])
    material.put(library, "/docs/a", ["new", "one", "two"])
    assert short(keys(library, "/docs/a")) == ["0.2", "1.2", "2.1"]
    assert short(list(library.kv_changes().deprecated)) == ["0.1", "1.1"]


def test_a_version_is_never_used_again(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", ["one", "two"])
    material.put(library, "/docs/a", ["one", "TWO"])
    material.put(library, "/docs/a", ["one"])
    assert short(list(library.kv_changes().deprecated)) == ["1.1", "1.2"]
    material.put(library, "/docs/a", ["one", "other"])
    assert short(keys(library, "/docs/a")) == ["0.1", "1.3"], "shorter and longer again"
    library.remove_documents([1])
    material.put(library, "/docs/a", ["one", "two"])
    assert short(keys(library, "/docs/a")) == ["0.4", "1.4"], "removed and put again"
    material.put(library, "/docs/b", ["one"])
    assert short(keys(library, "/docs/b")) == ["0.1"]


def test_paths_that_are_no_utf_8_are_named_by_their_bytes(opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/\udcff", ["one"])
    material.put(library, "/docs/\ud800", ["one"])
    expected = [hashlib.sha256(raw).hexdigest()[:16] for raw in (b"/docs/\xff", b"/docs/\xed\xa0\x80")]
    assert [chunk.kv_key.split("-")[1] for chunk in library.pending_chunks(9)] == expected
    library.remove_documents([1, 2])
    assert library.kv_changes().dropped == tuple(f"doc-{each}" for each in expected)


# ---------------------------------------------------------------- news


def test_a_removed_document_is_told_at_once_and_forgotten_once_done(opened: Any, material: Any) -> None:
    sink = Sink()
    library = opened(kv_sink=sink)
    material.put(library, "/docs/a", ["one", "two"])
    material.put(library, "/docs/b", ["one"])
    assert sink.told == []
    library.remove_documents([1])
    assert sink.names() == ([], [f"doc-{A}"])
    assert library.kv_changes().dropped == (f"doc-{A}",), "a reader can still carry it out"
    material.put(library, "/docs/b", ["ONE"])
    assert sink.names()[1] == [f"doc-{A}"], "told once"
    assert short(sink.names()[0]) == ["0.1"]
    library.close()
    assert not opened(mode="read").kv_changes()
    assert {finding.severity for finding in opened(mode="read").verify()} == {"ok"}


def test_what_could_not_be_done_is_told_again(opened: Any, material: Any) -> None:
    refusing = Sink(done=False)
    library = opened(kv_sink=refusing)
    material.put(library, "/docs/a", ["one"])
    library.remove_documents([1])
    material.put(library, "/docs/b", ["one"])
    assert refusing.names()[1] == [f"doc-{A}", f"doc-{A}"]
    library.close()
    reader = Sink()
    opened(mode="read", kv_sink=reader).close()
    writer = Sink()
    opened(kv_sink=writer).close()
    assert reader.names()[1] == writer.names()[1] == [f"doc-{A}"]
    last = Sink()
    opened(kv_sink=last).close()
    assert last.told == []


CHILD = """
import os, signal, sys
from pathlib import Path
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library

def die(changes):
    os.kill(os.getpid(), signal.SIGKILL)

library = open_library(Path(sys.argv[1]), mode="write", residency=Residency(10**9), kv_sink=die)
library.remove_documents([1])
"""


def test_a_process_killed_between_commit_and_drop_leaves_the_drop_to_the_next(
    tmp_path: Path, opened: Any, material: Any
) -> None:
    library = opened()
    material.put(library, "/docs/a", ["one"])
    library.close()
    done = subprocess.run([sys.executable, "-c", CHILD, str(library.folder)], check=False)
    assert done.returncode == -9
    sink = Sink()
    library = opened(kv_sink=sink)
    assert library.documents() == []
    assert sink.names() == ([], [f"doc-{A}"])


def test_changes_are_counted_for_a_reader_that_follows(opened: Any, material: Any) -> None:
    library, reader = opened(), opened(mode="read")
    assert reader.kv_changes() == KvChanges(0)
    material.put(library, "/docs/a", ["one"])
    material.put(library, "/docs/a", ["ONE"])
    first = reader.kv_changes()
    assert short(list(first.deprecated)) == ["0.1"]
    library.remove_documents([1])
    second = reader.kv_changes(first.through)
    assert (second.deprecated, second.dropped) == ((), (f"doc-{A}",))
    assert reader.kv_changes(second.through) == KvChanges(second.through)


def test_news_that_nobody_takes_do_not_pile_up(opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_keys, "MOST_NEWS", 10)
    library = opened()
    for number in range(12):
        material.put(library, "/docs/a", [f"text {number}"])
    changes = library.kv_changes()
    assert changes.everything
    assert len(changes.deprecated) <= 10
    assert bool(changes)


def test_removed_documents_do_not_pile_up(opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_keys, "MOST_RETIRED", 10)
    library = opened(kv_sink=Sink())
    for number in range(16):
        material.put(library, f"/docs/{number}", ["one", "two"])
        for _ in range(number % 3):
            material.put(library, f"/docs/{number}", [f"edited {_}", "two"])
        removed = library.document_by_path(f"/docs/{number}")
        library.remove_documents([removed.id])
    with library._store.reading() as db:
        assert db.execute("SELECT count(*) FROM kv_retired").fetchone()[0] <= 10
        assert db.execute("SELECT count(*) FROM kv_outbox").fetchone()[0] <= 1
    material.put(library, "/docs/2", ["one"])
    (version,) = short(keys(library, "/docs/2"))
    assert int(version.split(".")[1]) > 3, "not remembered by itself, and still not used again"
    assert {finding.severity for finding in library.verify()} == {"ok"}


# ---------------------------------------------------------------- any order

TITLES = st.sampled_from(["A title", "Another"])
STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 2), TITLES, st.lists(st.sampled_from("xyz"), max_size=4)),
    st.tuples(st.just("remove"), st.integers(0, 2)),
    st.tuples(st.just("reopen")),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=14))
def test_in_whatever_order(steps: list[tuple[Any, ...]], material: Any) -> None:
    with TemporaryDirectory() as name:
        sink, stood_for, live = Sink(), dict[str, tuple[str, ...]](), dict[str, list[str]]()

        def open_it() -> Library:
            return open_library(
                Path(name) / "lib",
                mode="write",
                residency=Residency(10**9),
                identity=material.identity,
                seal_settings=material.small,
                kv_sink=sink,
            )

        library = open_it()
        try:
            for step in steps:
                sink.told.clear()
                old = {key for found in live.values() for key in found}
                match step:
                    case ("put", number, title, texts):
                        path = f"/docs/{number}"
                        material.put(library, path, texts, title=title)
                        before, live[path] = live.get(path, []), keys(library, path)
                        for ordinal, text in enumerate(texts):
                            key, text_of = live[path][ordinal], (path, str(ordinal), title, text)
                            assert stood_for.setdefault(key, text_of) == text_of, "a name stands for one text"
                            if ordinal < len(before) and stood_for[before[ordinal]] == text_of:
                                assert key == before[ordinal], "a text that did not change keeps its name"
                    case ("remove", number):
                        document = library.document_by_path(f"/docs/{number}")
                        if document is not None:
                            library.remove_documents([document.id])
                            live.pop(document.path)
                    case ("reopen",):
                        library.close()
                        library = open_it()
                deprecated, dropped = sink.names()
                gone = old - {key for found in live.values() for key in found}
                assert gone == {key for key in old if key in deprecated or key.split("-chunk-")[0] in dropped}
                assert set(deprecated) <= old, "nothing that lives, and nothing twice"
                assert len(set(deprecated)) == len(deprecated)
            assert {finding.severity for finding in library.verify()} == {"ok"}
        finally:
            library.close()


# ---------------------------------------------------------------- from the library before it


def test_a_library_of_version_2_gets_version_1_names(tmp_path: Path, opened: Any, material: Any) -> None:
    library = opened()
    material.put(library, "/docs/a", ["one", "two"])
    library.close()
    (library.folder / "library.sums").unlink()  # which an older program would not have left
    database = library.folder / "library.sqlite"
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.executescript(
            "ALTER TABLE chunks DROP COLUMN kv_version; DROP TABLE kv_retired; DROP TABLE kv_outbox;"
            "DROP TABLE containers; DROP INDEX chunks_by_key; DROP INDEX documents_by_content;"
            "ALTER TABLE chunks DROP COLUMN hidden; DROP TABLE left_out;"
            "ALTER TABLE documents DROP COLUMN content_bytes; ALTER TABLE documents DROP COLUMN seconds;"
            "ALTER TABLE documents DROP COLUMN first_line; ALTER TABLE failures DROP COLUMN needs;"
            "DROP INDEX documents_by_language;"
            "ALTER TABLE documents DROP COLUMN language; ALTER TABLE documents DROP COLUMN analysis;"
            "ALTER TABLE documents DROP COLUMN dated_ns; ALTER TABLE documents DROP COLUMN around_sha256;"
            "ALTER TABLE documents DROP COLUMN ocr; DROP TABLE mounts;"
            "ALTER TABLE documents DROP COLUMN facts_sum; ALTER TABLE documents DROP COLUMN structure_sum;"
            "ALTER TABLE chunks DROP COLUMN sum; DROP TABLE latent_space;"
            "PRAGMA user_version = 2;"
        )
    Store(library.folder, mode="read", steps=migrations.STEPS[:2]).close()
    library = opened()
    assert short(keys(library, "/docs/a")) == ["0.1", "1.1"]
    material.put(library, "/docs/a", ["one", "TWO"])
    assert short(keys(library, "/docs/a")) == ["0.1", "1.2"]
    assert {finding.severity for finding in library.verify()} == {"ok"}
