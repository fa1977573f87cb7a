from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.features import NAMES, Found, Matrix, Nearness, features
from edgerag.types import AskedTerm, LatentEvidence, PassageWords, Scores, WordEvidence

WORDS = st.lists(st.sampled_from(["pump", "screw", "lid", "torqu", "a", "of", "水", "泵"]), max_size=12)


def found(chunk_id: int, *, keyword_rank: int | None = 1, vector_rank: int | None = None, fused: float = 0.1) -> Found:
    scores = Scores(
        keyword=None if keyword_rank is None else 9.0 / keyword_rank,
        keyword_rank=keyword_rank,
        vector=None if vector_rank is None else 0.5,
        vector_rank=vector_rank,
        fused=fused,
    )
    return Found(chunk_id, scores, exact=False)


def passage(body: str, *, title: str = "", headings: str = "") -> PassageWords:
    return PassageWords(tuple(title.split()), tuple(headings.split()), tuple(body.split()))


def asked(*terms: str, idf: float = 2.0) -> tuple[AskedTerm, ...]:
    return tuple(AskedTerm((tuple(term.split()),), idf) for term in terms)


def rows_of(
    terms: tuple[AskedTerm, ...],
    *passages: PassageWords,
    nearness: Nearness | None = None,
    latent: LatentEvidence | None = None,
) -> Matrix:
    words = WordEvidence(terms, dict(enumerate(passages)), mean_words=10)
    return features([found(number) for number in range(len(passages))], words=words, nearness=nearness, latent=latent)


def column(rows: Matrix, name: str) -> list[float]:
    return [round(float(value), 4) for value in rows[:, NAMES.index(name)]]


def test_each_word_counts_by_its_rarity() -> None:
    terms = (AskedTerm((("pump",),), 3.0), AskedTerm((("lid",),), 1.0))
    rows = rows_of(terms, passage("the pump"), passage("a lid"), passage("the lid of the pump"), passage("nothing"))
    assert column(rows, "covered") == [0.75, 0.25, 1.0, 0.0]
    assert column(rows, "has_rarest") == [1, 0, 1, 0]
    assert column(rows, "rarest_missing") == [0.3333, 1, 0, 1]
    bm25 = column(rows, "bm25")
    assert bm25[2] > bm25[0] > bm25[1] > bm25[3] == 0
    assert column(rows, "bm25_below_best")[2] == 0


def test_words_of_one_question_that_stand_together_are_told_from_scattered_ones() -> None:
    far = "lid " + "x " * 40 + "screws"
    rows = rows_of(asked("lid", "screws"), passage("the lid screws hold"), passage("screws hold the lid"), passage(far))
    assert column(rows, "pairs_in_order") == [1, 0, 0]
    assert column(rows, "pairs_near") == [1, 1, 0]
    assert column(rows, "best_window") == [1, 1, 0.5]
    assert column(rows, "covered") == [1, 1, 1]


def test_title_and_headings_are_columns_of_their_own() -> None:
    rows = rows_of(asked("pump"), passage("x", title="pump"), passage("x", headings="the pump"), passage("pump"))
    assert column(rows, "covered_by_title") == [1, 0, 0]
    assert column(rows, "covered_by_headings") == [0, 1, 0]
    assert column(rows, "covered") == [1, 1, 1]


def test_phrases_stand_in_a_row_and_count_in_part() -> None:
    rows = rows_of(asked("水 泵"), passage("水 泵 油"), passage("泵 的 水"), passage("油"))
    assert column(rows, "covered") == [1, 0, 0]
    soft = column(rows, "covered_softly")
    assert soft[0] > soft[1] > soft[2] == 0


def test_a_word_inside_another_counts_for_a_share() -> None:
    rows = rows_of(asked("regierung"), passage("regierung"), passage("bundesregierung"), passage("regie"), passage("x"))
    soft = column(rows, "covered_softly")
    assert soft[0] == 1 > soft[1] > soft[3] == 0
    assert column(rows, "covered") == [1, 0, 0, 0]


def test_without_vectors_they_say_nothing_and_one_without_a_vector_is_told() -> None:
    words = (passage("pump"), passage("valve"))
    rows = rows_of(asked("pump"), *words)
    assert column(rows, "has_vector") == column(rows, "is_embedded") == column(rows, "nearness") == [0, 0]
    question = np.array([1.0, 0.0], dtype=np.float32)
    near = Nearness(question, {0: np.array([0.6, 0.8], dtype=np.float32)}, background=0.2)
    rows = rows_of(asked("pump"), *words, nearness=near)
    assert column(rows, "has_vector") == [1, 1] and column(rows, "is_embedded") == [1, 0]
    assert column(rows, "nearness") == [pytest.approx(0.5), 0]


def test_passages_like_the_best_ones_are_better_than_their_own_words() -> None:
    at = {0: [1.0, 0.0], 1: [0.99, 0.141], 2: [0.0, 1.0]}
    vectors = {number: np.array(vector, dtype=np.float32) for number, vector in at.items()}
    near = Nearness(np.array([1.0, 0.0], dtype=np.float32), vectors, background=0.0)
    words = WordEvidence(asked("pump"), {0: passage("pump"), 1: passage("x"), 2: passage("x")}, mean_words=10)
    rows = features([found(0, fused=0.9), found(1), found(2)], words=words, nearness=near, latent=None)
    assert column(rows, "neighbours")[1] > column(rows, "neighbours")[2]
    assert column(rows, "walk")[1] > column(rows, "walk")[2]
    assert column(rows, "feedback_nearness")[1] > column(rows, "feedback_nearness")[2]


def test_words_that_the_best_have_in_common_speak_for_others() -> None:
    words = (passage("pump grease nipple"), passage("pump grease yearly"), passage("grease gun"), passage("holiday"))
    evidence = WordEvidence(asked("pump"), dict(enumerate(words)), mean_words=10)
    rows = features(
        [found(0, fused=0.9), found(1, fused=0.8), found(2), found(3)], words=evidence, nearness=None, latent=None
    )
    assert column(rows, "feedback")[2] > column(rows, "feedback")[3]


@given(st.lists(WORDS, max_size=4), st.lists(WORDS, min_size=1, max_size=6), st.booleans())
def test_any_words_give_finite_numbers_and_the_same_again(
    terms: list[list[str]], bodies: list[list[str]], with_vectors: bool
) -> None:
    question = tuple(AskedTerm((tuple(term),), 1.0) for term in terms if term)
    passages = [PassageWords((), (), tuple(body)) for body in bodies]
    near = None
    if with_vectors:
        vector = np.array([1.0, 0.0], dtype=np.float32)
        near = Nearness(vector, dict.fromkeys(range(0, len(bodies), 2), vector), background=0.3)
    rows = rows_of(question, *passages, nearness=near)
    assert rows.shape == (len(bodies), len(NAMES)) and np.isfinite(rows).all()
    assert (rows == rows_of(question, *passages, nearness=near)).all()


def test_nothing_found_has_no_rows() -> None:
    assert features([], words=WordEvidence((), {}, mean_words=0), nearness=None, latent=None).shape == (0, len(NAMES))


def test_what_the_latent_space_says_of_each_and_of_the_best() -> None:
    cosines = np.array([0.9, 0.1, 0.5], dtype=np.float32)
    alike = np.array([[0, 0.2, 0.6], [0.2, 0, 0.1], [0.6, 0.1, 0]], dtype=np.float32)
    rows = rows_of(asked("lid"), *[passage("lid")] * 3, latent=LatentEvidence(cosines, alike))
    assert column(rows, "latent") == [0.9, 0.1, 0.5]
    assert column(rows, "latent_below_best") == [0.0, -0.8, -0.4]
    assert column(rows, "latent_spread") == [1.2247, -1.2247, 0.0]
    assert column(rows, "latent_feedback") == [0.2667, 0.1, 0.2333]
    assert column(rows, "has_latent") == [1, 1, 1]
    assert column(rows, "best_latent") == [0.9, 0.9, 0.9]


def test_passages_like_the_best_in_the_latent_space_are_better_than_their_own_words() -> None:
    cosines = np.array([0.9, 0.1, 0.1], dtype=np.float32)
    alike = np.array([[0, 0.8, 0.1], [0.8, 0, 0.2], [0.1, 0.2, 0]], dtype=np.float32)
    words = WordEvidence(asked("pump"), {0: passage("pump"), 1: passage("x"), 2: passage("x")}, mean_words=10)
    latent = LatentEvidence(cosines, alike)
    rows = features([found(0, fused=0.9), found(1), found(2)], words=words, nearness=None, latent=latent)
    for name in ("feedback", "neighbours", "walk"):
        of_latent = column(rows, f"latent_{name}")
        assert of_latent[1] > of_latent[2]
        # Without vectors the two ways to be alike are one.
        assert column(rows, f"both_{name}") == of_latent
        spread = column(rows, f"latent_{name}_spread")
        assert spread[1] > spread[2] and sum(spread) == pytest.approx(0, abs=1e-3)


def test_one_alike_in_both_ways_is_before_those_alike_in_one() -> None:
    vectors = {0: [1.0, 0.0], 1: [0.8, 0.6], 2: [0.8, 0.6], 3: [0.0, 1.0]}
    near = Nearness(
        np.array([0.0, 1.0], dtype=np.float32),
        {number: np.array(vector, dtype=np.float32) for number, vector in vectors.items()},
        background=0.0,
    )
    alike = np.zeros((4, 4), dtype=np.float32)
    alike[0, 1] = alike[1, 0] = alike[0, 3] = alike[3, 0] = 0.7
    latent = LatentEvidence(np.zeros(4, dtype=np.float32), alike)
    words = WordEvidence(asked("pump"), {0: passage("pump"), **dict.fromkeys((1, 2, 3), passage("x"))}, mean_words=10)
    best_first = [found(0, fused=0.9), found(1), found(2), found(3)]
    rows = features(best_first, words=words, nearness=near, latent=latent)
    by_both = column(rows, "both_feedback")
    assert by_both[1] > by_both[2] and by_both[1] > by_both[3]


def test_without_a_latent_space_its_columns_are_nothing() -> None:
    rows = rows_of(asked("lid"), passage("lid"), passage("screw"))
    told = ("latent", "latent_below_best", "latent_spread", "has_latent", "best_latent")
    of_others = [f"latent_{name}{form}" for name in ("feedback", "neighbours", "walk") for form in ("", "_spread")]
    for name in (*told, *of_others):
        assert column(rows, name) == [0, 0]
