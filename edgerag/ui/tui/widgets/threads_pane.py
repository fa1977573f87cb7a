"""The side list of threads, with a line to search them by their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from edgerag.types import ThreadHead, ThreadMatch
from edgerag.ui.tui.keys import Keyed
from edgerag.ui.tui.widgets.line_input import LineInput
from edgerag.ui.tui.widgets.thread_list import ThreadList

_SEARCH_AFTER_S = 0.15  # of no key press: a search for each letter would be thrown away


class ThreadsPane(Keyed, Vertical):
    """Shows what it is given; what is wanted of a thread goes to the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", show=True, tooltip="Back to the question"),
        Binding("r", "do('rename')", "Rename", show=True, tooltip="Rename the thread"),
        Binding("delete,d", "do('delete')", "Delete", show=True, key_display="Del", tooltip="Delete the thread"),
        Binding("x", "do('export')", "Export", show=True, tooltip="Write the thread to a file"),
        Binding("slash", "search", "Search", show=False, tooltip="Search the threads"),
    ]

    class SearchWanted(Message):
        """The threads with these words are wanted; with none, all."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    class Wanted(Message):
        """The user wants something done to a thread: "rename", "delete" or "export"."""

        def __init__(self, what: str, head: ThreadHead) -> None:
            super().__init__()
            self.what = what
            self.head = head

    class Left(Message):
        """The user goes back to the question."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._search = LineInput(placeholder="Search conversations", classes="search")
        self._list = ThreadList()
        self._search_number = 0

    def compose(self) -> ComposeResult:
        yield self._search
        yield self._list

    @property
    def words(self) -> str:
        return self._search.value.strip()

    @property
    def at_cursor(self) -> ThreadMatch | None:
        return self._list.at_cursor

    @property
    def is_in_list(self) -> bool:
        return self._list.has_focus

    def show(self, matches: Sequence[ThreadMatch], *, open_id: int | None) -> None:
        self._list.show(matches, open_id=open_id)
        self.border_title = f"Threads ({len(matches):,}{' found' if self.words else ''})"

    def show_open(self, open_id: int | None) -> None:
        self._list.show_open(open_id)

    def enter(self) -> None:
        """Takes the keys; the cursor is on the open thread."""
        self._list.go_to_open()
        self._list.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        # In the line of the search these keys are letters.
        match action:
            case "do":
                return self._list.has_focus and self.at_cursor is not None
            case "search":
                return self._list.has_focus
            case _:
                return True

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        self._search_number += 1
        self.set_timer(_SEARCH_AFTER_S, lambda number=self._search_number: self._search_now(number))

    def _search_now(self, number: int) -> None:
        if number == self._search_number:
            self.post_message(self.SearchWanted(self.words))

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self._list.focus()

    def on_key(self, event: Any) -> None:
        if event.key == "down" and self._search.has_focus:
            event.stop()
            self._list.focus()

    def on_thread_list_left_above(self, message: ThreadList.LeftAbove) -> None:
        message.stop()
        self._search.focus()

    def action_search(self) -> None:
        self._search.focus()

    def action_leave(self) -> None:
        if self._search.value:
            self._search.value = ""
            self._list.focus()
        else:
            self.post_message(self.Left())

    def action_do(self, what: str) -> None:
        if (match := self.at_cursor) is not None:
            self.post_message(self.Wanted(what, match.head))
