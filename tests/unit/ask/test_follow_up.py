from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.follow_up import Earlier, leans_on, self_contained
from edgerag.ask.pieces import pieces

TESLA = "How many inventions did Nikola Tesla patent?"
PREVIOUS = {
    "en": TESLA,
    "de": "Wie viele Erfindungen ließ Nikola Tesla patentieren?",
    "fr": "Combien d'inventions Nikola Tesla a-t-il brevetées ?",
    "es": "¿Cuántos inventos patentó Nikola Tesla?",
    "it": "Quante invenzioni ha brevettato Nikola Tesla?",
    "pt": "Quais são as invenções de Nikola Tesla?",
    "nl": "Hoeveel uitvindingen heeft Nikola Tesla gepatenteerd?",
    "pl": "Które wynalazki opatentował Nikola Tesla i kiedy?",
    "ru": "Сколько изобретений запатентовал Никола Тесла?",
    "tr": "Nikola Tesla kaç buluşun patentini aldı?",
    "zh": "尼古拉·特斯拉一共有多少项专利？",
    "ja": "ニコラ・テスラは特許をいくつ取りましたか？",
}
LEANING = {
    "en": ["And for the big one?", "why?", "what about Germany?", "When was he born?", "How did it end?", "since when?",
           "In Germany?", "Which of them is larger?", "Who was his wife?", "and then?"],
    "de": ["Und bei der zweiten?", "warum?", "Wann wurde er geboren?", "Und in Deutschland?", "seit wann?",
           "Wie hieß seine Frau?", "Was ist mit Berlin?"],
    "fr": ["Et en Allemagne ?", "pourquoi ?", "Quand est-il né ?", "Qui était sa femme ?"],
    "es": ["¿Y en Alemania?", "¿por qué?", "¿Cuándo nació?", "¿Quién era su mujer?"],
    "it": ["E in Germania?", "perché?", "Quando è nato?", "Chi era sua moglie?"],
    "pt": ["E na Alemanha?", "por quê?", "Quando ele nasceu?"],
    "nl": ["En in Duitsland?", "waarom?", "Wanneer werd hij geboren?"],
    "pl": ["A w Niemczech?", "dlaczego?", "Kiedy się urodził?"],
    "ru": ["А в Германии?", "почему?", "Когда он родился?"],
    "tr": ["Peki ya Almanya?", "neden?", "O ne zaman doğdu?"],
    "zh": ["他呢?", "为什么？", "那第二个呢？", "他是什么时候出生的？", "那德国呢？"],
    "ja": ["なぜですか？", "ではドイツは？", "彼はいつ生まれましたか？", "値段は？"],
}  # fmt: skip
COMPLETE = {
    "en": ["What is ownership?", "How do I clean the inlet filter of the pump?", "E-1042",
           "What year did the war end and who won it?", "How is a clogged pump cleaned before it is stored?",
           "Is it necessary to switch off the pump first?", "Who painted the Mona Lisa?",
           "Now something else: why?"],
    "de": ["Was ist Rost?", "Welches Drehmoment brauchen die Schrauben?", "Wie reinige ich die Pumpe?"],
    "fr": ["Qu'est-ce que la rouille ?", "Y a-t-il des filtres dans la pompe ?"],
    "es": ["¿Qué es la propiedad?", "¿Quién pintó la Mona Lisa?"],
    "it": ["Cos'è la ruggine?", "Chi ha dipinto la Gioconda?"],
    "pt": ["O que é ferrugem?", "Quem pintou a Mona Lisa?"],
    "nl": ["Wat is roest?", "Hoe maak ik het filter van de pomp schoon?"],
    "pl": ["Co to jest rdza?", "Jak wyczyścić filtr pompy?"],
    "ru": ["Что такое ржавчина?", "Как очистить фильтр насоса?"],
    "tr": ["Pas nedir?", "Pompanın filtresi nasıl temizlenir?"],
    "zh": ["什么是所有权？", "水泵的过滤器怎么清洗？", "更换电池之前要做什么？"],
    "ja": ["錆とは何ですか？", "ポンプのフィルターはどう掃除しますか？"],
}  # fmt: skip


def evenly(text: str) -> Mapping[str, float]:
    return dict.fromkeys(pieces(text), 1.0)


@pytest.mark.parametrize(
    ("language", "question"), [(code, q) for code, questions in LEANING.items() for q in questions]
)
def test_what_leaves_something_open_leans_on_the_conversation(language: str, question: str) -> None:
    assert leans_on(question, PREVIOUS[language])
    added = self_contained(question, earlier=[Earlier(PREVIOUS[language])], weigh=evenly).added
    assert added and all(word in PREVIOUS[language] for word in added)


@pytest.mark.parametrize(
    ("language", "question"), [(code, q) for code, questions in COMPLETE.items() for q in questions]
)
def test_what_is_complete_does_not(language: str, question: str) -> None:
    assert not leans_on(question, PREVIOUS[language])
    assert self_contained(question, earlier=[Earlier(PREVIOUS[language])], weigh=evenly).added == ()


def test_without_a_conversation_nothing_is_added() -> None:
    assert self_contained("why?", earlier=[], weigh=evenly).added == ()


def test_the_announcement_of_a_new_subject_is_not_searched_for() -> None:
    found = self_contained("Now something else: why does iron rust?", earlier=[Earlier(TESLA)], weigh=evenly)
    assert (found.question, found.added) == ("why does iron rust?", ())


def test_names_come_first_and_words_that_stand_nowhere_not_at_all() -> None:
    def weigh(text: str) -> Mapping[str, float]:
        return {word: 0.0 if word == "inventions" else 1.0 for word in pieces(text)}

    added = self_contained("When was he born?", earlier=[Earlier(TESLA)], weigh=weigh).added
    assert set(added[:2]) == {"Nikola", "Tesla"} and "inventions" not in added


def test_what_the_question_says_itself_is_not_added() -> None:
    assert "Tesla" not in self_contained("And where did Tesla live?", earlier=[Earlier(TESLA)], weigh=evenly).added


def test_the_last_answer_tells_whom_a_pronoun_means() -> None:
    earlier = [Earlier("Who invented the induction motor?", "Galileo Ferraris [1].")]
    assert {"Galileo", "Ferraris"} <= set(self_contained("When was he born?", earlier=earlier, weigh=evenly).added)


def test_a_chain_of_follow_ups_keeps_its_subject_and_older_words_fade() -> None:
    chain = [Earlier("Which torque do the lid screws of the Kestrel need?"), Earlier("And the clamp?")]
    added = self_contained("why?", earlier=chain, weigh=evenly).added
    assert "Kestrel" in added and "clamp" in added
    assert added.index("clamp") < added.index("torque")


def test_what_was_said_before_a_new_subject_does_not_come_back() -> None:
    turns = [Earlier("Which torque do the lid screws of the Kestrel need?"), Earlier("Who painted the Mona Lisa?")]
    assert "Kestrel" not in self_contained("why?", earlier=turns, weigh=evenly).added


def test_titles_of_what_was_cited_help_where_little_was_said() -> None:
    earlier = [Earlier("Is it loud?", "Yes.", about=("Kestrel pump",))]
    assert "Kestrel" in self_contained("why?", earlier=earlier, weigh=evenly).added


@given(st.text(max_size=120), st.text(max_size=120), st.text(max_size=120))
def test_any_conversation_gives_a_bounded_search(first: str, answer: str, question: str) -> None:
    found = self_contained(question, earlier=[Earlier(first, answer)], weigh=evenly)
    assert len(found.added) <= 6 and question.endswith(found.question)
