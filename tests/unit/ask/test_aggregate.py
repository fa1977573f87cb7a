from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ask.aggregate import collection_question, of_types
from edgerag.ask.count_text import scan_sources, scan_text, unfollowed_text
from edgerag.types import DocumentMatch, Filter, Hit, KeywordScan, PieceCount, WordQuery

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
        words=WordQuery.all_of(pieces),
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
        words=WordQuery.all_of(("pump", "zeppelin")),
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


P, V, M = ("pump",), ("valve",), ("motor",)


@pytest.mark.parametrize(
    ("question", "any_of", "none_of"),
    [
        ("How many documents do not mention the pump?", (), (P,)),
        ("How many documents don't mention the pump?", (), (P,)),
        ("How many files doesn’t contain the word pump?", (), (P,)),
        ("Which documents never mention the pump?", (), (P,)),
        ("List all documents that do not mention the pump", (), (P,)),
        ("List all documents without the pump", (), (P,)),
        ("How many documents lack the word pump?", (), (P,)),
        ("In how many documents is the pump not mentioned?", (), (P,)),
        ("How many documents mention neither the pump nor the valve?", (), (P, V)),
        ("How many documents do not mention the pump or the valve?", (), (P, V)),
        ("How many documents do not mention the red pump?", (), (("red", "pump"),)),
        ("How many documents mention no pump?", (), (P,)),
        ("How many documents mention the pump and not the valve?", (P,), (V,)),
        ("How many documents mention the pump but not the valve?", (P,), (V,)),
        ("How many documents mention the pump but do not mention the valve or the motor?", (P,), (V, M)),
        ("How many documents do not mention the pump but the valve?", (V,), (P,)),
        ("How many documents mention the pump without the valve?", (P,), (V,)),
        ("How many documents mention the pump or the valve?", (P, V), ()),
        ("How many documents mention either the pump, the valve or the motor?", (P, V, M), ()),
        ("How many documents mention the red pump or the valve but not the motor?", (("red", "pump"), V), (M,)),
        ("How many documents mention both the pump and the valve?", (("pump", "valve"),), ()),
        ("How many documents mention the pump OR the valve?", (P, V), ()),
        ("How often is the pump or the valve mentioned?", (P, V), ()),
        ('How many documents mention "trick or treat"?', (("trick or treat",),), ()),
        ('How many documents mention "trick or treat" or "not me"?', (("trick or treat",), ("not me",)), ()),
        ("How many documents mention the no-fly zone?", (("no-fly", "zone"),), ()),
        ("How many documents mention Not Just Bikes?", (("Just", "Bikes"),), ()),
        (
            "Wie viele Dokumente erwähnen die Pumpe oder das Ventil, aber nicht den Motor?",
            (("Pumpe",), ("Ventil",)),
            (("Motor",),),
        ),
        ("Wie viele Dokumente erwähnen die Pumpe nicht?", (), (("Pumpe",),)),
        ("Wie viele Dokumente erwähnen keine Pumpe?", (), (("Pumpe",),)),
        ("Wie viele Dokumente erwähnen weder die Pumpe noch das Ventil?", (), (("Pumpe",), ("Ventil",))),
        ("In wie vielen Dokumenten wird die Pumpe nicht erwähnt?", (), (("Pumpe",),)),
        ("Wie viele Dokumente erwähnen entweder die Pumpe oder das Ventil?", (("Pumpe",), ("Ventil",)), ()),
        ("Combien de documents ne mentionnent pas la pompe ?", (), (("pompe",),)),
        ("Combien de documents ne mentionnent ni la pompe ni la vanne ?", (), (("pompe",), ("vanne",))),
        ("Combien de documents mentionnent la pompe ou la vanne ?", (("pompe",), ("vanne",)), ()),
        ("Combien de documents mentionnent le Pas de Calais ?", (("Calais",),), ()),
        ("¿Cuántos documentos no mencionan la bomba?", (), (("bomba",),)),
        ("¿Cuántos documentos mencionan la bomba o la válvula?", (("bomba",), ("válvula",)), ()),
        ("Quanti documenti non menzionano la pompa?", (), (("pompa",),)),
        ("Quantos documentos não mencionam a bomba?", (), (("bomba",),)),
        ("Hoeveel documenten vermelden de pomp niet?", (), (("pomp",),)),
        ("Hoeveel documenten vermelden geen pomp?", (), (("pomp",),)),
        ("Ile dokumentów nie zawiera słowa pompa?", (), (("pompa",),)),
        ("Сколько документов не упоминают насос?", (), (("насос",),)),
        ("Сколько документов упоминают насос или клапан?", (("насос",), ("клапан",)), ()),
        ("有多少文件没有提到水泵？", (), (("水泵",),)),
        ("有多少文件提到水泵或者阀门？", (("水泵",), ("阀门",)), ()),
        ("どの文書がポンプに言及していませんか？", (), (("ポンプ",),)),
        ("ポンプに言及していない文書はいくつありますか？", (), (("ポンプ",),)),
    ],
)
def test_not_and_or_are_followed(question: str, any_of: tuple[object, ...], none_of: tuple[object, ...]) -> None:
    found = collection_question(question)
    assert found is not None
    assert (found.words.any_of, found.words.none_of, found.unfollowed) == (any_of, none_of, ())


@pytest.mark.parametrize(
    ("question", "beyond"),
    [
        ("How many documents mention only the pump?", ("only",)),
        ("How many documents mention the pump more than twice?", ("more than", "twice")),
        ("How many documents mention the pump or not the valve?", ("or", "not")),
        ("How many documents mention the pump except the manual?", ("except",)),
        ("How often is the pump not mentioned?", ("not",)),
        ("Wie viele Dokumente erwähnen nur die Pumpe?", ("nur",)),
        ("Combien de documents ne mentionnent que la pompe ?", ("ne mentionnent que",)),
        ("有多少文件只提到水泵？", ("只",)),
        ("ポンプだけに言及している文書はいくつありますか？", ("だけ",)),
    ],
)
def test_what_a_count_does_not_follow_is_known(question: str, beyond: tuple[str, ...]) -> None:
    found = collection_question(question)
    assert found is None or found.unfollowed == beyond


def test_what_a_count_does_not_follow_gets_no_number_of_its_own() -> None:
    counts = (PieceCount("pump", 3, 9), PieceCount("valve", 1, 1))
    scan = KeywordScan(counts, 14, 63, 4, 10, 4, (), WordQuery((P, V)))
    text = unfollowed_text(scan, ["only"])
    assert text.startswith("This cannot be counted as it is asked: a count of words does not follow “only”.")
    assert "“pump” stands in 3 documents, in 9 passages; “valve” stands in 1 document, in 1 passage" in text
    assert "4" not in text and "10" not in text


@pytest.mark.parametrize(
    ("question", "words", "types"),
    [
        ("How many PDF documents mention the pump?", ("pump",), ("pdf",)),
        ("How many PDFs mention the pump?", ("pump",), ("pdf",)),
        ("How many PDFs are there?", (), ("pdf",)),
        ("How many of the documents are PDFs?", (), ("pdf",)),
        ("Which Word files contain the pump?", ("pump",), ("word",)),
        ("List all Excel files about the pump", ("pump",), ("excel",)),
        ("How many documents in PDF format mention the pump?", ("pump",), ("pdf",)),
        ("How many documents of type PDF mention the pump?", ("pump",), ("pdf",)),
        ("How many documents mention PDF files?", ("PDF", "files"), ()),
        ("How many documents of type html or txt are there?", (), ("html", "text")),
        ("How many PDFs and Word files mention the pump?", ("pump",), ("pdf", "word")),
        ("How many PDFs, EPUBs and CSVs are there?", (), ("pdf", "epub", "csv")),
        ("Wie viele PDF- oder Word-Dateien erwähnen die Pumpe?", ("Pumpe",), ("pdf", "word")),
        ("Combien de fichiers pdf ou docx y a-t-il ?", (), ("pdf", "word")),
        ("How many text passages mention the pump?", ("pump",), ()),
        ("How many text files mention the pump?", ("pump",), ("text",)),
        ("Wie viele PDF-Dateien erwähnen die Pumpe?", ("Pumpe",), ("pdf",)),
        ("Wie viele PDFs gibt es?", (), ("pdf",)),
        ("Wie viele Textdateien erwähnen die Pumpe?", ("Pumpe",), ("text",)),
        ("Combien de documents PDF mentionnent la pompe ?", ("pompe",), ("pdf",)),
        ("¿Cuántos archivos PDF mencionan la bomba?", ("bomba",), ("pdf",)),
        ("Сколько PDF-файлов упоминают насос?", ("насос",), ("pdf",)),
        ("有多少PDF文件提到水泵？", ("水泵",), ("pdf",)),
        ("どのPDFファイルがポンプに言及していますか？", ("ポンプ",), ("pdf",)),
    ],
)
def test_a_type_of_file_is_no_word_to_look_for(question: str, words: tuple[str, ...], types: tuple[str, ...]) -> None:
    found = collection_question(question)
    assert found is not None and (found.pieces, found.types) == (words, types)


def test_a_kind_of_document_may_be_a_type_of_file() -> None:
    found = collection_question("How many e-mails mention the pump or the valve?")
    assert found is not None and found.words.any_of == (("e-mails", "pump"), ("e-mails", "valve"))
    assert found.as_type is not None and found.as_type.types == ("mail",)
    assert found.as_type.words.any_of == (P, V)


@pytest.mark.parametrize(
    ("where", "types", "expected"),
    [
        (None, (), Filter()),
        (None, ("pdf",), Filter(types=("pdf",))),
        (Filter(tags=("a",)), ("pdf",), Filter(tags=("a",), types=("pdf",))),
        (Filter(types=("mail",)), ("outlook", "pdf"), Filter(types=("outlook",))),
        (Filter(types=("slides",)), ("pdf",), Filter(types=("",))),
        (Filter(types=(".log",)), ("text",), None),
    ],
)
def test_types_of_the_question_narrow_those_of_the_filter(
    where: Filter | None, types: tuple[str, ...], expected: Filter | None
) -> None:
    assert of_types(where, types) == expected


@pytest.mark.parametrize(
    ("words", "count", "said"),
    [
        (WordQuery((P, V)), 2, "2 of 14 documents contain “pump” or “valve”, in 5 passages."),
        (WordQuery((P, V, ("red", "motor"))), 2, "contain “pump”, “valve” or “red” with “motor”, in 5 passages"),
        (WordQuery((P,), (V,)), 2, "2 of 14 documents contain “pump”, but not “valve”, in 5 passages."),
        (WordQuery((P,), (V, M)), 2, "contain “pump”, but none of “valve”, “motor”, in"),
        (WordQuery((), (P,)), 2, "2 of 14 documents do not contain “pump”."),
        (WordQuery((), (P,)), 1, "1 of 14 documents does not contain “pump”."),
        (WordQuery((), (P, V)), 2, "2 of 14 documents contain none of “pump”, “valve”."),
        (WordQuery((), (("red", "pump"),)), 2, "do not contain “red” with “pump”."),
        (WordQuery((), (P,)), 0, "Every one of the 14 documents contains “pump”."),
        (WordQuery((), (P, V)), 0, "contains “pump” or “valve”."),
    ],
)
def test_the_answer_says_what_was_counted(words: WordQuery, count: int, said: str) -> None:
    passages = 5 if words.any_of else 0
    scan = KeywordScan(tuple(PieceCount(w, 1, 1) for w in words.words), 14, 63, count, passages, count, (), words)
    assert said in scan_text(scan, ())
    assert "of the type “pdf”" in scan_text(scan, (), types=("pdf",))
