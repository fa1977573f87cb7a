from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.aggregate import collection_question, scan_sources, scan_text, unfollowed_note
from edgerag.types import DocumentMatch, Hit, KeywordScan, PieceCount

PUMP = [
    ("How many documents mention the pump?", "count", ("pump",)),
    ("Which files contain the word pump?", "list", ("pump",)),
    ("Count the documents that mention the pump", "count", ("pump",)),
    ("How often is the pump mentioned?", "count", ("pump",)),
    ("In which documents does the pump appear?", "count", ("pump",)),
    ("List all passages about the pump", "list", ("pump",)),
    ("Wie viele Dokumente erwähnen die Pumpe?", "count", ("Pumpe",)),
    ("In welchen Dokumenten wird die Pumpe erwähnt?", "count", ("Pumpe",)),
    ("Liste alle Dokumente über die Pumpe", "list", ("Pumpe",)),
    ("Wie oft wird die Pumpe erwähnt?", "count", ("Pumpe",)),
    ("Combien de documents mentionnent la pompe ?", "count", ("pompe",)),
    ("Quels documents parlent de la pompe ?", "list", ("pompe",)),
    ("¿Cuántos documentos mencionan la bomba?", "count", ("bomba",)),
    ("¿En qué documentos se menciona la bomba?", "list", ("bomba",)),
    ("Quanti documenti menzionano la pompa?", "count", ("pompa",)),
    ("Quantos documentos mencionam a bomba?", "count", ("bomba",)),
    ("Hoeveel documenten vermelden de pomp?", "count", ("pomp",)),
    ("Ile dokumentów zawiera słowo pompa?", "count", ("pompa",)),
    ("Сколько документов упоминают насос?", "count", ("насос",)),
    ("В каких документах упоминается насос?", "list", ("насос",)),
    ("有多少文件提到了水泵？", "count", ("水泵",)),
    ("哪些文档提到水泵？", "list", ("水泵",)),
    ("列出所有提到水泵的文件", "list", ("水泵",)),
    ("どの文書がポンプに言及していますか？", "list", ("ポンプ",)),
]


@pytest.mark.parametrize(("question", "wants", "words"), PUMP)
def test_a_question_about_the_documents_is_counted(question: str, wants: str, words: tuple[str, ...]) -> None:
    found = collection_question(question)
    assert found is not None and found.of_documents
    assert (found.wants, found.pieces) == (wants, words)


@pytest.mark.parametrize(
    "question",
    ["How many documents are there?", "Wie viele Dokumente gibt es?", "¿Cuántos documentos hay?", "List all documents"],
)
def test_without_words_everything_is_counted(question: str) -> None:
    found = collection_question(question)
    assert found is not None and found.pieces == ()


def test_kinds_of_documents_are_looked_for_too() -> None:
    found = collection_question("List all invoices from Siemens")
    assert found is not None and found.pieces == ("invoices", "Siemens")


def test_list_all_of_something_else_may_be_answered_otherwise() -> None:
    found = collection_question("List all error codes of the pump")
    assert found is not None and not found.of_documents and found.pieces == ("error", "codes", "pump")


def test_a_quoted_phrase_stays_one() -> None:
    found = collection_question('How many files contain "lid screws" and E-1042?')
    assert found is not None and found.pieces == ("lid screws", "E-1042")


@pytest.mark.parametrize(
    "question",
    [
        "How many bolts hold the lid?",
        "How many pages does the manual have?",
        "How many documents did Luther sign?",
        "What documents are required for a passport?",
        "Which report was published in 1998?",
        "How many letters are there in the Greek alphabet?",
        "How often is the oil changed?",
        "Count Dracula lives where?",
        "List the torque of the lid screws",
        "List all steps to clean the filter",
        "Tell me all about the pump",
        "How many PDFs are there?",
        "Wie viele Schrauben halten den Deckel?",
        "Wie oft wird das Öl gewechselt?",
        "Welche Dokumente brauche ich für einen Pass?",
        "Combien de vis tiennent le couvercle ?",
        "¿Cuántos tornillos sujetan la tapa?",
        "Сколько винтов держат крышку?",
        "水泵有多少个螺丝？",
        "ネジは何本ありますか？",
        "",
    ],
)
def test_what_stands_in_one_sentence_is_an_ordinary_question(question: str) -> None:
    assert collection_question(question) is None


def scan_of(*documents: DocumentMatch, pieces: tuple[str, ...] = ("pump",), more: int = 0) -> KeywordScan:
    joint = [document for document in documents if document.passage_count]
    return KeywordScan(
        pieces=tuple(PieceCount(piece, len(documents) + more, 9) for piece in pieces),
        document_total=14 + more,
        passage_total=63,
        document_count=len(documents) + more,
        passage_count=sum(document.passage_count for document in joint),
        joint_document_count=len(joint) + more,
        documents=documents,
    )


def test_the_answer_counts_and_cites(hit: Callable[..., Hit]) -> None:
    scan = scan_of(DocumentMatch(1, "/notes/1.md", 4, 1), DocumentMatch(2, "/notes/2.md", 1, 2))
    chunks = {n: hit("The pump is blue.", chunk_id=n).chunk for n in (1, 2)}
    sources = scan_sources(scan, chunks, question="pump")
    text = scan_text(scan, sources)
    assert text.startswith("2 of 14 documents contain “pump”, in 5 passages.")
    assert "- 1.md: 4 passages [1]\n- 2.md: 1 passage [2]" in text
    assert "what is said in other words is not" in text
    assert sources[0].quote == "The pump is blue."


def test_the_list_is_bounded_and_says_so(hit: Callable[..., Hit]) -> None:
    scan = scan_of(DocumentMatch(1, "/notes/1.md", 1, 1), more=1200)
    sources = scan_sources(scan, {1: hit("The pump.").chunk}, question="pump")
    assert "and 1,200 more documents." in scan_text(scan, sources)


def test_what_stands_nowhere_is_told_word_by_word() -> None:
    scan = KeywordScan(
        pieces=(PieceCount("pump", 3, 9), PieceCount("zeppelin", 0, 0)),
        document_total=14,
        passage_total=63,
        document_count=0,
        passage_count=0,
        joint_document_count=0,
        documents=(),
    )
    text = scan_text(scan, ())
    assert "None of 14 documents contains all of “pump”, “zeppelin”." in text
    assert "“pump” stands in 3 documents" in text


def test_a_name_can_neither_cite_nor_command(hit: Callable[..., Hit]) -> None:
    scan = scan_of(DocumentMatch(1, "/notes/a [7]\x1b[31m.md", 1, 1))
    text = scan_text(scan, scan_sources(scan, {1: hit("The pump.").chunk}, question="pump"))
    assert "[7]" not in text and "\x1b" not in text


@given(st.text(max_size=300))
def test_any_text_can_be_asked(text: str) -> None:
    found = collection_question(text)
    assert found is None or all(piece.strip() for piece in found.pieces)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many documents mention the pump and not the valve?", ("not",)),
        ("How many documents mention the pump or the valve?", ("or",)),
        ("Wie viele Dokumente erwähnen die Pumpe oder das Ventil, aber nicht den Motor?", ("oder", "nicht")),
        ("Combien de documents mentionnent la pompe ou la vanne ?", ("ou",)),
        ("Сколько документов упоминают насос или клапан?", ("или",)),
        ("How many documents mention the pump and the valve?", ()),
        ('How many documents mention "trick or treat"?', ()),
        ("How many documents mention „Sein oder Nichtsein“?", ()),
    ],
)
def test_what_a_count_does_not_follow_is_said(question: str, words: tuple[str, ...]) -> None:
    found = collection_question(question)
    assert found is not None
    assert found.unfollowed == words
    note = unfollowed_note(found)
    assert bool(note) == bool(words) and all(word in note for word in words)
