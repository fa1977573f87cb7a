"""How far a library of an older version is brought up is told, and whoever is told may stop it: nothing is lost."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from unit.index import golden_libraries as golden

from edgerag.errors import Cancelled
from edgerag.index import bringing_up, migrations, watched
from edgerag.index.store import Store
from edgerag.session.upgrading import Upgrading
from edgerag.types import BringingUp

STAGES = ["checking", "keeping a copy", "changing", "checking again"]


def version_in(folder: Path) -> int:
    db = sqlite3.connect(folder / "library.sqlite")
    try:
        return migrations.version_of(db)
    finally:
        db.close()


def test_each_stage_is_told_with_its_count_and_then_that_it_is_over(tmp_path: Path) -> None:
    folder = golden.unpack(tmp_path, 6)
    told: list[BringingUp | None] = []
    Store(folder, mode="write", watch=told.append).close()
    states = [state for state in told if state is not None]
    assert told[-1] is None and told.count(None) == 1
    assert list(dict.fromkeys(state.stage for state in states)) == STAGES
    documents = len(golden.expected(6)["documents"])
    for stage in STAGES:
        of_stage = [state for state in states if state.stage == stage]
        assert [state.done for state in of_stage] == sorted(state.done for state in of_stage)
        assert len({state.total for state in of_stage}) == 1
    assert {state.total for state in states if state.stage.startswith("checking")} == {documents}
    assert {state.total for state in states if state.stage == "changing"} == {len(migrations.STEPS) - 6}
    assert {state.library for state in states} == {folder.name}
    told.clear()
    Store(folder, mode="write", watch=told.append).close()
    assert told == [], "there is nothing to do any more"


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("how", ["between", "within a statement"])
@pytest.mark.parametrize("stopped_by", [Cancelled("stopped"), KeyboardInterrupt()], ids=["cancelled", "interrupted"])
def test_stopped_in_any_stage_it_is_whole_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, how: str, stopped_by: BaseException
) -> None:
    if how == "within a statement":
        monkeypatch.setattr(watched, "_STEPS", 1)
    folder = golden.unpack(tmp_path, 6)
    before = (folder / "library.sqlite").read_bytes()
    seen = 0

    def watch(state: BringingUp | None) -> None:
        nonlocal seen
        if state is not None and state.stage == stage:
            seen += 1
            if seen > (1 if how == "within a statement" else 0):
                raise stopped_by

    if stage == "keeping a copy" and how == "within a statement":
        pytest.skip("a copy is told by its pages alone")
    with pytest.raises(type(stopped_by)):
        Store(folder, mode="write", watch=watch)
    if stage in STAGES[:2]:
        assert version_in(folder) == 6
        assert not (folder / bringing_up.FOLDER_NAME).exists()
    if stage == "checking":
        assert (folder / "library.sqlite").read_bytes() == before
    told: list[BringingUp | None] = []
    Store(folder, mode="write", watch=told.append).close()
    assert version_in(folder) == len(migrations.STEPS)
    assert not (folder / bringing_up.FOLDER_NAME).exists()
    with golden.session(tmp_path) as session, session._browsing.use() as library:
        assert {document.path for document in library.documents()} == set(golden.expected(6)["documents"])
        assert {finding.severity for finding in library.verify()} == {"ok"}


def test_a_session_says_how_far_it_is_and_can_be_told_to_stop(tmp_path: Path) -> None:
    golden.unpack(tmp_path, 6)
    told: list[str] = []
    with golden.session(tmp_path) as session:

        def watch(state: BringingUp | None) -> None:
            assert session.upgrading.now == state
            if state is not None:
                told.append(state.stage)
                if state.stage == "changing":
                    session.upgrading.stop()

        session.upgrading.told = watch
        with pytest.raises(Cancelled, match="not brought up to its end"):
            session.library_status()
        assert session.upgrading.now is None
    assert told[-1] == "changing"
    with golden.session(tmp_path) as session:
        session.upgrading.told = watch_nothing
        status = session.library_status()
        assert status is not None
        assert status.document_count == len(golden.expected(6)["documents"])


def watch_nothing(_state: BringingUp | None, /) -> None:
    """Whoever is not interested."""


def test_a_stop_that_was_for_one_command_does_not_hold_for_the_next() -> None:
    upgrading = Upgrading()
    state = BringingUp("default", "checking", 1, 2)
    with upgrading.until(lambda: True), pytest.raises(Cancelled):
        upgrading(state)
    upgrading(state)
    with upgrading.until(lambda: False):
        upgrading(state)
    upgrading.stop()
    with pytest.raises(Cancelled):
        upgrading(state)
