"""What all screens share: the session, and work whose failure is always seen."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from textual.binding import ActiveBinding
from textual.screen import ModalScreen, Screen

from edgerag.ui.tui.keys import Keyed
from edgerag.ui.tui.problem import Problem

if TYPE_CHECKING:
    from edgerag.session import Session
    from edgerag.ui.tui.app import EdgeragApp

ResultT = TypeVar("ResultT")


class SessionScreen(Keyed, Screen[ResultT]):
    """A screen over the app's session."""

    @property
    def edgerag(self) -> EdgeragApp:
        return cast("EdgeragApp", self.app)

    @property
    def session(self) -> Session:
        return self.edgerag.session

    def start(self, work: Coroutine[Any, Any, None], *, failed: Callable[[Problem], None] | None = None) -> None:
        """Runs ``work`` beside the UI; what goes wrong is given to ``failed``, or shown as a notification."""

        async def guarded() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001 - nobody awaits this: whatever happened is shown to the user
                (failed or self.edgerag.show_problem)(Problem.of(error))

        self.run_worker(guarded())


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
