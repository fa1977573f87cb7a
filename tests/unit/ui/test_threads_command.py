"""``edgerag threads`` over a real session whose models are stand-ins."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes import HashingEmbedder, ScriptedGenerator

from edgerag.config import LibrarySettings, Settings
from edgerag.errors import StorageFull, UsageError
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.threads.keeping import kept
from edgerag.threads.store import ThreadStore
from edgerag.ui.cli import build_parser, main
from edgerag.ui.threads_command import run_threads

TEXT = "The lid screws of the pump need a torque of 12 newton metres. Grease them every year."
QUESTION = "Which torque do the lid screws need, zweiundvierzig?"
REPLY = "They need 12 newton metres, says quicksilver [1]."

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "docs" / "pump.txt"
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


@pytest.fixture
def session(tmp_path: Path, document: Path) -> Iterator[Session]:
    made = Session(
        Settings(),
        Locations(tmp_path / "home"),
        embedder=lambda: HashingEmbedder(dimension=64),
        generator=lambda: ScriptedGenerator(REPLY),
    )
    with made:
        list(made.ingest([document]))
        exchange = made.threads.ask(QUESTION, library="default")
        list(kept(made.ask(QUESTION), made.threads, exchange.id))
        yield made


@pytest.fixture
def run(session: Session, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = run_threads(session, build_parser().parse_args(["threads", *words]))
        return code, capsys.readouterr().out

    return run


def test_list_search_and_show(run: Run) -> None:
    assert QUESTION in run("list")[1]
    assert json.loads(run("list", "--json", "--all")[1])["threads"][0]["questions"] == 1
    assert "quicksilver" in run("search", "quicksilver")[1]
    assert run("search", "kerosene")[1] == ""
    shown = run("show", "1")[1]
    for words in (QUESTION, "They need 12 newton metres", "pump.txt, line 1", "need a torque of 12"):
        assert words in shown
    assert "no longer" not in shown


def test_what_became_of_the_sources_is_said(run: Run, session: Session, document: Path) -> None:
    document.write_text(f"A new first line.\n\n{TEXT}")
    list(session.ingest([document]))
    states = [s["state"] for s in json.loads(run("show", "1", "--json")[1])["exchanges"][0]["sources"]]
    assert states in (["moved"], ["changed"])
    session.remove([str(document)])
    assert "no longer in the library" in run("show", "1")[1]
    assert "need a torque of 12 newton metres" in run("show", "1")[1], "the words that were cited stay"


def test_a_thread_about_another_library_is_looked_up_there(run: Run, session: Session, document: Path) -> None:
    other = Session(
        Settings(library=LibrarySettings(name="other")),
        session.locations,
        embedder=lambda: HashingEmbedder(dimension=64),
        generator=lambda: ScriptedGenerator(REPLY),
    )
    with other:
        moved = document.with_name("elsewhere.txt")
        moved.write_text(TEXT)
        list(other.ingest([moved]))
        exchange = other.threads.ask(QUESTION, library="other")
        list(kept(other.ask(QUESTION), other.threads, exchange.id))
    assert len(json.loads(run("list", "--json")[1])["threads"]) == 1
    shown = json.loads(run("show", "2", "--json")[1])
    assert [source["state"] for source in shown["exchanges"][0]["sources"]] == ["current"]


def test_rename_and_export(run: Run, tmp_path: Path) -> None:
    run("rename", "1", "All about lids")
    assert "All about lids" in run("list")[1]
    assert run("export", "1")[1].startswith("# All about lids")
    target = tmp_path / "thread.html"
    run("export", "1", "--out", str(target))
    assert target.read_text().startswith("<!doctype html>")
    assert json.loads(run("export", "1", "--format", "json")[1])["title"] == "All about lids"
    with pytest.raises(UsageError, match="exists already"):
        run("export", "1", "--out", str(target))


def test_delete_asks_first(run: Run, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--yes"):
        run("delete", "1")
    for answer, left in (("no\n", 1), ("yes\n", 0)):
        typed = io.StringIO(answer)
        monkeypatch.setattr(typed, "isatty", lambda: True)
        monkeypatch.setattr("sys.stdin", typed)
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        run("delete", "1")
        assert len(session.threads.heads(library=None)) == left
    with pytest.raises(UsageError, match="no thread 1"):
        run("show", "1")


def test_no_other_file_holds_a_word_of_the_conversation(session: Session, tmp_path: Path) -> None:
    session.close()
    for path in tmp_path.rglob("*"):
        if path.is_file() and not path.name.startswith("threads.sqlite"):
            held = path.read_bytes()
            assert b"zweiundvierzig" not in held and b"quicksilver" not in held, path


@pytest.mark.parametrize("typed", ["first", "0", "-3", "9" * 30, "1.5"])
def test_what_is_no_number_of_a_thread_says_where_the_numbers_are(
    capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    with pytest.raises(SystemExit):
        main(["threads", "show", "--", typed])
    said = capsys.readouterr().err
    assert "threads list" in said
    assert "_number" not in said


def test_where_no_file_can_be_made_there_are_no_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Session) -> ThreadStore:
        raise StorageFull("The disk is full.")

    monkeypatch.setattr(Session, "_open_threads", full)
    with Session(Settings(), Locations(tmp_path / "home")) as session:
        assert session.threads_if_any().heads(library=None) == []
        session.locations.threads_file.parent.mkdir(parents=True)
        session.locations.threads_file.touch()
        with pytest.raises(StorageFull):  # one that is there is not passed over
            session.threads_if_any()
