"""What earlier versions of the program left is opened, searched, written on, and never harmed by being brought up."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from unit.index import golden_libraries as golden

from edgerag.errors import LibraryDamaged, StorageFull
from edgerag.index import bringing_up, migrations, store
from edgerag.index.at_rest import NAME as SUMS
from edgerag.index.library import Library
from edgerag.telemetry import ring
from edgerag.telemetry.ring import TraceRing
from edgerag.threads import database as threads_database
from edgerag.threads.store import ThreadStore
from edgerag.types import IngestDone

OLDER = [version for version in golden.VERSIONS if version < len(migrations.STEPS)]


def test_there_is_one_of_each_version() -> None:
    wanted = set(range(1, len(migrations.STEPS))) - golden.NEVER_LEFT_A_COMMIT
    assert not wanted - set(golden.VERSIONS), "make them first: tests/golden/libraries/README.md"
    for kind, version in (("threads", len(threads_database.STEPS)), ("traces", ring._VERSION)):
        for number in range(1, max(2, version)):
            assert (golden.FOLDER / f"{kind}-v{number}.sqlite.xz").is_file(), "make it first, by make_private.py"


def check_searches(library: Library, version: int, *, words_too: bool = True) -> None:
    for search in golden.expected(version)["searches"]:
        words, near = golden.answers(library, search["query"])
        missing = [place for place in search["words"] if place not in words]
        assert not (words_too and missing), (search["query"], missing)
        if search["words"]:
            assert words[0] == search["words"][0], search["query"]
        assert [place[:-1] for place in near] == [place[:-1] for place in search["vectors"]], search["query"]
        assert [place[-1] for place in near] == pytest.approx([place[-1] for place in search["vectors"]], abs=2e-3)


@pytest.mark.parametrize("version", golden.VERSIONS)
def test_it_says_what_it_said_then_and_takes_a_new_document(tmp_path: Path, version: int) -> None:
    folder = golden.unpack(tmp_path, version)
    expected = golden.expected(version)
    with golden.session(tmp_path) as session:
        with session._browsing.use() as library:
            assert golden.found(library) == {key: expected[key] for key in ("documents", "failures", "pending")}
            check_searches(library, version)
            assert {finding.severity for finding in library.verify()} == {"ok"}
        new = tmp_path / "new" / "newt.txt"
        new.parent.mkdir()
        new.write_text("The newt lives in the pond.\n", encoding="utf-8")
        *_, done = session.ingest([new])
        assert isinstance(done, IngestDone)
        assert [report.outcome for report in done.reports] == ["ingested"]
        assert done.chunks_embedded == 1 + expected["pending"]
        with session._browsing.use() as library:
            assert set(golden.found(library)["documents"]) == {*expected["documents"], str(new)}
            assert {finding.severity for finding in library.verify()} == {"ok"}
            for text, query in (("newt", "newt pond"), ("lynx", "lynx at dusk"), ("Deckelschrauben", "Deckelschraube")):
                assert text in golden.answers(library, query)[0][0][-1]
    assert not (folder / bringing_up.FOLDER_NAME).exists()


# Of each the way is the same; the oldest has the most of it.
@pytest.mark.parametrize(
    "version",
    [pytest.param(version, marks=[pytest.mark.long] * (version not in (OLDER[0], OLDER[-1]))) for version in OLDER],
)
def test_killed_at_any_statement_of_being_brought_up_it_is_whole(tmp_path: Path, version: int) -> None:
    base = golden.unpack(tmp_path / "base", version)
    memory = Path("/dev/shm")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    script = Path(__file__).with_name("killed_bringing_up.py")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        command = [sys.executable, str(script), str(base), f"{scratch}/work", "2"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    points = json.loads(done.stdout)
    assert len(points) > 3 * (len(migrations.STEPS) - version)
    assert [point for point in points if point["wrong"]] == []
    # Of a step it has all or nothing, and both halves of the way were seen.
    seen = {point["version"] for point in points}
    assert seen <= set(range(version, len(migrations.STEPS) + 1)) and {version, len(migrations.STEPS)} <= seen
    assert any(point["kept"] for point in points), "the copy beside it is there meanwhile"


def spoiled(folder: Path, what: str) -> bytes:
    """A library of an older version with one kind of damage; its database's bytes then."""
    path = folder / "library.sqlite"
    db = sqlite3.connect(path, isolation_level=None)
    if what == "an index":
        db.execute("PRAGMA writable_schema = ON")
        (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'chunks_of_document'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    elif what == "a text":
        body = bytearray(db.execute("SELECT body FROM document_texts WHERE document_id = 1").fetchone()[0])
        body[len(body) // 2] ^= 4
        db.execute("UPDATE document_texts SET body = ? WHERE document_id = 1", (bytes(body),))
    elif what == "the words":
        db.execute("UPDATE chunk_words_content SET c2 = 'quite different words' WHERE id = 1")
    else:
        db.execute("DELETE FROM documents WHERE id = 1")  # without what refers to it
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    if what == "an index":
        with path.open("r+b") as stream:
            stream.seek((page - 1) * size)
            stream.write(b"\xff" * size)
    (folder / SUMS).unlink(missing_ok=True)
    return path.read_bytes()


@pytest.mark.parametrize("what", ["an index", "a text", "the words", "references"])
@pytest.mark.parametrize("version", [OLDER[0], OLDER[-1]])
def test_a_damaged_one_is_named_and_not_touched(tmp_path: Path, version: int, what: str) -> None:
    folder = golden.unpack(tmp_path, version)
    before = spoiled(folder, what)
    with golden.session(tmp_path) as session:
        with pytest.raises(LibraryDamaged, match=rf"older version {version} and is damaged"):
            session.search("pump", limit=3)
        with pytest.raises(LibraryDamaged, match="library repair"):
            list(session.ingest([golden.FOLDER / "README.md"]))
        assert (folder / "library.sqlite").read_bytes() == before
        assert not (folder / bringing_up.FOLDER_NAME).exists()
        done, _ = session.repair_library()
        assert done.state == "rebuilt"
        with session._browsing.use() as library:
            assert {finding.severity for finding in library.verify()} == {"ok"}
            assert golden.answers(library, "heron")[0]


def test_a_damaged_one_is_not_read_as_a_copy_either(tmp_path: Path) -> None:
    folder = golden.unpack(tmp_path, OLDER[-1])
    spoiled(folder, "an index")
    with pytest.raises(LibraryDamaged, match="is damaged"):
        store.Store(folder, mode="read", as_copy=True)


def test_a_step_that_spoils_it_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = golden.unpack(tmp_path, OLDER[-1])
    bad = (*migrations.STEPS[: OLDER[-1]], "UPDATE document_texts SET body = x'00' WHERE document_id = 1;")
    with pytest.raises(LibraryDamaged, match="It is as it was"):
        store.Store(folder, mode="write", steps=bad)
    assert not (folder / bringing_up.FOLDER_NAME).exists()
    with golden.session(tmp_path) as session, session._browsing.use() as library:
        assert set(golden.found(library)["documents"]) == set(golden.expected(OLDER[-1])["documents"])


def test_without_room_for_the_copy_it_is_read_as_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = golden.unpack(tmp_path, OLDER[-1])
    before = (folder / "library.sqlite").read_bytes()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bringing_up, "put_in_place", full)
    with golden.session(tmp_path) as session:
        assert session.search("heron", limit=3).hits
        with pytest.raises(StorageFull, match=r"disk is full.*library\.sqlite"):
            list(session.ingest([golden.FOLDER / "README.md"]))
    assert (folder / "library.sqlite").read_bytes() == before
    assert not (folder / bringing_up.FOLDER_NAME).exists()


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting needs root")
@pytest.mark.parametrize("version", [OLDER[0], OLDER[-1]])
def test_on_a_disk_that_cannot_be_written_it_is_read_and_a_write_says_what_to_do(tmp_path: Path, version: int) -> None:
    home = tmp_path / "home"
    golden.unpack(home, version)
    if subprocess.run(["mount", "--bind", home, home], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", home], check=True)
        with golden.session(home) as session:
            with session._browsing.use() as library:
                check_searches(library, version)
            with pytest.raises(StorageFull) as refused:
                list(session.ingest([golden.FOLDER / "README.md"]))
            assert refused.value.remedy
    finally:
        subprocess.run(["umount", home], check=True)


@pytest.mark.parametrize("version", range(1, len(threads_database.STEPS) + 1))
def test_conversations_of_before_are_there(tmp_path: Path, version: int) -> None:
    expected = golden.read(f"threads-v{version}.json")
    threads = ThreadStore(golden.unpack_private(tmp_path, "threads", version))
    heads = threads.heads(library=None)
    said = [{"title": head.title, "library": head.library, "questions": head.question_count} for head in heads]
    assert sorted(said, key=str) == sorted(expected["threads"], key=str)
    (first,) = [head for head in heads if head.title.startswith("Which torque")]
    exchanges = threads.thread(first.id).exchanges
    said = [{"question": each.question, "text": each.text, "state": each.state} for each in exchanges]
    assert said == expected["exchanges"]
    assert [match.head.title for match in threads.search("torque", library=None)] == expected["found"]
    assert threads.draft(None, library="default")[0] == "not sent yet"
    threads.ask("And now?", library="default", thread_id=first.id, parent_id=exchanges[-1].id)
    assert threads.head(first.id).question_count == 3
    threads.close()


@pytest.mark.parametrize("version", range(1, ring._VERSION + 1))
def test_traces_of_before_are_there(tmp_path: Path, version: int) -> None:
    path = golden.unpack_private(tmp_path, "traces", version)
    with TraceRing(path, writing="WAL") as traces:
        for kept in golden.read(f"traces-v{version}.json")["traces"]:
            head = traces.find(kept["trace_id"])
            assert (head.kind, head.duration_ns) == (kept["kind"], kept["duration_ns"])
            assert [span.name for span in traces.tree(head.trace_id).root.walk()] == [
                "rag.query",
                "query.retrieval.vector",
            ]
