"""The latent space of words: what stands together lies together, exactly as a full decomposition says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.errors import Cancelled
from edgerag.index import latent_space
from edgerag.index.latent_space import FEWEST_PASSAGES, LatentSpace, make_space
from edgerag.types import AskedTerm, PassageWords, WordEvidence

# Of two trades: what one calls "wing" and "foil" is said beside the same words.
FLIGHT = ["wing lift drag", "foil lift drag", "wing drag flow", "foil flow lift", "lift drag flow", "wing foil speed"]
HEAT = ["boiler steam valve", "kettle steam valve", "boiler valve heat", "kettle heat steam", "steam valve heat"]
TEXTS = [*FLIGHT, *HEAT, *FLIGHT, *HEAT]


def passage(text: str, *, title: str = "") -> PassageWords:
    return PassageWords(title=tuple(title.split()), headings=(), body=tuple(text.split()))


def asked(*words: str) -> tuple[AskedTerm, ...]:
    return tuple(AskedTerm(forms=((word,),), idf=1.0) for word in words)


def space_of(texts: Sequence[str]) -> LatentSpace:
    space = make_space(map(passage, texts), cancelled=lambda: False)
    assert space is not None
    return space


def cosines(space: LatentSpace, question: Sequence[str], texts: Sequence[str]) -> list[float]:
    words = WordEvidence(asked(*question), dict(enumerate(map(passage, texts))), mean_words=3)
    return space.evidence(words, range(len(texts))).cosines.tolist()


def test_a_passage_without_a_word_of_the_question_is_near_when_its_words_stand_beside_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(latent_space, "DIMENSION", 2)
    near, far = cosines(space_of(TEXTS), ["wing"], ["foil", "kettle"])
    assert near > 0.9
    assert abs(far) < 0.2


def test_it_is_what_a_full_decomposition_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latent_space, "DIMENSION", 4)
    terms = sorted({word for text in TEXTS for word in text.split()})
    holders = np.array([sum(term in text.split() for text in TEXTS) for term in terms])
    rarity = np.log(1 + (len(TEXTS) - holders + 0.5) / (holders + 0.5))

    def weighed(text: str) -> np.ndarray:
        return np.array([np.log1p(text.split().count(term)) for term in terms]) * rarity

    matrix = np.stack([weighed(text) / np.linalg.norm(weighed(text)) for text in TEXTS])
    directions = np.linalg.svd(matrix, full_matrices=False)[2][:4].T
    place, question = (np.stack(list(map(weighed, texts))) @ directions for texts in (TEXTS[:11], ["wing steam"]))
    unit = place / np.linalg.norm(place, axis=1, keepdims=True)
    expected = unit @ (question[0] / np.linalg.norm(question[0]))
    assert np.allclose(cosines(space_of(TEXTS), ["wing", "steam"], TEXTS[:11]), expected, atol=0.02)


def test_passages_are_compared_with_each_other_and_not_with_themselves() -> None:
    words = WordEvidence(asked("wing"), dict(enumerate(map(passage, ["wing lift", "wing lift", "steam heat"]))), 2)
    alike = space_of(TEXTS).evidence(words, [0, 1, 2]).alike
    assert np.allclose(np.diag(alike), 0)
    assert np.allclose(alike, alike.T)
    assert alike[0, 1] == pytest.approx(1, abs=1e-5)
    assert alike[0, 2] < 0.5


def test_what_no_word_is_known_of_is_near_to_nothing() -> None:
    assert cosines(space_of(TEXTS), ["unheard"], ["wing", "steam"]) == [0, 0]
    assert cosines(space_of(TEXTS), ["wing"], ["unheard words", ""]) == [0, 0]
    assert cosines(space_of(TEXTS), [], ["wing"]) == [0]


def test_titles_count_as_words_of_the_passage() -> None:
    titled = [passage(text, title="Wings") for text in TEXTS]
    space = make_space(titled, cancelled=lambda: False)
    assert space is not None
    assert "Wings" in space.terms


def test_too_few_passages_or_words_teach_nothing() -> None:
    few = [passage("wing lift")] * (FEWEST_PASSAGES - 1)
    assert make_space(few, cancelled=lambda: False) is None
    assert make_space([*few, passage("")], cancelled=lambda: False) is None
    different = [passage(f"word{number}") for number in range(40)]
    assert make_space(different, cancelled=lambda: False) is None  # no word stands in two
    assert make_space([passage("same")] * 40, cancelled=lambda: False) is None


def test_the_commonest_words_are_kept_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latent_space, "_MOST_TERMS", 4)
    assert list(space_of(TEXTS).terms) == ["drag", "lift", "steam", "valve"]


@given(st.permutations(TEXTS))
@settings(max_examples=20, deadline=None)
def test_the_same_passages_give_the_same_space(texts: list[str]) -> None:
    first, second = space_of(texts), space_of(texts)
    assert first.terms == second.terms
    assert np.array_equal(first.weights, second.weights)
    assert np.array_equal(first.directions, second.directions)


@pytest.mark.parametrize("cells", [1, 7, 50])
def test_however_the_products_are_cut_it_is_the_same(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = space_of(TEXTS)
    monkeypatch.setattr(latent_space, "_BLOCK_CELLS", cells)
    assert np.array_equal(space_of(TEXTS).directions, whole.directions)


@pytest.mark.parametrize(("distinct", "copies"), [(10, 10), (5, 20), (10, 100), (3, 30), (60, 8)])
def test_copies_of_few_texts_leave_each_nearest_to_itself(distinct: int, copies: int) -> None:
    texts = [" ".join(f"word{(7 * number + step) % 90}" for step in range(6)) for number in range(distinct)]
    space = space_of(texts * copies)
    assert space.dimension <= distinct
    assert float(np.abs(space.weights).max()) < 10
    for number, text in enumerate(texts):
        found = cosines(space, text.split(), texts)
        assert found[number] == pytest.approx(1, abs=0.02)
        assert max(found) <= found[number] + 1e-6


def test_forms_of_one_template_differ_by_what_is_filled_in() -> None:
    forms = [f"form of station name city{number % 10} state state{number % 7} checked" for number in range(300)]
    found = cosines(space_of(forms), ["city3"], forms[:10])
    assert int(np.argmax(found)) == 3
    assert sorted(found)[-2] < found[3] - 0.1


def test_it_stops_when_cancelled() -> None:
    with pytest.raises(Cancelled):
        make_space(map(passage, TEXTS), cancelled=lambda: True)
