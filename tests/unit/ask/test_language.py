from __future__ import annotations

import pytest

from edgerag.ask.language import dominant_script, guess_language, knows


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("How do I handle errors?", "latin"),
        ("Wie viele Punkte?", "latin"),
        ("什么是所有权？", "han"),
        ("これはペンです、漢字漢字漢字", "kana"),
        ("Где находится библиотека?", "cyrillic"),
        ("Πού είναι;", "greek"),
        ("ภาษาไทยอยู่ที่ไหน", "thai"),
        ("कहाँ है?", "devanagari"),
        ("أين المكتبة", "arabic"),
        ("12345 !? 🎉", "none"),
        ("Rust 中的所有权是什么", "han"),
    ],
)
def test_the_dominant_script_is_told(text: str, script: str) -> None:
    assert dominant_script(text) == script


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How do I handle recoverable errors?", "en"),
        ("Wie viele Punkte gab die Verteidigung der Panthers ab?", "de"),
        ("¿Cuántos puntos concedió la defensa de los Panthers?", "es"),
        ("Combien de points la défense a-t-elle concédés ?", "fr"),
        ("Câte puncte a cedat apărarea Panthers?", "ro"),
        ("Đội phòng ngự của Panthers đã cho bao nhiêu điểm?", "vi"),
        ("mutex guard", ""),
    ],
)
def test_the_language_of_latin_text_is_guessed_by_its_function_words(text: str, language: str) -> None:
    assert guess_language(text) == language


def test_an_english_embedder_is_trusted_with_english_only() -> None:
    def judged(text: str) -> bool | None:
        return knows(("en",), script=dominant_script(text), text=text)

    assert judged("What is the capital of France?") is True
    assert judged("Was ist die Hauptstadt von Frankreich?") is False
    assert judged("法国的首都是什么？") is False
    assert judged("HashMap entry") is None  # nothing speaks against it


def test_a_multilingual_embedder_is_trusted_with_everything() -> None:
    assert knows(("*",), script="han", text="法国的首都是什么？") is True
    assert knows(("zh",), script="han", text="法国的首都是什么？") is True
