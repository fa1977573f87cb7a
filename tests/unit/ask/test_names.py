from __future__ import annotations

import pytest

from edgerag.ask.names import NameIndex, capitalised, compact, identifiers, quotes

TEXT = "Martin Luther's theses, the United Nations, Johnson & Kestrel in Germany. Столица Польши. Größe der Torgröße."


@pytest.mark.parametrize(
    "name", ["Luther", "Luthers", "MARTIN", "UN", "Johnson", "German", "Germany", "Польша", "Größe"]
)
def test_a_name_is_found_as_it_is_inflected(name: str) -> None:
    assert NameIndex(TEXT).holds(name)


@pytest.mark.parametrize("name", ["Lutter", "Johnston", "John", "EU", "Ger", "Россия", "Kes"])
def test_another_name_is_not(name: str) -> None:
    assert not NameIndex(TEXT).holds(name)


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("It was built by Ada Lovelace in Paris.", ["Ada", "Lovelace", "Paris"]),
        ("Paris is large.", ["Paris"]),
        ("I think The Kestrel is fine.", ["Kestrel"]),
        ("U.S. troops left.", []),
        ("THE RULES OF THE GAME", []),
        ("The Rules Of The Game", []),
        ("所以Kestrel很好", ["Kestrel"]),
        ("nothing here", []),
    ],
)
def test_capitalised_words_are_names_unless_everything_is(sentence: str, names: list[str]) -> None:
    assert [name for name, _ in capitalised(sentence)] == names


def test_it_tells_which_word_begins_the_sentence() -> None:
    assert capitalised("Paris has Rome.") == [("Paris", True), ("Rome", False)]


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Error E-1042 in max_len of HashMap and KP40-117.", ["E-1042", "max_len", "HashMap", "KP40-117"]),
        ("In the mid-1990s a 20-minute, 21st, 50km, 5.5GB run of the 400-Unternehmen.", []),
        ("使用KP40-117的泵", ["KP40-117"]),
        ("Well-known state-of-the-art words.", []),
    ],
)
def test_part_numbers_are_told_from_numbers_and_words(sentence: str, found: list[str]) -> None:
    assert identifiers(sentence) == found


@pytest.mark.parametrize(
    "sentence",
    [
        'It says "shake well".',
        "It says “shake well”.",
        "Da steht „shake well“.",
        "«shake well»",
        "»shake well«",
        "「shake well」",
    ],
)
def test_quoted_words_are_found_in_every_kind_of_marks(sentence: str) -> None:
    assert [compact(quote) for quote in quotes(sentence)] == ["shakewell"]


def test_an_apostrophe_quotes_nothing_and_a_transliterated_name_does() -> None:
    assert quotes("It's Ada's 5' pipe.") == []
    assert quotes("托马斯·戴维斯说") == ["马斯·戴维"]
