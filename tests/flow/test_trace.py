"""Every answer and every ingest leaves a trace, by the real models: complete, and without a word of anybody."""

from __future__ import annotations

import dataclasses
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgerag.config import GenerationSettings, LibrarySettings, MetricsSettings, Settings, TraceSettings
from edgerag.errors import ModelDamaged
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.telemetry.ring import TraceHead, TraceRing
from edgerag.telemetry.spans import Span, TraceTree
from edgerag.types import Answer, AnswerDelta, AnswerDone
from edgerag.ui.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "docs"
QUESTION = "Which torque do the lid screws of the pump need?"
UNRELATED = "Who composed the opera Rusalka about mermaids?"
# As the issue names them: of an answer that a chat model writes from passages.
NAMES = {
    "rag.query", "rag.query.parse", "rag.query.embed", "rag.query.retrieval", "rag.query.retrieval.bm25",
    "rag.query.retrieval.vector", "rag.rerank.score", "rag.context.select", "rag.prompt.assemble", "rag.kv.restore",
    "rag.llm.prefill", "rag.llm.generation", "rag.postprocess.cite",
}  # fmt: skip
NO_MODEL = {"rag.prompt.assemble", "rag.kv.restore", "rag.llm.prefill", "rag.llm.generation", "rag.postprocess.cite"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Path:
    """A home with a library of the examples."""
    home = tmp_path_factory.mktemp("traced")
    (home / "models").symlink_to(models_folder)
    with Session(Settings(), Locations(home)) as session:
        list(session.ingest([EXAMPLES]))
    return home


def settings(*, mode: str = "model", content: bool = False) -> Settings:
    return Settings(
        generation=GenerationSettings(mode=mode, answer_tokens=24),  # type: ignore[arg-type]
        trace=TraceSettings(content=content),
    )


def ask(session: Session, question: str, **more: Any) -> Answer:
    *_, last = session.ask(question, **more)
    assert isinstance(last, AnswerDone)
    assert not session.trace_troubles()
    return last.answer


def last_trace(home: Path, kind: str = "ask") -> tuple[TraceHead, TraceTree, str]:
    with TraceRing(Locations(home).traces_file) as ring:
        head = ring.heads(kind=kind, limit=1)[0]  # type: ignore[arg-type]
        return head, ring.tree(head.trace_id), ring.otlp(head.trace_id)


def names(tree: TraceTree) -> set[str]:
    return {span.name for span in tree.root.walk()}


def span(tree: TraceTree, name: str) -> Span:
    return next(span for span in tree.root.walk() if span.name == name)


def check_nesting(outer: Span) -> None:
    assert outer.start_ns <= outer.end_ns
    for inner in outer.inner:
        assert outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns
        check_nesting(inner)


@pytest.fixture(scope="module")
def answered(base: Path) -> Iterator[tuple[Answer, TraceHead, TraceTree, str]]:
    with Session(settings(), Locations(base)) as session:
        ask(session, "What is in the pump's manual?")
        answer = ask(session, QUESTION)
        yield (answer, *last_trace(base))


def test_an_answer_has_the_spans_of_all_its_steps(answered: tuple[Answer, TraceHead, TraceTree, str]) -> None:
    answer, head, tree, _ = answered
    assert names(tree) >= NAMES
    assert head.outcome == answer.stop_reason
    assert not tree.root.error
    check_nesting(tree.root)


def test_the_figures_are_those_of_the_answer(answered: tuple[Answer, TraceHead, TraceTree, str]) -> None:
    answer, _, tree, _ = answered
    assert answer.prefill is not None and answer.plan is not None and answer.selection is not None
    parse = span(tree, "rag.query.parse").facts
    assert parse["rag.query.parse.length"] == len(QUESTION)
    last = [each for each in tree.root.walk() if each.name == "rag.query.parse"][-1].facts
    assert last["rag.query.parse.language"] == "en"
    assert last["rag.query.parse.entropy_bits"] == round(answer.plan.entropy_bits, 3)
    retrieval = span(tree, "rag.query.retrieval").facts
    assert (retrieval["rag.query.retrieval.type"], retrieval["rag.query.retrieval.early_exit"]) == ("hybrid", False)
    assert retrieval["rag.query.retrieval.k"] == answer.plan.candidate_count
    assert "rag.query.retrieval.deadline_ms" in retrieval
    vector = span(tree, "rag.query.retrieval.vector").facts
    assert vector["rag.query.retrieval.vector.segments"] == 1
    assert vector["rag.query.retrieval.vector.blocks"] >= 1  # type: ignore[operator]
    assert vector["rag.query.retrieval.vector.distances"] >= vector["rag.query.retrieval.vector.hits"]  # type: ignore[operator]
    assert {f"rag.query.retrieval.vector.page_faults_{kind}" for kind in ("minor", "major")} <= set(vector)
    rerank = span(tree, "rag.rerank.score").facts
    assert rerank["rag.rerank.score.model"] == "features"
    assert 0 < rerank["rag.rerank.score.confidence"] <= 1  # type: ignore[operator]
    select = span(tree, "rag.context.select").facts
    assert select["rag.context.select.redundancy"] == round(answer.selection.redundancy, 4)
    assert select["rag.context.select.fill"] == round(answer.selection.fill, 4)
    kv = span(tree, "rag.kv.restore").facts
    assert {"rag.kv.restore.hits", "rag.kv.restore.bytes", "rag.kv.restore.approximate"} <= set(kv)
    prefill = span(tree, "rag.llm.prefill").facts
    assert prefill["rag.llm.prefill.computed"] == answer.prefill.computed_tokens
    batches = [each for each in tree.root.walk() if each.name == "rag.llm.prefill.batch"]
    assert sum(int(each.facts["rag.llm.prefill.batch.tokens"]) for each in batches) == answer.prefill.computed_tokens  # type: ignore[arg-type]
    assert tree.root.facts["rag.answer.tokens"] == answer.tokens.answer


def test_each_token_says_where_its_time_went(answered: tuple[Answer, TraceHead, TraceTree, str]) -> None:
    answer, _, tree, _ = answered
    facts = span(tree, "rag.llm.generation").facts
    assert answer.trace is not None
    rows = {
        kind: facts[f"rag.llm.generation.token.{kind}"]
        for kind in ("ns", "sampling_ns", "decode_ns", "detokenise_ns", "present_ns")
    }
    assert {len(row) for row in rows.values()} == {answer.tokens.answer}  # type: ignore[arg-type]
    assert rows["ns"] == answer.trace.token_ns
    assert list(rows["ns"]) == sorted(rows["ns"])  # type: ignore[arg-type]
    assert all(ns > 0 for ns in rows["sampling_ns"])  # type: ignore[union-attr]
    assert rows["decode_ns"][0] == 0  # type: ignore[index] # that was the prefill
    assert sum(rows["decode_ns"]) > sum(rows["detokenise_ns"])  # type: ignore[arg-type]


def test_nearly_all_of_the_time_is_explained(answered: tuple[Answer, TraceHead, TraceTree, str]) -> None:
    _, _, tree, _ = answered
    assert (
        tree.root.explained_ns() >= 0.9 * tree.root.ns
    )  # bench/tracing.py has the figure; here it must not fall apart


DOCUMENT = "# Quilphor handbook\n\nThe zorblaxine valve wants exactly 42 grenzels of torque, crosswise.\n"
ASKED = "Which grenzels of torque does the zorblaxine valve want?"


def test_no_word_of_anybody_is_in_a_trace(tmp_path: Path, models_folder: Path) -> None:
    (tmp_path / "models").symlink_to(models_folder)
    file = tmp_path / "Vexmurdo" / "plimthorpe.md"
    file.parent.mkdir()
    file.write_text(DOCUMENT, encoding="utf-8")
    with Session(settings(), Locations(tmp_path)) as session:
        list(session.ingest([file.parent]))
        answer = ask(session, ASKED)
    words = set(re.findall(r"[a-z]{4,}", f"{DOCUMENT} {ASKED} {file.parent.name} {file.stem}".lower()))
    assert answer.tokens.answer and {"zorblaxine", "vexmurdo", "torque"} <= words
    for kind in ("ask", "ingest"):
        otlp = last_trace(tmp_path, kind)[2].lower()
        assert not [word for word in words if word in otlp]
        assert answer.text.lower() not in otlp


def test_words_are_kept_when_they_are_asked_for(base: Path) -> None:
    with Session(settings(mode="instant", content=True), Locations(base)) as session:
        answer = ask(session, QUESTION)
    _, tree, _ = last_trace(base)
    assert tree.root.facts["rag.query.text"] == QUESTION
    assert tree.root.facts["rag.answer.text"] == answer.text
    assert answer.sources[0].hit.chunk.path in str(tree.root.facts["rag.source.paths"])


def test_an_instant_answer_has_no_model(base: Path) -> None:
    with Session(settings(mode="instant"), Locations(base)) as session:
        ask(session, QUESTION)
    head, tree, _ = last_trace(base)
    assert head.outcome == "instant"
    assert names(tree) >= NAMES - NO_MODEL
    assert not names(tree) & NO_MODEL
    check_nesting(tree.root)


def test_a_refusal_is_traced(base: Path) -> None:
    with Session(settings(), Locations(base)) as session:
        answer = ask(session, UNRELATED)
    head, tree, _ = last_trace(base)
    assert (answer.stop_reason, head.outcome) == ("no_sources", "no_sources")
    assert tree.root.facts["rag.found"] is False
    assert not names(tree) & NO_MODEL


def test_a_cancelled_answer_is_traced_as_far_as_it_came(base: Path) -> None:
    stop = threading.Event()
    with Session(settings(), Locations(base)) as session:
        for event in session.ask(QUESTION, cancelled=stop.is_set):
            if isinstance(event, AnswerDelta):
                stop.set()
        session.trace_troubles()
    head, tree, _ = last_trace(base)
    assert head.outcome == "cancelled"
    assert names(tree) >= NAMES - {"rag.postprocess.cite"}
    check_nesting(tree.root)


def test_an_answer_that_fails_is_traced_without_its_message(base: Path) -> None:
    class Broken:
        name = "broken"

        def __getattr__(self, name: str) -> Any:
            raise ModelDamaged("no word of this: Kestrel")

        def close(self) -> None:
            pass

    with Session(settings(), Locations(base), generator=lambda: Broken()) as session:  # type: ignore[arg-type, return-value]
        with pytest.raises(ModelDamaged):
            list(session.ask(QUESTION))
        assert not session.trace_troubles()
    head, tree, otlp = last_trace(base)
    assert head.outcome == tree.root.error == "ModelDamaged"
    assert {"rag.query.parse", "rag.query.retrieval", "rag.context.select"} <= names(tree)
    assert "Kestrel" not in otlp


def test_what_nobody_reads_to_its_end_is_abandoned(base: Path) -> None:
    with Session(settings(mode="instant"), Locations(base)) as session:
        events = session.ask(QUESTION)
        next(events)
        events.close()  # type: ignore[attr-defined]
        session.trace_troubles()
    head, _, _ = last_trace(base)
    assert head.outcome == "abandoned"


def test_an_ingest_has_its_stages(base: Path) -> None:
    head, tree, _ = last_trace(base, "ingest")
    stages = ("discover", "parse", "chunk", "embed", "commit", "seal")
    assert names(tree) >= {"rag.ingest", *(f"rag.ingest.{stage}" for stage in stages)}
    assert head.outcome == "done"
    assert tree.root.facts["rag.ingest.files.ingested"] == len([path for path in EXAMPLES.rglob("*") if path.is_file()])
    assert span(tree, "rag.ingest.parse").thread == "parse-ahead"
    check_nesting(tree.root)


def test_nothing_is_kept_when_that_is_turned_off(base: Path, tmp_path: Path, models_folder: Path) -> None:
    (tmp_path / "models").symlink_to(models_folder)
    off = Settings(
        library=LibrarySettings(name=str(base / "indexes" / "default")),
        generation=GenerationSettings(mode="instant"),
        trace=TraceSettings(keep=0),
    )
    with Session(off, Locations(tmp_path)) as session:
        ask(session, QUESTION)
    assert not Locations(tmp_path).traces_file.exists()


def test_what_a_session_did_is_read_at_a_port_of_this_machine(base: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    counted = dataclasses.replace(settings(mode="instant"), metrics=MetricsSettings(port=port))
    with Session(counted, Locations(base)) as session:
        ask(session, QUESTION)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
    assert 'rag_answers_total{outcome="instant"} 1.0' in lines
    assert "rag_retrieval_latency_seconds_count 1.0" in lines
    figures = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(figures["rag_index_resident_bytes"]) > 0
    assert float(figures["rag_process_resident_bytes"]) > float(figures["rag_index_resident_bytes"])


def test_a_home_that_cannot_be_written_spoils_no_answer_and_is_said_once(
    base: Path, tmp_path: Path, models_folder: Path
) -> None:
    (tmp_path / "models").symlink_to(models_folder)
    Locations(tmp_path).traces_file.mkdir()  # in the way
    where = Settings(
        library=LibrarySettings(name=str(base / "indexes" / "default")), generation=GenerationSettings(mode="instant")
    )
    with Session(where, Locations(tmp_path)) as session:
        said = []
        for _ in range(2):
            *_, last = session.ask(QUESTION)
            assert isinstance(last, AnswerDone) and last.answer.found
            said += session.trace_troubles()
    assert len(said) == 1
    assert "traces" in said[0]


def test_the_command_line_shows_and_writes_traces(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGERAG_HOME", str(base))
    assert main(["ask", QUESTION, "--no-llm"]) == 0
    capsys.readouterr()
    assert main(["trace"]) == 0
    shown = capsys.readouterr().out
    assert "query.retrieval.vector" in shown and "█" in shown and "% of the time" in shown
    assert main(["trace", "--list", "--json"]) == 0
    traces = json.loads(capsys.readouterr().out)["traces"]
    assert traces[0]["outcome"] == "instant"
    assert main(["trace", traces[0]["trace_id"][:10], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["root"]["name"] == "rag.query"
    assert main(["trace", "--slowest", "--json"]) == 0
    slowest = json.loads(capsys.readouterr().out)
    assert slowest["duration_ns"] == max(trace["duration_ns"] for trace in traces)
    files = {kind: tmp_path / f"{kind}.out" for kind in ("perfetto", "speedscope", "html", "otlp-json")}
    assert main(["trace", *(word for kind, file in files.items() for word in (f"--{kind}", str(file)))]) == 0
    assert all(file.stat().st_size for file in files.values())
    for picture in ("heat.svg", "heat.png"):
        assert main(["trace", "--heatmap", str(tmp_path / picture)]) == 0
    assert (tmp_path / "heat.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")
    assert main(["trace", "--ingest"]) == 0
    assert "ingest.parse" in capsys.readouterr().out


def test_what_is_not_there_is_said(
    home: Path, base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace"]) == 3
    assert "No answer was traced" in capsys.readouterr().err
    monkeypatch.setenv("EDGERAG_HOME", str(base))
    for wanted in ("ffffffffffffffffffff", "../x", "%", ""):
        assert main(["trace", wanted]) == 3
    assert main(["trace", "--heatmap", "x.gif"]) == 2
