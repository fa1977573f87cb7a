from __future__ import annotations

from pathlib import Path

from edgerag.engine.tuning.passage_cost import PassageCosts
from edgerag.types import PassageCost

COST = PassageCost(0.25, questions=3)


def test_another_process_knows_it_too_for_the_same_model_and_number_of_threads(tmp_path: Path) -> None:
    PassageCosts(tmp_path, threads=0).keep("judge", COST)
    again = PassageCosts(tmp_path, threads=0)
    assert again.find("judge") == COST
    assert again.find("another") is None
    assert PassageCosts(tmp_path, threads=1).find("judge") is None


def test_a_damaged_memory_is_no_memory(tmp_path: Path) -> None:
    PassageCosts(tmp_path, threads=0).keep("judge", COST)
    file = tmp_path / "second-look.json"
    file.write_text(file.read_text().replace("0.25", "-1"))
    assert PassageCosts(tmp_path, threads=0).find("judge") is None


def test_where_nothing_can_be_written_this_process_remembers(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    costs = PassageCosts(tmp_path / "file" / "models", threads=0)
    costs.keep("judge", COST)
    assert costs.find("judge") == COST
