from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from fakes import ScriptedGenerator
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.prompt import assemble
from edgerag.config import GenerationSettings
from edgerag.errors import UsageError
from edgerag.types import Chunk, Hit, Message, Passage, Prompt, Scores, Source, StoredChunk, Turn

Sources = Callable[..., tuple[Source, ...]]


def make_sources(*texts: str) -> tuple[Source, ...]:
    """Not a fixture, so that hypothesis can use it."""
    return tuple(
        Source(
            number=n,
            hit=Hit(
                StoredChunk(
                    n, n, f"/{n}.md", "Notes", "text/markdown", Chunk(0, 0, len(t), t, (), None, None, 1, 1, 9)
                ),
                Scores(None, None, None, None, 0.0),
            ),
            quote=t[:60],
            quote_start=0,
            cited=False,
        )
        for n, t in enumerate(texts, start=1)
    )


def assembled(
    sources: tuple[Source, ...],
    *,
    question: str = "What is it?",
    context: int = 2_048,
    answer: int = 256,
    history: tuple[Turn, ...] = (),
    generator: ScriptedGenerator | None = None,
    reading_s: float = 15.0,
) -> Prompt:
    return assemble(
        question,
        sources=sources,
        history=history,
        generator=generator or ScriptedGenerator(context_tokens=context),
        settings=GenerationSettings(context_tokens=max(256, context), answer_tokens=answer, reading_s=reading_s),
    )


def said(generator: ScriptedGenerator) -> str:
    return "\n".join(str(part) for message in generator.messages[-1] for part in message.parts)


def test_sources_are_numbered_with_their_title_and_the_question_comes_last(sources: Sources) -> None:
    generator = ScriptedGenerator()
    made = assembled(sources("The sky is blue.", "Grass is green."), generator=generator)
    text = said(generator)
    assert "[1] Notes\nGrass is green." in text
    assert "[2] Notes\nThe sky is blue." in text  # the best one stands nearest to the question
    assert made.marks == ((1, 2), (2, 1))
    assert text.rstrip().endswith("What is it?")
    assert [source.number for source in made.sources] == [1, 2]
    assert made.dropped == ()


def test_sources_that_do_not_fit_go_from_the_last(sources: Sources) -> None:
    made = assembled(sources(*["word " * 100] * 5), context=400, answer=100)
    assert [source.number for source in made.sources] == [1, 2]
    assert [hit.chunk.id for hit in made.dropped] == [3, 4, 5]
    assert made.shortened == () and not made.short_of_time


def test_an_only_source_that_does_not_fit_is_cut_at_a_sentence(sources: Sources) -> None:
    generator = ScriptedGenerator(context_tokens=256)
    made = assembled(
        sources("Ten words stand in this sentence, which is not long. " * 60),
        context=256,
        answer=100,
        generator=generator,
    )
    assert made.shortened == (1,)
    (message,) = [m for m in generator.messages[-1] if m.role == "user"]
    assert str(message.parts[0]).rstrip().endswith("not long.")


def test_a_long_question_leaves_half_of_the_room_to_a_source(sources: Sources) -> None:
    made = assembled(sources("The sky is blue. " * 50), question="why " * 1_000, context=300, answer=50)
    assert made.question_cut
    assert len(made.sources) == 1


def test_the_newest_turns_stay(sources: Sources) -> None:
    generator = ScriptedGenerator()
    history = tuple(Turn(f"question {n} " + "word " * 60, f"answer {n} [3]") for n in range(10))
    made = assembled(sources("The sky is blue."), history=history, generator=generator)
    text = said(generator)
    assert "answer 9" in text and "answer 0" not in text
    assert "[3]" not in text  # it counted the sources of that answer
    assert 0 < made.history_dropped < 10


def test_history_never_drives_a_source_out(sources: Sources) -> None:
    made = assembled(
        sources(*["word " * 100] * 2), context=400, answer=100, history=(Turn("word " * 50, "word " * 50),)
    )
    assert len(made.sources) == 2
    assert made.history_dropped == 1


def test_a_context_without_room_for_anything_is_refused(sources: Sources) -> None:
    with pytest.raises(UsageError, match="context"):
        assembled(sources("word " * 10), context=20, answer=10)


def test_what_is_told_apart_stays_apart(sources: Sources) -> None:
    """Each source is a part of its own, so that its tokens can be used again."""
    generator = ScriptedGenerator()
    assembled(sources("The sky is blue.", "Grass is green."), generator=generator)
    (user,) = [message for message in generator.messages[-1] if message.role == "user"]
    assert len(user.parts) == 4  # two sources, the best words, the question


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=6),
    st.integers(1, 600),
    st.lists(st.integers(1, 200), max_size=4),
    st.integers(128, 2_048),
    st.integers(1, 512),
)
def test_the_prompt_always_fits(lengths: list[int], asked: int, turns: list[int], context: int, answer: int) -> None:
    made = assembled(
        make_sources(*("word " * length for length in lengths)),
        question="why " * asked,
        context=context,
        answer=answer,
        history=tuple(Turn("word " * n, "word " * n) for n in turns),
    )
    assert len(made.tokens) + made.answer_room <= context
    assert made.answer_room >= 1
    assert [source.number for source in made.sources] == list(range(1, len(made.sources) + 1))
    assert len(made.sources) + len(made.dropped) == len(lengths)


# ---------------------------------------------------------------- what there is no room or no time for

PUMP = (
    "The pump is painted blue. The torque of the lid is 12 newton metres. Its box is made of oak. "
    "Nobody knows who built it. The paint is dry after two days."
)


def slow(token_s: float) -> ScriptedGenerator:
    generator = ScriptedGenerator()
    generator.token_s = token_s
    return generator


def test_of_the_first_source_without_room_the_sentences_that_fit_best_stay(sources: Sources) -> None:
    generator = ScriptedGenerator(context_tokens=256)
    found = sources("The torque wrench hangs on the wall. " * 10, PUMP)
    made = assembled(found, question="Which torque has the lid?", context=256, answer=160, generator=generator)
    assert made.shortened == (2,)
    assert made.dropped == ()
    assert "The torque of the lid is 12 newton metres." in said(generator)
    assert "oak" not in said(generator)
    (part,) = [p for p in made.messages[-1].parts if isinstance(p, Passage) and "12 newton" in p.text]
    assert part.key == "", "a part of a chunk has no state"


def test_sources_that_the_model_cannot_read_in_time_go_from_the_last(sources: Sources) -> None:
    texts = [f"Passage {n} " + "word " * 90 for n in range(5)]
    hurried = assembled(sources(*texts), generator=slow(0.01), reading_s=3.0)
    assert 1 < len(hurried.sources) < 5
    assert hurried.short_of_time
    assert hurried.reading_s is not None and hurried.reading_s <= 3.0
    assert len(hurried.dropped) == 5 - len(hurried.sources)
    unhurried = assembled(sources(*texts), generator=slow(0.01), reading_s=0)
    assert len(unhurried.sources) == 5 and not unhurried.short_of_time


def test_of_the_best_source_its_best_sentence_is_read_however_slow_the_model_is(sources: Sources) -> None:
    generator = slow(10.0)
    made = assembled(sources(PUMP, PUMP), question="Which torque has the lid?", generator=generator, reading_s=1.0)
    assert [source.number for source in made.sources] == [1]
    assert made.shortened == (1,) and made.short_of_time
    text = said(generator)
    assert "The torque of the lid is 12 newton metres." in text and "oak" not in text


def test_where_the_speed_is_not_known_nothing_is_left_out(sources: Sources) -> None:
    made = assembled(sources(*["word " * 90] * 5), reading_s=0.001)
    assert len(made.sources) == 5 and made.reading_s is None


def test_a_conversation_goes_on_with_as_many_new_sources_as_there_is_time_for(sources: Sources) -> None:
    first = assembled(sources("The sky is blue."))
    texts = [f"Passage {n} " + "word " * 90 for n in range(4)]
    made = assembled(sources(*texts), history=(answered(first),), generator=slow(0.01), reading_s=3.0)
    assert made.messages[: len(first.messages)] == first.messages
    assert 1 <= len(made.sources) < 4 and made.short_of_time


# ---------------------------------------------------------------- what need not be computed again


def answered(made: Prompt, said: str = "So it is [1].") -> Turn:
    """The turn that an answer to this prompt becomes."""
    return Turn("What is it?", said, messages=(*made.messages, Message("assistant", (said,))))


def test_a_conversation_goes_on_behind_what_the_model_has_read(sources: Sources) -> None:
    generator = ScriptedGenerator()
    both = sources("The sky is blue.", "Grass is green.")
    first = assembled(both, generator=generator)
    second = assembled(both, question="And why?", history=(answered(first),), generator=generator)
    before = (*first.messages, Message("assistant", ("So it is [1].",)))
    assert second.messages[: len(before)] == before
    assert second.messages[-1].role == "user"
    assert not any(isinstance(part, Passage) for part in second.messages[-1].parts)  # it has both already
    assert second.history_dropped == 0
    assert dict(second.marks) == {1: 2, 2: 1}  # as they stood in the first prompt


def test_a_source_that_is_new_is_put_behind_the_conversation_under_the_next_number(sources: Sources) -> None:
    generator = ScriptedGenerator()
    grass, snow = sources("Grass is green.", "Snow is white.")
    first = assembled((grass,), generator=generator)
    second = assembled((snow, grass), history=(answered(first),), generator=generator)
    (added,) = [part for part in second.messages[-1].parts if isinstance(part, Passage)]
    assert added.header.startswith("[2]") and added.text.startswith("Snow is white.")
    assert dict(second.marks) == {1: grass.number, 2: snow.number}


def test_a_conversation_that_is_full_begins_anew(sources: Sources) -> None:
    first = assembled(sources("word " * 150), context=600, answer=100)
    long = answered(first, "word " * 150)
    second = assembled(sources("other " * 150), history=(long,), context=600, answer=100)
    assert len(second.tokens) + second.answer_room <= 600
    assert second.marks == ((1, 1),)
    assert sum(isinstance(part, Passage) for message in second.messages for part in message.parts) == 1


def test_the_order_of_sources_is_that_of_the_library_with_the_best_one_last(sources: Sources) -> None:
    """So the same chunks stand in the same places whatever the question was."""
    chunks = sources("one", "two", "three", "four")  # their chunks have the ids 1 to 4
    for best in range(4):
        ranked = [chunks[best], *(chunks[i] for i in (3, 1, 0, 2) if i != best)]
        numbered = tuple(dataclasses.replace(source, number=n) for n, source in enumerate(ranked, start=1))
        made = assembled(numbered)
        texts = [p.text.strip() for p in made.messages[-1].parts if isinstance(p, Passage)]
        others = [name for name in ("one", "two", "three", "four") if name != chunks[best].hit.chunk.chunk.text]
        assert texts == [*others, chunks[best].hit.chunk.chunk.text]
        headers = [p.header.split()[0] for p in made.messages[-1].parts if isinstance(p, Passage)]
        assert headers == ["[1]", "[2]", "[3]", "[4]"]
