"""One question with its answer, as it stands in the conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from edgerag.types import Answer, Exchange, FoundSource, InstantSentence, Source, SourceState
from edgerag.ui import output
from edgerag.ui.export.said import filter_words
from edgerag.ui.plain import plain
from edgerag.ui.plain_marks import marked_text
from edgerag.ui.source_marks import SourceMarks, marks_of, source_marks
from edgerag.ui.tui import shown
from edgerag.ui.tui.problem import Problem
from edgerag.ui.tui.widgets.answer_markdown import AnswerMarkdown, mark_under
from edgerag.ui.tui.widgets.evidence import Evidence
from edgerag.ui.tui.widgets.exchange_foot import foot_content, unsupported
from edgerag.ui.tui.widgets.one_layout import OneLayout
from edgerag.ui.tui.widgets.thought import Thought

_INTERRUPTED = "It was interrupted before its end."
_AGAIN = "Ctrl+R asks again."


class ExchangeView(OneLayout, Vertical):
    """Grows from a question through a streaming answer to a finished one (or a problem)."""

    class Chosen(Message):
        """The user clicked this exchange: its sources are wanted."""

        def __init__(self, exchange: ExchangeView) -> None:
            super().__init__()
            self.exchange = exchange

    class SourceWanted(Message):
        """The user clicked a source mark in the answer."""

        def __init__(self, exchange: ExchangeView, number: int) -> None:
            super().__init__()
            self.exchange = exchange
            self.number = number

    class MarkPointed(Message):
        """The mouse is over a source mark, or (None) no longer."""

        def __init__(self, exchange: ExchangeView, number: int | None, row: int) -> None:
            super().__init__()
            self.exchange = exchange
            self.number = number
            self.row = row  # of the screen

    def __init__(self, kept: Exchange) -> None:
        super().__init__()
        self.kept = kept
        self.question = kept.question
        self.sources: tuple[Source, ...] = ()
        self.source_states: Mapping[int, SourceState] = {}
        self.answer: Answer | None = None
        self._instant: tuple[InstantSentence, ...] = ()
        self._checked = True  # its sources are those of the library as it is
        self._question = Static(_question(kept), classes="question")
        self._evidence = Evidence(classes="evidence")
        self._phase = Static(classes="phase")
        self._thought = Thought(classes="thought")
        self._markdown = AnswerMarkdown(classes="answer")
        self._foot = Static(classes="closing")
        self._pointed: int | None = None

    def compose(self) -> ComposeResult:
        yield self._question
        yield self._evidence
        yield self._phase
        yield self._thought
        yield self._markdown
        yield self._foot

    def on_mount(self) -> None:
        for part in (self._evidence, self._phase, self._thought, self._markdown, self._foot):
            part.display = False

    # ------------------------------------------------------------ as the answer comes

    def show_phase(self, text: str) -> None:
        """What is being done until the first word comes."""
        self._phase.update(Content(text))
        self._phase.display = bool(text)

    def show_sources(self, sources: tuple[Source, ...]) -> None:
        self.sources = sources
        self.source_states = {}
        self._mark()

    def show_evidence(self, sentences: tuple[InstantSentence, ...]) -> None:
        """What the documents say by themselves, until the model has something to say and beside it."""
        self._instant = sentences
        self._evidence.show(sentences)
        self._evidence.display = bool(sentences)
        self._mark()

    def _mark(self) -> None:
        self._markdown.mark(self._marks_so_far())

    def add_thought(self, piece: str) -> None:
        self._phase.display = False
        if not self._thought.display:
            self._thought.display = True
            self.refresh_bindings()
        self._thought.add(piece)

    def add_text(self, piece: str) -> None:
        self._phase.display = False
        self._thought.end()
        self._markdown.add(piece)
        if not self._markdown.display:
            self._markdown.display = True
            self.refresh_bindings()  # now there is something to copy

    def go_on(self) -> None:
        """The answer that ended is written on; its first piece says again what there is of it."""
        self.remove_class("-failed")
        self._foot.display = False
        self._markdown.restart()
        self._mark()
        self.show_phase("Going on …")

    async def finish(self, answer: Answer) -> None:
        self.answer = answer
        self.sources = answer.sources
        self.source_states = {}
        if answer.stop_reason in ("instant", "no_model", "counted"):
            self._evidence.display = False  # it is the answer
        self._thought.end()
        self._phase.display = False
        self._markdown.display = bool(answer.text.strip())
        self._markdown.mark(marks_of(answer))
        self._markdown.finish(answer.text)
        self._markdown.doubt(unsupported(answer))
        self._close(foot_content(answer))

    async def fail(self, problem: Problem) -> None:
        """Ends with what went wrong; the text that came before stays."""
        self._phase.display = False
        self._thought.end()
        self._markdown.finish()
        self.add_class("-failed")
        self._close(problem.content())

    async def restore(self) -> None:
        """Shows what was kept of it."""
        kept = self.kept
        self._checked = False
        if kept.answer is not None:
            self.show_evidence(kept.answer.instant)
            await self.finish(kept.answer)
        elif kept.text:
            self._markdown.display = True
            self._markdown.finish(kept.text)
        if kept.problem or kept.state == "failed":
            await self.fail(Problem(kept.problem or _INTERRUPTED, _AGAIN))
        elif kept.answer is None or kept.state == "asked":
            next_step = "Ctrl+G goes on with it." if self.can_go_on else _AGAIN
            self._close(Content.styled(f"{_INTERRUPTED} {next_step}", "$text-warning"))

    def _close(self, content: Content) -> None:
        self._foot.update(content)
        self._foot.display = bool(content.plain)

    # ------------------------------------------------------------ its sources, later

    @property
    def needs_check(self) -> bool:
        """It was kept, and nobody has looked yet what became of its sources."""
        return not self._checked and bool(self.sources)

    def found(self, sources: Sequence[FoundSource]) -> None:
        """What became of its sources."""
        self._checked = True
        self.sources = tuple(each.source for each in sources)
        self.source_states = {each.source.number: each.state for each in sources}

    # ------------------------------------------------------------ what others ask of it

    @property
    def text(self) -> str:
        """The answer so far, as Markdown."""
        return self._markdown.source

    @property
    def has_text(self) -> bool:
        """There is some of the answer, perhaps not painted yet."""
        return bool(self._markdown.display)

    @property
    def can_go_on(self) -> bool:
        return self.answer is not None and self.answer.can_go_on

    @property
    def stopped_before_words(self) -> bool:
        return self.answer is not None and self.answer.stop_reason == "cancelled" and not self.text

    def text_with_sources(self) -> str:
        """The answer with what it rests on, for the clipboard."""
        listed = plain(output.sources_text(self.sources)) if self.sources else ""
        return f"{self.copied_text.rstrip()}\n{listed}"

    @property
    def copied_text(self) -> str:
        """The answer for the clipboard, where no colour tells its marks from the documents' own numbers."""
        marks = marks_of(self.answer) if self.answer is not None else self._marks_so_far()
        return marked_text(self.text, marks)

    def _marks_so_far(self) -> SourceMarks:
        """While the answer comes, all sources may be cited."""
        return source_marks(self.sources, [source.number for source in self.sources], self._instant)

    @property
    def has_thought(self) -> bool:
        return bool(self._thought.text)

    def toggle_thought(self) -> None:
        """Unfolds what the model thought, or folds it again; nothing if it did not."""
        if self.has_thought:
            self._thought.toggle()

    def on_click(self) -> None:
        self.post_message(self.Chosen(self))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point_at(mark_under(event.style), event.screen_y)

    def on_leave(self) -> None:
        if not self.is_mouse_over:
            self._point_at(None, 0)

    def _point_at(self, number: int | None, row: int) -> None:
        if number != self._pointed:
            self._pointed = number
            self.post_message(self.MarkPointed(self, number, row))

    def on_evidence_mark_clicked(self, message: Evidence.MarkClicked) -> None:
        message.stop()
        self.post_message(self.SourceWanted(self, message.number))

    def on_answer_markdown_mark_clicked(self, message: AnswerMarkdown.MarkClicked) -> None:
        message.stop()
        self.post_message(self.SourceWanted(self, message.number))


def _question(kept: Exchange) -> Content:
    parts = [shown.text(kept.question)]
    about = [f"version {kept.version} of {kept.versions} ([ and ] show the others)"] if kept.versions > 1 else []
    where = filter_words(kept.where)
    about += [f"only {where}"] if where else []
    if about:
        parts.append(shown.line(" · ".join(about), 200, "not bold $foreground 70%"))
    return Content("\n").join(parts)
