"""The first steps: where nothing is there, what to do is said and can be done."""

from __future__ import annotations

from driving import running
from scripted_session import ScriptedSession

from edgerag.errors import ModelMissing
from edgerag.ui.tui.screens.ask import AskScreen
from edgerag.ui.tui.screens.guide import GuideScreen
from edgerag.ui.tui.screens.ingest import AddDocumentsDialog


async def test_with_nothing_at_all_it_opens_by_itself_and_leads_to_the_question() -> None:
    session = ScriptedSession(documents={}, model="")
    async with running(session, size=(80, 24)) as driver:
        await driver.see("First steps", "There is no chat model yet", "There are no documents yet", "Get the default")
        await driver.press("enter")
        await driver.see("downloading edgerag-models through pip", "✓ Chat model: smollm2-135m-instruct")
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, AddDocumentsDialog))
        await driver.press("escape", "escape")
        await driver.until(lambda: isinstance(driver.app.screen, AskScreen))


async def test_one_can_go_on_without_a_model() -> None:
    session = ScriptedSession(documents={}, model="")
    async with running(session) as driver:
        await driver.see("First steps")
        await driver.press("down", "down", "enter")
        await driver.see("✓ No chat model: the documents' own sentences are the answers")
        assert session.settings.generation.mode == "instant"


async def test_what_went_wrong_is_said_with_what_to_do() -> None:
    session = ScriptedSession(documents={}, model="")
    session.failures["provide_models"] = ModelMissing("pip cannot reach anything.", remedy="Bring the file on a disk.")
    async with running(session) as driver:
        await driver.see("First steps")
        await driver.press("enter")
        await driver.see("pip cannot reach anything. Bring the file on a disk.")


async def test_it_does_not_open_where_there_is_something() -> None:
    async with running(ScriptedSession(documents={})) as driver:
        assert isinstance(driver.app.screen, AskScreen)
        driver.app.action_guide()
        await driver.until(lambda: isinstance(driver.app.screen, GuideScreen))
        await driver.see("✓ Chat model: smollm2-135m-instruct", "▸ There are no documents yet")
