from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.select import Likeness, Selection, select
from edgerag.types import Chunk, Hit, Scores, StoredChunk

COPY = "The pump must be opened only after the pressure has fallen below two bar, as the manual of 2019 says."


def selected(
    hits: list[Hit],
    *,
    probabilities: Mapping[int, float] | None = None,
    question: str = "pump pressure",
    count: int = 4,
    most: int = 9,
    room_tokens: int | None = None,
    likeness: Likeness | None = None,
) -> Selection:
    return select(
        hits,
        probabilities=probabilities or {hit.chunk.id: 0.9 for hit in hits},
        question=question,
        count=count,
        most=most,
        room_tokens=room_tokens,
        likeness=likeness,
    )


def ids(selection: Selection) -> list[int]:
    return [hit.chunk.id for hit in selection.hits]


def why(selection: Selection) -> dict[int, str]:
    return {left.hit.chunk.id: left.why for left in selection.report.left_out}


def test_copies_are_sources_once(hit: Callable[..., Hit]) -> None:
    hits = [
        hit(COPY, chunk_id=1),
        hit(COPY + " Really.", chunk_id=2),
        hit("The lid has four screws of steel.", chunk_id=3),
    ]
    selection = selected(hits, probabilities={1: 0.9, 2: 0.9, 3: 0.8})
    assert ids(selection) == [1, 3]
    assert why(selection) == {2: "copy"}


def test_a_copy_that_gives_another_number_is_not_one(hit: Callable[..., Hit]) -> None:
    """Which torque is right is for the reader to see."""
    text = "Tighten the four bolts of the upper lid crosswise with a torque of {} newton metres, then start the motor."
    selection = selected([hit(text.format(12), chunk_id=1), hit(text.format(15), chunk_id=2)])
    assert ids(selection) == [1, 2]


def test_reworded_copies_are_known_by_their_vectors(hit: Callable[..., Hit]) -> None:
    hits = [
        hit("The pump must be opened only after the pressure has fallen below two bar.", chunk_id=1),
        hit("The pump must only be opened after the pressure has fallen below two bars, never before.", chunk_id=2),
        hit("The pump stands in the cellar.", chunk_id=3),
    ]
    one = np.array([1.0, 0.0], dtype=np.float32)
    vectors = {1: one, 2: one, 3: np.array([0.0, 1.0], dtype=np.float32)}
    selection = selected(hits, likeness=Likeness(vectors))
    assert ids(selection) == [1, 3]
    assert why(selection) == {2: "alike"}
    assert ids(selected(hits)) == [1, 2, 3]


def test_vectors_alone_make_no_copy(hit: Callable[..., Hit]) -> None:
    """Two parts of one text under a long title have nearly the same vector and other words."""
    hits = [hit("Open the valve first.", chunk_id=1), hit("Wear gloves of rubber then.", chunk_id=2)]
    one = np.array([1.0, 0.0], dtype=np.float32)
    assert ids(selected(hits, likeness=Likeness({1: one, 2: one}))) == [1, 2]


def test_what_says_something_new_goes_before_what_repeats(hit: Callable[..., Hit]) -> None:
    same = "The pump is opened when the pressure has fallen below {} bar and the lamp of the panel is green again."
    hits = [
        hit(same.format(2), chunk_id=1),
        hit(same.format(3), chunk_id=2),
        hit(
            "Before work the main switch of the hall is locked, and its key is kept by whoever works.",
            chunk_id=3,
        ),
    ]
    assert ids(selected(hits, count=2, most=2)) == [1, 3]


def test_hits_far_below_the_best_are_not_used_as_padding(hit: Callable[..., Hit]) -> None:
    hits = [hit(f"Passage of its own, number {n}, about {'xyz'[n]}.", chunk_id=n) for n in range(3)]
    selection = selected(hits, probabilities={0: 0.95, 1: 0.9, 2: 0.01})
    assert ids(selection) == [0, 1]
    assert why(selection) == {2: "irrelevant"}


def test_no_more_than_asked_for(hit: Callable[..., Hit]) -> None:
    texts = ["alpha beta", "gamma delta", "epsilon zeta", "eta theta"]
    hits = [hit(text, chunk_id=n) for n, text in enumerate(texts)]
    selection = selected(hits, count=4, most=2)
    assert len(selection.hits) == 2
    assert sorted(why(selection).values()) == ["enough", "enough"]


def make_hit(text: str, chunk_id: int) -> Hit:
    """Not a fixture, so that hypothesis can use it."""
    chunk = Chunk(0, 0, len(text), text, (), None, None, 1, 1, len(text.split()))
    stored = StoredChunk(chunk_id, chunk_id, f"/{chunk_id}.md", "Notes", "text/markdown", chunk)
    return Hit(stored, Scores(1.0, 1, 0.5, 1, 0.1))


def words(name: str, count: int) -> str:
    return " ".join(f"{name}{n}" for n in range(count))


def test_short_passages_may_be_more_and_long_ones_are_fewer(hit: Callable[..., Hit]) -> None:
    short = [hit(words(f"s{n}x", 10), chunk_id=n) for n in range(6)]
    long = [hit(words(f"l{n}x", 90), chunk_id=10 + n) for n in range(2)]
    assert len(selected([*short, *long], count=2).hits) == 6  # 30 tokens on average: there is room for 60
    assert len(selected([*long, *short], count=2).hits) < 6


def test_the_room_of_the_prompt_is_kept(hit: Callable[..., Hit]) -> None:
    hits = [hit(words(f"w{n}x", 50), chunk_id=n) for n in range(6)]
    selection = selected(hits, count=6, room_tokens=120)
    assert len(selection.hits) == 2
    assert selection.report.budget_tokens == 120
    assert set(why(selection).values()) == {"no_room"}


def test_of_a_passage_without_room_the_sentences_about_the_question_are_taken(hit: Callable[..., Hit]) -> None:
    filler = "Nothing of this has to do with it, as everyone who reads these lines will see at once, sadly. "
    about = "The pressure of the pump must have fallen below two bar before anybody opens it for any reason at all. "
    told = "It is the pump that matters, and its pressure, which the gauge shows in bar on the left side of the panel."
    hits = [hit(words("pump", 60), chunk_id=1), hit(filler * 3 + about + told + filler, chunk_id=2)]
    selection = selected(hits, count=2, room_tokens=100)
    assert ids(selection) == [1, 2]
    text = hits[1].chunk.chunk.text
    kept = [text[start:end] for start, end in selection.spans[2]]
    assert kept and all(sentence in (about.strip(), told.strip()) for sentence in kept)
    assert selection.report.used_tokens <= 100


def test_the_best_hit_is_a_source_however_long(hit: Callable[..., Hit]) -> None:
    selection = selected([hit(words("w", 500), chunk_id=1)], room_tokens=50)
    assert ids(selection) == [1] and not selection.spans


def test_what_fills_the_budget_and_how_much_is_said_twice_is_told(hit: Callable[..., Hit]) -> None:
    hits = [hit(words(f"w{n}x", 50), chunk_id=n) for n in range(4)]
    report = selected(hits, count=2).report
    assert (report.budget_tokens, report.used_tokens, report.fill) == (100, 100, 1.0)
    assert report.redundancy == 0.0
    alike = [hit("the pump has one red valve", chunk_id=1), hit("the pump has one blue valve", chunk_id=2)]
    assert 0 < selected(alike).report.redundancy < 1


@given(
    st.lists(st.tuples(st.integers(1, 120), st.floats(0, 1), st.sampled_from("abc")), min_size=1, max_size=12),
    st.integers(1, 9),
    st.integers(1, 9),
    st.one_of(st.none(), st.integers(1, 400)),
)
def test_every_hit_is_a_source_or_left_out_and_the_budget_holds(
    rows: list[tuple[int, float, str]], count: int, most: int, room: int | None
) -> None:
    plain = [make_hit(f"{words(name, length)}.", n) for n, (length, _, name) in enumerate(rows)]
    probabilities = {n: p for n, (_, p, _) in enumerate(rows)}
    selection = selected(plain, probabilities=probabilities, count=count, most=most, room_tokens=room)
    assert sorted(ids(selection) + list(why(selection))) == list(range(len(rows)))
    assert ids(selection) == sorted(ids(selection)), "they keep their order"
    assert len(selection.hits) <= most
    if len(selection.hits) > 1:
        assert selection.report.used_tokens <= selection.report.budget_tokens
    again = selected(plain, probabilities=probabilities, count=count, most=most, room_tokens=room)
    assert again == selection


def test_passages_without_a_word_that_says_anything_are_no_copies_of_each_other(hit: Callable[..., Hit]) -> None:
    hits = [
        hit("$$$ --- 1/2", chunk_id=1),
        hit("$$$ ---", chunk_id=2),
        hit("### +++", chunk_id=3),
        hit("### +++", chunk_id=4),
    ]
    assert why(selected(hits)).get(3) is None
    assert why(selected(hits))[4] == "copy"
