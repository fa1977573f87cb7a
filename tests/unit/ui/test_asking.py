from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "threads"))

from conversations import source

from edgerag.types import (
    Answer,
    AnswerDelta,
    AnswerSentence,
    InstantAnswer,
    InstantSentence,
    Plan,
    PlanMade,
    ThoughtDelta,
    TokenCounts,
)
from edgerag.ui import output, report
from edgerag.ui.asking import AnswerPrinter

SOURCES = tuple(replace(source(), number=number) for number in (1, 2))
EVIDENCE = InstantAnswer(
    (InstantSentence("The lid screws take \x1b[31m9 Nm.", 1, 0, 24), InstantSentence("Drain it.", 2, 5, 14)), SOURCES
)
SHOWN = "“The lid screws take 9 Nm.” [1]\n\n“Drain it.” [2]"


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Stream, Stream]]:
    """Puts standard output and error in place; gives both."""

    def make(*, out: bool, err: bool) -> tuple[Stream, Stream]:
        made = Stream(terminal=out), Stream(terminal=err)
        monkeypatch.setattr("sys.stdout", made[0])
        monkeypatch.setattr("sys.stderr", made[1])
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        return made

    return make


Streams = Callable[..., tuple[Stream, Stream]]


def ticking(step: float = 1.0) -> Callable[[], float]:
    def ticks() -> Iterator[float]:
        now = 0.0
        while True:
            yield now
            now += step

    stream = ticks()
    return lambda: next(stream)


def test_at_a_terminal_the_documents_speak_first_dimmed_and_to_the_side(streams: Streams) -> None:
    out, err = streams(out=True, err=True)
    printer = AnswerPrinter()
    printer.show(EVIDENCE)
    printer.show(AnswerDelta("It is 9 Nm [1]."))
    printer.finish()
    assert out.getvalue() == "It is 9 Nm [1].\n"
    assert err.getvalue().startswith(
        "\x1b[2mFrom the documents:\n  “The lid screws take 9 Nm.” [1]\n  “Drain it.” [2]\n\x1b[0m"
    )


@pytest.mark.parametrize(("out", "err"), [(False, True), (True, False), (False, False)])
def test_where_a_stream_is_no_terminal_there_is_the_answer_alone(streams: Streams, out: bool, err: bool) -> None:
    stdout, stderr = streams(out=out, err=err)
    printer = AnswerPrinter()
    for event in (EVIDENCE, ThoughtDelta("Let me see."), AnswerDelta("It is "), AnswerDelta("9 Nm.")):
        printer.show(event)
    printer.finish()
    assert stdout.getvalue() == "It is 9 Nm.\n"
    assert stderr.getvalue() == ""


def test_thoughts_are_one_line_that_counts_and_gives_way_to_the_answer(streams: Streams) -> None:
    out, err = streams(out=True, err=True)
    printer = AnswerPrinter(clock=ticking())
    for piece in ("Let me ", "look at ", "the \x1b[31mtable."):
        printer.show(ThoughtDelta(piece))
    printer.show(AnswerDelta("It is 9 Nm."))
    printer.finish()
    assert out.getvalue() == "It is 9 Nm.\n"
    assert "table" not in err.getvalue()
    assert "thinking … 2 words, 0 s" in err.getvalue()
    assert err.getvalue().endswith("\r\x1b[K\x1b[2mthinking … 6 words, 3 s\x1b[0m\n\n")
    assert err.getvalue().count("\n") == 2


@pytest.mark.parametrize("variable", ["NO_COLOR", "TERM"])
def test_without_colours_nothing_is_dimmed_or_erased(
    streams: Streams, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    _, err = streams(out=True, err=True)
    monkeypatch.setenv(variable, "dumb")
    printer = AnswerPrinter(clock=ticking())
    printer.show(EVIDENCE)
    printer.show(ThoughtDelta("Let me see."))
    printer.finish()
    assert "\x1b" not in err.getvalue() and "\r" not in err.getvalue()
    assert "From the documents:" in err.getvalue()
    assert err.getvalue().endswith("thinking … 3 words, 1 s\n\n")


def test_an_answer_that_is_the_evidence_does_not_stand_there_twice(streams: Streams) -> None:
    out, err = streams(out=True, err=True)
    printer = AnswerPrinter()
    printer.show(EVIDENCE)
    printer.show(AnswerDelta(SHOWN))
    assert out.getvalue() == "" and "Drain it." in err.getvalue()
    out, _ = streams(out=False, err=True)
    printer = AnswerPrinter()
    printer.show(EVIDENCE)
    printer.show(AnswerDelta(SHOWN))
    printer.finish()
    assert out.getvalue() == f"{SHOWN}\n", "in a pipe it does"


def test_without_a_model_one_empty_line_stands_between_the_sentences_and_the_sources(streams: Streams) -> None:
    out, err = streams(out=True, err=True)
    printer = AnswerPrinter()
    printer.show(EVIDENCE)
    printer.show(AnswerDelta(SHOWN))
    printer.finish()
    assert out.getvalue() == "", "the list of sources begins with its own empty line"
    assert not err.getvalue().replace("\x1b[0m", "").endswith("\n\n")
    printer = AnswerPrinter()
    printer.show(EVIDENCE)
    printer.show(AnswerDelta("Drain"))
    printer.show(AnswerDelta(" it."))
    printer.finish()
    assert out.getvalue() == "Drain it.\n"
    assert err.getvalue().replace("\x1b[0m", "").endswith("\n\n"), "an answer is told from them"


def test_numbers_of_the_documents_have_a_backslash_and_marks_have_none(streams: Streams) -> None:
    out, err = streams(out=True, err=True)
    printer = AnswerPrinter()
    printer.show(replace(EVIDENCE, sentences=(InstantSentence("So says Miller [2].", 1, 0, 19),)))
    for piece in ("It is so [", "1]. The list", " a[", "2] is none, and [7", "] is nobody's."):
        printer.show(AnswerDelta(piece))
    printer.finish()
    assert out.getvalue() == "It is so [1]. The list a\\[2\\] is none, and \\[7\\] is nobody's.\n"
    assert "“So says Miller \\[2\\].” [1]" in err.getvalue()


def test_in_a_list_of_counted_documents_only_the_last_number_is_a_mark(streams: Streams) -> None:
    out, _ = streams(out=False, err=False)
    printer = AnswerPrinter()
    printer.show(PlanMade(Plan("How many?", "latin", (), 1, 1, 1.0, 0.0, 1, kind="aggregate")))
    printer.show(InstantAnswer((), SOURCES))
    printer.show(AnswerDelta("- Report [2] of May [1]\n- Minutes [2]"))
    printer.finish()
    assert out.getvalue() == "- Report \\[2\\] of May [1]\n- Minutes [2]\n"


def answer(*sentences: AnswerSentence) -> Answer:
    return Answer(
        question="Why?",
        text="It is 9 Nm. It is 77 Nm.",
        found=True,
        sources=(),
        stop_reason="end",
        timings=(),
        tokens=TokenCounts(1, 1),
        model="m",
        pending_count=0,
        notes=(),
        instant=EVIDENCE.sentences,
        sentences=sentences,
        thought="Hm.",
    )


TRUE = AnswerSentence(0, 11, (1,), "supported", "")
INVENTED = AnswerSentence(12, 24, (), "unsupported", "No source has the number 77.")


def test_sentences_that_stand_in_no_source_are_named_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    report.unsupported_sentences(answer(TRUE, INVENTED))
    assert capsys.readouterr().err == "[?] not in the sources: “It is 77 Nm.” No source has the number 77.\n"
    report.unsupported_sentences(answer(TRUE))
    assert capsys.readouterr().err == ""
    report.unsupported_sentences(answer(*[INVENTED] * 25))
    assert "and 5 more" in capsys.readouterr().err


def test_json_has_evidence_sentences_and_thought() -> None:
    record = output.answer_record(answer(TRUE, INVENTED))
    assert record["instant"][1] == {"text": "Drain it.", "source": 2, "start": 5, "end": 14}
    assert record["sentences"][1] == {
        "text": "It is 77 Nm.",
        "start": 12,
        "end": 24,
        "sources": (),
        "support": "unsupported",
        "reason": "No source has the number 77.",
    }
    assert record["thought"] == "Hm."
