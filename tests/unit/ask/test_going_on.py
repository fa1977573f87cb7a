"""An answer that was stopped goes on where it ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import pytest
from fakes import HashingEmbedder, ScriptedGenerator

from edgerag.ask.pipeline import ask
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.errors import UsageError
from edgerag.index.library import Library
from edgerag.types import (
    Answer,
    AnswerDelta,
    AnswerDone,
    AskEvent,
    Generated,
    HitsFound,
    Message,
    Passage,
    PromptReady,
    Turn,
    Unfinished,
)

TEXTS = {
    "/handbook/pump.txt": "The lid screws of the pump need a torque of 12 newton metres. Grease them every year.",
    "/handbook/codes.txt": "Error E-1042 means that the inlet filter is blocked. Clean the filter with warm water.",
}
TORQUE = "Which torque do the lid screws of the pump need?"
WHOLE = "The lid screws of the pump need a torque of 12 newton metres [1]. Grease them every year [1]."
FIRST_WORDS = 9
LibraryOf = Callable[..., Library]


class Writer(ScriptedGenerator):
    """Goes on behind the words of its reply that stand at the end of the prompt."""

    def generate(self, tokens: Sequence[int], **options: object) -> Iterator[Generated]:  # type: ignore[override]
        words = self.reply.split()
        ends = [n for n in range(len(words), 0, -1) if tuple(tokens[-n:]) == self.encode_text(" ".join(words[:n]))]
        rest = Writer("".join(f" {word}" for word in words[ends[0] :]) if ends else self.reply)
        yield from ScriptedGenerator.generate(rest, tokens, **options)  # type: ignore[arg-type]


@pytest.fixture
def library(library_of: LibraryOf) -> Library:
    return library_of(TEXTS, embedder=HashingEmbedder(dimension=256))


def events_of(
    library: Library, *, tokens: int = 200, unfinished: Unfinished | None = None, history: Sequence[Turn] = ()
) -> list[AskEvent]:
    return list(
        ask(
            TORQUE,
            library=library,
            embedder=lambda: HashingEmbedder(dimension=256),
            generator=lambda: Writer(WHOLE),
            retrieval=RetrievalSettings(),
            generation=GenerationSettings(answer_tokens=tokens),
            unfinished=unfinished,
            history=history,
            cancelled=lambda: False,
        )
    )


def answer_of(events: Sequence[AskEvent]) -> Answer:
    last = events[-1]
    assert isinstance(last, AnswerDone)
    assert "".join(e.text for e in events if isinstance(e, AnswerDelta)) == last.answer.text
    return last.answer


def kept(unfinished: Unfinished) -> Unfinished:
    """As a thread keeps it: without the words of its passages."""

    def blank(message: Message) -> Message:
        parts = (dataclasses.replace(p, text="") if isinstance(p, Passage) else p for p in message.parts)
        return dataclasses.replace(message, parts=tuple(parts))

    return dataclasses.replace(unfinished, messages=tuple(map(blank, unfinished.messages)))


def test_a_cut_answer_ends_as_if_it_had_not_been_cut(library: Library) -> None:
    whole = answer_of(events_of(library))
    cut = answer_of(events_of(library, tokens=FIRST_WORDS))
    assert cut.stop_reason == "length" and cut.can_go_on
    assert whole.text.startswith(cut.text.removesuffix(" [1]"))
    events = events_of(library, unfinished=kept(cut.unfinished))
    assert not any(isinstance(event, HitsFound) for event in events), "nothing is looked up again"
    done = answer_of(events)
    assert done.text == whole.text
    assert done.stop_reason == "end"
    assert [(s.number, s.quote, s.cited) for s in done.sources] == [(s.number, s.quote, s.cited) for s in whole.sources]
    assert done.sentences == whole.sentences
    assert done.messages == whole.messages, "the conversation goes on from it as from any other"


def test_it_can_be_cut_and_go_on_more_than_once(library: Library) -> None:
    answer = answer_of(events_of(library, tokens=FIRST_WORDS))
    for _ in range(10):
        if not answer.can_go_on:
            break
        answer = answer_of(events_of(library, tokens=20, unfinished=kept(answer.unfinished)))
    assert answer.text == answer_of(events_of(library)).text


def test_the_prompt_is_the_one_of_before_with_what_was_written(library: Library) -> None:
    first = events_of(library, tokens=FIRST_WORDS)
    again = events_of(library, unfinished=kept(answer_of(first).unfinished))
    prompts = [next(e.prompt for e in events if isinstance(e, PromptReady)) for events in (first, again)]
    assert prompts[1].tokens[: len(prompts[0].tokens)] == prompts[0].tokens
    assert len(prompts[1].tokens) == len(prompts[0].tokens) + FIRST_WORDS


def test_it_does_not_go_on_over_documents_that_have_changed(library: Library) -> None:
    cut = answer_of(events_of(library, tokens=FIRST_WORDS))
    document = library.document_by_path("/handbook/pump.txt")
    assert document is not None
    library.remove_documents([document.id])
    with pytest.raises(UsageError, match="have changed since"):
        events_of(library, unfinished=kept(cut.unfinished))


def test_a_kept_conversation_is_history_as_if_it_were_of_now(library: Library) -> None:
    whole = answer_of(events_of(library))
    prompts = []
    for messages in (whole.messages, kept(Unfinished(whole.messages, (), ())).messages):
        events = events_of(library, history=[Turn(TORQUE, whole.text, messages=messages)])
        prompts.append(next(e.prompt.messages for e in events if isinstance(e, PromptReady)))
    assert prompts[0] == prompts[1]
    assert len(prompts[0]) > 3, "it goes on behind the conversation"
