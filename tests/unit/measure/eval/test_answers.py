from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.measure.eval.craft import source, stored

from edgerag.measure.eval.answers import answer_figures, exact_match, f1, holds, words
from edgerag.measure.eval.matching import Target


@pytest.mark.parametrize(
    ("said", "gold", "same"),
    [
        ("The Denver Broncos.", "Denver Broncos", True),
        ("an  apple", "Apple!", True),
        ("$1,496.5", "1496.5", True),
        ("９ Nm", "9 nm", True),
        ("二十五分钟。", "二十五分钟", True),
        ("Denver", "Denver Broncos", False),
    ],
)
def test_exact_match(said: str, gold: str, same: bool) -> None:
    assert exact_match(said, ["something else", gold]) is same


def test_f1_by_hand() -> None:
    # 2 common words of 4 said and 3 wanted: P = 1/2, R = 2/3.
    assert f1("it weighs 40 kilograms", ["about 40 kilograms"]) == pytest.approx(
        2 * (1 / 2) * (2 / 3) / (1 / 2 + 2 / 3)
    )
    assert f1("40 40", ["40"]) == pytest.approx(2 / 3), "a word counts as often as it stands there"
    assert f1("", ["40"]) == 0 and f1("no", ["yes", "no"]) == 1


def test_in_chinese_a_character_is_a_word() -> None:
    assert words("每四年更换1次，OK") == ["每", "四", "年", "更", "换", "1", "次", "ok"]
    # 3 common characters of 5 and 3: F1 = 6 / 8.
    assert f1("电池每四年", ["每四年"]) == pytest.approx(0.75)


def test_holding_needs_whole_words_in_order() -> None:
    assert holds("It is tightened to 9 Nm, crosswise.", ["9 nm"])
    assert not holds("It is tightened to 19 Nm.", ["9 Nm"])
    assert not holds("Nm 9", ["9 Nm"])
    assert not holds("anything", ["..."]), "an answer of punctuation alone stands nowhere"
    assert holds("备用电源最长可维持二十五分钟。", ["二十五分钟"])


@given(st.text(max_size=40), st.lists(st.text(max_size=40), max_size=3))
def test_bounds(said: str, gold: list[str]) -> None:
    assert 0 <= f1(said, gold) <= 1
    if exact_match(said, gold):
        assert f1(said, gold) == 1
    assert exact_match(said, [said]) and f1(said, [said]) == 1


def test_citations_are_judged_by_what_stands_in_them() -> None:
    right, beside, wrong = stored("/a", "Torque: 9 Nm."), stored("/a", "Lid.", number=2), stored("/b", "No.", number=3)
    targets = [Target(frozenset({"/a"}), None, "", 1.0), Target(frozenset({"/c"}), None, "", 1.0)]
    sources = [source(right, cited=True), source(wrong, cited=True), source(beside, cited=False)]
    with_gold = answer_figures("9 Nm [1] [2].", written=True, sources=sources, gold=["9 Nm"], targets=targets)
    assert with_gold.exact == 1 and with_gold.sources_hold == 1
    assert with_gold.citation_precision == 0.5, "one of two cited sources holds the answer"
    assert with_gold.citation_recall == 0.5, "of two documents that are expected one is cited"
    only_beside = [source(right, cited=False), source(beside, cited=True)]
    beside_cited = answer_figures("9 Nm", written=True, sources=only_beside, gold=["9 Nm"], targets=targets)
    assert beside_cited.citation_precision == 0, "the right document, but not the passage that holds the answer"
    without_gold = answer_figures("x", written=True, sources=only_beside, gold=[], targets=targets)
    assert without_gold.citation_precision == 1, "without an answer the document is all that is known"
    assert without_gold.exact is without_gold.f1 is without_gold.holds is None


def test_a_refusal_is_an_empty_answer_and_quotes_are_not_matched() -> None:
    refused = answer_figures("", written=True, sources=[], gold=["9 Nm"], targets=[])
    assert (refused.exact, refused.f1, refused.holds, refused.citation_precision) == (0, 0, 0, None)
    quoted = answer_figures("“It is 9 Nm.” [1]", written=False, sources=[], gold=["9 Nm"], targets=[])
    assert quoted.exact is None and quoted.f1 is None and quoted.holds == 1
