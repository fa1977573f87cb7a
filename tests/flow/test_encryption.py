"""Encrypted libraries as a user has them: made, asked, carried, opened and not opened; and what is found on the disk by
somebody who looks for a word of a document meanwhile and afterwards."""

from __future__ import annotations

import getpass
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgerag.config import Settings
from edgerag.encryption import database, key_record
from edgerag.encryption.key_record import FILE_NAME, is_encrypted
from edgerag.locations import locate
from edgerag.session import Session
from edgerag.ui import passphrase
from edgerag.ui.cli import main

pytest.importorskip("sqlcipher3")
EXAMPLES = Path(__file__).parents[2] / "examples" / "docs"
CANARY = "Quetzalcoatlus"
SPELLED = tuple(
    word.encode(encoding)
    for word in (CANARY, CANARY.lower(), CANARY[:9].lower())
    for encoding in ("utf-8", "utf-16-le")
)
PASSPHRASE = "correct horse battery"


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    text = f"# The {CANARY} pump\n\nThe {CANARY} pump runs at 41 degrees and is cleaned on Fridays.\n"
    (folder / f"{CANARY}.md").write_text(text * 3)
    (folder / f"{CANARY}.html").write_text(f"<h1>{CANARY}</h1><p>The valve of the {CANARY} pump is blue.</p>")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 " + CANARY.encode())
    return folder


@pytest.fixture
def little(tmp_path: Path) -> str:
    """A folder with one document, for what more of them would say nothing about."""
    folder = tmp_path / "little"
    folder.mkdir()
    (folder / "pump.txt").write_text("The pump moves water. It is cleaned on Fridays.\n")
    return str(folder)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the person at the terminal types, one after the other; the cost of guessing is as small as can be."""
    answers: list[str] = []
    monkeypatch.setattr(passphrase, "_has_terminal", lambda: True)
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: answers.pop(0) if answers else "")
    monkeypatch.setattr(key_record, "SCRYPT_N", 16)
    monkeypatch.setitem(key_record._SCRYPT, "n", 16)
    monkeypatch.setattr(key_record.wrap, "__kwdefaults__", {"scrypt_n": 16})
    return answers


class Lookout:
    """Looks through all files in some folders, again and again, for words."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self.found: set[str] = set()
        self.rounds = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Lookout:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.look()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            self.look()

    def look(self) -> None:
        self.rounds += 1
        for folder in self._folders:
            # os.walk passes over folders that go meanwhile.
            for path in (Path(where) / name for where, _, names in os.walk(folder) for name in names):
                if "models" in path.parts:
                    continue
                name = str(path)
                try:
                    data = path.read_bytes() if path.is_file() else b""
                except OSError:
                    continue  # it went meanwhile
                if CANARY.lower() in path.name.lower() or any(word in data for word in SPELLED):
                    self.found.add(name)
                if data.startswith(b"SQLite format 3"):
                    self.found.add(f"{name} is a plain database")


def hits(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    capsys.readouterr()
    assert main([*options, "search", "When is the pump cleaned?", "--json"]) == 0
    return [hit["text"] for hit in json.loads(capsys.readouterr().out)["hits"]]


def test_no_word_of_a_document_is_on_the_disk(
    documents: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is ingested, asked with a chat model, merged, exported and imported, and after all of that."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    for variable in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(variable, str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    key = str(tmp_path / "key")
    use = ["--library", "secret", "--key-file", key]
    with Lookout(home, temporary) as lookout:
        assert main(["library", "encrypt", "secret", "--new-key-file", key]) == 0
        assert main([*use, "ingest", str(documents), "--quiet", "--trace-content"]) == 1, "one of them is broken"
        question = f"When is the {CANARY} pump cleaned?"
        assert main([*use, "ask", question, "--trace-content"]) == 0
        assert main([*use, "--no-llm", "ask", question]) == 0
        assert main([*use, "library", "compact"]) == 0
        assert main([*use, "library", "export", "secret", str(home / "out.edgerag"), "--quiet"]) == 0
        assert main([*use, "library", "import", str(home / "out.edgerag"), "--name", "copy", "--quiet"]) == 0
        assert main([*use, "library", "rekey", "secret", "--anew", "--new-key-file", key, "--quiet"]) == 0
        settings = Settings()
        library = type(settings.library)(name="secret", key_file=key)
        with Session(type(settings)(library=library), locate(os.environ)) as session:
            exchange = session.threads.ask(question, library="secret")
            session.threads.keep_text(exchange.id, f"The {CANARY} pump is cleaned on Fridays.")
    assert lookout.rounds > 20
    assert not lookout.found
    assert CANARY in hits(capsys, *use)[0]
    assert hits(capsys, "--library", "copy", "--key-file", key) == hits(capsys, *use)
    assert main([*use, "threads", "list"]) == 0
    assert CANARY in capsys.readouterr().out
    assert main([*use, "trace"]) == 0
    assert main([*use, "library", "verify"]) == 0
    with Lookout(home, temporary) as lookout:
        assert main(["--library", "plain", "ingest", str(documents), "--quiet"]) == 1
    assert lookout.found, "it finds what is there to be found"


def test_files_and_folders_are_the_owners_alone(
    documents: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a plain library and an encrypted one, whatever the umask is."""
    key = str(tmp_path / "key")
    before = os.umask(0)
    try:
        assert main(["library", "encrypt", "secret", "--new-key-file", key]) == 0
        for use in (["--library", "plain"], ["--library", "secret", "--key-file", key]):
            assert main([*use, "ingest", str(documents), "--quiet"]) == 1
            assert main([*use, "--no-llm", "ask", "When is it cleaned?"]) == 0
        assert main(["library", "export", "plain", str(home / "out.edgerag"), "--quiet"]) == 0
        assert main(["library", "import", str(home / "out.edgerag"), "--name", "copy", "--quiet"]) == 0
        assert main(["config", "set", "library.vectors", "f16"]) == 0
        with Session(Settings(), locate(os.environ)) as session:
            session.threads.ask("anything", library="plain")
    finally:
        os.umask(before)
    wide = {
        str(path.relative_to(home)): oct(stat.S_IMODE(path.stat().st_mode))
        for path in home.rglob("*")
        if "models" not in path.parts and stat.S_IMODE(path.stat().st_mode) & 0o077
    }
    assert not wide
    capsys.readouterr()


def test_a_library_is_encrypted_and_decrypted_where_it_lies(
    home: Path, typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--library", "pumps", "ingest", str(EXAMPLES), "--quiet"]) == 0
    expected = hits(capsys, "--library", "pumps")
    typed += [PASSPHRASE, PASSPHRASE]
    assert main(["library", "encrypt", "pumps", "--quiet"]) == 0
    said = capsys.readouterr().err
    assert "7 documents" in said
    assert "nobody can bring it back" in said
    assert "not wiped" in said, "what may remain is said"
    typed.append(PASSPHRASE)
    assert hits(capsys, "--library", "pumps") == expected
    assert main(["library", "encrypt", "pumps"]) == 2, "it is already"
    typed += [PASSPHRASE, "another passphrase", "another passphrase"]
    assert main(["library", "rekey", "pumps"]) == 0
    typed += [PASSPHRASE, PASSPHRASE, PASSPHRASE]
    assert main(["--library", "pumps", "search", "pump"]) == 3
    assert "does not open" in capsys.readouterr().err
    typed += ["wrong one", "another passphrase"]
    assert hits(capsys, "--library", "pumps") == expected, "a slip can be made good"
    typed.append("another passphrase")
    assert main(["library", "decrypt", "pumps", "--quiet"]) == 0
    assert hits(capsys, "--library", "pumps") == expected
    assert main(["library", "decrypt", "pumps"]) == 2
    assert main(["library", "rekey", "pumps"]) == 2
    assert main(["library", "decrypt", "nothing"]) == 3
    assert not typed


def test_two_passphrases_that_differ_change_nothing(
    home: Path, typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    typed += [PASSPHRASE, PASSPHRASE + "x"]
    assert main(["library", "encrypt", "new"]) == 2
    typed += ["short", "short"]
    assert main(["library", "encrypt", "new"]) == 2
    assert not (home / "indexes" / "new").exists()


def test_without_its_key_nothing_is_told_but_that_it_is_encrypted(
    little: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = str(tmp_path / "key")
    assert main(["library", "encrypt", "secret", "--new-key-file", key]) == 0
    assert main(["--library", "secret", "--key-file", key, "ingest", little, "--quiet"]) == 0
    monkeypatch.setattr(passphrase, "_has_terminal", lambda: False)
    capsys.readouterr()
    for command in (
        ["search", "pump"],
        ["ask", "pump"],
        ["library", "verify"],
        ["library", "compact"],
        ["threads", "list"],
    ):
        assert main(["--library", "secret", *command]) == 3
        assert "--key-file" in capsys.readouterr().err
    assert main(["--library", "secret", "status"]) == 0
    assert "key file" in capsys.readouterr().out
    assert main(["--library", "secret", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["encrypted"]["opened_by"] == "key file"
    main(["--library", "secret", "doctor", "--json"])
    findings = {each["name"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["library"]["severity"] == "info"
    assert "encrypted" in findings["library"]["message"]
    (tmp_path / "other").write_bytes(b"x" * 64)
    assert main(["--library", "secret", "--key-file", str(tmp_path / "other"), "search", "pump"]) == 3
    assert "does not open" in capsys.readouterr().err
    (home / "indexes" / "secret" / "library.key").unlink()
    assert main(["--library", "secret", "--key-file", key, "search", "pump"]) == 3
    assert "library.key is gone" in capsys.readouterr().err


def test_a_bundle_carries_none(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its installer could ask nobody, and would give up for want of a key."""
    assert main(["library", "encrypt", "secret", "--new-key-file", str(tmp_path / "key")]) == 0
    out = str(tmp_path / "bundle")
    assert main(["bundle", "create", out, "--models", "none", "--library", "secret"]) == 2
    assert "library export" in capsys.readouterr().err
    assert not Path(out).exists()


def test_several_libraries_of_which_one_stays_locked(
    little: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others answer, and it is said which one did not."""
    key = str(tmp_path / "key")
    assert main(["library", "encrypt", "secret", "--new-key-file", key]) == 0
    assert main(["--library", "secret", "--key-file", key, "ingest", little, "--quiet"]) == 0
    assert main(["--library", "open", "ingest", little, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["--library", "open", "--library", "secret", "search", "pump"]) == 1
    assert "secret" in capsys.readouterr().err
    assert main(["--library", "open", "--library", "secret", "--key-file", key, "search", "pump"]) == 0


def test_secrets_are_in_no_file_and_no_message(
    little: str, home: Path, typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    typed += [PASSPHRASE, PASSPHRASE, PASSPHRASE, "not the right one", PASSPHRASE]
    assert main(["library", "encrypt", "secret"]) == 0
    assert main(["--library", "secret", "ingest", little, "--quiet"]) == 0
    assert main(["--library", "secret", "--no-llm", "ask", "What moves water?", "--trace-content"]) == 0
    said = "".join(capsys.readouterr())
    for secret in (PASSPHRASE, "not the right one"):
        assert secret not in said
        for path in home.rglob("*"):
            if path.is_file() and "models" not in path.parts:
                assert secret.encode() not in path.read_bytes()


def test_a_day_in_the_terminal_ui_asks_before_anything_is_opened(
    home: Path, typed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed += [PASSPHRASE, PASSPHRASE]
    assert main(["library", "encrypt", "secret"]) == 0
    opened: list[Any] = []
    monkeypatch.setattr(
        "edgerag.ui.tui.app.run", lambda session, _sources: opened.append(session.locked_library()) or 0
    )
    terminal: Callable[[], bool] = lambda: True  # noqa: E731
    monkeypatch.setattr("sys.stdin.isatty", terminal, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", terminal, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", terminal, raising=False)
    typed.append(PASSPHRASE)
    assert main(["--library", "secret"]) == 0
    assert opened == [None]
    assert not typed
    assert main(["--library", "secret"]) == 3, "who gives up sees no screen"
    assert len(opened) == 1
    assert main(["--library", "other", "--library", "secret"]) == 0, "one of several is left out"
    assert len(opened) == 2


@pytest.mark.parametrize("place", ["key", "segments/key", "private/key", FILE_NAME, "library.sqlite"])
def test_no_key_file_is_made_or_taken_from_inside_a_library(
    documents: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    key, folder = tmp_path / "key", home / "indexes" / "secret"
    assert main(["--library", "secret", "ingest", str(documents), "--quiet"]) == 1
    assert main(["library", "encrypt", "secret", "--new-key-file", str(folder / place), "--quiet"]) == 2
    assert "would lie in the library" in capsys.readouterr().err
    assert not (folder / "key").exists() and not is_encrypted(folder)
    assert main(["library", "encrypt", "secret", "--new-key-file", str(key), "--quiet"]) == 0
    for anew in ([], ["--anew"]):
        change = ["--key-file", str(key), "library", "rekey", "secret", "--new-key-file", str(folder / place), *anew]
        assert main(change) == 2
    assert main(["--library", "secret", "--key-file", str(key), "library", "verify"]) == 0


def test_a_pipe_that_nobody_writes_to_is_no_key_file(home: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["library", "encrypt", "secret", "--new-key-file", str(tmp_path / "pipe")]) != 0


def test_with_a_key_file_no_new_library_is_made_in_plain(
    documents: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, folder = tmp_path / "key", home / "indexes" / "secret"
    use = ["--library", "secret", "--key-file", str(key)]
    assert main(["library", "encrypt", "secret", "--new-key-file", str(key)]) == 0
    (folder / FILE_NAME).unlink()  # lost before the first document came
    assert main([*use, "ingest", str(documents), "--quiet"]) == 2
    assert "would not be encrypted" in capsys.readouterr().err
    assert not (folder / "library.sqlite").exists()
    assert main(["--library", "plain", "ingest", str(documents), "--quiet"]) == 1  # one of them is broken
    assert main(["--library", "plain", "--key-file", str(key), "ingest", str(documents), "--quiet"]) == 1


def without_sqlcipher(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where only edgerag itself is installed."""
    monkeypatch.setitem(sys.modules, "sqlcipher3.dbapi2", None)
    database._encrypted_class.cache_clear()


@pytest.fixture
def secret(documents: Path, home: Path, tmp_path: Path) -> list[str]:
    """An encrypted library with documents, and how it is named and opened."""
    key = str(tmp_path / "key")
    assert main(["library", "encrypt", "secret", "--new-key-file", key]) == 0
    use = ["--library", "secret", "--key-file", key]
    assert main([*use, "ingest", str(documents), "--quiet"]) == 1, "one of them is broken"
    return use


def test_the_record_of_another_library_is_told_by_every_command(
    secret: list[str], little: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["library", "encrypt", "other", "--new-key-file", secret[-1]]) == 0
    record = home / "indexes" / "secret" / FILE_NAME
    own = record.read_bytes()
    record.write_bytes((home / "indexes" / "other" / FILE_NAME).read_bytes())
    new = ["--new-key-file", secret[-1]]
    capsys.readouterr()
    for command in (
        ["search", "pump"],
        ["library", "verify"],
        ["library", "repair"],
        ["library", "rekey", "secret", *new],
        ["library", "rekey", "secret", "--anew", *new],
        ["library", "decrypt", "secret"],
        ["ingest", little],
        ["threads", "list"],
    ):
        assert main([*secret, *command]) == 3, command
        said = capsys.readouterr().err
        assert "is not this library's" in said and "Put the library's own" in said, command
        assert "damage" not in said
    record.write_bytes(own)
    assert main([*secret, "library", "verify"]) == 0


def test_no_key_file_is_left_of_what_could_not_be_done(
    documents: Path, little: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, key = home / "indexes" / "pumps", tmp_path / "sticks" / "key"
    key.parent.mkdir()
    assert main(["--library", "pumps", "ingest", little, "--quiet"]) == 0
    (folder / "notes.txt").write_text("mine")
    encrypt = ["library", "encrypt", "pumps", "--new-key-file", str(key), "--quiet"]
    assert main(encrypt) == 3
    assert "notes.txt" in capsys.readouterr().err
    assert list(key.parent.iterdir()) == []
    (folder / "notes.txt").unlink()
    assert main(encrypt) == 0
    assert main(["--library", "pumps", "--key-file", str(key), "library", "verify"]) == 0
    (folder / "notes.txt").write_text("mine")
    again = ["--key-file", str(key), "library", "rekey", "pumps", "--new-key-file", str(key.parent / "second")]
    assert main([*again, "--anew", "--quiet"]) == 3
    assert [path.name for path in key.parent.iterdir()] == ["key"]
    assert main(["--library", "pumps", "--key-file", str(key), "search", "pump"]) == 0
    assert main(again) == 0, "for another opener nothing is written anew"
    assert main(["--library", "pumps", "--key-file", str(key.parent / "second"), "search", "pump"]) == 0


@pytest.mark.parametrize("step", ["write_record", "exchange", "delete"])
def test_a_key_file_goes_only_where_nothing_is_opened_by_it(
    little: str,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    step: str,
) -> None:
    folder, key = home / "indexes" / "pumps", tmp_path / "key"
    assert main(["--library", "pumps", "ingest", little, "--quiet"]) == 0

    def full(*_: object, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise OSError(28, "No space left on device")

    name = {"write_record": "write_record", "exchange": "exchange", "delete": "shutil.rmtree"}[step]
    with monkeypatch.context() as patch:
        patch.setattr(f"edgerag.index.encrypting.{name}", full)
        assert main(["library", "encrypt", "pumps", "--new-key-file", str(key), "--quiet"]) == 5
    if step == "delete":
        assert "It is done" in capsys.readouterr().err
        assert is_encrypted(folder)
        assert main(["--library", "pumps", "--key-file", str(key), "search", "pump"]) == 0
    else:
        assert not key.exists() and not is_encrypted(folder)
        assert main(["--library", "pumps", "search", "pump"]) == 0


def test_what_failed_for_a_new_library_leaves_nothing(
    little: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encrypt = ["library", "encrypt", "secret", "--new-key-file", str(tmp_path / "key")]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(key_record, "encoded", full)
        assert main(encrypt) == 5
    assert not (tmp_path / "key").exists() and not (home / "indexes" / "secret").exists()
    left = home / "indexes" / "secret"
    left.mkdir(parents=True)
    (left / "library.key.tmp").write_bytes(b"x")  # of one that was killed
    assert main(encrypt) == 0
    assert main(["--library", "secret", "--key-file", str(tmp_path / "key"), "ingest", little, "--quiet"]) == 0


def test_without_the_package_the_doctor_fails_and_says_what_to_install(
    secret: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_sqlcipher(monkeypatch)
    capsys.readouterr()
    for use in (secret, secret[:2]):
        main([*use, "doctor", "--json"])
        findings = json.loads(capsys.readouterr().out)["findings"]
        (finding,) = [each for each in findings if "sqlcipher3" in each["message"]]
        assert finding["severity"] == "error"
        assert "pip install" in finding["remedy"]


def test_another_opener_needs_no_database_and_so_no_package(
    secret: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rekey = [*secret, "library", "rekey", "secret", "--new-key-file", str(tmp_path / "second")]
    with monkeypatch.context() as patch:
        without_sqlcipher(patch)
        assert main([*rekey, "--anew"]) == 3
        assert "sqlcipher3" in capsys.readouterr().err
        assert not (tmp_path / "second").exists()
        assert main(rekey) == 0
    database._encrypted_class.cache_clear()
    assert main([*secret[:2], "--key-file", str(tmp_path / "second"), "library", "verify"]) == 0
    assert main([*secret, "search", "pump"]) == 3


def test_what_a_command_prints_opens_several_libraries(
    secret: list[str], little: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = Path(secret[-1])
    assert main(["library", "encrypt", "other", "--new-key-file", str(key)]) == 0
    assert main(["--library", "other", "--key-file", str(key), "ingest", little, "--quiet"]) == 0
    reading, writing = os.pipe()
    os.write(writing, key.read_bytes())
    os.close(writing)
    pipe = ["--key-file", f"/dev/fd/{reading}"]
    assert main(["--library", "secret", "--library", "other", *pipe, "search", "pump"]) == 0
    os.close(reading)


def test_searches_while_it_is_encrypted_and_rekeyed_find_or_say_why_not(
    home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In other processes, again and again; never is it called damaged."""
    key, other = tmp_path / "key", tmp_path / "other"
    assert main(["--library", "pumps", "ingest", str(EXAMPLES), "--quiet"]) == 0
    program = f"""
import sys, time
from pathlib import Path
from edgerag.ui.cli import main
code = None
while not (code == 0 and Path({str(tmp_path / "stop")!r}).exists()):
    code = main(["--library", "pumps", "--key-file", {str(key)!r}, "search", "pump", "--json"])
    print("CODE", code, file=sys.stderr)
"""
    searching = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        for _ in range(3):
            assert main(["library", "encrypt", "pumps", "--new-key-file", str(key), "--quiet"]) == 0
            use = ["--key-file", str(key)]
            assert main([*use, "library", "rekey", "pumps", "--anew", "--new-key-file", str(key), "--quiet"]) == 0
            assert main([*use, "library", "decrypt", "pumps", "--quiet"]) == 0
            key.rename(other)
            other.rename(key)
    finally:
        (tmp_path / "stop").touch()
        _, said = searching.communicate(timeout=120)
    lines = said.decode().splitlines()
    assert [line for line in lines if line.startswith("CODE")][-1] == "CODE 0", "and afterwards it finds"
    assert not [line for line in lines if "damage" in line.replace("nothing is damaged", "")], lines
    told = [line for line in lines if not line.startswith(("CODE", "note:"))]
    assert all("just now" in line or "cannot be read" in line or "Do it again" in line for line in told), told
