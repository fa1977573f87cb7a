from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.index import analyze, keywords
from edgerag.index.migrations import STEPS


def index_of(*texts: str) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.executescript("".join(STEPS))
    for number, text in enumerate(texts, start=1):
        db.execute(
            "INSERT INTO chunk_words (rowid, title, headings, body) VALUES (?, '', '', ?)",
            (number, analyze.index_text(text)),
        )
    db.commit()  # what FTS5 counts of all rows is written with it
    return db


def found(db: sqlite3.Connection, query: str, limit: int = 10) -> list[int]:
    return [hit.chunk_id for hit in keywords.search(db, query, limit=limit)]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们在北京大学学习机器学习。", "机器学习"),
        ("北京大学は機械学習を教えています。", "機械学習"),
        ("カタカナのテキスト", "テキスト"),
        ("한국어를 공부합니다", "한국어"),
        ("한국어를 공부합니다", "한국어는 어렵다"),
        ("การเรียนรู้ของเครื่องเป็นสาขาหนึ่ง", "เครื่อง"),
        ("ການຮຽນຮູ້ຂອງເຄື່ອງ", "ຂອງເຄື່ອງ"),
        ("ការរៀនសូត្រ", "រៀនសូត្រ"),
        ("စက်သင်ယူမှု", "သင်ယူ"),
        ("हिन्दी में मशीन लर्निंग", "मशीन लर्निंग"),
        ("Die Straße war lang", "STRASSE"),
        ("ＦＵＬＬ ｗｉｄｔｈ　ｆｏｒｍｓ", "full width"),
        ("half ﾊﾝｶｸ kana", "ハンカク"),
        ("le résumé", "resume"),
        ("cafe\u0301 noir", "café"),
        ("running quickly", "runs"),
        ("Книга о городах России", "города"),
        ("Die Entwicklungen der Industrie", "Entwicklung"),
        ("الكتاب جديد", "كتاب"),
        ("Zürich 2024年度報告", "年度報告 zurich"),
    ],
)
def test_words_are_found_in_every_script(text: str, query: str) -> None:
    assert found(index_of("nothing to do with it 無関係 ไม่เกี่ยว", text), query) == [2]


@pytest.mark.parametrize(
    ("identifier", "near_misses"),
    [
        ("E-1042", ["error 1042 and 1042 again, 1042", "the letter E and then 1042", "E-1043"]),
        ("AB-12/5", ["AB 13/5 and AB-12", "12/5 AB", "5 AB 12"]),
        ("foo_bar()", ["bar of foo, foo in bar, bar", "foobar()", "foo the bar"]),
        ("10.0.0.1", ["10.0.1.0", "1 0 0 10", "10 servers, 0 left"]),
        ("std::vec::Vec", ["Vec vec std", "vec of std"]),
    ],
)
def test_an_exact_identifier_ranks_first(identifier: str, near_misses: list[str]) -> None:
    db = index_of(*near_misses, f"some words before {identifier} and some more words after it", "filler text")
    assert found(db, f"What is {identifier}?")[0] == len(near_misses) + 1


@pytest.mark.parametrize(
    "query",
    [
        '"', '""', '"unbalanced', "a AND", "NOT", "NEAR(", "NEAR(a b, 3)", "title:x", "{title body}: x", "-x", "x*",
        "^x", "(((((", "a OR OR b", "';DROP TABLE chunks;--", "\x00", "a\x00b", "\ud800", "x\udfff", "\u202e\u200b", "",
        "🙂", " \n\t", "+", "a + b", "\ufffe\uffff", "ﷺ", "a" * 50_000, "a " * 25_000, "中" * 50_000, '"' * 50_000,
        "é" * 50_000, "ก" * 50_000, "a-" * 25_000, " ".join(map(str, range(20_000))),
        " ".join(f"x-{i}" for i in range(9000)),
    ],
)  # fmt: skip
def test_no_query_is_syntax(query: str) -> None:
    db = index_of("some text", "a b c near not and or")
    found(db, query)
    weights = keywords.weights(db, query, counts=keywords.term_counts(db, query))
    assert all(weight >= 0.0 for weight in weights.values())
    assert len(analyze.query_terms(query)) <= analyze.MAX_TERMS


def test_operators_are_words() -> None:
    db = index_of("alpha", "near the wall", "alpha beta")
    assert found(db, "NEAR(wall) NOT near") == [2]


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1, max_size=40), st.text(max_size=40))
def test_whatever_a_text_holds_its_own_words_find_it(text: str, other: str) -> None:
    db = index_of(other, text)
    terms = analyze.query_terms(text)
    hits = found(db, text)
    # SQLite's Unicode tables are older than Python's: a letter unknown to it is no word.
    known = [term for term in terms if db.execute("SELECT 1 FROM chunk_words(?)", (term.expression,)).fetchone()]
    assert (2 in hits) == bool(known)


@given(st.text())
def test_index_text_can_always_be_stored(text: str) -> None:
    analyze.index_text(text).encode("utf-8")
    assert "\x00" not in analyze.index_text(text)


def surfaces(query: str) -> list[str]:
    return [term.surface for term in analyze.query_terms(query)]


def test_stop_words_are_dropped_in_the_language_of_the_question() -> None:
    assert surfaces("What caused the war?") == ["caused", "war"]
    assert surfaces("Was war die Ursache?") == ["ursache"]
    assert surfaces("Why do cells die?") == ["cells", "die"]
    assert surfaces("Quelle est la capitale de la France") == ["capitale", "france"]
    assert surfaces("¿Cuál es la capital de España?") == ["capital", "españa"]
    assert surfaces("Qual é a capital do Brasil") == ["capital", "brasil"]
    assert surfaces("Qual è la capitale d'Italia") == ["capitale", "italia"]
    assert surfaces("Какая столица у России?") == ["столица", "россии"]
    assert surfaces("Wat is de hoofdstad van Nederland?") == ["hoofdstad", "nederland"]
    assert surfaces("MIT research") == ["mit", "research"]


def test_stop_words_stay_when_there_is_nothing_else() -> None:
    assert surfaces("to be or not to be") == ["to", "be", "or", "not"]
    assert surfaces("什么") == ["什么"]


def test_terms_of_scripts_without_spaces_overlap() -> None:
    assert surfaces("东京大学") == ["东京", "京大", "大学"]
    assert surfaces("山") == ["山"]
    assert surfaces("谁发明了电话") == ["发明", "明了", "了电", "电话"]
    assert surfaces("กินข้าว") == ["กินข้า", "นข้าว"] or surfaces("กินข้าว") == ["กินข้", "นข้า", "ข้าว"]


def test_rare_terms_weigh_more_and_unknown_ones_nothing() -> None:
    db = index_of(*(["common words here"] * 20), "common zebra", "zebra")
    weights = keywords.weights(db, "common zebra unicorn", counts=keywords.term_counts(db, "common zebra unicorn"))
    assert weights["zebra"] > 5 * weights["common"] > 0
    assert weights["unicorn"] == 0


def test_titles_and_headings_are_found_too() -> None:
    db = sqlite3.connect(":memory:")
    db.executescript("".join(STEPS))
    db.execute("INSERT INTO chunk_words (rowid, title, headings, body) VALUES (1, 'manual', 'setup', 'press the key')")
    db.execute("INSERT INTO chunk_words (rowid, title, headings, body) VALUES (2, '', '', 'the setup was long ago')")
    assert found(db, "setup") == [1, 2]
    assert found(db, "manual") == [1]
