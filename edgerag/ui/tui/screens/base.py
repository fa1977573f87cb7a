"""What all screens share: the session, and work whose failure is always seen."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rich.cells import cell_len
from textual import events, on
from textual.binding import ActiveBinding
from textual.screen import ModalScreen, Screen

from edgerag.ui.tui.keys import Keyed
from edgerag.ui.tui.problem import Problem

if TYPE_CHECKING:
    from edgerag.session import Session
    from edgerag.ui.tui.app import EdgeragApp
    from edgerag.ui.tui.widgets.page_view import PageView

ResultT = TypeVar("ResultT")
_FOOTER_GAPS = 2  # cells: between a key and its words, and behind them


class SessionScreen(Keyed, Screen[ResultT]):
    """A screen over the app's session."""

    @property
    def edgerag(self) -> EdgeragApp:
        return cast("EdgeragApp", self.app)

    @property
    def session(self) -> Session:
        return self.edgerag.session

    @property
    def page_view(self) -> PageView | None:
        """Where the picture of a page may be seen now."""
        return None

    def terminal_resized(self) -> None:
        """The terminal has told its size, which may be the one before."""

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        return self._fitting(super().active_bindings)

    def _fitting(self, bindings: dict[str, ActiveBinding]) -> dict[str, ActiveBinding]:
        """As many of them in the footer as it has room for, those that work everywhere last; but always the one that
        lists all."""
        shown = [key for key, active in bindings.items() if active.binding.show]
        order = sorted(shown, key=lambda key: (bindings[key].binding.action != "help", bindings[key].node is self.app))
        room, seen = self.size.width, set()
        kept = dict(bindings)
        for key in order:
            binding = bindings[key].binding
            if binding.action in seen:
                continue  # the footer names an action once
            room -= cell_len(self.app.get_key_display(binding)) + cell_len(binding.description) + _FOOTER_GAPS
            if room < 0:
                kept[key] = bindings[key]._replace(binding=replace(binding, show=False))
            else:
                seen.add(binding.action)
        return kept

    @on(events.Resize)
    def _fit_footer(self) -> None:
        self.refresh_bindings()

    def start(
        self,
        work: Coroutine[Any, Any, None],
        *,
        failed: Callable[[Problem], None] | None = None,
        opens: bool = False,
    ) -> None:
        """Runs ``work`` beside the UI; what goes wrong is given to ``failed``, or shown as a notification. ``opens``:
        it will open a screen, and what is pressed meanwhile is for that."""

        async def guarded() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001 - nobody awaits this: whatever happened is shown to the user
                (failed or self.edgerag.show_problem)(Problem.of(error))

        worker = self.run_worker(guarded())
        if opens:
            self.edgerag.keys_in_order.wait_for(worker)


class SideScreen(SessionScreen[None]):
    """A screen over the ask screen. Its footer has the room for its own keys: of those that work everywhere it shows
    what lists them all."""

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        def shown(active: ActiveBinding) -> bool:
            return active.node is not self.app or active.binding.action == "help"

        return {
            key: active if shown(active) else active._replace(binding=replace(active.binding, show=False))
            for key, active in super().active_bindings.items()
        }


class SessionDialog(Keyed, ModalScreen[ResultT]):
    """A dialog over another screen: only its own keys work."""

    @property
    def edgerag(self) -> EdgeragApp:
        return cast("EdgeragApp", self.app)
