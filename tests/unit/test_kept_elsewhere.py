"""A session is open while another process encrypts its library, takes that away or gives it another key: what is kept
goes where it belongs now, or is refused before anything is written."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fakes import HashingEmbedder, ScriptedGenerator

from edgerag.config import LibrarySettings, Settings
from edgerag.encryption.keys import KeyFile, Passphrase
from edgerag.errors import LibraryLocked, ThreadsError
from edgerag.index import encrypting
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.telemetry.ring import TraceRing
from edgerag.threads.store import ThreadStore
from edgerag.types import Answer, AnswerDone

pytest.importorskip("sqlcipher3")
CANARY = "canarybird"
OPENER = KeyFile(b"k" * 64)


def quiet(_done: int, _total: int) -> None:
    """Progress that nobody watches."""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "badger.md").write_text("# Badgers\n\nThe badger sleeps by day in its sett.\n")
    return folder


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "key"
    file.write_bytes(OPENER.content)
    return file


def opened(home: Path, *, key_file: Path | None = None, name: str = "default", also: tuple[str, ...] = ()) -> Session:
    library = LibrarySettings(name=name, also=also, key_file=str(key_file or ""))
    return Session(
        Settings(library=library), Locations(home), embedder=HashingEmbedder, generator=lambda: ScriptedGenerator()
    )


def made(home: Path, docs: Path, *, encrypted: bool, name: str = "default") -> None:
    with opened(home, name=name) as session:
        if encrypted:
            session.encrypt_library(name, OPENER, progress=quiet)
        list(session.ingest([docs]))


def questions(store: ThreadStore) -> list[str]:
    return sorted(store.questions(library="default", limit=99))


def answers_in(ring: TraceRing) -> int:
    with ring:
        return len(ring.heads(kind="ask"))


def plain_words(home: Path) -> list[str]:
    return [str(path) for path in home.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


def test_after_another_key_the_next_question_is_in_the_new_file(tmp_path: Path, docs: Path, key_file: Path) -> None:
    home = tmp_path / "home"
    made(home, docs, encrypted=True)
    with opened(home, key_file=key_file) as window:
        held = window.threads
        first = held.ask("one", library="default")
        with opened(home, key_file=key_file) as other:
            other.encrypt_library_anew("default", OPENER, progress=quiet)
        held.ask("two", library="default", thread_id=first.thread_id, parent_id=first.id)
        window.threads.ask("three", library="default", thread_id=first.thread_id)
    with opened(home, key_file=key_file) as later:
        assert questions(later.threads) == ["one", "three", "two"]
        assert len(later.threads.heads(library="default")) == 1


@pytest.mark.parametrize("what", ["rekey", "decrypt"])
@pytest.mark.parametrize("has_some", [True, False])
def test_what_is_asked_between_the_copy_and_the_exchange_is_kept(
    tmp_path: Path, docs: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch, what: str, has_some: bool
) -> None:
    """In a window that has the conversations open, and in one that opens them just then."""
    home = tmp_path / "home"
    made(home, docs, encrypted=True)
    real = encrypting._change_places
    waiting: list[Future[Any]] = []
    with (
        opened(home, key_file=key_file) as window,
        opened(home, key_file=key_file) as late,
        ThreadPoolExecutor() as pool,
    ):
        held = window.threads if has_some else None

        def asked_meanwhile(new: Path, folder: Path) -> None:
            asks = (
                lambda: (held or window.threads).ask("one", library="default"),
                lambda: late.threads.ask("two", library="default"),
            )
            waiting.extend(pool.submit(ask) for ask in asks)
            with pytest.raises(TimeoutError):
                waiting[0].result(timeout=0.3)
            real(new, folder)

        monkeypatch.setattr(encrypting, "_change_places", asked_meanwhile)
        with opened(home, key_file=key_file) as other:
            if what == "rekey":
                other.encrypt_library_anew("default", OPENER, progress=quiet)
            else:
                other.decrypt_library("default", progress=quiet)
        for each in waiting:
            each.result()
    with opened(home, key_file=key_file if what == "rekey" else None) as later:
        assert questions(later.threads) == ["one", "two"]


def test_what_is_asked_all_the_while_is_kept(tmp_path: Path, docs: Path, key_file: Path) -> None:
    home = tmp_path / "home"
    made(home, docs, encrypted=True)
    stop = threading.Event()
    asked: list[str] = []

    def ask() -> None:
        with opened(home, key_file=key_file) as window:
            while not stop.wait(0.02):  # a person leaves SQLite's lock to others now and then
                question = f"question {len(asked)}"
                window.threads.ask(question, library="default")
                asked.append(question)

    with ThreadPoolExecutor() as pool, opened(home, key_file=key_file) as other:
        asking = pool.submit(ask)
        try:
            for _ in range(4):
                other.encrypt_library_anew("default", OPENER, progress=quiet)
        finally:
            stop.set()
        asking.result()
        kept = other.threads.questions(library="default", limit=99_999)
    assert asked
    assert sorted(kept) == sorted(asked)


def test_a_trace_that_waits_for_the_exchange_is_kept(
    tmp_path: Path, docs: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    made(home, docs, encrypted=True)
    real = encrypting._change_places
    with opened(home, key_file=key_file) as window:
        list(window.ask("When does the badger sleep?"))
        assert window._recorder.flush(10)

        def asked_meanwhile(new: Path, folder: Path) -> None:
            list(window.ask("Where does it sleep?"))
            assert not window._recorder.flush(0.3), "it waits"
            real(new, folder)

        monkeypatch.setattr(encrypting, "_change_places", asked_meanwhile)
        with opened(home, key_file=key_file) as other:
            other.encrypt_library_anew("default", OPENER, progress=quiet)
        window.threads.heads(library="default")
        assert window._recorder.flush(10)
        assert answers_in(window.traces()) == 2
        assert window.trace_troubles() == ()


def test_without_the_new_key_nothing_is_written(tmp_path: Path, docs: Path, key_file: Path) -> None:
    home = tmp_path / "home"
    made(home, docs, encrypted=True)
    secret = Passphrase("correct horse battery")
    with opened(home, key_file=key_file) as window:
        held = window.threads
        held.ask("one", library="default")
        with opened(home, key_file=key_file) as other:
            other.encrypt_library_anew("default", secret, progress=quiet)
            for store in (lambda: held, lambda: window.threads):
                with pytest.raises(LibraryLocked, match="passphrase was not given"):
                    store().ask(CANARY, library="default")
            assert questions(other.threads) == ["one"]


def test_another_opener_of_the_same_key_disturbs_nobody(tmp_path: Path, docs: Path, key_file: Path) -> None:
    home = tmp_path / "home"
    made(home, docs, encrypted=True)
    with opened(home, key_file=key_file) as window:
        window.threads.ask("one", library="default")
        with opened(home, key_file=key_file) as other:
            other.change_opener("default", Passphrase("correct horse battery"))
        window.threads.ask("two", library="default")
        assert questions(window.threads) == ["one", "two"]


@pytest.mark.parametrize("has_key", [True, False])
def test_after_encrypting_nothing_more_is_written_in_plain(
    tmp_path: Path, docs: Path, key_file: Path, has_key: bool
) -> None:
    home = tmp_path / "home"
    made(home, docs, encrypted=False)
    with opened(home, key_file=key_file if has_key else None) as window:
        held = window.threads
        before = held.ask("one", library="default")
        with opened(home) as other:
            other.encrypt_library("default", OPENER, progress=quiet)
        with pytest.raises(ThreadsError if has_key else LibraryLocked):
            held.ask(CANARY, library="default")
        with pytest.raises(ThreadsError if has_key else LibraryLocked):
            held.finish(before.id, answer(CANARY))
        if has_key:
            window.threads.ask(CANARY, library="default")
            assert questions(window.threads) == [CANARY]
        else:
            with pytest.raises(LibraryLocked):
                window.threads.ask(CANARY, library="default")
        assert not plain_words(home)
    assert not plain_words(home)


def test_after_decrypting_they_go_on_where_they_were(tmp_path: Path, docs: Path, key_file: Path) -> None:
    home = tmp_path / "home"
    made(home, docs, encrypted=True)
    with opened(home, key_file=key_file) as window:
        window.threads.ask("one", library="default")
        with opened(home, key_file=key_file) as other:
            other.decrypt_library("default", progress=quiet)
        window.threads.ask("two", library="default")
    with opened(home) as later:
        assert questions(later.threads) == ["one", "two"]


def test_traces_go_where_they_belong_now(tmp_path: Path, docs: Path, key_file: Path) -> None:
    home = tmp_path / "home"
    made(home, docs, encrypted=False)
    with opened(home, key_file=key_file) as window:

        def ask() -> int:
            list(window.ask("When does the badger sleep?"))
            assert window._recorder.flush(10)
            return answers_in(window.traces())

        assert ask() == 1
        with opened(home) as other:
            other.encrypt_library("default", OPENER, progress=quiet)
        window.threads.heads(library="default")
        assert ask() == 1, "a new file, in the folder of the library"
        assert answers_in(TraceRing(home / "traces.sqlite")) == 1
        with opened(home, key_file=key_file) as other:
            other.encrypt_library_anew("default", OPENER, progress=quiet)
        window.threads.heads(library="default")
        assert ask() == 2


@pytest.mark.parametrize("names", [("open", "secret"), ("secret", "open")])
def test_of_several_libraries_the_encrypted_one_keeps_what_is_said(
    tmp_path: Path, docs: Path, key_file: Path, names: tuple[str, str]
) -> None:
    """Also where the other one was encrypted once."""
    home = tmp_path / "home"
    for name in names:
        made(home, docs, encrypted=True, name=name)
    with opened(home, key_file=key_file, name="open") as session:
        session.threads.ask("before", library="open")
        session.decrypt_library("open", progress=quiet)
    plain_traces = Locations(home).library_folder("open") / "private" / "traces.sqlite"
    before = plain_traces.read_bytes()
    with opened(home, key_file=key_file, name=names[0], also=names[1:]) as session:
        session.threads.ask(CANARY, library=names[0])
        list(session.ask("When does the badger sleep?"))
    assert not plain_words(home)
    assert plain_traces.read_bytes() == before


@pytest.mark.parametrize("has_key", [True, False])
def test_the_next_question_is_put_to_the_library_that_is_there_now(
    tmp_path: Path, docs: Path, key_file: Path, has_key: bool
) -> None:
    """And nothing is kept beside it as it was before."""
    home = tmp_path / "home"
    made(home, docs, encrypted=False)
    with opened(home, key_file=key_file if has_key else None) as window:
        list(window.ask("When does the badger sleep?"))
        window._tokens()
        with opened(home) as other:
            other.encrypt_library("default", OPENER, progress=quiet)
            (docs / "heron.md").write_text("# Herons\n\nThe heron stands in shallow water.\n")
            list(other.ingest([docs]))
        if not has_key:
            for asks in (lambda: list(window.ask("heron")), lambda: window.search("heron", limit=3)):
                with pytest.raises(LibraryLocked):
                    asks()
            return
        *_, done = window.ask("Where does the heron stand?")
        assert isinstance(done, AnswerDone)
        assert any(source.hit.chunk.path.endswith("heron.md") for source in done.answer.sources)
        folder = Locations(home).library_folder("default")
        plain = [path for path in folder.rglob("*.sqlite") if path.read_bytes().startswith(b"SQLite format 3")]
        assert not plain


def answer(text: str) -> Answer:
    values: dict[str, Any] = {"question": "", "text": text, "found": True, "sources": (), "stop_reason": "end"}
    return Answer(**values, timings=(), tokens=_no_tokens(), model="", pending_count=0, notes=())


def _no_tokens() -> Any:
    from edgerag.types import TokenCounts

    return TokenCounts(prompt=0, answer=0)
