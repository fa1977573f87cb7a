"""The keys at the foot of the ask screen, made anew only when they are others.

Textual's footer makes a widget for each key whenever any binding may have changed: some five times in the course of an
answer, in which nothing of it changes on most occasions.
"""

from __future__ import annotations

from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Footer


class SteadyFooter(Footer):
    def __init__(self) -> None:
        super().__init__(show_command_palette=False, compact=True)
        self._keys: list[tuple[Binding, bool, str]] = []

    def bindings_changed(self, screen: Screen[object]) -> None:
        keys = [
            (active.binding, active.enabled, active.tooltip)
            for active in screen.active_bindings.values()
            if active.binding.show
        ]
        if keys == self._keys:
            return
        if screen.app.app_focus:  # without it the footer stays as it is
            self._keys = keys
        super().bindings_changed(screen)
