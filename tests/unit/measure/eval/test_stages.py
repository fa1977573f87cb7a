from __future__ import annotations

from pathlib import Path

import pytest
from fakes import HashingEmbedder, ScriptedGenerator
from unit.measure.eval.craft import FACTS

from edgerag.config import Settings
from edgerag.locations import Locations
from edgerag.measure.eval.run import QuestionResult, StageFigures, stage_names
from edgerag.measure.eval.stages import ask_stage_by_stage
from edgerag.session import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in FACTS.items():
        (docs / f"{name}.md").write_text(f"{text}\n")
    # An embedder of another language: the plan gives its leg no weight for these words.
    embedder = HashingEmbedder(dimension=256, languages=("zh",))
    generator = ScriptedGenerator()
    session = Session(Settings(), Locations(tmp_path), embedder=lambda: embedder, generator=lambda: generator)
    list(session.ingest([docs]))
    return session


def test_legs_are_judged_in_full_whatever_the_plan_gives_them(session: Session) -> None:
    with session, session.subject() as subject:
        asked = ask_stage_by_stage("Что ест выдра? otter", subject, cancelled=lambda: False)
    assert [Path(chunk.path).stem for chunk in asked.stages["keyword"]] == ["otter"]
    assert len(asked.stages["vector"]) == 4 and Path(asked.stages["vector"][0].path).stem == "otter"
    assert "vector" not in asked.seconds, "the flow itself did not run it"


def result(**stages: int) -> QuestionResult:
    figures = {name: StageFigures(rank, {}) for name, rank in stages.items()}
    return QuestionResult("1", "?", "", True, True, figures, "", None, "end", {}, ())


def test_a_stage_that_changes_nothing_is_left_out() -> None:
    one = result(keyword=1, vector=1, fused=1, reranked=1, hits=1, sources=1)
    assert stage_names([one]) == ("keyword", "vector", "fused", "sources")
    other = result(keyword=1, vector=1, fused=2, reranked=1, hits=1, sources=1)
    assert stage_names([one, other]) == ("keyword", "vector", "fused", "reranked", "sources")
    reordered = result(keyword=1, vector=1, fused=1, reranked=1, hits=3, sources=1)
    assert stage_names([one, reordered]) == ("keyword", "vector", "fused", "hits", "sources")
    assert stage_names([]) == ()
