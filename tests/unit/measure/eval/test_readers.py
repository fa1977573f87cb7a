from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgerag.errors import UsageError
from edgerag.measure.eval.readers import read_set
from edgerag.measure.eval.sets import Expected, evenly, half_of

CORPUS = [
    {"_id": "a", "title": "Badgers", "text": "They sleep by day."},
    {"_id": "b", "text": "Herons\u2028wait."},
    {"_id": "c", "title": "Empty", "text": " "},
]
QUERIES = [
    {"_id": "1", "text": "badger?"},
    {"_id": "2", "text": "never judged"},
    {"_id": "3", "text": "heron?", "metadata": {"answers": ["wait"]}},
    {"_id": "4", "text": "nothing relevant"},
]
QRELS = "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n3\tb\t1\n4\ta\t0\n"


def beir(folder: Path, *, corpus: str = "", queries: str = "", **qrels: str) -> Path:
    (folder / "qrels").mkdir(parents=True)
    lines = "\n".join(json.dumps(record, ensure_ascii=False) for record in CORPUS)
    (folder / "corpus.jsonl").write_text(corpus or lines + "\n", encoding="utf-8")
    asked = "\n".join(json.dumps(record) for record in QUERIES)
    (folder / "queries.jsonl").write_text(queries or asked, encoding="utf-8")
    for name, content in (qrels or {"test": QRELS}).items():
        (folder / "qrels" / f"{name}.tsv").write_text(content, encoding="utf-8")
    return folder


def squad(file: Path, *qas: dict[str, object]) -> Path:
    paragraphs = [{"context": "\ufeffThe heron waits.", "qas": list(qas)}, {"context": "Other.", "qas": []}]
    file.write_text(json.dumps({"data": [{"title": "Birds", "paragraphs": paragraphs}]}), encoding="utf-8")
    return file


def test_a_beir_folder(tmp_path: Path) -> None:
    found = read_set(beir(tmp_path / "animals"))
    assert found.name == "animals"
    assert [(text.id, text.title, text.text) for text in found.texts] == [
        ("a", "Badgers", "They sleep by day."),
        ("b", "", "Herons\u2028wait."),
    ]
    assert [(q.id, q.expected, q.answers) for q in found.questions] == [
        ("1", (Expected("a", grade=2.0),), ()),
        ("3", (Expected("b"),), ("wait",)),
    ]
    assert any("1 documents without text" in note for note in found.notes)
    assert any("1 queries without a relevant" in note for note in found.notes)


def test_which_judgements(tmp_path: Path) -> None:
    folder = beir(tmp_path / "set", train=QRELS, dev="1\ta\t1\n")
    assert len(read_set(folder).questions) == 1, "dev comes before train"
    assert len(read_set(folder, qrels="train").questions) == 2
    with pytest.raises(UsageError, match=r"no judgements 'test'.*dev, train"):
        read_set(folder, qrels="test")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"corpus": '{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}'}, r"corpus\.jsonl, line 2: .*'a' already"),
        ({"corpus": '{"_id": "a", "text": "x"}\n\nnonsense'}, r"corpus\.jsonl, line 3: not JSON"),
        ({"corpus": '{"_id": "a"}'}, r"corpus\.jsonl, line 1: 'text' is missing"),
        ({"corpus": '{"_id": 7, "text": "x"}'}, "'_id' is no text"),
        ({"corpus": "[1]"}, r"line 1: no JSON object"),
        ({"queries": '{"_id": "1", "text": "  "}'}, r"queries\.jsonl, line 1: the question is empty"),
        ({"queries": '{"_id": "1", "text": "x", "metadata": {"answers": "x"}}'}, "metadata.answers is no list"),
        ({"test": "1\ta\n"}, r"test\.tsv, line 1: 2 fields"),
        ({"test": "query-id\tcorpus-id\tscore\n1\ta\thigh\n"}, r"test\.tsv, line 2: the grade 'high'"),
        ({"test": "1\ta\tNaN\n"}, r"test\.tsv, line 1: the grade 'NaN' is no number"),
        ({"test": "1\ta\t1e400\n"}, r"the grade '1e400' is no number"),
        ({"queries": '{"_id": "1", "text": "\\u0000\\u0007"}'}, r"queries\.jsonl, line 1: the question is empty"),
        ({"queries": "[" * 100_000}, r"queries\.jsonl, line 1: not JSON"),
        ({"test": "1\tz\t1\n"}, r"line 1: there is no document 'z'"),
        ({"test": "9\ta\t1\n"}, "name the query '9'"),
    ],
)
def test_faults_of_a_beir_folder_are_named(tmp_path: Path, changes: dict[str, str], fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        read_set(beir(tmp_path / "set", **changes))


def test_squad(tmp_path: Path) -> None:
    file = squad(
        tmp_path / "birds.json",
        {"id": "x", "question": "What?", "answers": [{"text": "waits"}, {"text": "waits"}, {"text": "it waits"}]},
        {"question": "Who lends?", "answers": [], "is_impossible": True, "plausible_answers": [{"text": "heron"}]},
    )
    found = read_set(file)
    assert found.name == "birds"
    assert [(text.id, text.title, text.text) for text in found.texts] == [
        ("0", "", "The heron waits."),
        ("1", "", "Other."),
    ]
    first, second = found.questions
    assert (first.id, first.expected, first.answers) == ("x", (Expected("0"),), ("waits", "it waits"))
    assert (second.id, second.answerable, second.answers) == ("1", False, ())


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("{}", "'data' is no list"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', r"data\[0\], paragraphs\[0\]: 'context' is missing"),
        (
            '{"data": [{"paragraphs": [{"context": "x", "qas": [{"question": "q", "answers": []}]}]}]}',
            r"qas\[0\]: no answer",
        ),
        ('{"data": []}', "has no questions"),
    ],
)
def test_faults_of_squad_are_named(tmp_path: Path, content: str, fault: str) -> None:
    file = tmp_path / "set.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=fault):
        read_set(file)


def test_questions_need_ids_of_their_own(tmp_path: Path) -> None:
    asked = {"id": "x", "question": "What?", "answers": [{"text": "waits"}]}
    with pytest.raises(UsageError, match=r"qas\[1\].*id 'x'"):
        read_set(squad(tmp_path / "set.json", asked, asked))


def test_what_is_no_set(tmp_path: Path) -> None:
    for name, content in {"notes.txt": b"x", "bad.csv": b"question\n\xff"}.items():
        (tmp_path / name).write_bytes(content)
    for path, fault in {
        "notes.txt": "no set",
        "nowhere.txt": "no file or folder",
        ".": "no BEIR",
        "bad.csv": "UTF-8",
    }.items():
        with pytest.raises(UsageError, match=fault):
            read_set(tmp_path / path)


def test_halves_are_those_of_the_other_benches(tmp_path: Path) -> None:
    """By place in the file, whoever of them is judged."""
    folder = beir(tmp_path / "set", test="1\ta\t1\n2\ta\t1\n3\tb\t1\n", few="1\ta\t1\n3\tb\t1\n")
    questions = read_set(folder).questions
    assert [q.id for q in half_of(questions, "tune")] == ["1", "3"]
    assert [q.id for q in half_of(questions, "report")] == ["2"]
    assert half_of(questions, "all") == questions
    assert [q.id for q in half_of(read_set(folder, qrels="few").questions, "tune")] == ["1", "3"]


def test_a_limit_spreads_over_all() -> None:
    assert evenly(range(10), 3) == (0, 3, 6)
    assert evenly(range(3), 5) == evenly(range(3), None) == (0, 1, 2)


def test_the_fingerprint_tells_sets_apart(tmp_path: Path) -> None:
    one = read_set(beir(tmp_path / "one" / "set"))
    same = read_set(beir(tmp_path / "two" / "set"))
    other = read_set(beir(tmp_path / "three" / "set", test=QRELS.replace("1\ta\t2", "1\ta\t1")))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert one.texts_fingerprint == other.texts_fingerprint, "the library is the same"


def test_a_name_moves_no_cursor(tmp_path: Path) -> None:
    asked = {"question": "What?", "answers": [{"text": "waits"}]}
    assert read_set(squad(tmp_path / "a\x1b[2J\tb.json", asked)).name == "a b"
