"""What a model may say next is looked up in what it has read, and only where that is likely to pay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgerag.engine.lookup import LONGEST_DRAFT, DraftLength, Lookup


def test_what_followed_the_last_words_before_is_proposed() -> None:
    lookup = Lookup([1, 2, 3, 4, 5, 6, 7, 9, 9, 2, 3])
    assert lookup.propose(3) == ([4, 5, 6], 2)
    lookup.add(4)
    assert lookup.propose(2) == ([5, 6], 3)


def test_the_longest_match_counts_and_of_those_the_last() -> None:
    assert Lookup([1, 2, 5, 0, 1, 2, 6, 0, 3, 1, 2]).propose(1) == ([6], 2)
    assert Lookup([3, 1, 2, 5, 0, 1, 2, 6, 0, 3, 1, 2]).propose(1) == ([5], 3)


def test_one_token_alone_proposes_nothing() -> None:
    assert Lookup([1, 2, 3, 1]).propose(4) == ([], 0)
    assert Lookup([]).propose(4) == ([], 0)


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, LONGEST_DRAFT))
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
    for _ in range(20):
        for match in range(2, 7):
            unlucky.learn(match, right=0, drafted=8)
            lucky.learn(match, right=8, drafted=8)
    assert [unlucky.best(match) for match in range(2, 7)] == [0] * 5
    assert lucky.best(6) == LONGEST_DRAFT
    assert DraftLength().best(2) == 0  # two tokens in a row are mostly chance


def test_a_draft_that_was_cut_short_by_the_end_is_no_bad_luck() -> None:
    lengths = DraftLength()
    before = lengths.best(6)
    lengths.learn(6, right=3, drafted=3)
    assert lengths.best(6) >= before
