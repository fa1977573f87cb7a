from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.instant import instant_sentences, instant_text
from edgerag.types import Chunk, Hit, InstantSentence, Scores, Source, StoredChunk

Sources = Callable[..., tuple[Source, ...]]

PUMP = (
    "The Kestrel P-40 moves brine. It is built for unattended sites. The lid screws are tightened to 9 Nm, crosswise. "
    "Replace the gasket whenever the lid has been open. Drain the pump before frost."
)
COLD = "Vaccines are stored between two and eight degrees. A warmer dose must be destroyed."


def best(sources: tuple[Source, ...], question: str, *, relevance: dict[int, float] | None = None) -> list[str]:
    chosen = instant_sentences(
        sources, question=question, relevance=relevance or {s.hit.chunk.id: 1 / s.number for s in sources}
    )
    return [sentence.text for sentence in chosen]


def test_the_sentence_that_says_it_comes_first(sources: Sources) -> None:
    assert best(sources(PUMP, COLD), "To which torque are the lid screws tightened?")[0] == (
        "The lid screws are tightened to 9 Nm, crosswise."
    )
    assert best(sources(PUMP, COLD), "At how many degrees are vaccines stored?")[0] == (
        "Vaccines are stored between two and eight degrees."
    )


def test_a_sentence_is_the_documents_own_at_its_place(sources: Sources) -> None:
    made = sources(PUMP, COLD)
    for sentence in instant_sentences(made, question="lid screws and vaccines", relevance={1: 0.9, 2: 0.8}):
        chunk = made[sentence.source - 1].hit.chunk.chunk
        assert chunk.text[sentence.start - chunk.start : sentence.end - chunk.start] == sentence.text


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [
        (
            "水泵由铝制成。更换机油之前必须切断电源。机油每六个月更换一次。",
            "机油多久更换一次？",
            "机油每六个月更换一次。",
        ),
        (
            "Насос сделан из стали. Масло меняют каждые шесть месяцев.",
            "Как часто меняют масло?",
            "Масло меняют каждые шесть месяцев.",
        ),
        (
            "المضخة مصنوعة من الفولاذ. يتم تغيير الزيت كل ستة أشهر.",
            "متى يتم تغيير الزيت؟",
            "يتم تغيير الزيت كل ستة أشهر.",
        ),
    ],
)
def test_every_script_has_sentences(sources: Sources, text: str, question: str, expected: str) -> None:
    assert best(sources(text), question)[0] == expected


def test_what_has_no_full_stops_is_cut_where_a_clause_or_a_word_ends(sources: Sources) -> None:
    thai = "ปั๊มทำจากเหล็กและติดตั้งในบ้าน " * 12 + "ต้องเปลี่ยนน้ำมันเครื่องทุกหกเดือน " + "ถังเก็บน้ำอยู่ข้างนอก " * 12
    found = best(sources(thai), "ต้องเปลี่ยนน้ำมันเครื่องบ่อยแค่ไหน")
    assert "เปลี่ยนน้ำมันเครื่องทุกหกเดือน" in found[0]
    assert all(len(text) <= 320 for text in found)
    words = " ".join(f"word{n}" for n in range(300))
    assert all(
        text in words and text.split() == [w for w in text.split() if w in words]
        for text in best(sources(words), "word7")
    )


def test_headings_and_heads_of_tables_say_nothing(sources: Sources) -> None:
    table = "## Torque of lid screws\n\n| Part | Torque |\n|---|---|\n| Lid screws | 9 Nm |\n| Clamp | 14 Nm |"
    assert best(sources(table), "What is the torque of the lid screws?")[0] == "| Lid screws | 9 Nm |"


def test_the_same_sentence_is_shown_once(sources: Sources) -> None:
    found = best(sources("The lid is blue. It is open.", "The lid is blue. It is shut."), "Is the lid blue?")
    assert len(found) == len(set(found))


def test_without_sources_there_is_nothing() -> None:
    assert instant_sentences((), question="Why?", relevance={}) == ()


def test_as_text_every_sentence_is_quoted_under_its_number_and_nothing_acts() -> None:
    text = instant_text([InstantSentence("One\nline \x1b[31mred.", 2, 0, 9), InstantSentence("Two.", 1, 3, 7)])
    assert text == "“One line red.” [2]\n\n“Two.” [1]"


def made(text: str) -> Source:
    chunk = Chunk(0, 40, 40 + len(text), text, (), None, None, 1, 1, 9)
    hit = Hit(StoredChunk(1, 1, "/1.md", "", "text/plain", chunk), Scores(None, None, None, None, 0.0))
    return Source(1, hit, text[:9], 40, cited=False)


@given(
    st.lists(st.text(alphabet="ab .!?。\n|-#,中ก", max_size=400), max_size=3), st.text(alphabet="ab 中ก", max_size=9)
)
def test_it_never_shows_more_than_fits_and_only_what_stands_there(texts: list[str], question: str) -> None:
    sources = [made(text) for text in texts]
    first = instant_sentences(sources, question=question, relevance={1: 0.5})
    assert first == instant_sentences(sources, question=question, relevance={1: 0.5})
    assert len(first) <= 3 and sum(len(sentence.text) for sentence in first) <= 600
    for sentence in first:
        assert sentence.text.strip() == sentence.text != ""
        assert any(text[sentence.start - 40 : sentence.end - 40] == sentence.text for text in texts)
