"""What the bench gives to `edgerag eval`: published sets, written as BEIR folders."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from edgerag.measure.eval.readers import read_set
from edgerag.measure.eval.sets import Expected, half_of

BENCH = Path(__file__).parents[4] / "bench"


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return import_module("datasets")


def test_a_folder_written_from_a_set_is_the_same_set_in_the_same_halves(datasets: Any, tmp_path: Path) -> None:
    texts = tuple(datasets.Text(name, f"Title {name}", f"Text\u2028of {name}.") for name in ("a", "b", "c"))
    queries = (
        datasets.Query("first", frozenset({"a", "gone"})),
        datasets.Query("second", frozenset({"b", "c"}), "of b"),
        datasets.Query("third", frozenset({"gone"})),
        datasets.Query("fourth", frozenset({"c"})),
        datasets.Query("fifth", frozenset({"a"})),
    )
    found = read_set(import_module("eval").write_beir(datasets.DataSet("made", texts, queries), tmp_path / "made"))
    assert [(text.id, text.title, text.text) for text in found.texts] == [(t.id, t.title, t.text) for t in texts]
    assert found.questions[1].expected == (Expected("b"), Expected("c")) and found.questions[1].answers == ("of b",)
    assert [question.text for question in half_of(found.questions, "report")] == [q.text for q in queries[1::2]]
    assert [question.text for question in half_of(found.questions, "tune")] == ["first", "fifth"]


def test_pubmedqa_and_tatqa(datasets: Any, tmp_path: Path) -> None:
    (tmp_path / "qa" / "pubmedqa").mkdir(parents=True)
    (tmp_path / "qa" / "tatqa").mkdir()
    abstract = {"QUESTION": "Do pumps leak?", "CONTEXTS": ["Aim.", "Results."], "LONG_ANSWER": "They do."}
    (tmp_path / "qa" / "pubmedqa" / "ori_pqal.json").write_text(json.dumps({"17": abstract}))
    report = {
        "table": {"table": [["", "2019"], ["Sales", "12"]]},
        "paragraphs": [{"order": 2, "text": "Second."}, {"order": 1, "text": "First."}],
        "questions": [
            {"question": "Sales?", "answer": ["12"], "answer_type": "span"},
            {"question": "Change?", "answer": -3.5, "answer_type": "arithmetic"},
            {"question": "Both?", "answer": ["a", "b"], "answer_type": "multi-span"},
        ],
    }
    (tmp_path / "qa" / "tatqa" / "tatqa_dataset_dev.json").write_text(json.dumps([report]))
    pubmed, tables = datasets.load("pubmedqa", tmp_path), datasets.load("tatqa", tmp_path)
    assert [(text.id, text.text) for text in pubmed.texts] == [("17", "Aim.\n\nResults.")], "without its conclusion"
    assert pubmed.queries[0].relevant == {"17"}
    assert tables.texts[0].text == "First.\n\nSecond.\n\n | 2019\nSales | 12"
    assert [query.answer for query in tables.queries] == ["12", "", ""]
