"""Saved states: found only by their exact key, whole or not at all, and gone when they have to go."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgerag.engine.states import format as layout
from edgerag.engine.states.key import StateKey
from edgerag.engine.states.store import State, StateStore

SCOPE, OTHER_SCOPE = "ab" * 8, "cd" * 8
HOUR, DAY = 3600.0, 86_400.0


def key(name: str, *, tokens: str = "", scope: str = SCOPE) -> StateKey:
    return StateKey(name, scope, hashlib.sha256((tokens or name).encode()).hexdigest())


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Made:
    """A store and what it was made with."""

    store: StateStore
    folder: Path
    clock: Clock

    def put(self, name: str, data: bytes = b"state", *, cost_s: float = 1.0, **more: Any) -> StateKey:
        the_key = more.pop("key", None) or key(name)
        self.store.put(the_key, data, token_count=len(data), cost_s=cost_s, **more)
        return the_key

    def has(self, *names: str) -> list[str]:
        return [name for name in names if self.store.get(key(name)) is not None]

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.suffix in ENDINGS)

    def file(self, name: str) -> Path:
        return self.folder / SCOPE / f"{name}.kv"


ENDINGS = (".kv", ".old", ".partial")


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Made]:
    clock = Clock()

    def make_one(**limits: int) -> Made:
        values = {"ram_bytes": 10**6, "disk_bytes": 10**8, "left_free_bytes": 0} | limits
        folder = tmp_path / "states"
        return Made(StateStore(folder, clock=clock, **values), folder, clock)

    return make_one


def same(state: State | None, data: bytes) -> bool:
    return state is not None and bytes(state.data) == data


# ---------------------------------------------------------------- what is found


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 300_000, 5_000_000])
@pytest.mark.parametrize("ram", [0, 10**7])
def test_what_was_put_is_found_by_this_process_and_the_next(make: Callable[..., Made], size: int, ram: int) -> None:
    data = random.Random(size).randbytes(size)
    first = make(ram_bytes=ram)
    first.put("doc-1", data, cost_s=2.5, labels=frozenset({"doc", "library:x"}), ttl_s=DAY)
    for made in (first, make(ram_bytes=ram)):
        for _ in range(2):
            state = made.store.get(key("doc-1"))
            assert state is not None
            assert (bytes(state.data), state.token_count, state.cost_s) == (data, size, 2.5)
            assert state.data.readonly
    assert first.store.troubles() == ()


def test_only_the_exact_key_finds_a_state(make: Callable[..., Made]) -> None:
    for made in (make(), make(ram_bytes=0)):
        made.put("doc-1")
        assert made.store.get(key("doc-1", tokens="other tokens")) is None
        assert made.store.get(key("doc-1", scope=OTHER_SCOPE)) is None
        assert made.store.get(key("doc-2", tokens="doc-1")) is None
        assert made.has("doc-1") == ["doc-1"]
        assert made.store.troubles() == (), "nothing is wrong with a state that is another's"


@pytest.mark.parametrize("limits", [{}, {"ram_bytes": 0}, {"disk_bytes": 0}])
def test_whether_there_is_a_state_is_told_without_reading_it(make: Callable[..., Made], limits: dict[str, int]) -> None:
    made = make(**limits)
    assert not made.store.has(key("doc-1"))
    made.put("doc-1")
    assert made.store.has(key("doc-1")) and not made.store.has(key("doc-1", scope=OTHER_SCOPE))
    assert made.store.status().misses == 0, "asking is no use of it"
    made.store.drop(["doc-1"])
    assert not made.store.has(key("doc-1"))


def test_a_name_has_one_state(make: Callable[..., Made]) -> None:
    made = make()
    made.put("doc-1", b"first")
    made.put("doc-1", b"second", key=key("doc-1", tokens="edited"))
    assert made.has("doc-1") == []
    assert same(made.store.get(key("doc-1", tokens="edited")), b"second")
    made.put("doc-1", b"third", key=key("doc-1", scope=OTHER_SCOPE))
    assert made.files() == [f"{OTHER_SCOPE}/doc-1.kv"], "that of the other model is gone"
    assert same(make().store.get(key("doc-1", scope=OTHER_SCOPE)), b"third")


def test_a_state_in_use_outlives_its_file(make: Callable[..., Made]) -> None:
    made = make(ram_bytes=0)
    made.put("doc-1", b"a" * 100_000)
    state = made.store.get(key("doc-1"))
    assert state is not None
    assert state.tier == "disk"
    made.put("doc-1", b"b" * 10)
    made.store.drop(["doc-1"])
    made.store.close()
    assert bytes(state.data) == b"a" * 100_000


@pytest.mark.parametrize("copied", [False, True])
def test_a_callers_buffer_may_be_used_again(make: Callable[..., Made], copied: bool) -> None:
    made = make(ram_bytes=10**6 * copied)
    buffer = bytearray(b"x" * 1000)
    made.store.put(key("doc-1"), buffer, token_count=1, cost_s=1.0)
    buffer[:] = b"y" * 1000
    first = made.store.get(key("doc-1"))
    assert same(first, b"x" * 1000)
    assert first is not None
    first.data.release()
    assert same(made.store.get(key("doc-1")), b"x" * 1000)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "../x"},
        {"name": ".hidden"},
        {"name": ""},
        {"name": "x" * 121},
        {"name": "a/b"},
        {"scope": "../../etc"},
        {"scope": "AB" * 8},
        {"tokens_sha256": "ab"},
    ],
)
def test_what_can_be_no_key_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is no"):
        replace(key("doc-1"), **wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"cost_s": -1.0}, {"cost_s": float("nan")}, {"ttl_s": 0.0}, {"labels": frozenset({"a word of a document"})}],
)
def test_numbers_and_labels_that_can_be_none_are_refused(make: Callable[..., Made], wrong: Any) -> None:
    made = make()
    with pytest.raises(ValueError):
        made.put("doc-1", **wrong)
    assert not made.folder.exists()


def test_after_close_nothing_is_found_and_nothing_kept(make: Callable[..., Made]) -> None:
    made = make()
    made.put("doc-1")
    made.store.close()
    made.store.close()
    made.put("doc-2")
    assert made.has("doc-1", "doc-2") == []
    assert made.files() == [f"{SCOPE}/doc-1.kv"]


# ---------------------------------------------------------------- privacy


def test_nobody_else_may_look(make: Callable[..., Made]) -> None:
    before = os.umask(0)
    try:
        made = make()
        made.folder.mkdir(mode=0o777)
        made.put("doc-1")
        made.store.drop(["other"])
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [made.folder, *made.folder.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


# ---------------------------------------------------------------- lifetime


@pytest.mark.parametrize("ram", [0, 10**6])
def test_a_state_lives_as_long_as_it_was_given(make: Callable[..., Made], ram: int) -> None:
    made = make(ram_bytes=ram)
    made.put("short", ttl_s=HOUR)
    made.put("long")
    made.clock.now_s += HOUR - 1
    assert made.has("short", "long") == ["short", "long"]
    made.clock.now_s += 1
    assert made.has("short", "long") == ["long"]
    assert made.files() == [f"{SCOPE}/long.kv"]


def test_sweep_removes_what_expired(make: Callable[..., Made]) -> None:
    made = make()
    made.put("short", ttl_s=HOUR)
    made.put("long")
    made.put("elsewhere", ttl_s=HOUR, key=key("elsewhere", scope=OTHER_SCOPE))
    made.clock.now_s += DAY
    make().store.sweep()
    assert made.files() == [f"{SCOPE}/long.kv"]
    assert not (made.folder / OTHER_SCOPE).exists()


@pytest.mark.parametrize("ram", [0, 10**6])
def test_a_deprecated_state_serves_its_readers_for_72_hours(make: Callable[..., Made], ram: int) -> None:
    made = make(ram_bytes=ram)
    made.put("doc-1-v1")
    made.store.deprecate(["doc-1-v1", "unknown"])
    for store in (made, make(ram_bytes=ram)):
        assert store.has("doc-1-v1") == ["doc-1-v1"]
    assert made.store.status().disk_deprecated == 1
    made.clock.now_s += 71 * HOUR
    made.store.deprecate(["doc-1-v1"])  # told twice: its time goes on
    assert made.store.sweep() == 0
    assert made.has("doc-1-v1") == ["doc-1-v1"]
    made.clock.now_s += 2 * HOUR
    assert made.has("doc-1-v1") == []
    make().store.sweep()
    assert made.files() == []


def test_a_deprecated_state_goes_first_when_room_is_needed(make: Callable[..., Made]) -> None:
    for limits in ({"ram_bytes": 3 * 4096, "disk_bytes": 0}, {"ram_bytes": 0, "disk_bytes": 3 * 8192}):
        made = make(**limits)
        for name in ("a", "b", "c"):
            made.put(name, name.encode() * 4096, cost_s=1000.0 if name == "b" else 1.0)
        made.store.deprecate(["b"])
        made.put("d", b"d" * 4096, cost_s=0.5)
        assert made.has("a", "b", "c", "d") == ["a", "c", "d"]


def test_dropped_states_go_by_name_and_by_label(make: Callable[..., Made]) -> None:
    made, other = make(), make(ram_bytes=0)
    for name in ("doc-a-1", "doc-a-2", "doc-b-1", "prefix"):
        made.put(name, labels=frozenset({name.rsplit("-", 1)[0]}))
    made.store.deprecate(["doc-a-2"])
    assert made.store.drop(labels=["doc-a"])
    for store in (made, other):
        assert store.has("doc-a-1", "doc-a-2", "doc-b-1", "prefix") == ["doc-b-1", "prefix"]
    assert made.store.drop(["prefix"])
    assert made.files() == [f"{SCOPE}/doc-b-1.kv"]
    assert made.store.drop(["never there"])


def test_everything_can_go_at_once(make: Callable[..., Made]) -> None:
    made, other = make(), make()
    assert made.store.drop_all(), "where there is nothing"
    other.put("doc-1")
    made.put("doc-2", labels=frozenset({"doc"}))
    made.store.deprecate(["doc-1"])
    moment = other.store.moment()
    assert made.store.drop_all()
    assert made.has("doc-1", "doc-2") == other.has("doc-1", "doc-2") == []
    assert made.files() == []
    other.put("doc-1", since=moment)
    assert other.has("doc-1") == []


def test_a_state_computed_while_its_document_was_removed_is_not_kept(make: Callable[..., Made]) -> None:
    for ram in (0, 10**6):
        made, remover = make(ram_bytes=ram), make()
        made.put("other")
        moment = made.store.moment()
        remover.store.drop(labels=["doc-a"])
        made.put("doc-a-1", since=moment)
        assert made.has("doc-a-1", "other") == ["other"]
        made.put("doc-a-1", since=made.store.moment())
        assert made.has("doc-a-1") == ["doc-a-1"]
        own = made.store.moment()
        made.store.drop(["doc-a-1"])
        made.put("doc-a-1", since=own)
        assert made.has("doc-a-1") == []
        assert made.files() == [f"{SCOPE}/other.kv"]


def test_a_drop_that_comes_while_the_file_is_written_wins(
    make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgerag.engine.states import transfer

    made, remover = make(), make()
    write = transfer.write_file

    def write_and_drop(*args: Any, **more: Any) -> None:
        write(*args, **more)
        remover.store.drop(["doc-a-1"])

    made.put("other")
    monkeypatch.setattr(transfer, "write_file", write_and_drop)
    made.put("doc-a-1")
    assert made.has("doc-a-1") == []
    assert made.files() == [f"{SCOPE}/other.kv"]


def test_a_state_of_a_removed_document_that_stays_is_told(
    make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make()
    made.put("doc-1")

    def refuse(self: Path, **_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    assert made.store.drop(["doc-1"]) is False
    (sentence,) = made.store.troubles()
    assert "doc-1.kv cannot be removed: Permission denied" in sentence
    assert made.store.status().last_trouble == sentence


# ---------------------------------------------------------------- clocks


def test_a_clock_that_was_set_back_loses_nothing(make: Callable[..., Made]) -> None:
    made = make()
    made.put("timed", ttl_s=DAY)
    made.put("plain")
    made.put("old")
    made.store.deprecate(["old"])
    made.clock.now_s = 86_400.0  # 1970, as on a board without a battery
    for each in (made, make(ram_bytes=0)):
        assert each.store.sweep() == 0
        assert each.has("timed", "plain", "old") == ["timed", "plain", "old"]
        each.put("then", b"made in 1970", ttl_s=DAY)
        assert each.has("then") == ["then"]
    made.clock.now_s = 1_800_000_000.0 + DAY
    assert make(ram_bytes=0).has("timed", "plain", "old", "then") == ["plain", "old"]
    assert made.store.troubles() == ()


# ---------------------------------------------------------------- the limits


def test_memory_keeps_what_saves_most_per_byte(make: Callable[..., Made]) -> None:
    made = make(ram_bytes=3000, disk_bytes=0)
    made.put("dear", b"d" * 1000, cost_s=10.0)
    made.put("cheap", b"c" * 1000, cost_s=0.1)
    made.put("middle", b"m" * 1000, cost_s=1.0)
    made.put("new", b"n" * 1000, cost_s=5.0)
    assert made.has("dear", "cheap", "middle", "new") == ["dear", "middle", "new"]
    made.put("worthless", b"w" * 2000, cost_s=0.001)
    assert made.has("dear", "middle", "new", "worthless") == ["dear", "middle", "new"]
    made.put("too large", b"t" * 3001, cost_s=1000.0, key=key("too-large"))
    status = made.store.status()
    assert (status.ram_states, status.ram_bytes, status.ram_evictions) == (3, 3000, 2)
    assert made.store.troubles() == (), "a limit that was set is no trouble"
    assert not made.folder.exists()


def test_memory_lets_go_of_what_is_not_used_any_more(make: Callable[..., Made]) -> None:
    made = make(ram_bytes=3000, disk_bytes=0)
    made.put("once-dear", b"d" * 1000, cost_s=3.0)
    for number in range(40):
        made.put(f"doc-{number}", b"x" * 1000, cost_s=1.0)
        made.has(f"doc-{number}")
    assert made.has("once-dear") == []


def test_the_disk_keeps_what_saves_most_per_byte_and_was_used_last(make: Callable[..., Made]) -> None:
    made = make(ram_bytes=0, disk_bytes=3 * 8192)
    made.put("dear", b"d" * 4096, cost_s=10.0)
    made.put("old", b"o" * 4096, cost_s=2.0)
    made.clock.now_s += 5 * DAY
    made.has("dear")
    made.put("fresh", b"f" * 4096, cost_s=1.0)
    made.put("new", b"n" * 4096, cost_s=1.0)
    assert made.has("dear", "old", "fresh", "new") == ["dear", "fresh", "new"]
    made.put("worthless", b"w" * 4096, cost_s=0.01)
    assert made.has("dear", "fresh", "new", "worthless") == ["dear", "fresh", "new"]
    status = made.store.status()
    assert (status.disk_states, status.disk_bytes, status.disk_evictions) == (3, 3 * 8192, 1)


def test_a_lower_limit_is_kept_by_the_next_sweep(make: Callable[..., Made]) -> None:
    made = make()
    for number in range(10):
        made.put(f"doc-{number}", b"x" * 4096, cost_s=1.0 + number)
    less = make(ram_bytes=0, disk_bytes=3 * 8192)
    less.store.sweep()
    assert less.files() == [f"{SCOPE}/doc-{number}.kv" for number in (7, 8, 9)]


def test_a_disk_that_others_fill_is_left_to_them(make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(left_free_bytes=10**6)
    for number in range(5):
        made.put(f"doc-{number}", b"x" * 4096, cost_s=1.0 + number)
    usage = shutil.disk_usage(made.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10**6 - 3 * 8192))
    made.store.sweep()
    assert made.files() == [f"{SCOPE}/doc-3.kv", f"{SCOPE}/doc-4.kv"]
    made.put("too-large", b"x" * 50_000, cost_s=100.0)
    assert made.has("too-large") == ["too-large"], "from memory"
    made.put("another", b"x" * 50_000, cost_s=100.0)
    (sentence,) = made.store.troubles()
    assert "memory only" in sentence
    assert "is full" in sentence


# ---------------------------------------------------------------- what may lie there


def damage_is_a_miss(make: Callable[..., Made], damage: Callable[[Path], None]) -> str:
    """Damages a state's file; the sentence that is told."""
    make().put("doc-1", b"state" * 2000)
    made = make()
    path = made.file("doc-1")
    damage(path)
    assert made.has("doc-1") == []
    assert not os.path.lexists(path), "what is damaged goes"
    (sentence,) = made.store.troubles()
    assert "doc-1.kv was damaged" in sentence
    made.put("doc-1", b"again")
    assert same(make().store.get(key("doc-1")), b"again")
    return sentence


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def test_a_bit_that_flipped_anywhere_in_the_header_is_noticed(make: Callable[..., Made]) -> None:
    made = make()
    made.put("doc-1", b"state" * 2000, labels=frozenset({"doc"}))
    whole = made.file("doc-1").read_bytes()
    random_bit = random.Random(5)
    for offset in [*range(400), *range(400, 4096, 37)]:
        flipped = bytearray(whole)
        flipped[offset] ^= 1 << random_bit.randrange(8)
        path = made.folder / SCOPE / "doc-1.kv"
        path.write_bytes(flipped)
        descriptor = os.open(path, os.O_RDONLY)
        with contextlib.closing(os.fdopen(descriptor, "rb")), pytest.raises(layout.StateDamaged):
            layout.read_header(descriptor, name="doc-1", scope=SCOPE)
    fresh = make(ram_bytes=0)
    assert fresh.has("doc-1") == []
    assert not path.exists()


@pytest.mark.parametrize("ram", [0, 10**6])
def test_a_bit_that_flipped_in_the_state_is_noticed(make: Callable[..., Made], ram: int) -> None:
    made = make(ram_bytes=0)
    random_place = random.Random(6)
    for _ in range(40):
        made.put("doc-1", b"state" * 2000)
        offset, bit = random_place.randrange(4096, 14096), random_place.randrange(8)
        rewrite(
            made.file("doc-1"),
            lambda raw, at=offset, bit=bit: raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :],
        )
        fresh = make(ram_bytes=ram)
        assert fresh.has("doc-1") == []
        assert made.files() == []


DAMAGES: dict[str, Callable[[Path], None]] = {
    "cut in the state": lambda path: rewrite(path, lambda raw: raw[:-1]),
    "cut in the header": lambda path: rewrite(path, lambda raw: raw[:100]),
    "empty": lambda path: rewrite(path, lambda raw: b""),
    "longer": lambda path: rewrite(path, lambda raw: raw + b"\0"),
    "another magic": lambda path: rewrite(path, lambda raw: b"GGUF" + raw[4:]),
    "a newer version": lambda path: rewrite(path, lambda raw: raw[:8] + b"\2" + raw[9:]),
    "zeros": lambda path: rewrite(path, lambda raw: bytes(len(raw))),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path))[1],
    "a folder": lambda path: (path.unlink(), path.mkdir())[1],
    "a link": lambda path: (path.rename(path.with_name("moved")), path.symlink_to("moved"))[1],
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to("nowhere"))[1],
    "a device": lambda path: (path.unlink(), path.symlink_to("/dev/zero"))[1],
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_whatever_lies_at_its_name_is_a_miss_and_is_told_once(make: Callable[..., Made], kind: str) -> None:
    damage_is_a_miss(make, DAMAGES[kind])


def test_a_socket_is_a_miss(make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    def put_socket(path: Path) -> None:
        path.unlink()
        monkeypatch.chdir(path.parent)  # the path itself may be longer than a socket's name
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)

    damage_is_a_miss(make, put_socket)


def test_the_file_of_another_state_is_a_miss(make: Callable[..., Made]) -> None:
    other = make()
    other.put("doc-2", b"of another")
    damage_is_a_miss(make, lambda path: shutil.copyfile(other.file("doc-2"), path) and None)


@pytest.mark.parametrize("call", ["open", "preadv"])
def test_a_file_that_cannot_be_read_is_a_miss(
    make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    make().put("doc-1", b"state" * 2000)
    made = make()
    real = getattr(os, call)

    def fail(*args: Any, **more: Any) -> Any:
        if call == "open" and not str(args[0]).endswith("doc-1.kv"):
            return real(*args, **more)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        assert made.has("doc-1") == []
    assert not made.file("doc-1").exists()
    assert "Input/output error" in made.store.troubles()[0]


def test_too_many_open_files_are_not_the_files_fault(
    make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    make().put("doc-1")
    made = make()

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", fail)
        assert made.has("doc-1") == []
    assert made.has("doc-1") == ["doc-1"]
    assert made.store.troubles() == ()


def test_a_thousand_damaged_files_are_one_sentence(make: Callable[..., Made]) -> None:
    made = make()
    for number in range(20):
        made.put(f"doc-{number}")
        rewrite(made.file(f"doc-{number}"), lambda raw: raw[:-1])
    fresh = make()
    assert fresh.store.sweep() == 20
    assert len(fresh.store.troubles()) == 1
    assert fresh.store.troubles() == ()
    assert made.files() == []


def test_what_is_not_ours_is_left_alone(make: Callable[..., Made]) -> None:
    made = make(disk_bytes=10_000)
    made.put("doc-1", ttl_s=1.0)
    theirs = [made.folder / "notes.kv", made.folder / SCOPE / "README", made.folder / "photos" / "a.kv"]
    for path in theirs:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 20_000)
    made.clock.now_s += DAY
    made.store.sweep()
    made.store.drop(["notes", "a", "README"], labels=["doc"])
    assert all(path.exists() for path in theirs)


def test_a_folder_in_the_place_of_a_file_that_is_not_empty_is_told_and_left(make: Callable[..., Made]) -> None:
    made = make(ram_bytes=0)
    path = made.file("doc-1")
    path.mkdir(parents=True)
    (path / "theirs").touch()
    assert made.has("doc-1") == []
    made.put("doc-1")
    assert (path / "theirs").exists()
    assert made.store.troubles()


def test_no_memory_for_the_mapping_is_a_miss(make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    make().put("doc-1", b"state" * 1000)
    made = make()

    def no_memory(*_: Any, **__: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    with monkeypatch.context() as patched:
        patched.setattr(mmap, "mmap", no_memory)
        assert made.has("doc-1") == []
    assert same(made.store.get(key("doc-1")), b"state" * 1000)
    assert made.store.troubles() == ()


# ---------------------------------------------------------------- disks that refuse


def memory_only(made: Made, reason: str) -> None:
    made.put("doc-1")
    made.put("doc-2")
    assert made.has("doc-1", "doc-2") == ["doc-1", "doc-2"], "from memory"
    (sentence,) = made.store.troubles()
    assert "memory only" in sentence
    assert reason in sentence
    made.put("doc-3")
    assert made.store.troubles() == (), "said once"
    assert made.files() == []


def test_a_file_in_the_folders_place_leaves_memory(make: Callable[..., Made]) -> None:
    made = make()
    made.folder.write_text("mine")
    memory_only(made, "File exists")
    assert made.store.sweep() == 0
    made.store.deprecate(["doc-1"])
    assert made.store.drop(["doc-1"]) in (True, False)
    assert made.has("doc-1", "doc-2") == ["doc-2"]
    assert made.folder.read_text() == "mine"


@pytest.mark.parametrize(("number", "text"), [(28, "No space left"), (122, "Disk quota exceeded"), (30, "Read-only")])
def test_a_disk_that_refuses_leaves_memory(
    make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch, number: int, text: str
) -> None:
    real = os.write

    def refuse(descriptor: int, data: Any) -> int:
        if b"\x89ERKV" in bytes(data[:8]):
            return real(descriptor, data)  # the header fits, the state does not
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", refuse)
    memory_only(make(), text)


LIMITED = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from states_child import key_of
from edgerag.engine.states.store import StateStore
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
store = StateStore(Path(sys.argv[1]), ram_bytes=10**7, disk_bytes=10**9, left_free_bytes=0)
for name, size in (("small", 10_000), ("large", 1_000_000), ("larger", 2_000_000)):
    store.put(key_of(name), bytes(size), token_count=1, cost_s=1.0)
print([len(store.get(key_of(name)).data) for name in ("small", "large", "larger")], len(store.troubles()))
"""


def test_a_limit_of_the_system_leaves_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "states"), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[10000, 1000000, 2000000] 1"
    assert sorted(path.name for path in (tmp_path / "states").rglob("*") if path.is_file()) == ["drops", "small.kv"]


# ---------------------------------------------------------------- other processes


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Callable[..., list[str]]]:
    command = [sys.executable, str(Path(__file__).with_name("states_child.py")), str(tmp_path / "states")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(*words: str) -> list[str]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(" ".join(words) + "\n")
            process.stdin.flush()
            return process.stdout.readline().split()

        yield ask
        process.stdin.close()


def test_two_processes_share_and_drop(make: Callable[..., Made], other: Callable[..., list[str]]) -> None:
    made = make()
    other("put", "doc-1", "doc-2")
    made.put("doc-3")
    assert made.has("doc-1", "doc-2", "doc-3") == ["doc-1", "doc-2", "doc-3"]
    assert other("get", "doc-1", "doc-2", "doc-3") == ["doc-1", "doc-2", "doc-3"], "all in memory by now"
    made.store.drop(["doc-1"])
    assert other("get", "doc-1", "doc-2", "doc-3") == ["doc-2", "doc-3"]
    other("drop", "doc-3")
    assert made.has("doc-1", "doc-2", "doc-3") == ["doc-2"]
    made.store.drop(labels=["doc"])
    assert other("get", "doc-1", "doc-2", "doc-3") == []


def test_memory_that_has_no_file_is_let_go_too(make: Callable[..., Made]) -> None:
    """A process whose disk tier is off cannot know by its files what others dropped."""
    made, remover = make(disk_bytes=0), make()
    remover.put("other")
    made.put("doc-1")
    remover.store.drop(["doc-1"])
    assert made.has("doc-1") == []


def test_a_killed_writer_leaves_no_wrong_state_and_what_it_left_is_tidied(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    made = make(ram_bytes=0)
    command = [sys.executable, str(Path(__file__).with_name("states_child.py")), str(made.folder)]
    left = 0
    for number in range(6):
        with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            process.stdin.write("forever doc-1\n")
            process.stdin.flush()
            deadline = time.monotonic() + 20
            while not list(made.folder.rglob("*.partial")) and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(0.001 * number)
            process.send_signal(signal.SIGKILL)
        left += len(list(made.folder.rglob("*.partial")))
        state = make(ram_bytes=0).store.get(key("doc-1"))
        assert state is None or bytes(state.data) == bytes([7]) * 5_000_000
        assert make(ram_bytes=0).store.troubles() == ()
        made.store.sweep()
        assert not list(made.folder.rglob("*.partial"))
    assert left, "no writer was caught at work"


def test_threads_may_use_it_together(make: Callable[..., Made]) -> None:
    made = make(ram_bytes=30_000, disk_bytes=20 * 8192)
    made.clock.now_s = time.time()  # or a file that is being written is too old to be
    wrong: list[str] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(60):
            name = f"doc-{chance.randrange(12)}"
            match chance.randrange(6):
                case 0 | 1:
                    made.put(name, name.encode() * 500)
                case 2:
                    made.store.drop([name])
                case 3:
                    made.store.sweep()
                case _:
                    state = made.store.get(key(name))
                    if state is not None and bytes(state.data) != name.encode() * 500:
                        wrong.append(name)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert made.store.troubles() == ()
    status = made.store.status()
    assert status.ram_bytes <= 30_000
    assert status.disk_bytes <= 20 * 8192


# ---------------------------------------------------------------- any order

NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES, st.integers(0, 1), st.integers(0, 5000), st.sampled_from([None, HOUR])),
    st.tuples(st.just("deprecate"), NAMES),
    st.tuples(st.just("drop"), NAMES),
    st.tuples(st.just("drop label"), st.integers(0, 1)),
    st.tuples(st.just("wait"), st.sampled_from([1.0, HOUR, 80 * HOUR])),
    st.tuples(st.just("sweep")),
    st.tuples(st.just("damage"), NAMES),
    st.tuples(st.just("reopen"), st.sampled_from([0, 6000, 10**6])),
)


@dataclass
class Expected:
    """What a store without limits holds under a name."""

    key: StateKey
    data: bytes
    label: str
    expires_s: float | None
    deprecated_s: float | None = None
    file_damaged: bool = False


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=20))
def test_in_whatever_order_nothing_wrong_is_found(steps: list[tuple[Any, ...]]) -> None:
    clock = Clock()
    with TemporaryDirectory() as name:
        folder = Path(name) / "states"

        def open_it(ram: int) -> StateStore:
            return StateStore(folder, ram_bytes=ram, disk_bytes=10**8, left_free_bytes=0, clock=clock)

        store = open_it(6000)
        model: dict[str, Expected] = {}
        for step in steps:
            match step:
                case ("put", which, tokens, size, ttl):
                    the_key = key(which, tokens=f"{which}{tokens}")
                    data, label = f"{which}{tokens}".encode() * size, f"label-{tokens}"
                    store.put(the_key, data, token_count=size, cost_s=1.0, labels=frozenset({label}), ttl_s=ttl)
                    model[which] = Expected(the_key, data, label, None if ttl is None else clock.now_s + ttl)
                case ("deprecate", which):
                    store.deprecate([which])
                    if which in model and model[which].deprecated_s is None:
                        model[which].deprecated_s = clock.now_s
                case ("drop", which):
                    assert store.drop([which])
                    model.pop(which, None)
                case ("drop label", tokens):
                    assert store.drop(labels=[f"label-{tokens}"])
                    model = {which: e for which, e in model.items() if e.label != f"label-{tokens}"}
                case ("wait", seconds):
                    clock.now_s += seconds
                case ("sweep",):
                    store.sweep()
                case ("damage", which):
                    for path in folder.rglob(f"{which}.*"):
                        path.write_bytes(path.read_bytes()[:-1])
                        model[which].file_damaged = True
                case ("reopen", ram):
                    store = open_it(ram)
            for which in "abc":
                expected = model.get(which)
                for tokens in (0, 1):
                    the_key = key(which, tokens=f"{which}{tokens}")
                    state = store.get(the_key)
                    lives = (
                        expected is not None
                        and expected.key == the_key
                        and (expected.expires_s is None or clock.now_s < expected.expires_s)
                        and (expected.deprecated_s is None or clock.now_s - expected.deprecated_s <= 72 * HOUR)
                    )
                    if state is not None:
                        assert lives
                        assert expected is not None
                        assert bytes(state.data) == expected.data
                    elif lives:
                        assert expected is not None
                        assert expected.file_damaged, "a state that should be there is not"
