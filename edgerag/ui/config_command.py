"""`edgerag config`: the settings in force with their origins, and changing what the settings file says.

No session is opened, and a settings file that is refused elsewhere can be mended here.
"""

from __future__ import annotations

import argparse
from typing import Any

from edgerag.settings.effective import Effective, SettingsSources, find_setting
from edgerag.settings.keep import forget_setting, keep_setting, overridden_note, parsed_value
from edgerag.ui import output, report


def run_config(sources: SettingsSources, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    match arguments.action:
        case "list":
            _list(sources, arguments)
        case "get":
            _get(sources, arguments)
        case "set":
            setting = find_setting(arguments.name)
            parsed_value(setting, arguments.value)  # said before the file is looked at
            keep_setting(sources.config_file, setting, arguments.value)
            _say_result(sources, arguments.name)
        case "reset":
            if not forget_setting(sources.config_file, find_setting(arguments.name)):
                report.say(f"{sources.config_file} does not set {arguments.name}: nothing to do.")
            else:
                _say_result(sources, arguments.name)
        case action:
            raise AssertionError(f"the parser let {action!r} through")
    return report.EXIT_OK


def _list(sources: SettingsSources, arguments: argparse.Namespace) -> None:
    found = [one for one in sources.effective() if not arguments.changed or one.origin != "default"]
    if arguments.json:
        record = {"file": str(sources.config_file), "settings": [_record(one) for one in found]}
        output.write_json(record)
        return
    if not found:
        report.say("Every setting has its default.")
        return
    rows = [("setting", "value", "origin"), *((one.setting.name, _value(one), _origin(one)) for one in found)]
    output.write(output.table(rows))
    report.say(f"file: {sources.config_file}")


def _get(sources: SettingsSources, arguments: argparse.Namespace) -> None:
    found = sources.find(arguments.name)
    if arguments.json:
        output.write_json(_record(found))
        return
    output.write(f"{found.text}\n")
    report.say(f"{_origin(found)}. {found.setting.name}: {found.setting.meaning}")


def _say_result(sources: SettingsSources, name: str) -> None:
    found = sources.find(name)
    if found.is_overridden:
        report.say(overridden_note(found.setting, found.origin, found.where, found.value))
    else:
        report.say(f"{name} = {_value(found)} ({found.origin})")


def _value(found: Effective) -> str:
    if found.value is None:
        return "the model's"
    return found.text or '""'


def _origin(found: Effective) -> str:
    return found.where if found.origin == "environment" else found.origin


def _record(found: Effective) -> dict[str, Any]:
    setting = found.setting
    value, default = (_plain(part) for part in (found.value, setting.default))
    return {
        "name": setting.name,
        "value": value,
        "text": found.text,
        "origin": found.origin,
        "where": found.where,
        "default": default,
        "allowed": setting.allowed,
        "meaning": setting.meaning,
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value if isinstance(value, int | float | str) else _text(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
