"""A library that is encrypted: it does all that a plain one does, says nothing without its key, and is made and unmade
without a moment at which neither is whole."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgerag.encryption.database import connect
from edgerag.encryption.key_record import FILE_NAME, is_encrypted, read_record, unwrap, wrap, write_record
from edgerag.encryption.keys import KeyFile, LibraryKey, new_library_key
from edgerag.errors import (
    LibraryBusy,
    LibraryDamaged,
    LibraryError,
    LibraryLocked,
    LibraryOutdated,
    LibraryReplaced,
    LibraryVersionUnknown,
    StorageFull,
)
from edgerag.index import bringing_up, encrypting, migrations, package, scratch, travel
from edgerag.index import library as library_module
from edgerag.index import store as store_module
from edgerag.index.encrypting import NewKey, encrypt_anew
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.index.lock import WriterLock
from edgerag.index.own_key import refuse_another, refuse_beside_plain
from edgerag.index.package import read_manifest
from edgerag.index.repair import repair_database
from edgerag.index.store import Store
from edgerag.index.travel import arrive, leave
from edgerag.types import EmbedderIdentity

pytest.importorskip("sqlcipher3")
ROOT = Path(__file__).parents[3]
CANARY = "canarybird"
OPENER = KeyFile(b"k" * 64)
PARAGRAPHS = [f"{CANARY} paragraph{n} about pump number {n} and its valve" for n in range(60)]


def quiet(_done: int, _total: int) -> None:
    """Progress that nobody watches."""


def new_key() -> NewKey:
    key = new_library_key()
    return NewKey(key, wrap(key, OPENER))


class Made:
    """A folder with a library, and its key if it has one."""

    def __init__(self, folder: Path, material: Any) -> None:
        self.folder, self.material = folder, material
        self.key: LibraryKey | None = None

    def open(self, mode: Any = "read", *, key: Any = "own", folder: Path | None = None) -> Library:
        return open_library(
            folder or self.folder,
            mode=mode,
            residency=Residency(10**8),
            identity=self.material.identity if mode == "write" else None,
            seal_settings=self.material.small,
            key=self.key if key == "own" else key,
        )

    def fill(self) -> None:
        with self.open("write") as library:
            for number in range(3):
                self.material.put(
                    library, f"/docs/{number}", PARAGRAPHS[number * 20 :][:20], title=f"{CANARY} {number}"
                )
                self.material.embed_pending(library)
                library.seal(merge=False)
            self.material.put(library, "/docs/unsealed", [f"{CANARY} not sealed {n}" for n in range(5)])
            self.material.embed_pending(library)
            library.record_failure(f"/docs/{CANARY}.pdf", reason="damaged", size_bytes=1, mtime_ns=1)

    def encrypt(self, to: NewKey | None) -> None:
        encrypt_anew(self.folder, key=self.key, to=to, progress=quiet)
        self.key = None if to is None else to.key


@pytest.fixture
def made(tmp_path: Path, material: Any) -> Made:
    return Made(tmp_path / "home" / "lib", material)


def begin_encrypted(made: Made) -> NewKey:
    to = new_key()
    made.folder.mkdir(parents=True)
    write_record(made.folder, to.record)
    made.key = to.key
    return to


def answers(library: Library, material: Any) -> list[Any]:
    """What a user sees of it."""
    found: list[Any] = [library.documents(), library.failures()]
    for words in ("pump number 7", CANARY, "sealed"):
        found.append(library.search_keywords(words, limit=20))
        found.append(library.search_vectors(material.vector(words), limit=20, ef_search=50))
    found.append([chunk.chunk.text for chunk in library.chunks(range(1, 300))])
    return found


def files_with(folder: Path, *words: bytes) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(word in path.read_bytes() for word in words)]


SPELLED = (CANARY.encode(), CANARY.encode("utf-16-le"), CANARY[:6].encode(), b"by-rule", b"/docs/")


def test_it_is_encrypted_from_its_first_document_on(made: Made, material: Any, tmp_path: Path) -> None:
    plain = Made(tmp_path / "plain", material)
    plain.fill()
    begin_encrypted(made)
    writer = made.open("write")
    material.put(writer, "/docs/0", PARAGRAPHS)
    assert files_with(made.folder) == [], "while it is written, too"
    assert not files_with(made.folder, *SPELLED)
    writer.remove_documents([1])
    writer.close()
    made.fill()
    assert files_with(plain.folder, *SPELLED)
    assert not files_with(made.folder.parent, *SPELLED)
    with plain.open() as one, made.open() as other:
        expected, found = answers(one, material), answers(other, material)
        assert [len(each) for each in found] == [len(each) for each in expected]
        assert sorted(found[-1]) == sorted(expected[-1])
        assert {finding.severity for finding in other.verify()} == {"ok"}


def test_without_the_key_it_says_what_it_needs(made: Made) -> None:
    begin_encrypted(made)
    made.fill()
    for mode in ("read", "write"):
        with pytest.raises(LibraryLocked, match="encrypted, and its key file was not given"):
            made.open(mode, key=None)
    with pytest.raises(LibraryError) as caught:
        made.open(key=new_library_key())
    assert CANARY not in str(caught.value)
    (made.folder / FILE_NAME).unlink()
    with pytest.raises(LibraryLocked, match="is gone"):
        made.open(key=None)


def test_encrypting_and_decrypting_change_no_answer(made: Made, material: Any) -> None:
    made.fill()
    with made.open() as library:
        expected = answers(library, material)
    first, second = new_key(), new_key()
    for to in (first, second, None):
        made.encrypt(to)
        assert is_encrypted(made.folder) == (to is not None)
        assert bool(files_with(made.folder.parent, *SPELLED)) == (to is None)
        assert [path.name for path in made.folder.parent.iterdir()] == ["lib"], "nothing is left beside it"
        with made.open() as library:
            assert answers(library, material) == expected
            assert {finding.severity for finding in library.verify()} == {"ok"}
        with made.open("write") as library:  # and it goes on being written
            assert library.compact().damaged == ()
        with made.open() as library:
            assert answers(library, material) == expected
    assert made.folder.stat().st_mode & 0o777 == 0o700


def test_the_old_key_opens_nothing_of_what_was_encrypted_anew(made: Made) -> None:
    begin_encrypted(made)
    made.fill()
    old = made.key
    made.encrypt(new_key())
    with pytest.raises(LibraryError):
        made.open(key=old)


def test_another_opener_leaves_the_files_as_they_are(made: Made) -> None:
    to = begin_encrypted(made)
    made.fill()
    other = KeyFile(b"o" * 40)
    write_record(made.folder, wrap(to.key, other))
    with pytest.raises(LibraryLocked):
        unwrap(read_record(made.folder), OPENER, where="")
    assert unwrap(read_record(made.folder), other, where="") == to.key
    made.open().close()


def test_a_folder_with_something_of_the_users_own_is_left_alone(made: Made) -> None:
    made.fill()
    (made.folder / "notes.txt").write_text("mine")
    with pytest.raises(LibraryError, match=r"notes\.txt"):
        made.encrypt(new_key())
    assert (made.folder / "notes.txt").read_text() == "mine"
    made.open(key=None).close()


def test_where_two_folders_cannot_be_exchanged_it_is_refused(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_first: Path, _second: Path) -> None:
        raise OSError(22, "Invalid argument")

    made.fill()
    monkeypatch.setattr(encrypting, "exchange", refused)
    with pytest.raises(LibraryError, match="cannot exchange"):
        encrypt_anew(made.folder, key=None, to=new_key(), progress=quiet)
    assert [path.name for path in made.folder.parent.iterdir()] == ["lib"]
    made.open(key=None).close()


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from edgerag.encryption.key_record import wrap
    from edgerag.encryption.keys import KeyFile, LibraryKey
    from edgerag.index import encrypting
    folder, source, target, stop_at = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    count = 0
    def counted(call):
        def wrapped(*arguments, **options):
            global count
            count += 1
            if count == stop_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)
        return wrapped
    for name in ("copy_units", "write_copy", "write_record", "exchange", "sync_folder", "_delete"):
        setattr(encrypting, name, counted(getattr(encrypting, name)))
    key = LibraryKey(bytes.fromhex(source)) if source else None
    new = LibraryKey(bytes.fromhex(target)) if target else None
    to = encrypting.NewKey(new, wrap(new, KeyFile(b"k" * 64))) if new else None
    encrypting.encrypt_anew(folder, key=key, to=to, progress=lambda done, total: None)
    print(count)
"""


@pytest.mark.parametrize("what", ["encrypt", "decrypt", "rekey"])
def test_a_kill_at_any_step_leaves_the_old_or_the_new_one_whole(made: Made, material: Any, what: str) -> None:
    begun = new_library_key()
    if what != "encrypt":
        made.folder.mkdir(parents=True)
        write_record(made.folder, wrap(begun, OPENER))
        made.key = begun
    made.fill()
    with made.open() as library:
        expected = answers(library, material)
    target = None if what == "decrypt" else new_library_key()

    def run(stop_at: int) -> int:
        key = made.key.master.hex() if made.key else ""
        to = target.master.hex() if target else ""
        code = [sys.executable, "-c", textwrap.dedent(KILLED), str(made.folder), key, to, str(stop_at)]
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run(code, env=environ, check=False, capture_output=True).returncode

    kills, stop_at = 0, 0
    while True:
        stop_at += 1
        code = run(stop_at)
        killed = code == -signal.SIGKILL
        assert killed or code == 0
        kills += killed
        is_new = is_encrypted(made.folder) and unwrap(read_record(made.folder), OPENER, where="") != made.key
        is_new = is_new or (what == "decrypt" and not is_encrypted(made.folder))
        key = target if is_new else made.key
        with made.open("write", key=key) as library:  # removes what a kill left
            assert answers(library, material) == expected
        if is_new and what == "encrypt":
            assert not files_with(made.folder.parent, *SPELLED), "the replaced one goes with the next writer"
        if is_new:
            break
    assert kills >= 6
    made.key = target


def test_it_is_read_where_nothing_can_be_written(made: Made, material: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an unchanging file, which is what SQLite is told where no journal can be made beside it."""
    begin_encrypted(made)
    made.fill()
    with made.open() as library:
        expected = answers(library, material)

    def connected(store: Store) -> sqlite3.Connection:
        store._immutable_state = store._file_state()
        return store._connect("ro", immutable=True)

    monkeypatch.setattr(Store, "_connect_for_reading", connected)
    before = {path: path.read_bytes() for path in made.folder.rglob("*") if path.is_file()}
    with made.open() as library:
        assert answers(library, material) == expected
        assert {finding.severity for finding in library.verify()} == {"ok"}
    assert {path: path.read_bytes() for path in made.folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("version", [1, 6, len(migrations.STEPS) - 1])
def test_one_of_an_older_version_is_read_out_of_a_copy_in_memory(tmp_path: Path, version: int) -> None:
    key = new_library_key()
    Store(tmp_path, mode="write", steps=migrations.STEPS[:version], key=key).close()
    with pytest.raises(LibraryOutdated):
        Store(tmp_path, mode="read", key=key)
    before = sorted(path.name for path in tmp_path.iterdir())
    store = Store(tmp_path, mode="read", as_copy=True, key=key)
    with store.reading() as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(migrations.STEPS),)
        assert {row[2] for row in db.execute("PRAGMA database_list")} == {""}, "it lies in no file"
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    Store(tmp_path, mode="write", key=key).close()
    Store(tmp_path, mode="read", key=key).close()


def test_it_travels_encrypted_and_is_opened_by_its_own_key(made: Made, material: Any, tmp_path: Path) -> None:
    to = begin_encrypted(made)
    made.fill()
    with made.open() as library:
        expected = answers(library, material)
    file, other = tmp_path / "x.edgerag", tmp_path / "there" / "other"
    manifest = leave(made.folder, file, name="lib", progress=quiet, key=to.key)
    assert manifest.is_encrypted
    assert not files_with(tmp_path, CANARY.encode())
    with pytest.raises(LibraryLocked):
        leave(made.folder, tmp_path / "y", name="lib", progress=quiet)
    with pytest.raises(LibraryLocked):
        arrive(file, other, progress=quiet)
    assert not other.exists()
    arrive(file, other, progress=quiet, unlock=lambda folder: unwrap(read_record(folder), OPENER, where="it"))
    assert not files_with(tmp_path, CANARY.encode())
    with made.open(folder=other) as library:
        assert answers(library, material) == expected
        assert {finding.severity for finding in library.verify()} == {"ok"}


def test_an_older_program_refuses_such_a_file_by_its_version(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = begin_encrypted(made)
    made.fill()
    leave(made.folder, tmp_path / "x", name="lib", progress=quiet, key=to.key)
    monkeypatch.setattr(package, "ENCRYPTED_VERSION", 1)
    with pytest.raises(LibraryVersionUnknown), (tmp_path / "x").open("rb") as stream:
        read_manifest(stream, "x")


def test_single_bits_are_mended_and_worse_damage_is_named(made: Made, material: Any) -> None:
    to = begin_encrypted(made)
    made.fill()
    with made.open() as library:
        expected = answers(library, material)
    database = made.folder / "library.sqlite"
    raw = database.read_bytes()
    random = np.random.default_rng(2)
    for place in (3, *random.integers(0, len(raw), size=4).tolist()):
        database.write_bytes(raw[:place] + bytes([raw[place] ^ 16]) + raw[place + 1 :])
        with pytest.raises(LibraryDamaged), made.open("write") as library:
            material.put(library, "/docs/new", ["one more"])
        assert repair_database(made.folder, key=to.key).state == "bits"
        assert database.read_bytes() == raw
    with made.open() as library:
        assert answers(library, material) == expected


def test_a_page_that_is_gone_costs_its_own_rows(made: Made, material: Any) -> None:
    to = begin_encrypted(made)
    with made.open("write") as library:
        for number in range(40):
            material.put(library, f"/docs/{number}", [f"document {number} " + "words and words " * 150])
    database = made.folder / "library.sqlite"
    raw = bytearray(database.read_bytes())
    place = len(raw) // 4096 // 2 * 4096
    raw[place : place + 4096] = bytes(4096)
    database.write_bytes(raw)
    done = repair_database(made.folder, key=to.key)
    assert done.state in ("rebuilt", "bits")
    with made.open() as library:
        assert len(library.documents()) >= 35
        assert not [finding for finding in library.verify() if finding.severity == "error"]
    assert not files_with(made.folder, b"words and words")


def test_a_damaged_segment_is_rescued(made: Made, material: Any) -> None:
    begin_encrypted(made)
    made.fill()
    path = sorted((made.folder / "segments").glob("*.hnsw"))[1]
    raw = bytearray(path.read_bytes())
    raw[-200] ^= 1
    path.write_bytes(raw)
    with made.open("write") as library:
        (rescued,) = library.rescue()
        assert rescued.file == path.name
        material.embed_pending(library)
        library.seal()
        assert {finding.severity for finding in library.verify()} == {"ok"}


def test_another_embedder_writes_nothing_in_plain(made: Made, material: Any) -> None:
    begin_encrypted(made)
    made.fill()
    identity = EmbedderIdentity("another-name", "cd" * 32, 24, ("*",))
    with made.open("write") as library:
        with library.reembedding(identity) as begun:
            while pending := begun.pending_chunks(64):
                rows = np.random.default_rng(len(pending)).normal(size=(len(pending), 24)).astype(np.float32)
                begun.put_vectors([chunk.id for chunk in pending], rows / np.linalg.norm(rows, axis=1, keepdims=True))
            begun.seal(progress=lambda _: None, cancelled=lambda: False)
            assert not files_with(made.folder, CANARY.encode(), b"another-name", b"SQLite format 3")
            library.switch(begun)
        assert {finding.severity for finding in library.verify()} == {"ok"}
    with made.open() as library:
        assert library.identity == identity


def test_a_segment_is_built_without_a_plain_file(made: Made, material: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors and graph while it is built: every file that is opened for writing is looked at when it is closed."""
    begin_encrypted(made)
    seen: list[str] = []
    real = os.open

    def watched(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            seen.append(str(path))
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", watched)
    with made.open("write") as library:
        material.put(library, "/docs/0", PARAGRAPHS)
        material.embed_pending(library)
        library.seal()
    assert any(name.endswith(".hnsw.tmp") for name in seen)
    assert not [name for name in seen if "vectors" in name or "graph" in name]


def test_settings_of_a_store_hold_for_its_private_copies(made: Made) -> None:
    """Checking the keyword index copies the database: never into a plain file."""
    begin_encrypted(made)
    made.fill()
    store = Store(made.folder, mode="read", key=made.key)
    assert store.words_damage() == ""
    store.close()


def test_the_copy_that_is_kept_while_an_older_one_is_brought_up_is_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, to = tmp_path / "lib", new_key()
    folder.mkdir()
    write_record(folder, to.record)
    Store(folder, mode="write", steps=migrations.STEPS[:-1], key=to.key).close()
    monkeypatch.setattr(bringing_up, "_discard", lambda path: None)
    Store(folder, mode="write", key=to.key).close()
    kept = folder / bringing_up.FOLDER_NAME / "library.sqlite"
    assert b"SQLite format 3" not in kept.read_bytes() and not files_with(folder, b"CREATE TABLE")
    copy = connect(kept, key=to.key)
    assert migrations.version_of(copy) == len(migrations.STEPS) - 1
    copy.close()
    monkeypatch.undo()
    Store(folder, mode="write", key=to.key).close()
    assert not kept.parent.exists()


@pytest.mark.parametrize("names", [[".lock", "library"], ["library", ".lock"]])
def test_what_a_killed_encryption_left_goes_though_the_next_is_killed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    """Its lock goes last, in whatever order the file system tells what lies in a folder."""
    left = tmp_path / ".encrypting-x"
    (left / "library").mkdir(parents=True)
    (left / ".lock").touch()
    gone: list[str] = []

    def in_order(self: Path) -> Any:
        return iter([self / name for name in names if (self / name).exists()])

    def rmtree(path: Path, *, ignore_errors: bool = False) -> None:
        gone.append(path.name)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", in_order)
        patch.setattr(scratch.shutil, "rmtree", rmtree)
        scratch.remove_left(tmp_path, scratch.ENCRYPTING_PREFIX)
    assert gone == ["library"], "while anything is left, the lock is"
    scratch.remove_left(tmp_path, scratch.ENCRYPTING_PREFIX)
    assert not left.exists()


def test_repair_says_that_the_key_is_gone_and_changes_nothing(made: Made, material: Any) -> None:
    begin_encrypted(made)
    with made.open("write") as library:
        material.put(library, "/docs/a", PARAGRAPHS)
        material.embed_pending(library)
        library.seal()
    (made.folder / FILE_NAME).unlink()
    before = {path: path.read_bytes() for path in made.folder.rglob("*") if path.is_file()}
    with pytest.raises(LibraryLocked, match="is gone"):
        repair_database(made.folder)
    assert {path: path.read_bytes() for path in made.folder.rglob("*") if path.is_file()} == before


def everything(folder: Path) -> dict[str, bytes]:
    """Of all files but those that only say who holds the library."""
    held = ("writer.lock", "asking.lock")
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name not in held}


def flipped(raw: bytes, place: int) -> bytes:
    return raw[:place] + bytes([raw[place] ^ 4]) + raw[place + 1 :]


@pytest.mark.parametrize("from_encrypted", [False, True])
@pytest.mark.parametrize("damage", ["bits", "short", "long", "segment"])
def test_what_can_still_be_mended_is_never_written_anew(
    made: Made, material: Any, damage: str, from_encrypted: bool
) -> None:
    if from_encrypted:
        begin_encrypted(made)
    made.fill()
    database = made.folder / "library.sqlite"
    whole = database.read_bytes()
    segment = sorted((made.folder / "segments").glob("*.hnsw"))[0]
    damaged: list[tuple[Path, bytes]] = {
        "bits": [(database, flipped(whole, place)) for place in range(200, len(whole), len(whole) // 5)],
        "short": [(database, whole[:-1])],
        "long": [(database, whole + bytes(4096))],
        "segment": [(segment, flipped(segment.read_bytes(), segment.stat().st_size - 200))],
    }[damage]
    for path, content in damaged:
        path.write_bytes(content)
        before = everything(made.folder)
        for to in (new_key(), None) if from_encrypted else (new_key(),):
            with pytest.raises(LibraryDamaged) as caught:
                encrypt_anew(made.folder, key=made.key, to=to, progress=quiet)
            assert "library repair" in caught.value.remedy
            assert everything(made.folder) == before
            assert [each.name for each in made.folder.parent.iterdir()] == ["lib"]
        if damage == "bits":
            assert repair_database(made.folder, key=made.key).state == "bits"
            assert path.read_bytes() == whole


def test_damage_is_found_without_checksums_too(made: Made) -> None:
    made.fill()
    (made.folder / "library.sums").unlink()
    database = made.folder / "library.sqlite"
    with sqlite3.connect(database) as db:
        db.execute("UPDATE chunks SET ordinal = ordinal + 1000 WHERE id = 3")
    db.close()
    before = database.read_bytes()
    with pytest.raises(LibraryDamaged):
        made.encrypt(new_key())
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    "name", ["segments/mine.txt", "segments/mine/a.txt", "private/letter.txt", "kv/notes.txt", "kv/abcdef0123/x.md"]
)
def test_a_file_of_the_users_own_in_any_folder_is_named_and_stays(made: Made, name: str) -> None:
    made.fill()
    path = made.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    with pytest.raises(LibraryError, match="which is not the library's"):
        made.encrypt(new_key())
    assert path.read_text() == "mine"
    assert [each.name for each in made.folder.parent.iterdir()] == ["lib"]
    made.open(key=None).close()


def test_what_was_set_aside_is_carried_over(made: Made) -> None:
    begin_encrypted(made)
    made.fill()
    private = made.folder / "private"
    private.mkdir()
    db = connect(private / "threads.sqlite.damaged", key=made.key)
    db.execute("CREATE TABLE said (words TEXT)")
    db.execute("INSERT INTO said VALUES (?)", (CANARY,))
    db.commit()
    db.close()
    torn = os.urandom(9000) + CANARY.encode() + os.urandom(90)  # no database any more, and words in it
    (private / "traces.sqlite.damaged").write_bytes(torn)
    for to in (new_key(), None, new_key()):
        made.encrypt(to)
        assert ((private / "traces.sqlite.damaged").read_bytes() == torn) == (to is None)
        db = connect(private / "threads.sqlite.damaged", key=made.key)
        assert db.execute("SELECT words FROM said").fetchall() == [(CANARY,)]
        db.close()
        assert len(files_with(private, CANARY.encode())) == (2 if to is None else 0)
    assert (private / "traces.sqlite.damaged").stat().st_mode & 0o777 == 0o600


def test_what_was_set_aside_and_damaged_once_more_is_carried_over(made: Made) -> None:
    made.fill()
    aside = made.folder / "private" / "traces.sqlite.damaged"
    aside.parent.mkdir()
    aside.write_bytes(b"no database" * 900)
    made.encrypt(new_key())
    damaged = flipped(aside.read_bytes(), 200)
    aside.write_bytes(damaged)
    made.encrypt(None)
    assert aside.read_bytes() == damaged


def test_conversations_that_are_damaged_are_named(made: Made) -> None:
    made.fill()
    private = made.folder / "private"
    private.mkdir()
    (private / "threads.sqlite").write_bytes(b"x" * 9000)
    with pytest.raises(LibraryError, match=r"threads\.sqlite is damaged"):
        made.encrypt(new_key())
    assert (private / "threads.sqlite").read_bytes() == b"x" * 9000


def test_what_killed_writers_left_is_no_stranger(made: Made) -> None:
    made.fill()
    for name in (".bringing-up/x", "segments/00000099.hnsw.tmp", "private/.new-ab/new.sqlite", ".repair/x"):
        path = made.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    made.encrypt(new_key())
    made.open().close()


def with_strange_record(made: Made) -> tuple[LibraryKey, NewKey]:
    """The library's own key, and the key of another one whose record lies in its folder now."""
    own = begin_encrypted(made)
    made.fill()
    strange = new_key()
    write_record(made.folder, strange.record)
    return own.key, strange


def test_a_record_of_another_library_is_told_from_damage(made: Made) -> None:
    own, strange = with_strange_record(made)
    refuse_another(made.folder, own)
    for left in ("library.sums", "segments"):
        with pytest.raises(LibraryLocked, match="is not this library's") as caught:
            refuse_another(made.folder, strange.key)
        assert "Put the library's own" in caught.value.remedy
        path = made.folder / left
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("place", [3, 40, 5000])
def test_damage_is_not_taken_for_the_record_of_another_library(made: Made, place: int) -> None:
    """Not even where the salt of the database is what is damaged, and no page fits any key."""
    to = begin_encrypted(made)
    made.fill()
    database = made.folder / "library.sqlite"
    whole = database.read_bytes()
    database.write_bytes(flipped(whole, place))
    refuse_another(made.folder, to.key)
    (made.folder / "library.sums").unlink()
    refuse_another(made.folder, to.key)  # its segments fit
    database.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    refuse_another(made.folder, to.key)


def test_a_record_beside_a_plain_library_is_told(made: Made) -> None:
    made.fill()
    write_record(made.folder, new_key().record)
    with pytest.raises(LibraryLocked, match="is not encrypted"):
        refuse_beside_plain(made.folder)


def test_who_had_it_open_is_told_that_it_was_replaced_and_not_that_it_is_damaged(made: Made, material: Any) -> None:
    made.fill()
    with made.open() as fresh, made.open() as used:
        used.search_vectors(material.vector("x"), limit=3, ef_search=20)
        made.encrypt(new_key())
        for library in (fresh, used):
            assert not library.is_current()
            with pytest.raises(LibraryReplaced, match="just now"):
                library.verify()
        with pytest.raises(LibraryReplaced):
            fresh.search_vectors(material.vector("x"), limit=3, ef_search=20)
    with made.open() as library:
        assert library.is_current()
        assert library.search_vectors(material.vector("x"), limit=3, ef_search=20)


@pytest.mark.parametrize("when", [1, 2, 3])
def test_one_that_is_replaced_while_it_is_opened_is_told_so(
    made: Made, monkeypatch: pytest.MonkeyPatch, when: int
) -> None:
    """Before the look for its key, before its database is opened, before its catalogue is read."""
    made.fill()
    count = 0

    def between(call: Any) -> Any:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == when:
                with monkeypatch.context() as patch:
                    patch.undo()
                    made.encrypt(new_key())
            return call(*arguments, **options)

        return wrapped

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "refuse_locked", between(store_module.refuse_locked))
        patch.setattr(Store, "_connect", between(Store._connect))
        patch.setattr(library_module, "read_identity", between(library_module.read_identity))
        with pytest.raises(LibraryReplaced):
            made.open(key=None)
    made.open().close()


def test_who_waits_to_write_locks_the_folder_that_is_there_then(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made.fill()
    real = fcntl.flock

    def slow(descriptor: int, how: int) -> None:
        monkeypatch.undo()
        made.encrypt(new_key())
        real(descriptor, how)

    monkeypatch.setattr("fcntl.flock", slow)
    lock = WriterLock(made.folder)
    with pytest.raises(LibraryBusy, match="is writing to"):
        WriterLock(made.folder)
    lock.close()


def test_a_writer_is_told_that_it_is_being_encrypted(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made.fill()
    told = []

    def progress(_done: int, _total: int) -> None:
        with pytest.raises(LibraryBusy) as caught:
            made.open("write")
        told.append(caught.value.message)

    encrypt_anew(made.folder, key=None, to=new_key(), progress=progress)
    assert told and all("encrypts, decrypts or rekeys the library" in message for message in told)


def test_what_opens_it_is_made_last_and_what_fails_then_changes_nothing(made: Made) -> None:
    made.fill()
    before = everything(made.folder)
    seen = []

    def ready() -> None:
        seen.append(sorted(path.name for path in made.folder.parent.iterdir()))
        raise StorageFull("no room for the key file")

    key = new_library_key()
    with pytest.raises(StorageFull, match="no room for the key file"):
        encrypt_anew(made.folder, key=None, to=NewKey(key, wrap(key, OPENER), ready), progress=quiet)
    assert len(seen) == 1 and len(seen[0]) == 2, "all is made by then"
    assert everything(made.folder) == before
    assert [path.name for path in made.folder.parent.iterdir()] == ["lib"]


@pytest.mark.parametrize("kind", ["copy", "empty", "lock alone"])
@pytest.mark.parametrize("cleaner", ["writer", "repair", "encrypt"])
def test_what_a_killed_command_left_goes_with_the_next_one(made: Made, kind: str, cleaner: str) -> None:
    """Of a plain library too."""
    made.fill()
    left = made.folder.parent / ".encrypting-abcd1234"
    left.mkdir()
    if kind != "empty":
        (left / ".lock").touch()
    if kind == "copy":
        (left / "library" / "segments").mkdir(parents=True)
        (left / "library" / "library.sqlite").write_bytes(b"x" * 9000)
    (made.folder / "library.key.tmp").write_bytes(b"x")
    foreign = made.folder.parent / ".encrypting-of-mine"
    foreign.mkdir()
    (foreign / "letter").write_text("mine")
    match cleaner:
        case "writer":
            made.open("write").close()
        case "repair":
            assert repair_database(made.folder).state == "whole"
        case _:
            made.encrypt(new_key())
    assert sorted(path.name for path in made.folder.parent.iterdir()) == [".encrypting-of-mine", "lib"]
    assert not (made.folder / "library.key.tmp").exists()
    with made.open() as library:
        assert {finding.severity for finding in library.verify()} == {"ok"}


def test_no_folder_is_left_where_its_lock_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def full(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path).endswith(".lock"):
            raise OSError(28, "No space left on device")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="No space"), scratch.scratch_folder(tmp_path, scratch.ENCRYPTING_PREFIX):
        pass
    assert list(tmp_path.iterdir()) == []


def test_no_unfinished_record_is_left_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_record(tmp_path, new_key().record)
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_a_rekey_crosses_holds_one_library_or_is_none(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database is of the old key, and the record that lies there by then of the new one."""
    begin_encrypted(made)
    made.fill()
    real = travel._copy_database

    def crossed(*arguments: Any) -> None:
        real(*arguments)
        monkeypatch.undo()
        made.encrypt(new_key())

    monkeypatch.setattr(travel, "_copy_database", crossed)
    with pytest.raises(LibraryReplaced):
        leave(made.folder, tmp_path / "out", name="lib", progress=quiet, key=made.key)
    assert not (tmp_path / "out").exists()
    leave(made.folder, tmp_path / "out", name="lib", progress=quiet, key=made.key)
    arrive(tmp_path / "out", tmp_path / "other", progress=quiet, unlock=lambda _: made.key)
