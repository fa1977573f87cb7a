"""Themes: kept, honoured from outside, readable; and every screen whole at every size in each of them."""

from __future__ import annotations

import re

import pytest
from driving import Driver, running
from rich.color import Color
from scripted_session import ScriptedSession

from edgerag.types import BlockHeat, SegmentBlocks

SIZES = [(80, 24), (120, 40), (200, 60)]
# Key of each screen, and words that must be on it at any size.
SCREENS = {
    "f3": "kestrel-p40-manual.md",
    "f4": "ok",
    "f5": "00000007.hnsw",
    "f6": "Cores:",
    "f7": "smollm2-135m-instruct",
    "f8": "[library]",
    "f9": "Everywhere",
}
_LETTERS = re.compile(r"\w")


def with_blocks() -> ScriptedSession:
    session = ScriptedSession()
    heat = [BlockHeat(n, "links", 64_000_000, n * 6_400_000, 64_000_000, 10**n, 1.0) for n in range(8)]
    session.blocks = [SegmentBlocks("00000007.hnsw", tuple(heat))]
    return session


def luminance(colour: Color) -> float:
    parts = [value / 255 for value in colour.get_truecolor()]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def least_contrast(driver: Driver) -> tuple[float, str]:
    """Of all words on the screen, as WCAG 2.2 computes it."""
    worst = (21.0, "")
    for strip in driver.app.screen._compositor.render_strips():
        for segment in strip:
            style = segment.style
            if style is None or style.color is None or style.bgcolor is None or not _LETTERS.search(segment.text):
                continue
            light, dark = sorted((luminance(style.color), luminance(style.bgcolor)), reverse=True)
            worst = min(worst, ((light + 0.05) / (dark + 0.05), segment.text))
    return worst


@pytest.mark.long
@pytest.mark.parametrize("theme", ["high-contrast", "no-colour"])  # the others: test_pictures.py
async def test_every_screen_is_whole_and_readable_at_every_size(theme: str) -> None:
    # WCAG: 7.0 is AAA. Without colour the terminal decides.
    wanted = {"high-contrast": 7.0, "no-colour": 0.0}[theme]
    async with running(with_blocks(), size=SIZES[0], flags={"ui": {"theme": theme}}) as driver:
        assert driver.app.theme == theme
        for size in SIZES:
            await driver.pilot.resize_terminal(*size)
            for key, words in SCREENS.items():
                await driver.press(key)
                await driver.until(lambda words=words: any(word in driver.text for word in words.split("|")))
                assert len(driver.rows) == size[1]
                assert all(len(row) <= size[0] for row in driver.rows), (key, size)
                assert "Back" in driver.rows[-1], (key, size)
                if wanted:
                    contrast, text = least_contrast(driver)
                    assert contrast >= wanted, (key, size, text)
                await driver.press("escape")


async def test_a_theme_is_chosen_in_the_palette_and_kept() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.press("ctrl+p", *"theme: light", "enter")
        await driver.until(lambda: driver.app.theme == "light")
        assert 'theme = "light"' in session.locations.config_file.read_text()
    async with running(session) as driver:
        assert driver.app.theme == "light"


async def test_no_colour_at_all_reaches_the_terminal_and_the_cursor_is_still_seen() -> None:
    async with running(with_blocks(), flags={"ui": {"theme": "no-colour"}}) as driver:
        for key in ("f7", "f8", "f5"):
            await driver.press(key)
            await driver.until(lambda: len(driver.app.screen_stack) > 1)
            strips = driver.app.screen._compositor.render_strips()
            styles = [segment.style for strip in strips for segment in strip if segment.style is not None]
            filters = driver.app.get_line_filters()
            assert any(type(each).__name__ == "NoColor" for each in filters)
            assert any(style.reverse for style in styles), key
            await driver.press("escape")


async def test_colour_comes_back() -> None:
    session = ScriptedSession()
    async with running(session, flags={}) as driver:
        for name in ("no-colour", "dark"):
            await driver.press("ctrl+p", *f"theme: {name}", "enter")
            await driver.until(lambda name=name: driver.app.theme == name)
        assert not driver.app.no_color
        assert not any(type(each).__name__ == "NoColor" for each in driver.app.get_line_filters())


async def test_what_no_color_overrides_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    session = ScriptedSession()
    async with running(session) as driver:
        assert driver.app.theme == "no-colour"
        await driver.press("ctrl+p", *"theme: light", "enter")
        await driver.until(lambda: "NO_COLOR says 'no-colour'" in driver.notifications)
