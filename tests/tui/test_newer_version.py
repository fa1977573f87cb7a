"""A library that a newer version wrote: the screen says so in a sentence, and goes on."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, cast

from driving import Driver
from settling import exact_waits
from unit.index import golden_libraries as golden

from edgerag.settings.effective import SettingsSources
from edgerag.ui.tui.app import EdgeragApp


async def test_the_screen_names_a_newer_library(home: Path) -> None:
    path = golden.unpack(home, golden.VERSIONS[-1]) / "library.sqlite"
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    with golden.session(home) as session:
        app = EdgeragApp(session, SettingsSources(session.locations.config_file, {}, {}))
        with exact_waits(app):
            async with app.run_test(size=(120, 36), notifications=True) as pilot:
                driver = Driver(app, cast("Any", pilot))
                await driver.see("Problem", "99")
                for _ in range(3):
                    app.look_again()
                    await driver.until(lambda: not app._looking)
                assert driver.text.count("Problem") == 1, "what stays as it is is said once"
                await driver.type_question("Which torque?")
                await driver.press("enter")
                await driver.until(lambda: not driver.busy)
                assert "Traceback" not in driver.text
    assert path.read_bytes() == before
