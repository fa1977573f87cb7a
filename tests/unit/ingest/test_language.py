"""The language of a document, told from its text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.ingest.language import language_of, language_of_text
from edgerag.types import UNKNOWN_LANGUAGE, ParsedDocument

TEXTS = {
    "en": "The badger sleeps by day in its sett and goes out to look for worms when the night has come.",
    "de": "Der Dachs schläft am Tag in seinem Bau und sucht erst in der Nacht nach Würmern und Wurzeln.",
    "fr": "Le blaireau dort le jour dans son terrier et ne sort que la nuit pour chercher des vers de terre.",
    "es": "El tejón duerme de día en su madriguera y sale por la noche para buscar lombrices y raíces.",
    "ro": "Bursucul doarme ziua în vizuina lui și iese noaptea ca să caute râme și rădăcini în pământ.",
    "pl": "Borsuk śpi w dzień w swojej norze i wychodzi dopiero w nocy, żeby szukać dżdżownic i korzeni.",
    "tr": "Porsuk gündüzleri yuvasında uyur ve ancak gece olunca solucan ve kök aramak için dışarı çıkar.",
    "vi": "Con lửng ngủ ban ngày trong hang của nó và chỉ ra ngoài vào ban đêm để tìm giun và rễ cây.",
    "ru": "Барсук спит днём в своей норе и выходит только ночью, чтобы искать червей и корни растений.",
    "uk": "Борсук спить удень у своїй норі й виходить лише вночі, щоб шукати черв'яків та коріння рослин.",
    "el": "Ο ασβός κοιμάται την ημέρα στη φωλιά του και βγαίνει τη νύχτα για να ψάξει σκουλήκια.",
    "ar": "ينام الغرير في النهار داخل جحره ولا يخرج إلا في الليل ليبحث عن الديدان والجذور في الأرض.",
    "he": "הגירית ישנה ביום במאורה שלה ויוצאת רק בלילה כדי לחפש תולעים ושורשים באדמה.",
    "hi": "बिज्जू दिन में अपने बिल में सोता है और रात होने पर ही कीड़े और जड़ें खोजने के लिए बाहर निकलता है।",
    "zh": "獾白天在洞穴里睡觉，只有到了晚上才出来寻找蚯蚓和植物的根。",
    "ja": "アナグマは昼間は巣穴で眠り、夜になってからミミズや植物の根を探しに出かけます。",
    "ko": "오소리는 낮에는 굴에서 자고 밤이 되어서야 지렁이와 뿌리를 찾으러 나온다.",
    "th": "แบดเจอร์นอนหลับในโพรงตอนกลางวันและออกมาหาไส้เดือนกับรากไม้ในตอนกลางคืนเท่านั้น",
}


def document(text: str, media_type: str = "text/plain") -> ParsedDocument:
    return ParsedDocument(text=text, title="", media_type=media_type)


@pytest.mark.parametrize("language", TEXTS)
def test_one_sentence_is_enough(language: str) -> None:
    assert language_of(document(TEXTS[language])) == language
    assert language_of(document(f"# {TEXTS[language]}\n\n- {TEXTS[language]}\n", "text/markdown")) == language


CODE = """
def found(db, query, limit=10):
    rows = db.execute("SELECT id FROM t WHERE x = ?", (query,))
    return [row[0] for row in rows if row[1] != 0][:limit]

class Hit(object):
    __slots__ = ("chunk_id", "score")
    def __init__(self, chunk_id, score): self.chunk_id, self.score = chunk_id, score
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "🙂🙂🙂",
        "12345 67890 " * 50,
        "\n".join(f"{n}\t{n * 7}\t{n / 3:.2f}" for n in range(60)),
        "Q1;Q2;Q3\n" + "\n".join(f"{n};{n * 7};{n / 3:.2f}" for n in range(60)),
        "0xFF 0x12 de:ad:be:ef 1200 kWh",
        "SKU-1042 AB-12/5 TX9 KW",
        "Müller GmbH",
        CODE,
        CODE * 20,
        "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo=" * 40,
        "\x00\ud800\udfff",
    ],
)
def test_what_is_no_language_is_unknown(text: str) -> None:
    assert language_of(document(text)) == UNKNOWN_LANGUAGE


def test_code_is_unknown_whatever_its_comments_say() -> None:
    assert language_of(document(f"# {TEXTS['en']}\n" * 20, "text/x-python")) == UNKNOWN_LANGUAGE
    assert language_of(document(f"{TEXTS['en']}\n" * 20, "text/x-rst")) == "en"


def test_of_two_languages_it_is_the_one_that_most_is_in() -> None:
    long, short = TEXTS["de"] * 60, TEXTS["en"] * 8
    for text in (short + long, long + short, long + short + long):
        assert language_of(document(text)) == "de"
    assert language_of(document(TEXTS["zh"] * 3 + " Meles meles (European badger), Linnaeus 1758. ")) == "zh"
    assert language_of(document(TEXTS["en"] * 3 + " (獾)")) == "en"


def test_a_long_document_takes_no_longer_than_a_short_one_and_says_the_same_each_time() -> None:
    text = TEXTS["fr"] * 20_000
    assert {language_of(document(text)) for _ in range(20)} == {"fr"}


@settings(max_examples=150, deadline=None)
@given(st.text())
def test_anything_can_be_asked(text: str) -> None:
    language = language_of_text(text)
    assert language == language_of_text(text)
    assert language == UNKNOWN_LANGUAGE or (language.isalpha() and 2 <= len(language) <= 3)
