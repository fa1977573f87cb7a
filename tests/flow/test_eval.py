"""`edgerag eval` as a user runs it, with the real embedder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
DOCUMENTS = {
    "badger": "Badgers rest in their burrow while the sun is up and come out after dark.",
    "pump": "The lid screws of the pump are tightened to 9 Nm, crosswise and in two rounds.",
    "vaccine": "Vaccines are stored between 2 and 8 degrees; they must never freeze.",
    "backup": "The grey box under the desk copies the file server every night at half past one.",
}
QUERIES = {
    "badger": "When do badgers sleep?",
    "pump": "Which torque do the screws of the lid need?",
    "vaccine": "How cold may the fridge with vaccines be?",
    "backup": "At what time is the server copied?",
}


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    (folder / "qrels").mkdir(parents=True)
    corpus = [json.dumps({"_id": name, "title": "", "text": text}) for name, text in DOCUMENTS.items()]
    queries = [json.dumps({"_id": f"q-{name}", "text": text}) for name, text in QUERIES.items()]
    (folder / "corpus.jsonl").write_text("\n".join(corpus))
    (folder / "queries.jsonl").write_text("\n".join(queries))
    judged = [f"q-{name}\t{name}\t1" for name in QUERIES]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n")
    return folder


def edgerag(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "edgerag", *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_a_beir_folder_from_its_files_to_a_comparison(beir: Path, tmp_path: Path) -> None:
    strangers = tmp_path / "strangers.csv"
    strangers.write_text("question,answer\nWho was the first president of Brazil?,Fonseca\n")
    common = ("--cache", str(tmp_path / "cache"), "--foreign", str(strangers))
    done = edgerag("eval", str(beir), *common, "--json", "--out", str(tmp_path / "one"))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    stages = told["figures"]["stages"]
    assert stages["vector"]["hit@1"] == stages["fused"]["ndcg@10"] == 1
    assert told["figures"]["refusal"]["foreign"]["strangers"]["answered"] == 0
    assert told["figures"]["refusal"]["answerable_refused"] <= 0.25
    for chart in (tmp_path / "one").glob("*.svg"):
        ElementTree.parse(chart)
    assert "written: " in done.stderr

    shown = edgerag("eval", str(beir), *common, "--whole", "--out", str(tmp_path / "two"))
    assert shown.returncode == 0, shown.stderr
    assert "ndcg@10" in shown.stdout and "of strangers, over these documents" in shown.stdout
    assert "4 documents, 4 passages; all-minilm-l6-v2" in shown.stdout

    results = [str(tmp_path / name / "result.json") for name in ("one", "two")]
    compared = edgerag("eval", "compare", *results)
    assert compared.returncode == 0, compared.stderr
    assert "fused ndcg@10" in compared.stdout and "strangers answered" in compared.stdout
    rows = json.loads(edgerag("eval", "compare", *results, "--json").stdout)["rows"]
    assert {row["difference"]["p"] for row in rows if row["measure"].startswith("fused")} == {1.0}


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_the_questions_of_the_examples_over_the_demo() -> None:
    ingested = edgerag("--library", "demo", "ingest", str(CHECKOUT / "examples" / "docs"), "--quiet")
    assert ingested.returncode == 0, ingested.stderr
    done = edgerag("eval", str(CHECKOUT / "examples" / "questions.csv"), "--library", "demo", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert figures["stages"]["fused"]["hit@5"] >= 0.9
    assert figures["refusal"]["unanswerable"] >= 2 and figures["refusal"]["answerable_refused"] <= 0.1


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["nowhere"], "no file or folder"),
        (["compare", "one.json"], "Two results"),
        (["one.csv", "two.csv"], "One set at a time"),
        (["set.csv"], "line 2: nothing is expected"),
    ],
)
def test_what_cannot_be_judged_is_told(
    arguments: list[str], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set.csv").write_text("question,answer\nWhat?,\n")
    done = edgerag("eval", *arguments)
    assert done.returncode == 2 and fault in done.stderr and not done.stdout
