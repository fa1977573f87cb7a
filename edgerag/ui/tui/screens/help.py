"""The keys, read from the bindings themselves and the user's key map, so that this page cannot lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from edgerag.ui.tui.keymap_file import key_names
from edgerag.ui.tui.keys import EVERYWHERE, Keyed, Shortcut, keyed_classes, scope_of, shortcuts_of, title_of
from edgerag.ui.tui.screens.base import SessionDialog

_KEY_COLUMN = 14
_LEAST_WORDS = 10  # cells


class HelpDialog(SessionDialog[None]):
    """First what works on the screen below, then what works everywhere, then the rest. Scrolls; any of its keys
    closes it."""

    KEYS_TITLE = "The page of keys"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,question_mark,enter", "dismiss", "Close"),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self, screen: Screen[Any]) -> None:
        """``screen``: the one that the user asks about."""
        super().__init__()
        self._below = screen
        self._text = Static()

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog tall"):
            yield self._text

    def on_resize(self) -> None:
        self._text.update(_content(_here(self._below), self.edgerag.keymap, width=self._text.content_size.width))


def _here(screen: Screen[Any]) -> list[str]:
    """The scopes of the screen and of what lies on it."""
    nodes = [screen, *(node for node in screen.query("*") if isinstance(node, Keyed))]
    return list(dict.fromkeys(scope_of(type(node)) for node in nodes))


def _content(here: Sequence[str], keymap: Mapping[str, str], *, width: int) -> Content:
    classes = keyed_classes()
    first = [cls for scope in here for cls in classes if scope_of(cls) == scope]
    everywhere = [cls for cls in classes if scope_of(cls) == EVERYWHERE]
    rest = [cls for cls in classes if cls not in first and cls not in everywhere]
    blocks = []
    for heading, group in (("On this screen", first), ("Everywhere", everywhere), ("Elsewhere", rest)):
        if group:
            blocks.append(Content.styled(heading, "bold underline"))
        for cls in group:
            title = [] if cls in everywhere else [Content.styled(title_of(cls), "bold $text-accent")]
            lines = [line for shortcut in shortcuts_of(cls) for line in key_lines(shortcut, keymap, width)]
            blocks.append(Content("\n").join([*title, *lines]))
    closing = Content.styled(
        "Everything can be clicked as well: rows, marks, the keys at the foot. Text is selected with the mouse and "
        "copied with Ctrl+C. F9 changes keys. Esc closes this page.",
        "$foreground 75%",
    )
    return Content("\n\n").join([*blocks, closing])


def key_lines(shortcut: Shortcut, keymap: Mapping[str, str], width: int) -> list[Content]:
    """Its keys, and what they do beside them; below them where they are long or the window is narrow."""
    if not shortcut.description:
        return []
    keys = key_names(shortcut.keys_in(keymap))
    indent = _KEY_COLUMN + 2 if width >= 2 * _KEY_COLUMN + 2 else 4
    first, *rest = Content(shortcut.description).wrap(max(_LEAST_WORDS, width - indent))
    begun = Content.styled(f"  {keys}", "bold")
    if begun.cell_length < indent:
        begun = Content.assemble(begun, " " * (indent - begun.cell_length), first)
        return [begun, *(Content.assemble(" " * indent, line) for line in rest)]
    return [begun, *(Content.assemble(" " * indent, line) for line in (first, *rest))]
