"""Numbers in brackets lead to a source only where the program or a checked citation put them."""

from __future__ import annotations

import itertools
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

sys.path.insert(0, str(Path(__file__).parents[1] / "threads"))

from conversations import answer, source

from edgerag.ask.cite import CitationFilter
from edgerag.ask.instant import instant_text
from edgerag.types import Answer, Exchange, FoundSource, InstantSentence, Source, Thread, ThreadHead
from edgerag.ui import output
from edgerag.ui.export import ExportFormat, export
from edgerag.ui.inert_markdown import SOURCE_MARK, parsed
from edgerag.ui.plain_marks import MarkedStream, bracketed_numbers, foreign_words, marked_text
from edgerag.ui.source_marks import SourceMarks, marks_of

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
    assert html.count("<a class") == len(marks)


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


def exported(made: Answer, form: ExportFormat = "html") -> str:
    thread = Thread(
        ThreadHead(5, "default", "T", 0, 0, 1), (Exchange(8, 5, None, 0, "done", "What?", made.text, answer=made),)
    )
    return export(thread, {8: [FoundSource(each, "current") for each in made.sources]}, form=form)


class AnyNumber(SourceMarks):
    """What a reader takes for a mark: each number in brackets that is no code and has no backslash."""

    __slots__ = ()

    def is_mark(self, block: str, start: int, end: int) -> bool:
        return True


MARKS = SourceMarks(numbers=frozenset({1, 2}))
PIECES = (
    "[1]", "[2]", "[7]", "\\[1]", "\\[2\\]", "a", "b ", "12", "\n", "\n\n", "`", "```\n", "~~~\n", "$", "x_1",
    "| ", "|\n", "|---|---|\n", "- ", "    ", "> ", "1. ", "# ", "==\n", "*", "**", "\\", "\\(", "\\)", "\\]",
    "(", "[", "]", "“", "”", "\t", "<b>", "&amp;", "[x](http://a[1])",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def read(text: str) -> list[int]:
    return [each.number for each in bracketed_numbers(text, AnyNumber()) if each.kind == "mark"]


@given(TEXTS)
@example(r"Miller [7] says \[x=1\] and [1].")
@example(r"\[1] and then a[7] and [2].")
def test_in_plain_text_a_reader_finds_exactly_the_marks(text: str) -> None:
    told = marked_text(text, MARKS)
    assert read(told) == [each.number for each in bracketed_numbers(text, MARKS) if each.kind == "mark"]
    assert told.replace("\\", "") == text.replace("\\", ""), "nothing else is another"
    assert read(foreign_words(text.replace("\\", ""))) == []


@given(TEXTS, st.lists(st.integers(min_value=1, max_value=9), min_size=1))
@example("ge [1]`a[7]`\n\nand [2]", [1])
def test_an_answer_in_pieces_is_written_as_the_whole_is(text: str, lengths: list[int]) -> None:
    stream = MarkedStream()
    stream.marks = MARKS
    given, at = "", 0
    for length in itertools.cycle(lengths):
        if at >= len(text):
            break
        given += stream.feed(text[at : at + length])
        at += length
    assert given + stream.finish() == marked_text(text, MARKS)


def test_a_long_answer_is_given_as_it_comes_and_its_past_is_forgotten() -> None:
    stream = MarkedStream()
    stream.marks = MARKS
    paragraph = "It is so, says the manual [1], and a[7] is none. " * 12 + "\n\n"
    given = ""
    for count in range(1, 20):
        given += stream.feed(paragraph)
        assert len(given) >= count * (len(paragraph) - 20), "little is held back"
        assert len(stream._text) < 6_000
    assert given + stream.finish() == marked_text(paragraph * 19, MARKS)


TOLD = f"“{PAPER}” [1] And [2] is old, `b[1]`, as shown by Miller [2], too."


def test_every_output_tells_the_marks_from_the_documents_own_numbers() -> None:
    made = answered(TOLD)
    told = marked_text(made.text, marks_of(made))
    assert read(told) == [1, 2]
    assert (
        r"by Miller \[2\] and by Jones \[3\], and large.” [1] And [2] is old, `b[1]`, as shown by Miller \[2\], too."
        in told
    )
    record = output.answer_record(made)
    assert [made.text[each["start"] : each["end"]] for each in record["source_marks"]] == ["[1]", "[2]"]
    assert [each["source"] for each in record["source_marks"]] == [1, 2]
    assert json.loads(exported(made, "json"))["exchanges"][0]["source_marks"] == record["source_marks"]
    links = re.findall(r"\[\\\[(\d+)\\\]\]\(#sources:1\)", exported(made, "markdown"))
    assert [int(number) for number in links] == [1, 2]
    assert [int(n) for n in re.findall(r'<a class="mark" href="#s\d+-(\d+)">', exported(made))] == [1, 2]


def test_a_reader_of_the_exported_markdown_links_the_marks_alone() -> None:
    parser = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    html = parser.render(exported(answered(TOLD), "markdown"))
    assert [int(n) for n in re.findall(r'<a href="#sources:1">\[(\d)\]</a>', html)] == [1, 2]
    assert html.count("<a ") == 3, "the links and the place that they lead to"
    assert html.count('<a id="sources:1"></a>') == 1
    assert "<h4>Sources of answer 1</h4>" in html
    assert "by Miller [2] and by Jones [3], and large" in html, "and shows the words as they are"


def test_the_quotes_below_an_answer_have_no_marks() -> None:
    said = output.sources_text(sources())
    assert r"as shown by Miller \[2\] and by Jones \[3\]" in said
    assert re.findall(r"^[ *]\[(\d)\]", said, re.MULTILINE) == ["1", "2", "3"]


@pytest.mark.parametrize("text", ["[1]: http://evil.example/ref", "True.\n[1]: <x>", "[[1]]", "  [1]: x"])
def test_what_markdown_reads_as_something_else_is_no_mark(text: str) -> None:
    marks = SourceMarks(numbers=frozenset({1}))
    start = text.index("[1]")
    assert not marks.is_mark(text, start, start + 3)
    assert marks.is_mark("It is so [1]: see there.", 9, 12)


def test_a_heading_with_a_number_is_a_documents_own_in_the_list_of_sources() -> None:
    made = source(1)
    chunk = replace(made.hit.chunk.chunk, heading_path=("Turbine study [2]",))
    hit = replace(made.hit, chunk=replace(made.hit.chunk, chunk=chunk, path="/docs/report [3].txt"))
    told = output.sources_text([replace(made, hit=hit)])
    assert r"(Turbine study \[2\])" in told
    assert "report [3].txt" in told, "to be copied"
    assert r"(Turbine study \[2\])" in output.nearest_text([hit])


def test_a_quotation_of_code_stays_as_it_is_and_its_numbers_are_no_marks() -> None:
    code = "first = rows[1]; last = rows[2]"
    one = source()
    chunk = replace(one.hit.chunk, media_type="text/x-python", chunk=replace(one.hit.chunk.chunk, text=code))
    made = (replace(one, number=1, quote=code, hit=replace(one.hit, chunk=chunk)), replace(one, number=2, quote=PAPER))
    instant = (InstantSentence(code, 1, 0, len(code)), InstantSentence(PAPER, 2, 0, len(PAPER)))
    found = replace(answered(instant_text(instant), stop_reason="no_model"), sources=made, instant=instant)
    shown = marked_text(found.text, marks_of(found))
    assert f"“{code}” [1]" in shown, "what is copied runs"
    assert "Miller \\[2\\]" in shown, "the paper's own is told from a mark"
    assert [each.kind for each in bracketed_numbers(found.text, marks_of(found))][:3] == ["code", "code", "mark"]
    listed = output.sources_text(made)
    assert f'"{code}"' in listed and "Miller \\[2\\]" in listed
    nearest = output.nearest_text([each.hit for each in made])
    assert code in nearest
    cut = MarkedStream()
    cut.marks = marks_of(found)
    assert "".join([*(cut.feed(sign) for sign in found.text), cut.finish()]) == shown
