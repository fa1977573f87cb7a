"""Tokens of chunks beside the library: given back whole or not at all, and gone with their document."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgerag.index.token_store import FILE_NAME, TokenStore
from edgerag.types import ChunkTokens

SCOPE, OTHER = "a" * 32, "b" * 32
NAME = "doc-0123456789abcdef-chunk-0-v1"
ELSEWHERE = "doc-fedcba9876543210-chunk-0-v1"
DOCUMENT = "doc-0123456789abcdef"


def kept(store: TokenStore, name: str = NAME, text: str = "pump", tokens: tuple[int, ...] = (1, 2, 70_000)) -> None:
    store.keep(SCOPE, [ChunkTokens(name, text, tokens)], since=store.begun())


def test_what_was_kept_is_there_for_another_process(tmp_path: Path) -> None:
    kept(TokenStore(tmp_path))
    assert TokenStore(tmp_path).read(SCOPE, {NAME: ["pump"]}) == {"pump": (1, 2, 70_000)}


def test_only_of_the_same_model_and_the_same_text(tmp_path: Path) -> None:
    store = TokenStore(tmp_path)
    kept(store)
    assert store.read(OTHER, {NAME: ["pump"]}) == {}
    assert store.read(SCOPE, {NAME: ["Pump"]}) == {}
    assert store.read(SCOPE, {ELSEWHERE: ["pump"]}) == {}


def test_nobody_else_may_read_the_file(tmp_path: Path) -> None:
    kept(TokenStore(tmp_path / "kv"))
    assert stat.S_IMODE((tmp_path / "kv" / FILE_NAME).stat().st_mode) == 0o600


def test_reading_makes_no_file(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "kv")
    store.begin()
    assert store.read(SCOPE, {NAME: ["pump"]}) == {} and not (tmp_path / "kv").exists()


@pytest.mark.parametrize("drop", [{"names": [NAME]}, {"documents": [DOCUMENT]}, {"everything": True}])
def test_a_dropped_chunk_is_gone_and_its_bytes_with_it(tmp_path: Path, drop: dict[str, object]) -> None:
    store = TokenStore(tmp_path)
    kept(store, tokens=(0x51525354,) * 40)
    kept(store, ELSEWHERE)
    assert store.drop(**drop)  # type: ignore[arg-type]
    assert store.read(SCOPE, {NAME: ["pump"]}) == {}
    assert bool(store.read(SCOPE, {ELSEWHERE: ["pump"]})) is ("everything" not in drop)
    store.close()
    assert b"TSRQ" * 4 not in (tmp_path / FILE_NAME).read_bytes()


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("was_there", [True, False])
def test_what_was_read_before_a_drop_is_not_kept_after_it(tmp_path: Path, own: bool, was_there: bool) -> None:
    store = TokenStore(tmp_path)
    if was_there:
        kept(store, ELSEWHERE)
    store.begin()
    since = store.begun()
    assert (store if own else TokenStore(tmp_path)).drop(documents=[DOCUMENT])
    store.begin()  # the next question has begun
    store.keep(SCOPE, [ChunkTokens(NAME, "pump", (1,))], since=since)
    assert store.read(SCOPE, {NAME: ["pump"]}) == {}


def test_without_room_nothing_is_kept_and_what_is_there_can_be_dropped(tmp_path: Path) -> None:
    kept(TokenStore(tmp_path))
    store = TokenStore(tmp_path, most_bytes=0)
    kept(store, ELSEWHERE)
    assert store.read(SCOPE, {ELSEWHERE: ["pump"]}) == {}
    assert store.drop(names=[NAME]) and store.read(SCOPE, {NAME: ["pump"]}) == {}


def test_the_file_stays_small_and_the_newest_stay(tmp_path: Path) -> None:
    store = TokenStore(tmp_path, most_bytes=200_000)
    names = [f"doc-0123456789abcdef-chunk-{number}-v1" for number in range(600)]
    for name in names:
        kept(store, name, tokens=tuple(range(200)))
    assert (tmp_path / FILE_NAME).stat().st_size < 300_000
    assert store.read(SCOPE, {names[-1]: ["pump"]}) and not store.read(SCOPE, {names[0]: ["pump"]})


@given(damage=st.tuples(st.integers(0, 40_000), st.integers(1, 255)))
@example(damage=(24_399, 128))  # a message of SQLite that is no text
@example(damage=(18, 2))  # the byte that says who may write
@example(damage=(47, 1))  # the format of the schema, which SQLite refuses like a statement that is wrong
def test_a_damaged_file_gives_the_right_tokens_or_none(
    tmp_path_factory: pytest.TempPathFactory, damage: tuple[int, int]
) -> None:
    folder = tmp_path_factory.mktemp("kv")
    store = TokenStore(folder)
    kept(store)
    store.close()
    file = folder / FILE_NAME
    raw = bytearray(file.read_bytes())
    raw[damage[0] % len(raw)] ^= damage[1]
    file.write_bytes(raw)
    again = TokenStore(folder)
    assert again.read(SCOPE, {NAME: ["pump"]}) in ({}, {"pump": (1, 2, 70_000)})
    kept(again, ELSEWHERE)
    assert again.drop(names=[NAME])
    assert again.read(SCOPE, {NAME: ["pump"]}) == {}


def test_what_is_no_database_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"not a database" * 100)
    store = TokenStore(tmp_path)
    assert store.read(SCOPE, {NAME: ["pump"]}) == {}
    kept(store)
    kept(store)
    assert store.read(SCOPE, {NAME: ["pump"]}) == {"pump": (1, 2, 70_000)}


def test_values_that_nobody_wrote_are_passed_over(tmp_path: Path) -> None:
    kept(TokenStore(tmp_path))
    with sqlite3.connect(tmp_path / FILE_NAME) as db:
        db.execute("UPDATE tokens SET tokens = 'text', text_hash = 7")
    assert TokenStore(tmp_path).read(SCOPE, {NAME: ["pump"]}) == {}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kv").mkdir()
    (tmp_path / "kv" / FILE_NAME).symlink_to(tmp_path / "elsewhere")
    kept(TokenStore(tmp_path / "kv"))
    assert not (tmp_path / "elsewhere").exists()
