"""One question with its answer, as it stands in the conversation."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from edgerag.types import Answer, InstantSentence, Source, Turn
from edgerag.ui.place import member_name, place
from edgerag.ui.tui import shown
from edgerag.ui.tui.facts import timing_figure
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.widgets.answer_markdown import DOUBT_SIGN, AnswerMarkdown
from edgerag.ui.tui.widgets.evidence import Evidence
from edgerag.ui.tui.widgets.thought import Thought

_DOUBTS_SHOWN = 3
_DOUBT_WIDTH = 60


class Exchange(Vertical):
    """Grows from a question through a streaming answer to a finished one (or a problem)."""

    class Chosen(Message):
        """The user clicked this exchange: its sources are wanted."""

        def __init__(self, exchange: Exchange) -> None:
            super().__init__()
            self.exchange = exchange

    class SourceWanted(Message):
        """The user clicked a source mark in the answer."""

        def __init__(self, exchange: Exchange, number: int) -> None:
            super().__init__()
            self.exchange = exchange
            self.number = number

    def __init__(self, question: str) -> None:
        super().__init__()
        self.question = question
        self.sources: tuple[Source, ...] = ()
        self.answer: Answer | None = None
        self._question = Static(shown.text(question), classes="question")
        self._evidence = Evidence(classes="evidence")
        self._phase = Static(classes="phase")
        self._thought = Thought(classes="thought")
        self._markdown = AnswerMarkdown(classes="answer")
        self._foot = Static(classes="closing")

    def compose(self) -> ComposeResult:
        yield self._question
        yield self._evidence
        yield self._phase
        yield self._thought
        yield self._markdown
        yield self._foot

    def on_mount(self) -> None:
        self._evidence.display = False
        self._thought.display = False
        self._markdown.display = False
        self._foot.display = False

    # ------------------------------------------------------------ as the answer comes

    def show_phase(self, text: str) -> None:
        """What is being done until the first word comes."""
        self._phase.update(Content(text))

    def show_sources(self, sources: tuple[Source, ...]) -> None:
        self.sources = sources

    def show_evidence(self, sentences: tuple[InstantSentence, ...]) -> None:
        """What the documents say by themselves, until the model has something to say and beside it."""
        self._evidence.show(sentences)
        self._evidence.display = bool(sentences)

    def add_thought(self, piece: str) -> None:
        self._phase.display = False
        self._thought.display = True
        self._thought.add(piece)

    def add_text(self, piece: str) -> None:
        self._phase.display = False
        self._thought.end()
        self._markdown.display = True
        self._markdown.add(piece)

    async def finish(self, answer: Answer) -> None:
        self.answer = answer
        self.sources = answer.sources
        if answer.stop_reason in ("instant", "no_model", "counted"):
            self._evidence.display = False  # it is the answer
        self._thought.end()
        self._phase.display = False
        self._markdown.display = bool(answer.text.strip())
        await self._markdown.finish(answer.text)
        self._markdown.doubt(_unsupported(answer))
        self._close(_foot_lines(answer))

    async def fail(self, problem: Problem) -> None:
        """Ends with what went wrong; the text that came before stays."""
        self._phase.display = False
        self._thought.end()
        await self._markdown.finish()
        self.add_class("-failed")
        self._close(problem.content())

    def _close(self, content: Content) -> None:
        self._foot.update(content)
        self._foot.display = bool(content.plain)

    # ------------------------------------------------------------ what others ask of it

    @property
    def text(self) -> str:
        """The answer so far, as Markdown."""
        return self._markdown.source

    def toggle_thought(self) -> None:
        """Unfolds what the model thought, or folds it again; nothing if it did not."""
        if self._thought.text:
            self._thought.toggle()

    def turn(self) -> Turn | None:
        """This exchange as history for the next question; None if it answered nothing."""
        answer = self.answer
        if answer is None or not answer.found or answer.stop_reason == "cancelled":
            return None
        cited = tuple(source.hit.chunk.id for source in answer.sources if source.cited)
        return Turn(self.question, answer.text, messages=answer.messages, cited_chunks=cited)

    def on_click(self) -> None:
        self.post_message(self.Chosen(self))

    def on_evidence_mark_clicked(self, message: Evidence.MarkClicked) -> None:
        message.stop()
        self.post_message(self.SourceWanted(self, message.number))

    def on_answer_markdown_mark_clicked(self, message: AnswerMarkdown.MarkClicked) -> None:
        message.stop()
        self.post_message(self.SourceWanted(self, message.number))


def _unsupported(answer: Answer) -> list[str]:
    return [answer.text[s.start : s.end] for s in answer.sentences if s.support == "unsupported"]


def _doubts(answer: Answer) -> list[Content]:
    """What the sign means, and why it is there."""
    doubted = [sentence for sentence in answer.sentences if sentence.support == "unsupported"]
    lines: list[Content] = []
    for sentence in doubted[:_DOUBTS_SHOWN]:
        words = shown.line(answer.text[sentence.start : sentence.end], _DOUBT_WIDTH, "$foreground 75%")
        reason = shown.text(sentence.reason, "$text-warning")
        lines.append(Content.assemble(DOUBT_SIGN, " not in the sources: “", words, "” ", reason))
    if len(doubted) > _DOUBTS_SHOWN:
        lines.append(Content.styled(f"and {len(doubted) - _DOUBTS_SHOWN} more", "$text-warning"))
    return lines


def _foot_lines(answer: Answer) -> Content:
    lines: list[Content] = []
    match answer.stop_reason:
        case "cancelled":
            lines.append(Content.styled("Stopped.", "$text-warning"))
        case "length":
            lines.append(Content.styled("The answer was cut: it reached generation.answer_tokens.", "$text-warning"))
    lines += [shown.text(note, "$text-warning") for note in answer.notes]
    lines += _doubts(answer)
    for hit in answer.nearest:
        where = f"Nearest, and no answer: {member_name(hit.chunk.path)}, {place(hit.chunk)}: "
        lines.append(shown.line(where + hit.chunk.chunk.text, _DOUBT_WIDTH, "$foreground 60%"))
    if answer.pending_count:
        lines.append(
            Content.styled(f"{answer.pending_count:,} chunks are not yet searchable by meaning.", "$foreground 60%")
        )
    figures = [timing_figure(answer)]
    if answer.tokens.answer:
        figures.append(f"{answer.tokens.answer} tokens")
    if any(figures):
        lines.append(shown.text(" · ".join(figure for figure in figures if figure), "$foreground 60%"))
    return Content("\n").join(lines)
