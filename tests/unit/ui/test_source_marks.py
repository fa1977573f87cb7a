"""Numbers in brackets lead to a source only where the program or a checked citation put them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "threads"))

from conversations import answer, source

from edgerag.ask.cite import CitationFilter
from edgerag.ask.instant import instant_text
from edgerag.types import Answer, Exchange, FoundSource, InstantSentence, Source, Thread, ThreadHead
from edgerag.ui.export import export
from edgerag.ui.inert_markdown import SOURCE_MARK, parsed
from edgerag.ui.source_marks import marks_of

PAPER = "The effect is as shown by Miller [2] and by Jones [3], and large."


def sources(*, cited: tuple[int, ...] = (1, 2, 3)) -> tuple[Source, ...]:
    one = source()
    chunk = replace(one.hit.chunk.chunk, text=PAPER)
    first = replace(one, number=1, quote=PAPER, hit=replace(one.hit, chunk=replace(one.hit.chunk, chunk=chunk)))
    return tuple(
        replace(each, cited=each.number in cited) for each in (first, *(replace(one, number=n) for n in (2, 3)))
    )


def answered(text: str, **changes: object) -> Answer:
    return replace(answer("What?", text), sources=sources(), instant=(), **changes)  # type: ignore[arg-type]


def marked(made: Answer) -> list[str]:
    """What stands before each mark, and the mark."""
    found = []
    for token in parsed(made.text, marks_of(made)):
        before = ""
        for child in token.children or ():
            if child.type == SOURCE_MARK:
                found.append(f"{before[-5:]}{child.content}")
            before += child.content
    return found


def test_in_a_quotation_the_numbers_are_the_documents_own() -> None:
    instant = (InstantSentence(PAPER, 1, 0, len(PAPER)), InstantSentence("It is [1] so.", 2, 0, 13))
    made = replace(answered(instant_text(instant), stop_reason="no_model"), instant=instant)
    assert marked(made) == ["ge.” [1]", "so.” [2]"]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("It is large [1]. So say others [2][3].", [1, 2, 3]),
        ("As shown by Miller [2], it is large [1].", [1]),
        (f"“{PAPER}” [1] And it is old [2].", [1, 2]),
        ("The array a[1] and `b[2]` and max_len[3].", []),
        ("```\na [1]\n```\n\n    b [2]", []),
        ("See [1](http://x.example) and [x](http://y.example/[2]).", []),
        ("No source has this number [7] or [2024].", []),
        (r"Escaped \[1] is none.", []),
    ],
)
def test_of_a_models_words_checked_citations_are_marks(text: str, marks: list[int]) -> None:
    made = answered(text)
    assert [int(found.rpartition("[")[2][:-1]) for found in marked(made)] == marks
    html = exported(made)
    assert html.count("<a href") == len(marks)


def test_what_the_answer_does_not_cite_is_no_mark() -> None:
    made = replace(answered("It is large [1] and old [2]."), sources=sources(cited=(1,)))
    assert [found[-3:] for found in marked(made)] == ["[1]"]


def test_in_the_programs_own_lists_the_last_number_is_the_mark() -> None:
    made = answered("- Report [2] of May [1]\n- Minutes [3]", stop_reason="counted")
    assert [found[-3:] for found in marked(made)] == ["[1]", "[3]"]


def test_a_reference_that_a_model_copies_is_no_citation_and_is_not_lost() -> None:
    citations = CitationFilter(sources())
    text = citations.feed("It was shown by Miller [2] and by Jones [3] [1].") + citations.finish()
    assert text == "It was shown by Miller [2] and by Jones [3] [1]."
    assert citations.cited == {1}


def exported(made: Answer) -> str:
    thread = Thread(
        ThreadHead(5, "default", "T", 0, 0, 1), (Exchange(8, 5, None, 0, "done", "What?", made.text, answer=made),)
    )
    return export(thread, {8: [FoundSource(each, "current") for each in made.sources]}, form="html")
