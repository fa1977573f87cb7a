"""Words of each language, and of each version of the analysis, on both sides of the search."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.index import analyze, word_rules
from edgerag.index.library import Library
from edgerag.index.word_rules import PLAIN, Rules, rules_of, rules_of_all
from edgerag.types import ParsedDocument

ALL_RULES = (Rules(1, "cut"), PLAIN, *map(rules_of, ("ar", "de", "el", "es", "hi", "ro", "ru", "sr", "vi")))

# SQLite and Python know the letters of different versions of Unicode.
KNOWN = st.characters(exclude_categories=("Cs", "Cn", "Co", "So"))


def is_found(text: str, query: str, language: str) -> bool:
    """Whether a document in that language has all that is asked for."""
    rules = rules_of(language)
    indexed = f" {analyze.index_text(text, rules=rules)} "
    return all(any(f" {form} " in indexed for form in term.forms) for term in analyze.query_terms(query, rules=[rules]))


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("de", "Herr Müller und die Häuser", "Mueller Haeuser"),
        ("el", "Η Αθήνα και ο Όλυμπος", "αθηνα ολυμπος"),
        ("el", "ΑΘΗΝΑ", "Αθήνα"),
        ("vi", "Thủ đô của Việt Nam là Hà Nội", "thu do Viet Nam Ha Noi"),
        ("pl", "Łódź i Wrocław", "Lodz Wroclaw"),
        ("tr", "Işık İstanbul'da", "isik istanbul"),
        ("tr", "IŞIK", "ışık"),
        ("de", "Die Straße nach Zürich", "strasse zurich"),
        ("da", "Smørrebrød på Ærø", "smorrebrod aero"),
        ("ru", "Ещё одна ёлка", "еще елка"),
        ("ar", "كِتَابٌ", "كتاب"),
        ("ar", "الكتاب الجديد", "كتاب"),
        ("he", "שָׁלוֹם", "שלום"),
        ("fr", "L’œuvre d’un élève naïf", "oeuvre eleve naif"),
        ("unknown", "Müller und Łukasz", "muller lukasz"),
        ("unknown", "cafe\u0301", "café"),
        ("de", "Mueller", "Müller"),
        ("el", "Αθηνα", "Αθήνα"),
        ("pl", "Lodz", "Łódź"),
        ("tr", "isik", "IŞIK"),
        ("ru", "елка", "ёлка"),
    ],
)
def test_accents_and_letters_with_several_spellings_are_one_on_both_sides(language: str, text: str, query: str) -> None:
    assert is_found(text, query, language)


def test_vietnamese_words_with_other_tones_are_other_words_unless_none_is_typed() -> None:
    text = "Thủ đô có một ngôi chợ"
    assert is_found(text, "thủ đô", "vi")
    assert is_found(text, "thu do", "vi")
    assert not is_found(text, "thú đô", "vi")
    assert not is_found(text, "cho đô", "vi"), "one accent says that they are typed"
    assert is_found("E-1042 và ô-42", "E-1042 ô-42", "vi")


@pytest.mark.parametrize(
    ("text", "query"),
    [("हिन्दी", "हनद"), ("ต่ำ", "ตา"), ("が", "か")],
)
def test_marks_that_make_another_letter_stay(text: str, query: str) -> None:
    assert not is_found(text, query, "unknown")


@given(st.text(KNOWN, max_size=60), st.sampled_from(ALL_RULES))
def test_a_text_holds_every_term_of_itself_by_its_own_rules(text: str, rules: Rules) -> None:
    indexed = f" {analyze.index_text(text, rules=rules)} "
    for term in analyze.query_terms(text, rules=[rules]):
        assert any(f" {form} " in indexed for form in term.forms), (term, indexed)


@given(st.text(max_size=60), st.lists(st.sampled_from(ALL_RULES), min_size=1, unique=True))
def test_with_the_rules_of_several_languages_a_query_finds_what_it_finds_with_each(
    query: str, several: list[Rules]
) -> None:
    terms = analyze.query_terms(query, rules=several)
    forms = [form for term in terms for form in term.forms]
    assert len(forms) == len(set(forms)), "each once"
    for rules in several:
        for term in analyze.query_terms(query, rules=[rules]):
            assert set(term.forms) <= set(forms)


def test_a_query_of_many_words_in_many_languages_is_bounded() -> None:
    different = " ".join(f"{chr(97 + n // 26)}{chr(97 + n % 26)}wegungen" for n in range(300))
    alike = " ".join(f"beweglichkeiten{chr(97 + n // 26)}{chr(97 + n % 26)}en" for n in range(300))
    terms = analyze.query_terms(different, rules=ALL_RULES)
    assert 30 < len(terms) <= analyze.MAX_TERMS
    assert len(analyze.query_terms(alike, rules=ALL_RULES)) == 1
    terms += analyze.query_terms(alike, rules=ALL_RULES)
    assert sum(len(term.forms) for term in terms) <= 16 * analyze.MAX_TERMS
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (body)")
    db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (analyze.match_expression(terms),)).fetchone()


def test_threads_do_not_share_a_stemmer() -> None:
    words = [f"bewegungen{n} häuser{n} entwicklungen" for n in range(3000)]
    rules = rules_of("de")
    alone = [word_rules.indexed(word, rules) for word in words]
    word_rules._by_way.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda word: word_rules.indexed(word, rules), words * 2))
    assert together == alone * 2


# ---------------------------------------------------------------- in a library


def test_a_library_of_several_languages_finds_the_words_of_each(opened: Any, material: Any) -> None:
    library = opened()
    texts = {
        "de": "Die Entwicklungen der Häuser dauerten lange.",
        "en": "The developments of the houses took long.",
        "ru": "Развитие городов продолжалось долго.",
        "zh": "房屋的发展用了很长时间。",
        "unknown": "KX-1042 = developments",
    }
    for language, text in texts.items():
        material.put(library, f"/docs/{language}", [text], title="", language=language)

    def found(query: str) -> list[str]:
        hits = library.search_keywords(query, limit=9)
        return [Path(chunk.path).name for chunk in library.chunks([hit.chunk_id for hit in hits])]

    assert found("Entwicklung Haus") == ["de"] or found("Entwicklung") == ["de"]
    assert found("город") == ["ru"]
    assert found("房屋") == ["zh"]
    assert set(found("development")) == {"en", "unknown"}
    assert found("KX-1042")[0] == "unknown"
    assert library.query_terms("Entwicklung, Häuser") == ("entwicklung", "häuser")


def written_by_version_1(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the program before this one left it: words by its rules, no languages."""
    with library._store.writing() as db:
        rows = db.execute("SELECT c.id, d.id, d.title FROM chunks c JOIN documents d ON d.id = c.document_id")
        for chunk_id, _, title in rows.fetchall():
            (stored,) = library.chunks([chunk_id])
            words = [
                analyze.index_text(part, rules=Rules(1, "cut"))
                for part in (title, "\n".join(stored.chunk.heading_path), stored.chunk.text)
            ]
            db.execute("DELETE FROM chunk_words WHERE rowid = ?", (chunk_id,))
            db.execute("INSERT INTO chunk_words (rowid, title, headings, body) VALUES (?, ?, ?, ?)", (chunk_id, *words))
        db.execute("UPDATE documents SET language = 'unknown', analysis = 1")


TEXTS = {
    "/docs/de": ["Die Häuser am Meer", "Entwicklungen und Bewegungen"],
    "/docs/el": ["Οι εξελίξεις της Αθήνας", "Ένα άλλο κείμενο"],
    "/docs/en": ["Houses by the sea", "Developments and movements"],
}


def languages_by_path(document: ParsedDocument) -> str:
    return "de" if "Meer" in document.text else "el" if "Αθήνας" in document.text else "en"


def test_words_of_an_older_version_are_found_by_its_rules_and_made_anew_one_by_one(
    opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = opened()
    for path, texts in TEXTS.items():
        material.put(library, path, texts, title="")
        material.embed_pending(library)
    library.seal()
    written_by_version_1(library, monkeypatch)
    before = library.search_vectors(material.vector("q"), limit=9, ef_search=9)
    reader = opened("read")

    def finds(query: str) -> list[int]:
        return [hit.chunk_id for hit in reader.search_keywords(query, limit=9)]

    whole = {text: chunk for chunk, text in enumerate((text for texts in TEXTS.values() for text in texts), start=1)}
    for left in (3, 2, 1, 0):
        assert library.analysed_before_count() == left
        for text, chunk in whole.items():
            assert finds(text)[0] == chunk, f"{text!r} with {left} documents to go"
        assert library.analyse_again(languages_by_path, limit=1) == (1 if left else 0)
    assert [document.language for document in reader.documents()] == ["de", "el", "en"]
    assert finds("εξελιξεις αθηνας") == [3], "without accents, which the older rules did not find"
    assert library.pending_count() == 0, "nothing is to be embedded again"
    assert library.search_vectors(material.vector("q"), limit=9, ef_search=9) == before
    assert {finding.severity for finding in library.verify()} == {"ok"}


def test_a_document_that_is_read_again_is_not_analysed_twice(
    opened: Any, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = opened()
    for path, texts in TEXTS.items():
        material.put(library, path, texts)
    written_by_version_1(library, monkeypatch)
    material.put(library, "/docs/de", TEXTS["/docs/de"], language="de")
    assert library.analysed_before_count() == 2
    assert library.analyse_again(languages_by_path, limit=100) == 2


def test_an_empty_library_has_the_plain_rules() -> None:
    assert rules_of_all([]) == (PLAIN,)
    assert rules_of_all([("unknown", 1), ("de", 1), ("fa", 2), ("unknown", 2)]) == (Rules(1, "cut"), PLAIN)
