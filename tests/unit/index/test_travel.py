"""A library as one file: what leaves is one state, what arrives is all of it or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from edgerag.errors import EdgeragError, LibraryDamaged, LibraryError, LibraryVersionUnknown
from edgerag.index import migrations, package
from edgerag.index.travel import arrive, leave, manifest_of

HEAD = struct.Struct("<8sIQ32s")
ROOT = Path(__file__).parents[3]


def quiet(_done: int, _total: int) -> None:
    """Progress that nobody watches."""


@pytest.fixture
def folder(opened: Any, material: Any) -> Path:
    library = opened()
    for name in "ab":
        material.put(library, f"/docs/{name}", [f"word{n} of {name}" for n in range(30)], tags=[name])
    material.embed_pending(library)
    library.seal()
    material.put(library, "/docs/late", ["not sealed"])
    material.embed_pending(library)
    library.close()
    return Path(library.folder)


def contents(library: Any) -> Any:
    return [
        [library.parsed_document(document.id) for document in library.documents()],
        library.chunks(list(range(1, 100))),
        library.search_keywords("word7", limit=9),
        library.tags(),
        [segment.vector_count for segment in library.status().segments],
    ]


def test_it_comes_back_as_it_left(folder: Path, opened: Any, tmp_path: Path) -> None:
    file = tmp_path / "x.edgerag"
    left = leave(folder, file, name="lib", progress=quiet)
    assert (left.library, left.document_count, left.chunk_count) == ("lib", 3, 61)
    assert manifest_of(file) == left
    assert arrive(file, tmp_path / "here" / "other", progress=quiet) == left
    with opened(mode="read") as before, opened(mode="read", folder=tmp_path / "here" / "other") as after:
        assert contents(before) == contents(after)
        assert {finding.severity for finding in after.verify()} == {"ok"}
    with opened(folder=tmp_path / "here" / "other") as library:  # and can be written
        library.compact()
    assert {path.name for path in tmp_path.iterdir()} == {"lib", "x.edgerag", "here"}


def test_it_is_read_where_nothing_can_be_written(folder: Path, opened: Any, tmp_path: Path) -> None:
    """No journal, no shared memory, no lock: several machines may share one read-only mount."""
    file = tmp_path / "x.edgerag"
    leave(folder, file, name="lib", progress=quiet)
    arrive(file, tmp_path / "stick", progress=quiet)
    before = {path: path.read_bytes() for path in (tmp_path / "stick").rglob("*") if path.is_file()}
    with opened(mode="read", folder=tmp_path / "stick") as one, opened(mode="read", folder=tmp_path / "stick") as two:
        assert contents(one) == contents(two)
        beside = {path for path in (tmp_path / "stick").rglob("*") if path.is_file()}
    assert beside == set(before), "nothing is made beside it"
    assert {path: path.read_bytes() for path in before} == before


def test_what_was_removed_does_not_travel(folder: Path, opened: Any, material: Any, tmp_path: Path) -> None:
    with opened() as library:
        secret = material.put(library, "/docs/secret", ["xyzzysecretword and more"])
        library.remove_documents([secret])
    file = tmp_path / "x.edgerag"
    leave(folder, file, name="lib", progress=quiet)
    assert b"xyzzysecretword" not in file.read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.9999])
def test_a_file_that_was_cut_off_is_refused(folder: Path, tmp_path: Path, share: float) -> None:
    file = tmp_path / "x.edgerag"
    leave(folder, file, name="lib", progress=quiet)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(LibraryDamaged, match=r"cut short|exported"):
        arrive(file, tmp_path / "here" / "other", progress=quiet)
    assert not list((tmp_path / "here").glob("*")) if (tmp_path / "here").exists() else True


def test_a_flipped_bit_is_named_by_its_part(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.edgerag"
    manifest = leave(folder, file, name="lib", progress=quiet)
    data = file.read_bytes()
    start = len(data) - manifest.size_bytes
    places = {"its manifest": HEAD.size + 40, "its head": 25}
    for part in manifest.parts:
        places[part.name] = start + part.size_bytes // 2
        start += part.size_bytes
    for named, at in places.items():
        changed = bytearray(data)
        changed[at] ^= 4
        file.write_bytes(changed)
        with pytest.raises(EdgeragError) as refused:
            arrive(file, tmp_path / "here" / "other", progress=quiet)
        assert named in str(refused.value) or named == "its head", named
        assert not list((tmp_path / "here").glob("*")) if (tmp_path / "here").exists() else True


def test_bytes_behind_the_end_are_refused(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.edgerag"
    leave(folder, file, name="lib", progress=quiet)
    with file.open("ab") as stream:
        stream.write(b"!")
    with pytest.raises(LibraryDamaged, match="behind the last part"):
        arrive(file, tmp_path / "here" / "other", progress=quiet)


def forged(file: Path, change: Any, target: Path, *, version: int = package.VERSION) -> Path:
    """The file with another manifest, under a right checksum: as somebody would make it who means harm."""
    data = file.read_bytes()
    _, _, length, _ = HEAD.unpack_from(data)
    record = json.loads(data[HEAD.size : HEAD.size + length])
    change(record)
    text = json.dumps(record).encode()
    head = HEAD.pack(package.MAGIC, version, len(text), hashlib.sha256(text).digest())
    target.write_bytes(head + text + data[HEAD.size + length :])
    return target


@pytest.mark.parametrize(
    "name",
    [
        "../../evil",
        "/etc/passwd",
        "segments/../../x.hnsw",
        "segments/00000001.hnsw/x",
        "writer.lock",
        "segments/a.hnsw",
        "library.sqlite-wal",
        "",
        ".",
        "segments/00000001.hnsw\n",
        "kv/x",
    ],
)
def test_a_part_that_would_lie_elsewhere_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "x.edgerag"
    leave(folder, file, name="lib", progress=quiet)
    evil = forged(file, lambda record: record["parts"][0].update(name=name), tmp_path / "evil.edgerag")
    with pytest.raises(LibraryDamaged, match="no file of a library"):
        arrive(evil, tmp_path / "here" / "other", progress=quiet)
    assert not (tmp_path / "here").exists() or not list((tmp_path / "here").iterdir())


def test_a_newer_one_is_refused_politely(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.edgerag"
    leave(folder, file, name="lib", progress=quiet)
    newer = len(migrations.STEPS) + 1
    of_database = forged(file, lambda record: record.update(database_version=newer), tmp_path / "a.edgerag")
    with pytest.raises(LibraryVersionUnknown, match=f"version {newer}.*newer edgerag"):
        arrive(of_database, tmp_path / "other", progress=quiet)
    of_format = forged(file, lambda record: None, tmp_path / "b.edgerag", version=package.ENCRYPTED_VERSION + 1)
    with pytest.raises(LibraryVersionUnknown, match="newer edgerag"):
        arrive(of_format, tmp_path / "other", progress=quiet)


def test_a_manifest_that_says_another_embedder_is_refused(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.edgerag"
    leave(folder, file, name="lib", progress=quiet)
    evil = forged(file, lambda record: record["embedder"].update(weights_sha256="cd" * 32), tmp_path / "evil.edgerag")
    with pytest.raises(LibraryError, match="manifest"):
        arrive(evil, tmp_path / "here" / "other", progress=quiet)


def test_nothing_is_replaced(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.edgerag"
    leave(folder, file, name="lib", progress=quiet)
    before = file.read_bytes()
    with pytest.raises(LibraryError, match="there already"):
        leave(folder, file, name="lib", progress=quiet)
    with pytest.raises(LibraryError, match="already"):
        arrive(file, folder, progress=quiet)
    assert file.read_bytes() == before


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from edgerag.index.travel import arrive, leave
    doing, source, target, stop_at = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])
    def progress(done, total):
        if done >= total * stop_at:
            os.kill(os.getpid(), signal.SIGKILL)
    if doing == "leave":
        leave(source, target, name="lib", progress=progress)
    else:
        arrive(source, target, progress=progress)
"""


@pytest.mark.parametrize("stop_at", [0.0, 0.5, 1.0])
def test_a_kill_leaves_nothing_half_made(folder: Path, tmp_path: Path, stop_at: float) -> None:
    def run(doing: str, source: Path, target: Path) -> int:
        code = [sys.executable, "-c", textwrap.dedent(KILLED), doing, str(source), str(target), str(stop_at)]
        return subprocess.run(code, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False).returncode

    file = tmp_path / "out" / "x.edgerag"
    file.parent.mkdir()
    assert run("leave", folder, file) == -signal.SIGKILL
    assert not file.exists()
    leave(folder, file, name="lib", progress=quiet)
    assert [path.name for path in file.parent.iterdir()] == ["x.edgerag"], "what the killed one left is gone"
    home = tmp_path / "home"
    assert run("arrive", file, home / "lib") == -signal.SIGKILL
    assert not (home / "lib").exists()
    arrive(file, home / "lib", progress=quiet)
    assert [path.name for path in home.iterdir()] == ["lib"]


def test_a_backup_is_one_state_while_others_write(folder: Path, opened: Any, material: Any, tmp_path: Path) -> None:
    """Documents come in pairs, one transaction each pair's tag; segments come and go."""
    stop = threading.Event()
    trouble: list[BaseException] = []

    def write() -> None:
        try:
            with opened() as library:
                number = 0
                while not stop.is_set():
                    number += 1
                    material.put(library, "/docs/moving", [f"state{number} part{n}" for n in range(8)])
                    material.embed_pending(library)
                    library.seal()
        except Exception as error:  # noqa: BLE001 - told in the thread that asserts
            trouble.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(6):
            file = tmp_path / f"{number}.edgerag"
            leave(folder, file, name="lib", progress=quiet)
            arrive(file, tmp_path / f"back{number}", progress=quiet)
            with opened(mode="read", folder=tmp_path / f"back{number}") as back:
                assert {finding.severity for finding in back.verify()} == {"ok"}
                moving = [chunk for chunk in back.chunks(range(1, 3000)) if chunk.path == "/docs/moving"]
                assert len({chunk.chunk.text.split()[0] for chunk in moving}) <= 1, "one state, not two"
    finally:
        stop.set()
        writer.join()
    assert not trouble


def test_an_export_of_a_damaged_library_is_found_on_arrival_or_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "library.sums").unlink()
    with sqlite3.connect(folder / "library.sqlite") as db:
        db.execute("DELETE FROM meta WHERE key = 'embedder'")
    with pytest.raises(EdgeragError):
        leave(folder, tmp_path / "x.edgerag", name="lib", progress=quiet)
    assert not (tmp_path / "x.edgerag").exists()
