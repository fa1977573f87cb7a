"""What a model may say next is looked up in what it has read, and only where that is likely to pay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgerag.engine.lookup import LONGEST_DRAFT, MATCHES, DraftLength, Lookup

LONGEST, SHORTEST = MATCHES[0], MATCHES[-1]


def test_what_followed_the_last_words_before_is_proposed() -> None:
    run = list(range(SHORTEST))
    lookup = Lookup([90, *run, 91, 92, 93, 94, 99, *run])
    assert lookup.propose(3) == ([91, 92, 93], SHORTEST)
    lookup.add(91)
    assert lookup.propose(2) == ([92, 93], SHORTEST)


def test_the_longest_match_counts_and_of_those_the_last() -> None:
    run = list(range(LONGEST))
    short = run[-SHORTEST:]
    assert Lookup([*short, 91, 0, *short, 92, 0, *short]).propose(1) == ([92], SHORTEST)
    assert Lookup([*run, 91, 0, *short, 92, 0, *run]).propose(1) == ([91], LONGEST)


def test_a_short_run_proposes_nothing() -> None:
    run = list(range(SHORTEST - 1))
    assert Lookup([*run, 91, 0, *run]).propose(4) == ([], 0)
    assert Lookup([]).propose(4) == ([], 0)


@given(st.lists(st.integers(0, 1), max_size=120), st.integers(1, LONGEST_DRAFT))
def test_a_proposal_stands_in_the_text_behind_its_match(tokens: list[int], most: int) -> None:
    draft, match = Lookup(tokens).propose(most)
    assert len(draft) <= most
    if match:
        run = tokens[-match:]
        places = [i for i in range(len(tokens) - match) if tokens[i : i + match] == run]
        assert any(tokens[i + match : i + match + len(draft)] == draft for i in places)
        assert draft


def test_an_answer_without_luck_is_left_alone_and_one_that_quotes_gets_long_drafts() -> None:
    unlucky, lucky = DraftLength(), DraftLength()
    unlucky.learn(LONGEST, right=0, drafted=8)
    unlucky.learn(LONGEST, right=1, drafted=8)
    for _ in range(5):
        lucky.learn(LONGEST, right=8, drafted=8)
    assert unlucky.best(LONGEST) == 0
    assert lucky.best(LONGEST) == LONGEST_DRAFT
    assert DraftLength().best(LONGEST) > 0


def test_a_draft_that_was_cut_short_by_the_end_is_no_bad_luck() -> None:
    lengths = DraftLength()
    before = lengths.best(LONGEST)
    lengths.learn(LONGEST, right=3, drafted=3)
    assert lengths.best(LONGEST) >= before
