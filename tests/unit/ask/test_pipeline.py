from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from fakes import HashingEmbedder, ScriptedGenerator

from edgerag.ask.asked import UNCONFIRMED
from edgerag.ask.pipeline import NOT_FOUND, ask, search
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.errors import EmbedderMismatch, LibraryError, ModelDamaged, ModelMissing, UsageError
from edgerag.index.library import Library
from edgerag.types import (
    Answer,
    AnswerDelta,
    AnswerDone,
    AskEvent,
    CancelCheck,
    Embedder,
    EncodedChat,
    Filter,
    Generated,
    Generator,
    HitsFound,
    InstantAnswer,
    Message,
    PassageSpan,
    PlanMade,
    PromptReady,
    Sampling,
    ThoughtDelta,
    Turn,
)

if TYPE_CHECKING:
    from edgerag.types import Vectors

TEXTS = {
    "/handbook/pump.txt": "The lid screws of the pump need a torque of 12 newton metres. Grease them every year.",
    "/handbook/codes.txt": "Error E-1042 means that the inlet filter is blocked. Clean the filter with warm water.",
    "/handbook/leave.txt": "Employees have thirty days of leave. The notice period is six weeks to a quarter's end.",
    "/handbook/vaccines.txt": "Vaccines are stored between two and eight degrees. A warmer dose must be destroyed.",
    "/handbook/水泵.txt": "水泵每六个月需要更换一次机油。更换之前必须切断电源。",
}
TORQUE = "Which torque do the lid screws of the pump need?"

LibraryOf = Callable[..., Library]


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder(dimension=256)


@pytest.fixture
def library(library_of: LibraryOf, embedder: HashingEmbedder) -> Library:
    return library_of(TEXTS, embedder=embedder)


def never() -> bool:
    return False


def events_of(
    question: str,
    library: Library,
    *,
    embedder: Callable[[], Embedder] | None = None,
    generator: Callable[[], Generator] | None = None,
    history: Sequence[Turn] = (),
    cancelled: CancelCheck = never,
    retrieval: RetrievalSettings | None = None,
    generation: GenerationSettings | None = None,
    where: Filter | None = None,
) -> list[AskEvent]:
    return list(
        ask(
            question,
            library=library,
            embedder=embedder or (lambda: HashingEmbedder(dimension=256)),
            generator=generator or (lambda: ScriptedGenerator("It is 12 newton metres [1].")),
            retrieval=retrieval or RetrievalSettings(),
            generation=generation or GenerationSettings(),
            history=history,
            cancelled=cancelled,
            where=where,
        )
    )


def answer_of(events: Sequence[AskEvent]) -> Answer:
    last = events[-1]
    assert isinstance(last, AnswerDone)
    streamed = "".join(event.text for event in events if isinstance(event, AnswerDelta))
    assert streamed == last.answer.text, "what streamed must be the answer"
    return last.answer


def unavailable() -> Embedder:
    raise ModelMissing("There is no embedder.", remedy="Run `edgerag models pull`.")


def test_events_come_in_order(library: Library) -> None:
    kinds = [type(event) for event in events_of(TORQUE, library)]
    assert kinds[:4] == [PlanMade, HitsFound, InstantAnswer, PromptReady]
    assert set(kinds[4:-1]) == {AnswerDelta}
    assert kinds[-1] is AnswerDone


def test_the_answer_comes_with_its_sources(library: Library) -> None:
    answer = answer_of(events_of(TORQUE, library))
    assert answer.text == "It is 12 newton metres [1]."
    assert answer.found and answer.stop_reason == "end" and answer.model == "scripted"
    first = answer.sources[0]
    assert first.hit.chunk.path == "/handbook/pump.txt" and first.cited
    assert "torque of 12 newton metres" in first.quote
    text = library.parsed_document(first.hit.chunk.document_id).text
    assert text[first.quote_start : first.quote_start + len(first.quote)] == first.quote
    assert [source.number for source in answer.sources] == list(range(1, len(answer.sources) + 1))


def test_every_stage_is_timed(library: Library) -> None:
    stages = [time.stage for time in answer_of(events_of(TORQUE, library)).timings]
    expected = {
        "plan",
        "keyword",
        "words",
        "embed",
        "vector",
        "fuse",
        "rerank",
        "read",
        "select",
        "instant",
        "model_load",
        "prompt",
        "first_token",
        "generate",
        "check",
    }
    assert set(stages) == expected | {"total"}
    assert stages[-1] == "total"


def test_where_nothing_is_found_the_nearest_are_named_and_are_no_sources(library: Library) -> None:
    answer = answer_of(events_of("How is a sonata for bassoon composed?", library))
    assert answer.text == NOT_FOUND and not answer.found and not answer.sources
    assert answer.probability is not None and answer.probability < RetrievalSettings().found_probability
    assert 1 <= len(answer.nearest) <= 3


def test_how_sure_a_passage_must_be_is_a_setting(library: Library) -> None:
    found = answer_of(events_of(TORQUE, library))
    assert found.probability is not None and found.probability > 0.9 and not found.nearest
    strict = answer_of(events_of(TORQUE, library, retrieval=RetrievalSettings(found_probability=1.0)))
    assert not strict.found and strict.nearest[0].chunk.path == "/handbook/pump.txt"
    lax = answer_of(events_of("Bassoon sonata?", library, retrieval=RetrievalSettings(found_probability=0.0)))
    assert lax.found


def test_words_that_are_sure_are_answered_without_vectors_and_it_is_told(library: Library) -> None:
    answer = answer_of(events_of("E-1042", library, embedder=unavailable))
    assert answer.exited_early and answer.sources[0].hit.chunk.path == "/handbook/codes.txt"
    assert not any("words only" in note for note in answer.notes)
    assert not answer_of(events_of(TORQUE, library)).exited_early


def test_words_that_the_conversation_lent_make_no_passage_less_relevant(library: Library) -> None:
    asked = "And the notice period?"
    alone = answer_of(events_of(asked, library))
    later = answer_of(events_of(asked, library, history=[Turn(TORQUE, "It is 12 newton metres.")]))
    assert later.plan is not None and later.plan.added_words
    for answer in (alone, later):
        assert answer.found
        assert "/handbook/leave.txt" in [source.hit.chunk.path for source in answer.sources]
    leave = next(s.hit.scores for s in later.sources if s.hit.chunk.path == "/handbook/leave.txt")
    assert leave.covered == 1.0


def test_a_change_of_embedder_between_search_and_ranking_leaves_the_words(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(_: Sequence[int]) -> dict[int, Vectors]:
        raise EmbedderMismatch("The library was given to another embedder.")

    monkeypatch.setattr(library, "vectors_of", changed)
    answer = answer_of(events_of(TORQUE, library))
    assert answer.sources[0].hit.chunk.path == "/handbook/pump.txt"
    assert answer.sources[0].hit.scores.nearness is None


def test_tokens_are_counted(library: Library) -> None:
    events = events_of(TORQUE, library)
    (prompt,) = [event.prompt for event in events if isinstance(event, PromptReady)]
    answer = answer_of(events)
    assert answer.tokens.prompt == len(prompt.tokens)
    assert answer.tokens.answer == 6


def test_nothing_relevant_is_said_and_the_model_is_not_asked(library: Library) -> None:
    def forbidden() -> Generator:
        raise AssertionError("the model must not be loaded")

    answer = answer_of(events_of("Who won the football world cup in 1998?", library, generator=forbidden))
    assert answer.text == NOT_FOUND == "This is not in these documents."
    assert not answer.found and answer.sources == () and answer.stop_reason == "no_sources"


@pytest.mark.parametrize("question", ["", "  \n", "\x00"])
def test_an_empty_question_is_refused(library: Library, question: str) -> None:
    with pytest.raises(UsageError):
        events_of(question, library)
    with pytest.raises(UsageError):
        search(question, library=library, embedder=unavailable, settings=RetrievalSettings(), limit=5)


def test_an_empty_library_says_what_to_do(library_of: LibraryOf) -> None:
    with pytest.raises(LibraryError, match="no documents yet") as caught:
        events_of("What?", library_of({}))
    assert "edgerag ingest" in caught.value.remedy


def test_a_very_long_question_is_answered_and_the_cut_is_told(library: Library) -> None:
    answer = answer_of(events_of(f"{TORQUE} " * 1_050, library))
    assert answer.found
    assert answer.sources[0].hit.chunk.path == "/handbook/pump.txt"
    assert any("very long" in note for note in answer.notes)


def test_without_an_embedder_words_are_searched(library: Library) -> None:
    answer = answer_of(events_of(TORQUE, library, embedder=unavailable))
    assert answer.sources[0].hit.chunk.path == "/handbook/pump.txt"
    assert answer.sources[0].hit.scores.vector is None
    assert any("words only" in note and "no embedder" in note for note in answer.notes)


def test_another_embedder_than_the_librarys_is_not_used(library: Library) -> None:
    other = HashingEmbedder(dimension=64, name="other")
    answer = answer_of(events_of(TORQUE, library, embedder=lambda: other))
    assert answer.found
    assert any("'hashing'" in note and "'other'" in note for note in answer.notes)


def test_without_a_chat_model_the_sources_are_shown(library: Library) -> None:
    def missing() -> Generator:
        raise ModelMissing("There is no chat model.", remedy="Run `edgerag models pull`.")

    events = events_of(TORQUE, library, generator=missing)
    answer = answer_of(events)
    assert answer.stop_reason == "no_model" and answer.found and answer.sources
    assert "“The lid screws of the pump need a torque of 12 newton metres.” [1]" in answer.text
    assert answer.sources[0].cited
    assert any("models pull" in note for note in answer.notes)
    assert not any(isinstance(event, PromptReady) for event in events)


def test_a_language_the_embedder_does_not_know_is_searched_by_words(library_of: LibraryOf) -> None:
    english = HashingEmbedder(dimension=256, languages=("en",))
    answer = answer_of(events_of("水泵多久更换一次机油？", library_of(TEXTS, embedder=english), embedder=unavailable))
    assert answer.sources[0].hit.chunk.path == "/handbook/水泵.txt"
    assert any("not trained" in note for note in answer.notes)


def test_passages_without_vectors_are_told(library_of: LibraryOf, embedder: HashingEmbedder) -> None:
    answer = answer_of(events_of(TORQUE, library_of(TEXTS, embedder=embedder, embedded=2)))
    assert answer.pending_count == 3
    assert any("3 of 5 passages" in note for note in answer.notes)


def test_an_identifier_finds_its_passage(library: Library) -> None:
    answer = answer_of(events_of("What does error E-1042 mean?", library))
    assert answer.sources[0].hit.chunk.path == "/handbook/codes.txt"


@pytest.mark.parametrize("checks_before_stop", range(6))
def test_a_cancel_ends_the_answer_wherever_it_is(library: Library, checks_before_stop: int) -> None:
    checks = iter([False] * checks_before_stop)
    events = events_of(TORQUE, library, cancelled=lambda: next(checks, True))
    assert answer_of(events).stop_reason == "cancelled"


def test_a_cancel_while_a_model_loads_does_not_wait_for_it(library: Library) -> None:
    import threading

    released = threading.Event()

    def slow() -> Generator:
        released.wait()
        return ScriptedGenerator()

    asked = iter([False] * 3)
    try:
        answer = answer_of(events_of(TORQUE, library, generator=slow, cancelled=lambda: next(asked, True)))
    finally:
        released.set()
    assert answer.stop_reason == "cancelled"
    assert answer.sources


def test_a_cancelled_answer_keeps_what_was_said(library: Library) -> None:
    said: list[str] = []
    generator = ScriptedGenerator("One thing is certain here and that is that nothing is certain in this world [1].")
    for event in ask(
        TORQUE,
        library=library,
        embedder=lambda: HashingEmbedder(dimension=256),
        generator=lambda: generator,
        retrieval=RetrievalSettings(),
        generation=GenerationSettings(),
        cancelled=lambda: bool(said),
    ):
        if isinstance(event, AnswerDelta):
            said.append(event.text)
    assert isinstance(event, AnswerDone)
    assert event.answer.stop_reason == "cancelled"
    assert event.answer.text.startswith("One thing is certain")
    assert len(event.answer.text) < len(generator.reply)


@pytest.mark.parametrize(
    "reply", ["", "   ", "\n\n\n", "...", "[9]", "the " * 200, "Which torque do the lid screws of the pump need? " * 9]
)
def test_an_answer_that_says_nothing_is_replaced_by_the_best_passage(library: Library, reply: str) -> None:
    answer = answer_of(events_of(TORQUE, library, generator=lambda: ScriptedGenerator(reply)))
    assert "12 newton metres" in answer.text
    assert answer.text.endswith("[1]")
    assert answer.sources[0].cited
    assert any("no usable answer" in note for note in answer.notes)


def test_a_model_that_repeats_itself_is_stopped(library: Library) -> None:
    generator = ScriptedGenerator("The torque is 12 newton metres. " * 40)
    answer = answer_of(events_of(TORQUE, library, generator=lambda: generator))
    assert answer.text == "The torque is 12 newton metres [1]."
    assert answer.tokens.answer < 40
    assert any("repeat itself" in note for note in answer.notes)


def test_how_the_sources_were_chosen_is_told(library: Library) -> None:
    answer = answer_of(events_of(TORQUE, library))
    report = answer.selection
    assert report is not None
    assert 0 < report.used_tokens <= report.budget_tokens
    assert 0 <= report.redundancy <= 1 and 0 < report.fill <= 1
    shown = {source.hit.chunk.id for source in answer.sources}
    assert shown.isdisjoint(left.hit.chunk.id for left in report.left_out)
    assert answer_of(events_of("Who won the chess match in 1972?", library)).selection is None


def test_a_model_too_slow_for_all_sources_reads_the_best_sentences_and_it_is_said(library: Library) -> None:
    generator = ScriptedGenerator("It is 12 newton metres [1].")
    generator.token_s = 1.0
    answer = answer_of(
        events_of(TORQUE, library, generator=lambda: generator, generation=GenerationSettings(reading_s=5.0))
    )
    assert answer.found and len(answer.sources) == 1
    assert any("generation.reading_s" in note or "sentences that fit best" in note for note in answer.notes)


def test_escape_codes_of_the_model_never_reach_the_answer(library: Library) -> None:
    generator = ScriptedGenerator("It is \x1b[31m12\x1b[0m newton\x07 metres \x1b]0;owned\x07[1].")
    answer = answer_of(events_of(TORQUE, library, generator=lambda: generator))
    assert answer.text == "It is 12 newton metres [1]."


def test_questions_that_the_model_asks_itself_are_no_part_of_the_answer(library: Library) -> None:
    generator = ScriptedGenerator(
        "It is 12 newton metres [1].\n\n Question: What is the colour of the lid? It is blue."
    )
    answer = answer_of(events_of(TORQUE, library, generator=lambda: generator))
    assert answer.text == "It is 12 newton metres [1]."
    assert answer.stop_reason == "end"


def test_marks_out_of_range_are_removed(library: Library) -> None:
    answer = answer_of(events_of(TORQUE, library, generator=lambda: ScriptedGenerator("It is so [99].")))
    assert answer.text == "It is so."


def test_the_conversation_is_given_to_the_model(library: Library) -> None:
    generator = ScriptedGenerator("Yes, really [1].")
    events_of(TORQUE, library, generator=lambda: generator, history=[Turn("Is there a pump?", "There is [1].")])
    roles = [message.role for message in generator.messages[-1]]
    assert roles == ["system", "user", "assistant", "user"]


def test_what_did_not_fit_is_told(library_of: LibraryOf, embedder: HashingEmbedder) -> None:
    texts = {f"/{n}.txt": f"The torque of screw {n} is {n} newton metres. " + f"filler{n} " * 90 for n in range(4)}
    answer = answer_of(
        events_of(
            "What is the torque of the screw in newton metres?",
            library_of(texts, embedder=embedder),
            generator=lambda: ScriptedGenerator("It is so [1].", context_tokens=256),
            generation=GenerationSettings(context_tokens=1_024, answer_tokens=32),
        )
    )
    assert any("did not fit" in note for note in answer.notes)


def test_the_model_is_freed_when_the_reader_walks_away(library: Library) -> None:
    class Watched(ScriptedGenerator):
        closed = False

        def generate(
            self,
            tokens: Sequence[int],
            *,
            passages: Sequence[PassageSpan] = (),
            max_tokens: int,
            sampling: Sampling,
            cancelled: CancelCheck,
        ) -> Iterator[Generated]:
            try:
                yield from super().generate(tokens, max_tokens=max_tokens, sampling=sampling, cancelled=cancelled)
            finally:
                self.closed = True

    generator = Watched("word " * 100)
    stream = ask(
        TORQUE,
        library=library,
        embedder=lambda: HashingEmbedder(dimension=256),
        generator=lambda: generator,
        retrieval=RetrievalSettings(),
        generation=GenerationSettings(),
        cancelled=never,
    )
    for event in stream:
        if isinstance(event, AnswerDelta):
            break
    stream.close()  # type: ignore[attr-defined]
    assert generator.closed


def test_same_question_same_hits_and_prompt(library: Library) -> None:
    first, second = (
        [event for event in events_of(TORQUE, library) if isinstance(event, (HitsFound, PromptReady))] for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    "query", ['"', "*", "NEAR(a b)", "a:b", "the of and", "🎉🎉", "'; DROP TABLE chunks; --", "\u202eabc", "(((", "NOT"]
)
def test_strange_queries_are_only_queries(library: Library, query: str) -> None:
    search(
        query, library=library, embedder=lambda: HashingEmbedder(dimension=256), settings=RetrievalSettings(), limit=3
    )
    assert answer_of(events_of(query, library)).text


def test_search_gives_hits_in_order_with_their_scores(library: Library) -> None:
    hits = search(
        "torque pump",
        library=library,
        embedder=lambda: HashingEmbedder(dimension=256),
        settings=RetrievalSettings(),
        limit=2,
    ).hits
    assert len(hits) == 2
    assert hits[0].chunk.path == "/handbook/pump.txt"
    assert hits[0].scores.keyword_rank == 1 and hits[0].scores.vector_rank is not None
    assert hits[0].scores.fused >= hits[1].scores.fused


def test_search_gives_as_many_as_asked_for(library_of: LibraryOf, embedder: HashingEmbedder) -> None:
    library = library_of({f"/{n}.txt": f"pump number {n}" for n in range(60)}, embedder=embedder)
    hits = search("pump", library=library, embedder=lambda: embedder, settings=RetrievalSettings(), limit=50).hits
    assert len(hits) == 50


# ---------------------------------------------------------------- the documents' own sentences


def test_the_documents_own_sentences_come_before_the_model_is_there(library: Library) -> None:
    import threading

    released = threading.Event()

    def slow() -> Generator:
        assert released.wait(60)
        return ScriptedGenerator("It is 12 newton metres [1].")

    kinds = []
    for event in ask(
        TORQUE,
        library=library,
        embedder=lambda: HashingEmbedder(dimension=256),
        generator=slow,
        retrieval=RetrievalSettings(),
        generation=GenerationSettings(),
        cancelled=never,
    ):
        kinds.append(type(event))
        if isinstance(event, InstantAnswer):
            released.set()
            assert "12 newton metres" in event.sentences[0].text
            numbers = {source.number for source in event.sources}
            assert {sentence.source for sentence in event.sentences} <= numbers
    assert kinds.index(InstantAnswer) < kinds.index(PromptReady)
    assert isinstance(event, AnswerDone)
    for sentence in event.answer.instant:
        source = event.answer.sources[sentence.source - 1]
        text = library.parsed_document(source.hit.chunk.document_id).text
        assert text[sentence.start : sentence.end] == sentence.text


def test_in_instant_mode_they_are_the_answer_and_no_model_is_loaded(library: Library) -> None:
    def forbidden() -> Generator:
        raise AssertionError("the model must not be loaded")

    answer = answer_of(events_of(TORQUE, library, generator=forbidden, generation=GenerationSettings(mode="instant")))
    assert answer.text.startswith("“The lid screws of the pump need a torque of 12 newton metres.” [1]")
    assert (answer.stop_reason, answer.found, answer.model, answer.notes) == ("instant", True, "", ())
    assert answer.sources[0].cited and answer.sentences == ()


def test_in_instant_mode_too_it_says_that_nothing_was_found(library: Library) -> None:
    answer = answer_of(
        events_of("Who won the world cup in 1998?", library, generation=GenerationSettings(mode="instant"))
    )
    assert (answer.text, answer.stop_reason, answer.instant) == (NOT_FOUND, "no_sources", ())


# ---------------------------------------------------------------- looking the answer up


def checked(reply: str, library: Library, *, question: str = TORQUE) -> Answer:
    return answer_of(events_of(question, library, generator=lambda: ScriptedGenerator(reply)))


def test_every_sentence_of_the_model_is_looked_up(library: Library) -> None:
    answer = checked("The lid screws need 12 newton metres [1]. The valve needs 77 newton metres [1].", library)
    true, invented = answer.sentences
    assert answer.text[true.start : true.end] == "The lid screws need 12 newton metres [1]."
    assert (true.support, true.sources) == ("supported", (1,))
    assert (invented.support, invented.sources) == ("unsupported", ())
    assert "the number 77" in invented.reason
    assert UNCONFIRMED not in answer.notes


def test_an_answer_without_a_true_sentence_is_said_to_be_unconfirmed_whatever_it_cites(library: Library) -> None:
    assert UNCONFIRMED in checked("The valve needs 77 newton metres [1].", library).notes
    assert UNCONFIRMED not in checked("It needs 12.", library).notes


def test_a_source_that_confirms_an_unmarked_sentence_counts_as_used(library: Library) -> None:
    answer = checked("12 Nm.", library)
    assert answer.text == "12 Nm."
    assert answer.sources[0].cited


def test_what_the_program_wrote_itself_is_not_looked_up(library: Library) -> None:
    assert checked("", library).sentences == ()
    assert checked("", library, question="Who won the world cup in 1998?").sentences == ()


def test_a_cancelled_answer_is_not_looked_up(library: Library) -> None:
    said: list[bool] = []
    for event in ask(
        TORQUE,
        library=library,
        embedder=lambda: HashingEmbedder(dimension=256),
        generator=lambda: ScriptedGenerator("The valve needs 77 newton metres and a lot of other things besides [1]."),
        retrieval=RetrievalSettings(),
        generation=GenerationSettings(),
        cancelled=lambda: bool(said),
    ):
        if isinstance(event, AnswerDelta):
            said.append(True)
    assert isinstance(event, AnswerDone)
    assert event.answer.stop_reason == "cancelled" and event.answer.sentences == ()


def test_an_embedder_that_never_came_is_not_waited_for(library: Library) -> None:
    answer = answer_of(
        events_of(
            TORQUE, library, embedder=unavailable, generator=lambda: ScriptedGenerator("Whales sing loudly at night.")
        )
    )
    assert [sentence.support for sentence in answer.sentences] == ["unsupported"]


def test_an_embedder_that_fails_after_the_answer_does_not_take_it_away(library: Library) -> None:
    class Failing(HashingEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Vectors:
            raise ModelDamaged("The embedder broke.")

    answer = answer_of(
        events_of(
            TORQUE,
            library,
            embedder=lambda: Failing(dimension=256),
            generator=lambda: ScriptedGenerator("Whales sing loudly at night."),
        )
    )
    assert answer.text == "Whales sing loudly at night."
    assert [sentence.support for sentence in answer.sentences] == ["unsupported"]
    assert any("The embedder broke." in note for note in answer.notes)


# ---------------------------------------------------------------- thoughts


def test_thoughts_are_told_apart_from_the_answer(library: Library) -> None:
    reply = "<think>\nThe question is about [9] lids.\n</think>\n\nIt is 12 newton metres [1]."
    events = events_of(TORQUE, library, generator=lambda: ScriptedGenerator(reply))
    answer = answer_of(events)
    assert answer.text == "It is 12 newton metres [1]."
    assert answer.thought.strip() == "The question is about [9] lids."
    assert "".join(event.text for event in events if isinstance(event, ThoughtDelta)) == answer.thought


def test_a_model_that_only_thinks_leaves_the_word_to_the_documents(library: Library) -> None:
    answer = checked("<think>So many things could be said about this pump and", library)
    assert "12 newton metres" in answer.text and "So many things" not in answer.text
    assert answer.thought.startswith("So many things")
    assert any("still thinking" in note for note in answer.notes)


def test_escape_codes_in_thoughts_are_gone(library: Library) -> None:
    answer = checked("<think>a\x1b[31mb</think>It is 12 newton metres [1].", library)
    assert answer.thought == "ab"


def test_a_thought_that_the_chat_format_opened_is_one(library: Library) -> None:
    class Opening(ScriptedGenerator):
        def encode_chat(self, messages: Sequence[Message]) -> EncodedChat:
            return dataclasses.replace(super().encode_chat(messages), opening="<|assistant|>\n<think>\n")

    answer = answer_of(
        events_of(TORQUE, library, generator=lambda: Opening("First the lid.</think> It is 12 newton metres [1]."))
    )
    assert answer.text == "It is 12 newton metres [1]."
    assert answer.thought == "First the lid."


def test_words_of_a_document_that_was_removed_are_not_put_before_the_model_again(
    library_of: LibraryOf, embedder: HashingEmbedder
) -> None:
    texts = {"/a.txt": "The alarm code of the station is 774411.", "/b.txt": "The station stands on a hill."}
    library = library_of(texts, embedder=embedder)
    generator = ScriptedGenerator("It is so [1].")
    first = answer_of(events_of("What is the alarm code of the station?", library, generator=lambda: generator))
    assert "774411" in str(generator.messages[-1])
    turn = Turn(first.question, first.text, messages=first.messages)
    library.remove_documents([document.id for document in library.documents() if document.path == "/a.txt"])
    events_of("Where does the station stand?", library, generator=lambda: generator, history=[turn])
    assert "774411" not in str(generator.messages[-1])


def test_a_conversation_whose_documents_are_as_they_were_goes_on(library: Library) -> None:
    generator = ScriptedGenerator("It is so [1].")
    first = answer_of(events_of(TORQUE, library, generator=lambda: generator))
    turn = Turn(first.question, first.text, messages=first.messages)
    second = answer_of(events_of(TORQUE, library, generator=lambda: generator, history=[turn]))
    assert second.messages[: len(first.messages)] == first.messages


def test_a_follow_up_is_searched_with_what_was_said_before(library: Library) -> None:
    history = [Turn(TORQUE, "It is 12 newton metres [1].")]
    asked = "And how often are they greased?"
    events = events_of(asked, library, history=history)
    plan = next(event.plan for event in events if isinstance(event, PlanMade))
    answer = answer_of(events)
    assert plan.kind == "follow_up" and "pump" in plan.added_words
    assert answer.sources[0].hit.chunk.path == "/handbook/pump.txt"
    assert answer.question == asked and answer.plan == plan
    assert any("pump" in note and "conversation" in note for note in answer.notes)
    prompt = next(event.prompt for event in events if isinstance(event, PromptReady))
    asked_of_model = "".join(str(part) for part in prompt.messages[-1].parts)
    assert asked in asked_of_model and f"{asked} pump" not in asked_of_model


def test_a_new_subject_takes_nothing_from_the_conversation(library: Library) -> None:
    history = [Turn(TORQUE, "It is 12 newton metres [1].")]
    answer = answer_of(events_of("What does error E-1042 mean?", library, history=history))
    assert answer.plan is not None and answer.plan.added_words == ()
    assert answer.sources[0].hit.chunk.path == "/handbook/codes.txt"


def test_what_was_cited_names_the_subject(library: Library) -> None:
    cited = library.chunks(range(1, 9))
    pump = next(chunk for chunk in cited if chunk.path == "/handbook/pump.txt")
    plan = answer_of(events_of("why?", library, history=[Turn("Is it big?", "Yes.", cited_chunks=(pump.id,))])).plan
    assert plan is not None and plan.added_words == ("pump",)


def test_a_question_about_the_documents_is_counted_and_asks_no_model(library: Library) -> None:
    def no_model() -> Generator:
        raise AssertionError("a number is counted, never written by a model")

    events = events_of("How many documents mention the filter?", library, generator=no_model, embedder=unavailable)
    answer = answer_of(events)
    assert [type(event) for event in events] == [PlanMade, HitsFound, InstantAnswer, AnswerDelta, AnswerDone]
    assert (answer.stop_reason, answer.found, answer.model) == ("counted", True, "")
    assert answer.text.startswith("1 of 5 documents contains “filter”, in 1 passage.")
    assert [(source.hit.chunk.path, source.cited) for source in answer.sources] == [("/handbook/codes.txt", True)]
    text = library.parsed_document(answer.sources[0].hit.chunk.document_id).text
    quote = answer.sources[0]
    assert text[quote.quote_start : quote.quote_start + len(quote.quote)] == quote.quote
    assert answer.notes == ()


def test_what_stands_nowhere_is_counted_as_nothing(library: Library) -> None:
    answer = answer_of(events_of("Which documents mention zeppelins?", library))
    assert (answer.stop_reason, answer.found, answer.sources) == ("counted", False, ())
    assert "None of 5 documents contains “zeppelins”." in answer.text


def test_a_count_follows_the_conversation(library: Library) -> None:
    history = [Turn("What does error E-1042 mean?", "The inlet filter is blocked [1].")]
    answer = answer_of(events_of("And how many documents mention it?", library, history=history))
    assert answer.stop_reason == "counted" and "E-1042" in answer.text


def test_a_list_of_what_stands_in_no_passage_is_answered_as_ever(library: Library) -> None:
    answer = answer_of(events_of("List all torques of pump lids and filters", library))
    assert answer.stop_reason == "end" and any(note.startswith("No complete list") for note in answer.notes)


def test_how_many_of_a_thing_is_answered_from_the_sources(library: Library) -> None:
    answer = answer_of(events_of("How many days of leave do employees have?", library))
    assert answer.stop_reason == "end" and answer.sources[0].hit.chunk.path == "/handbook/leave.txt"


def counted(question: str, library: Library, **more: Any) -> Answer:
    def no_model() -> Generator:
        raise AssertionError("a number is counted, never written by a model")

    answer = answer_of(events_of(question, library, generator=no_model, embedder=unavailable, **more))
    assert answer.stop_reason == "counted"
    return answer


def test_what_does_not_mention_it_is_counted_and_cited(library: Library) -> None:
    answer = counted("How many documents do not mention the filter?", library)
    assert answer.text.startswith("4 of 5 documents do not contain “filter”.")
    assert len(answer.sources) == 4
    for source in answer.sources:
        text = library.parsed_document(source.hit.chunk.document_id).text
        assert text[source.quote_start : source.quote_start + len(source.quote)] == source.quote
        assert "filter" not in text
    both = counted("How many documents mention the filter or the leave?", library)
    assert both.text.startswith("2 of 5 documents contain “filter” or “leave”")
    none = counted("How many documents mention the filter but not E-1042?", library)
    assert none.text.startswith("None of 5 documents contains “filter”, but not “E-1042”.")


def test_documents_of_a_type_are_counted_alone(library: Library) -> None:
    answer = counted("How many PDFs mention the filter?", library)
    assert answer.text == "There are no documents of the type “pdf”."
    answer = counted("How many text files mention the filter?", library)
    assert answer.text.startswith("1 of 5 documents of the type “text” contains “filter”, in 1 passage.")
    answer = counted("How many emails mention the filter?", library)
    assert "“emails”, “filter”" in answer.text, "there are none, so it is a word"
    answer = counted("How many text files mention the filter?", library, where=Filter(types=(".txt",)))
    assert answer.text.startswith("This cannot be counted as it is asked: a count of words does not follow “text”.")


@pytest.mark.parametrize(
    "question", ["How many documents mention only the filter?", "How many documents mention the filter at least twice?"]
)
def test_what_cannot_be_counted_as_it_is_asked_is_said(question: str, library: Library) -> None:
    answer = counted(question, library)
    assert answer.text.startswith("This cannot be counted as it is asked") and answer.sources == ()
    assert "Each word alone: “filter” stands in 1 document, in 1 passage." in answer.text


def test_not_it_cannot_be_counted_and_is_said(library: Library) -> None:
    history = [Turn("What does error E-1042 mean?", "The inlet filter is blocked [1].")]
    answer = counted("And how many documents do not mention it?", library, history=history)
    assert answer.text.startswith("This cannot be counted") and "E-1042" in answer.text
