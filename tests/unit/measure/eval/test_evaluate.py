"""Whole evaluations over small libraries, with stand-ins for the models."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from fakes import HashingEmbedder, ScriptedGenerator
from unit.measure.eval.craft import FACTS, animals

from edgerag.config import GenerationSettings, RetrievalSettings, Settings
from edgerag.errors import Cancelled, UsageError
from edgerag.locations import Locations
from edgerag.measure.eval.compare import compare
from edgerag.measure.eval.evaluate import Options, Watcher, evaluate
from edgerag.measure.eval.folder import markdown, write_folder
from edgerag.measure.eval.result import Result, read_result, result_record
from edgerag.measure.eval.sets import Expected, Question, QuestionSet
from edgerag.session import Session
from edgerag.types import IngestProgress


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder(dimension=256)


@pytest.fixture
def session(tmp_path: Path, embedder: HashingEmbedder) -> Session:
    return open_session(tmp_path, embedder)


def open_session(tmp_path: Path, embedder: HashingEmbedder, settings: Settings | None = None) -> Session:
    generator = ScriptedGenerator("It eats crayfish [1].")
    return Session(settings or Settings(), Locations(tmp_path), embedder=lambda: embedder, generator=lambda: generator)


def run(
    session: Session,
    tmp_path: Path,
    questions: QuestionSet | None = None,
    *,
    foreign: tuple[QuestionSet, ...] = (),
    stop_after: int = 10**9,
    **options: object,
) -> Result:
    told: list[object] = []

    def ingesting(progress: IngestProgress) -> None:
        told.append(progress)

    def asking(done: int, total: int) -> None:
        told.append((done, total))

    return evaluate(
        questions or animals(),
        session,
        foreign=foreign,
        options=Options(cache=tmp_path / "cache", **options),  # type: ignore[arg-type]
        watcher=Watcher(ingesting, asking),
        cancelled=lambda: len(told) > stop_after,
    )


def figures(result: Result) -> dict[str, object]:
    return result_record(result, per_question=False)["figures"]  # type: ignore[no-any-return]


def test_a_set_with_documents(session: Session, tmp_path: Path) -> None:
    with session:
        result = run(session, tmp_path)
    record = result_record(result, per_question=True)
    found = record["figures"]
    assert list(found["stages"])[:3] == ["keyword", "vector", "fused"] and list(found["stages"])[-1] == "sources"
    assert found["stages"]["fused"]["hit@1"] == found["stages"]["fused"]["ndcg@10"] == 1
    assert found["refusal"]["answerable"] == 4 and found["refusal"]["answerable_refused"] == 0
    assert found["refusal"]["unanswerable"] == 1 and found["refusal"]["unanswerable_answered"] == 0
    assert {"keyword", "embed", "vector", "select", "to_sources", "total"} <= set(found["latency_ms"])
    assert found["answers"]["holds_gold"] == 1 and "exact_match" not in found["answers"]
    assert record["documents"] == 4 and record["passages"] == "chunked" and record["chat"] == ""
    assert {question["id"]: question["found"] for question in record["questions"]}["q-none"] is False


def test_documents_are_embedded_once(session: Session, tmp_path: Path, embedder: HashingEmbedder) -> None:
    with session:
        first = run(session, tmp_path)
        assert len(embedder.embedded) == 4
        embedder.embedded.clear()
        again = run(session, tmp_path)
        assert embedder.embedded == []
        run(session, tmp_path, passages="whole")
        assert sorted(embedder.embedded) == sorted(FACTS.values()), "cut otherwise, it is another library"
    one, other = figures(first), figures(again)
    assert {**one, "latency_ms": 0} == {**other, "latency_ms": 0}


def test_what_was_stopped_goes_on(session: Session, tmp_path: Path, embedder: HashingEmbedder) -> None:
    with session:
        # The library is stopped after its first batch of vectors, before it is marked as made.
        with pytest.raises(Cancelled):
            run(session, tmp_path, stop_after=1)
        assert len(embedder.embedded) == 4
        assert figures(run(session, tmp_path))["stages"]["fused"]["hit@1"] == 1  # type: ignore[index]
        assert len(embedder.embedded) == 4, "what was embedded is kept"
        with pytest.raises(Cancelled):
            run(session, tmp_path, stop_after=2)


def test_answers_of_a_model(session: Session, tmp_path: Path) -> None:
    with session:
        result = run(session, tmp_path, answers=True)
    found = result_record(result, per_question=False)
    assert found["chat"] == "scripted"
    # One of four answers is right: that of the otter.
    assert found["figures"]["answers"]["holds_gold"] == 0.25
    assert 0 < found["figures"]["answers"]["f1"] < 0.5 and found["figures"]["answers"]["exact_match"] == 0
    by_id = {question.id: question for question in result.questions}
    otter = by_id["q-otter"].answer
    assert otter is not None and otter.citation_precision == otter.citation_recall == 1
    assert by_id["q-none"].answer is None
    assert "first_token" in found["figures"]["latency_ms"]


def test_answers_need_a_model_that_may_write(tmp_path: Path, embedder: HashingEmbedder) -> None:
    settings = Settings(generation=GenerationSettings(mode="instant"))
    with open_session(tmp_path, embedder, settings) as session, pytest.raises(UsageError, match="--no-llm"):
        run(session, tmp_path, answers=True)


def test_questions_of_another_set(session: Session, tmp_path: Path) -> None:
    questions = (
        Question("q-otter", "What does the otter eat at night?", (Expected("x"),), ("crayfish",), 0),
        Question("s2", "Who won the election of 1960?", (Expected("y"),), (), 1),
    )
    strangers = QuestionSet("strangers", (), questions)
    with session:
        result = run(session, tmp_path, foreign=(strangers,))
        with pytest.raises(UsageError, match="same name"):
            run(session, tmp_path, foreign=(strangers, strangers))
    refusal = figures(result)["refusal"]
    assert refusal["foreign"] == {"strangers": {"questions": 2, "answered": 0.5}}  # type: ignore[index]
    assert refusal["answerable"] == 4, "ids of another set are its own"  # type: ignore[index]
    assert figures(result)["judged"] == 4


def test_halves_and_limits(session: Session, tmp_path: Path) -> None:
    with session:
        report = run(session, tmp_path, half="report")
        assert [question.id for question in report.questions] == ["q-heron", "q-swift"]
        assert len(run(session, tmp_path, limit=2).questions) == 2
        only_even = dataclasses.replace(animals(), questions=animals().questions[:1])
        with pytest.raises(UsageError, match="--half all"):
            run(session, tmp_path, only_even, half="report")


def test_the_library_of_the_user(session: Session, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in FACTS.items():
        (docs / f"{name}.md").write_text(f"# {name}\n\n{text}\n")
    mine = QuestionSet(
        "mine",
        (),
        (
            Question("1", "When does the badger sleep?", (Expected("badger.md"),), (), 0, "mine.csv, line 2"),
            Question("2", "What does the heron wait for?", (Expected(text="waits for FISH"),), (), 1),
            Question("3", "Where does the swift sleep?", (Expected("heron.md"),), (), 2),
        ),
    )
    with session:
        list(session.ingest([docs]))
        record = result_record(run(session, tmp_path, mine), per_question=True)
        assert record["passages"] == "library" and not (tmp_path / "cache").exists()
        assert [q["stages"]["fused"]["first_rank"] for q in record["questions"]][:2] == [1, 1]
        assert record["questions"][2]["stages"]["fused"]["figures"]["hit@1"] == 0
        wrong = dataclasses.replace(mine.questions[0], expected=(Expected("beaver.md"),))
        with pytest.raises(UsageError, match=r"mine\.csv, line 2: .*'beaver\.md'"):
            run(session, tmp_path, dataclasses.replace(mine, questions=(wrong,)))


def test_results_are_kept_read_and_compared(tmp_path: Path, embedder: HashingEmbedder) -> None:
    with open_session(tmp_path, embedder) as session:
        good = run(session, tmp_path)
    one_source = Settings(retrieval=RetrievalSettings(source_count=1, candidate_count=1))
    with open_session(tmp_path, embedder, one_source) as session:
        narrow = run(session, tmp_path)
    write_folder(made(tmp_path / "good"), good)
    write_folder(made(tmp_path / "narrow"), narrow)
    read = read_result(tmp_path / "good" / "result.json")
    assert figures(read) == figures(good) and read.about == good.about
    same = compare(read, read)
    assert same.questions == 5 and {row.difference.p for row in same.rows} == {1.0}
    assert {"keyword hit@1", "fused ndcg@10", "sources recall@10", "answerable refused"} <= {
        r.measure for r in same.rows
    }
    compared = compare(read, read_result(tmp_path / "narrow" / "result.json"))
    assert all(row.difference.mean == pytest.approx(row.second - row.first) for row in compared.rows)


def test_only_what_both_have_is_compared(session: Session, tmp_path: Path) -> None:
    other = dataclasses.replace(animals(), questions=animals().questions[:4])
    with session:
        every, half = run(session, tmp_path), run(session, tmp_path, half="tune")
        assert compare(every, half).questions == 3 and compare(every, half).only_first == 2
        with pytest.raises(UsageError, match="no question"):
            compare(run(session, tmp_path, half="report"), half)
        with pytest.raises(UsageError, match="different sets"):
            compare(every, run(session, tmp_path, other))


def test_the_report_of_a_folder(session: Session, tmp_path: Path) -> None:
    first, *others = animals().questions
    hostile_question = dataclasses.replace(first, text="When does the badger sleep?\x9b2J")
    with session:
        result = run(session, tmp_path, dataclasses.replace(animals(), questions=(hostile_question, *others)))
    files = {file.name: file.read_text(encoding="utf-8") for file in write_folder(made(tmp_path / "out"), result)}
    assert set(files) == {"result.json", "report.md", "ranking.svg", "hits.svg", "times.svg"}
    assert "| fused | 1.000 |" in files["report.md"] and "](hits.svg)" in files["report.md"]
    assert len(json.loads(files["result.json"])["questions"]) == 5
    assert "\x9b" not in files["result.json"] and "\\u009b" in files["result.json"]
    hostile = {**result_record(result, per_question=False), "set": "a|b\n<script>"}
    assert "a\\|b &lt;script>" in markdown(hostile, charts=[])


@pytest.mark.parametrize(
    "content",
    ["", "[]", "[" * 100_000, '{"format": 1}', '{"format": 99, "questions": []}', '{"format": 1, "questions": [{}]}'],
    ids=range(6),
)
def test_what_is_no_result(tmp_path: Path, content: str) -> None:
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(UsageError, match=r"result\.json"):
        read_result(tmp_path / "result.json")


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
