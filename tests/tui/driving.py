"""How a test drives the app and reads its screen."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from scripted_session import ScriptedSession
from settling import exact_waits
from textual.pilot import Pilot

from edgerag.config import Overrides
from edgerag.session import Session
from edgerag.settings.effective import SettingsSources
from edgerag.ui.tui.app import EdgeragApp
from edgerag.ui.tui.screens.ask import AskScreen
from edgerag.ui.tui.widgets.question_box import QuestionBox

_PATIENCE_S = 30  # only a test that fails waits this long
_LOOK_EVERY_S = 0.005


class Driver:
    """One running app, with the words of a user."""

    def __init__(self, app: EdgeragApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def until(self, condition: Callable[[], object]) -> None:
        """Lets the app work until ``condition()`` holds."""
        async with asyncio.timeout(_PATIENCE_S):
            while not condition():
                await self.pilot.pause()
                await asyncio.sleep(_LOOK_EVERY_S)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type_question(self, text: str) -> None:
        self.ask_screen.query_one(QuestionBox).insert(text)
        await self.pilot.pause()

    async def ask(self, question: str) -> None:
        """Asks and waits for the end of the answer."""
        await self.type_question(question)
        await self.press("enter")
        await self.until(lambda: not self.busy)

    @property
    def ask_screen(self) -> AskScreen:
        return cast("AskScreen", self.app.screen_stack[0])

    @property
    def busy(self) -> bool:
        return self.ask_screen.busy

    @property
    def rows(self) -> list[str]:
        """The screen, row by row, as a user reads it."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.rows)

    @property
    def notifications(self) -> str:
        return "\n".join(notification.message for notification in self.app._notifications)

    async def see(self, *words: str) -> None:
        """Waits until all ``words`` are on the screen."""
        try:
            await self.until(lambda: all(word in self.text for word in words))
        except TimeoutError:
            raise AssertionError(f"{words} are not all on the screen:\n{self.text}") from None

    def svg_text(self) -> str:
        """The words of an SVG screenshot."""
        svg = self.app.export_screenshot()
        return re.sub(r"<[^>]+>", "", svg).replace("&#160;", " ")


@asynccontextmanager
async def running(
    session: ScriptedSession | None = None,
    *,
    size: tuple[int, int] = (120, 36),
    flags: Overrides | None = None,
) -> AsyncIterator[Driver]:
    """The app at work over ``session``, with its first look at the library done."""
    session = session or ScriptedSession()
    sources = SettingsSources(session.locations.config_file, dict(os.environ), flags or {})
    session.settings = replace(session.settings, ui=sources.load().ui)
    app = EdgeragApp(cast("Session", session), sources)
    with exact_waits(app):
        async with app.run_test(size=size, notifications=True) as pilot:
            driver = Driver(app, cast("Pilot[Any]", pilot))
            await driver.until(lambda: app.facts.known)
            yield driver
