"""What an empty conversation says: what this is, and what is still missing."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from edgerag.ui.tui import shown
from edgerag.ui.tui.facts import Facts, library_figure

_DONE = ("✓ ", "$text-success")
_OPEN = ("▸ ", "bold $text-warning")


class Welcome(Static):
    """Two steps, ticked off as they are done."""

    def show(self, facts: Facts) -> None:
        self.update(_content(facts))


def _content(facts: Facts) -> Content:
    lines = [
        Content.styled("Answers from your own documents, on this machine alone.", "bold"),
        Content(),
    ]
    if facts.known:
        lines += [_model_step(facts), Content(), _documents_step(facts), Content()]
    if facts.ready:
        lines.append(Content("Type a question below and press Enter."))
    lines.append(Content.styled("F1 shows all keys.", "$foreground 70%"))
    return Content("\n").join(lines)


def _model_step(facts: Facts) -> Content:
    if facts.answers == "instant":
        return Content.assemble(_DONE, "No chat model: the documents' own sentences are the answers.")
    if facts.model:
        return Content.assemble(_DONE, "Chat model: ", shown.text(facts.model))
    return Content.assemble(
        _OPEN,
        ("There is no chat model yet.", "bold"),
        "\n  Quit (Ctrl+Q) and run  ",
        ("edgerag models pull", "$text-accent"),
        "\n  or bring your own:  ",
        ("edgerag models add FILE.gguf", "$text-accent"),
        "\n  Without one, questions still find their sources.",
    )


def _documents_step(facts: Facts) -> Content:
    if facts.has_documents:
        return Content.assemble(_DONE, "Library ", shown.text(library_figure(facts)))
    return Content.assemble(
        _OPEN,
        ("There are no documents yet.", "bold"),
        "\n  Press ",
        ("F2", "$text-accent"),
        " to add a file or a folder:\n  text, Markdown, HTML, PDF, DOCX, source code.",
    )
