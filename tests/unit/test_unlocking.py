"""The keys of a session: asked for once, by nobody where nobody can be asked, and a slip can be made good."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from edgerag.encryption.key_record import FILE_NAME, wrap, write_record
from edgerag.encryption.keys import KeyFile, LibraryKey, Opener, Passphrase, new_library_key
from edgerag.errors import LibraryDamaged, LibraryLocked
from edgerag.session.unlocking import Keys

RIGHT = "correct horse battery"


def encrypted(folder: Path, opener: Opener) -> LibraryKey:
    folder.mkdir()
    key = new_library_key()
    write_record(folder, wrap(key, opener, scrypt_n=16))
    return key


def no_file() -> str:
    return ""


class Person:
    """Types one thing after the other."""

    def __init__(self, *typed: str) -> None:
        self.typed = list(typed)
        self.asked: list[str] = []

    def __call__(self, name: str) -> str:
        self.asked.append(name)
        return self.typed.pop(0)


def test_a_plain_library_asks_for_nothing(tmp_path: Path) -> None:
    keys = Keys(no_file, Person())
    assert keys.of(tmp_path) is None
    assert keys.known(tmp_path) is None
    assert not keys.is_locked(tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_what_can_be_no_folder_is_no_encrypted_library(tmp_path: Path, name: str) -> None:
    assert Keys(no_file, Person()).of(tmp_path / name) is None


def test_a_passphrase_is_asked_for_once_by_however_many_threads(tmp_path: Path) -> None:
    key = encrypted(tmp_path / "lib", Passphrase(RIGHT))
    person = Person(RIGHT)
    keys = Keys(no_file, person)
    assert keys.is_locked(tmp_path / "lib")
    found: list[LibraryKey | None] = []
    threads = [threading.Thread(target=lambda: found.append(keys.of(tmp_path / "lib", name="mine"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [key] * 4
    assert person.asked == ["mine"]
    assert keys.known(tmp_path / "lib") == key
    assert not keys.is_locked(tmp_path / "lib")


def test_a_slip_can_be_made_good_and_guessing_ends(tmp_path: Path) -> None:
    key = encrypted(tmp_path / "lib", Passphrase(RIGHT))
    assert Keys(no_file, Person("slip", RIGHT)).of(tmp_path / "lib") == key
    person = Person("one", "two", "three", RIGHT)
    with pytest.raises(LibraryLocked, match="does not open"):
        Keys(no_file, person).of(tmp_path / "lib")
    assert person.typed == [RIGHT]


def test_behind_a_screen_nobody_is_asked(tmp_path: Path) -> None:
    first = encrypted(tmp_path / "first", Passphrase(RIGHT))
    encrypted(tmp_path / "second", Passphrase(RIGHT))
    person = Person(RIGHT)
    keys = Keys(no_file, person)
    keys.of(tmp_path / "first")
    keys.ask_nobody()
    assert keys.of(tmp_path / "first") == first
    with pytest.raises(LibraryLocked):
        keys.of(tmp_path / "second")
    assert len(person.asked) == 1


@pytest.mark.parametrize("person", [None, Person("")], ids=["nobody", "gives up"])
def test_where_nobody_types_it_says_what_is_missing(tmp_path: Path, person: Person | None) -> None:
    encrypted(tmp_path / "lib", Passphrase(RIGHT))
    keys = Keys(no_file, person)
    with pytest.raises(LibraryLocked, match="passphrase was not given"):
        keys.of(tmp_path / "lib")
    with pytest.raises(LibraryLocked, match="passphrase was not given"):
        keys.known(tmp_path / "lib")


def test_a_key_file_is_read_and_nobody_is_asked(tmp_path: Path) -> None:
    key = encrypted(tmp_path / "lib", KeyFile(b"k" * 64))
    (tmp_path / "key").write_bytes(b"k" * 64)
    (tmp_path / "other").write_bytes(b"o" * 64)
    person = Person()
    assert Keys(lambda: str(tmp_path / "key"), person).of(tmp_path / "lib") == key
    assert not Keys(lambda: str(tmp_path / "key"), person).is_locked(tmp_path / "lib")
    for name, says in (("", "key file was not given"), ("other", "does not open"), ("none", "cannot be read")):
        with pytest.raises(LibraryLocked, match=says):
            Keys(lambda name=name: str(tmp_path / name) if name else "", person).of(tmp_path / "lib")  # type: ignore[misc]
    assert not person.asked


def test_what_can_be_read_once_opens_several_libraries(tmp_path: Path) -> None:
    """As a shell gives what a command prints: --key-file <(command)."""
    first = encrypted(tmp_path / "first", KeyFile(b"k" * 64))
    second = encrypted(tmp_path / "second", KeyFile(b"k" * 64))
    reading, writing = os.pipe()
    os.write(writing, b"k" * 64)
    os.close(writing)
    keys = Keys(lambda: f"/dev/fd/{reading}")
    assert (keys.of(tmp_path / "first"), keys.of(tmp_path / "second")) == (first, second)
    os.close(reading)


def test_one_that_is_rekeyed_while_it_is_opened_is_opened_again(tmp_path: Path) -> None:
    encrypted(tmp_path / "lib", Passphrase(RIGHT))
    key = new_library_key()
    asked = []

    def person(name: str) -> str:
        asked.append(name)
        if len(asked) == 1:
            write_record(tmp_path / "lib", wrap(key, Passphrase("another passphrase"), scrypt_n=16))
            return ""
        return "another passphrase"

    assert Keys(no_file, person).of(tmp_path / "lib") == key


def test_a_damaged_record_is_no_reason_to_ask(tmp_path: Path) -> None:
    encrypted(tmp_path / "lib", Passphrase(RIGHT))
    (tmp_path / "lib" / FILE_NAME).write_text("{}")
    person = Person(RIGHT)
    with pytest.raises(LibraryDamaged):
        Keys(no_file, person).of(tmp_path / "lib")
    assert not person.asked
