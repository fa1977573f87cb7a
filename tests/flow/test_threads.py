"""A conversation over two runs of the program, with the real models: kept, continued, gone on with after a cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from edgerag.config import GenerationSettings, Settings
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.threads.keeping import kept
from edgerag.types import Answer, AnswerDelta, AnswerDone, Passage, PromptReady, Unfinished

EXAMPLES = Path(__file__).parents[2] / "examples" / "docs" / "kestrel-p40-manual.md"
TORQUE = "Which torque do the lid screws of the pump need?"
CUT_AFTER_TOKENS = 8


def session_at(home: Path, *, answer_tokens: int = 48) -> Session:
    # Without re-used states of passages, which are kept to the bit only where they stand as they were computed.
    generation = GenerationSettings(answer_tokens=answer_tokens, temperature=0.0, kv="exact")
    settings = Settings()
    retrieval = replace(settings.retrieval, vector_deadline_ms=0)
    return Session(replace(settings, generation=generation, retrieval=retrieval), Locations(home))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "models").symlink_to(models_folder)
    with session_at(folder) as session:
        list(session.ingest([EXAMPLES]))
    return folder


def answered(
    session: Session,
    exchange_id: int,
    question: str,
    *,
    parent_id: int | None = None,
    unfinished: Unfinished | None = None,
) -> tuple[Answer, PromptReady | None, str]:
    store = session.threads
    events = session.ask(question, history=store.history(parent_id), unfinished=unfinished)
    answer, prompt, said = None, None, ""
    for event in kept(events, store, exchange_id):
        match event:
            case PromptReady():
                prompt = event
            case AnswerDelta():
                said += event.text
            case AnswerDone():
                answer = event.answer
    assert answer is not None and said == answer.text
    return answer, prompt, said


def passages(prompt: PromptReady | None) -> Iterator[Passage]:
    assert prompt is not None
    return (p for message in prompt.prompt.messages for p in message.parts if isinstance(p, Passage))


def test_a_cut_answer_goes_on_in_the_next_run_and_so_does_the_conversation(filled: Path) -> None:
    with session_at(filled) as session:
        whole, _, _ = answered(session, session.threads.ask(TORQUE, library="default").id, TORQUE)
    with session_at(filled, answer_tokens=CUT_AFTER_TOKENS) as session:
        exchange = session.threads.ask(TORQUE, library="default")
        cut, _, _ = answered(session, exchange.id, TORQUE)
        assert cut.stop_reason == "length"
    with session_at(filled) as session:
        unfinished = session.threads.unfinished(exchange.id).unfinished
        done, prompt, _ = answered(session, exchange.id, TORQUE, unfinished=unfinished)
        assert done.text.startswith(cut.text.removesuffix(" [1]"))
        assert len(done.text) > len(cut.text)
        assert done.stop_reason == "end"
        assert "9 Nm" in done.text and "9 Nm" in whole.text
        assert all(passage.text.strip() for passage in passages(prompt))
    with session_at(filled) as session:
        (kept_one,) = session.threads.last(exchange.thread_id, count=5)
        assert (kept_one.text, kept_one.state) == (done.text, "done")
        states = session.find_sources(done.sources, kept_one.passage_hashes)
        assert {found.state for found in states} == {"current"}
        follow_up = "And how often is it replaced?"
        second = session.threads.ask(follow_up, library="default", thread_id=exchange.thread_id, parent_id=exchange.id)
        _, prompt, _ = answered(session, second.id, follow_up, parent_id=exchange.id)
        assert prompt is not None and len(prompt.prompt.messages) > 3, "it goes on behind the conversation"
        assert all(passage.text.strip() for passage in passages(prompt))
