"""The documents' own sentences, shown above the answer before the model has read them."""

from __future__ import annotations

from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from edgerag.types import InstantSentence
from edgerag.ui.tui import shown

_TITLE = "From the documents"


class Evidence(Static):
    """Stays when the answer comes, so that nobody loses the line that he reads."""

    class MarkClicked(Message):
        """The user chose the number of a source."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def show(self, sentences: tuple[InstantSentence, ...]) -> None:
        self.update(Content("\n").join([Content.styled(_TITLE, "$foreground 70%"), *map(_line, sentences)]))

    def action_cite(self, number: int) -> None:
        self.post_message(self.MarkClicked(number))


def _line(sentence: InstantSentence) -> Content:
    mark = Content.styled(f"[{sentence.source}]", "$text-accent")
    mark = mark.stylize(Style.from_meta({"@click": f"cite({sentence.source})"}))
    words = shown.text(f"“{' '.join(sentence.text.split())}” ")
    return Content.assemble(words, mark)
