"""Models from the screen, with the real session and small real models: taken in, switched to, asked, tuned."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from driving import Driver, running
from textual.widgets import Input, Static

from edgerag.config import LibrarySettings, Settings
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.ui.tui.widgets.exchange import ExchangeView

CHAT, EMBEDDER = "smollm2-135m-instruct", "all-minilm-l6-v2"


@pytest.fixture
def session(tmp_path: Path, models_folder: Path) -> Iterator[Session]:
    """Over a home of its own, whose models are links: what is added or measured touches no other."""
    models = tmp_path / "home" / "models"
    models.mkdir(parents=True)
    shutil.copy(models_folder / "manifest.toml", models)
    for name in (CHAT, EMBEDDER):
        (models / f"{name}.gguf").symlink_to((models_folder / f"{name}.gguf").resolve())
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "pump.md").write_text("# Pump\n\nThe lid screws of the pump are tightened to 9 Nm.\n", encoding="utf-8")
    opened = Session(Settings(library=LibrarySettings(name="default")), Locations(tmp_path / "home"))
    for _ in opened.ingest([folder]):
        pass
    yield opened
    opened.close()


async def at_model(driver: Driver, name: str) -> None:
    """Puts the cursor of the list of models on it."""
    await driver.press("home")
    for _ in range(9):
        if str(driver.app.screen.query_one(".detail", Static).content).startswith(name):
            return
        await driver.press("down")
    raise AssertionError(f"{name} is not in the list:\n{driver.text}")


@pytest.mark.long
async def test_a_model_is_taken_in_switched_to_asked_and_tuned(
    session: Session, tiny_chat_file: Path, tmp_path: Path
) -> None:
    shutil.copy(tiny_chat_file, tmp_path / "tiny-one.gguf")
    async with running(cast("Any", session), size=(120, 40)) as driver:
        await driver.see(CHAT)
        await driver.press("f7")
        await driver.see(EMBEDDER, "answering: smollm2")
        await driver.press("p")  # the default ones: they are here
        await driver.see(f"{CHAT}: ready", f"{EMBEDDER}: ready")
        await driver.press("v")
        await driver.see("ok: ")

        await driver.press("a")
        await driver.see("Add a model")
        driver.app.screen.query_one(Input).value = str(tmp_path / "docs" / "pump.md")
        await driver.press("enter")
        await driver.see("pump.md", "GGUF")
        await driver.press("a")
        await driver.see("Add a model")
        driver.app.screen.query_one(Input).value = str(tmp_path / "tiny-one.gguf")
        await driver.press("enter")
        await driver.see("tiny-one: added as chat model")

        await at_model(driver, "tiny-one")
        await driver.press("enter")
        await driver.see("tiny-one answers from now on", "answering: tiny-one")

        await driver.press("t")
        await driver.see("Tuning tiny-one", "tok/s")
        await driver.press("escape")
        await driver.see("Stopping")
        await driver.until(lambda: "Tune" in driver.rows[-1] and "not finished" in driver.text)
        await driver.press("escape")

        await driver.ask("To which torque are the lid screws of the pump tightened?")
        answer = driver.ask_screen.query_one(ExchangeView).answer
        assert answer is not None
        assert answer.model == "tiny-one"
        assert [source.hit.chunk.path for source in answer.sources] == [str(tmp_path / "docs" / "pump.md")]
    assert 'chat = "tiny-one"' in session.locations.config_file.read_text()
