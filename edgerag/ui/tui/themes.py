"""The four looks of the terminal UI. Every colour on a screen comes from one of them.

High contrast keeps every pair of text and ground at 7:1 or more (WCAG 2.2, AAA). Without colour the terminal's own two
colours are all there is: what a colour would say, a sign or a text style says.
"""

from __future__ import annotations

from typing import get_args

from textual.filter import NoColor
from textual.theme import Theme

from edgerag.types import ThemeName

THEME_NAMES: tuple[ThemeName, ...] = get_args(ThemeName)

DARK = Theme(
    name="dark",
    primary="#4c9be8",
    secondary="#7aa2c8",
    accent="#ffb454",
    warning="#ffb454",
    error="#f0718b",
    success="#5fd38d",
    foreground="#e3e6ea",
    background="#14171c",
    surface="#1c2027",
    panel="#252a33",
    dark=True,
)
LIGHT = Theme(
    name="light",
    primary="#0b5fa5",
    secondary="#35607f",
    accent="#9a4a00",
    warning="#8a5200",
    error="#b3123d",
    success="#116b37",
    foreground="#0e1216",
    background="#fbfbf9",
    surface="#f4f4f1",
    panel="#ecedea",
    dark=False,
)
HIGH_CONTRAST = Theme(
    name="high-contrast",
    primary="#00e5ff",
    secondary="#ffffff",
    accent="#ffff00",
    warning="#ffff00",
    error="#ff9d9d",
    success="#7dff7d",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#0d0d0d",
    dark=True,
    text_alpha=1.0,
    variables={
        "text-muted": "#ffffff",
        "text-disabled": "#d0d0d0",
        "border": "#ffff00",
        "border-blurred": "#ffffff",
        "block-cursor-foreground": "#000000",
        "block-cursor-background": "#ffff00",
        "block-cursor-text-style": "bold",
        "footer-key-foreground": "#ffff00",
        "input-selection-background": "#00e5ff 60%",
        "scrollbar": "#ffffff",
    },
)
# The shades are those of the dark theme's; none of them reaches the terminal.
NO_COLOUR = Theme(
    name="no-colour",
    primary="#ffffff",
    secondary="#ffffff",
    accent="#ffffff",
    warning="#ffffff",
    error="#ffffff",
    success="#ffffff",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#000000",
    dark=True,
)
THEMES = (DARK, LIGHT, HIGH_CONTRAST, NO_COLOUR)

WITHOUT_COLOUR = NoColor()
