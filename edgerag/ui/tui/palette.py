"""What the command palette offers beside the screens: every action of the screen below it, every setting, every theme,
every chat model. Nothing can be done in this program that cannot be found there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand
from textual.screen import Screen

from edgerag.settings.effective import all_settings, find_setting
from edgerag.ui.plain import one_line
from edgerag.ui.tui.keymap_file import key_names
from edgerag.ui.tui.themes import THEME_NAMES

if TYPE_CHECKING:
    from edgerag.ui.tui.app import EdgeragApp

_HELP_CHARACTERS = 160


def screen_commands(app: EdgeragApp, screen: Screen[Any]) -> Iterator[SystemCommand]:
    """What keys do on this screen now, each once."""
    by_action: dict[tuple[int, str], tuple[str, Any, list[str]]] = {}
    for key, active in screen.active_bindings.items():
        binding = active.binding
        if active.node is app or not active.enabled or not binding.description or not binding.id:
            continue  # those without a name are of Textual's own parts: moving a cursor is no command
        place = (id(active.node), binding.action)
        said = binding.tooltip or binding.description
        by_action.setdefault(place, (said, active.node, []))[2].append(key)
    for (_, action), (said, node, keys) in by_action.items():
        run = partial(app.run_action, action, default_namespace=node)
        yield SystemCommand(said, f"On this screen: {key_names(keys)}", run)


def theme_commands(app: EdgeragApp) -> Iterator[SystemCommand]:
    theme = find_setting("ui.theme")
    for name in THEME_NAMES:
        yield SystemCommand(f"Theme: {name}", "Kept for the next time", partial(app.set_and_say, theme, name))


def setting_commands(app: EdgeragApp) -> Iterator[SystemCommand]:
    """Found when searched for; not listed before, or they would be all that there is."""
    for setting in all_settings():
        said = one_line(setting.meaning.replace("`", ""), _HELP_CHARACTERS)
        yield SystemCommand(f"Setting: {setting.name}", said, partial(app.action_settings, setting.name), False)


def model_commands(app: EdgeragApp) -> Iterator[SystemCommand]:
    """The chat models at hand, as last looked at."""
    chat = find_setting("models.chat")
    for name in app.facts.chat_models:
        if name != app.facts.model:
            said = "The chat model that answers from now on"
            yield SystemCommand(f"Use model: {one_line(name, 60)}", said, partial(app.set_and_say, chat, name))
