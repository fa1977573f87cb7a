"""While a library of an older version is brought up, the status line says how far that is."""

from __future__ import annotations

from driving import running
from scripted_session import ScriptedSession

from edgerag.types import BringingUp


async def test_the_status_line_says_how_far_it_is_and_then_what_it_always_says() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.see("smollm2-135m-instruct")
        session.upgrading.now = BringingUp("default", "checking", 120, 4_000)
        await driver.see("checking, 120 of 4,000 documents")
        session.upgrading.now = None
        await driver.see("smollm2-135m-instruct")
