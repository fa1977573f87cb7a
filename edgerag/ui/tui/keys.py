"""Which key does what, on every screen: read from the bindings themselves, and changed by the user's key map.

A class whose keys can be changed derives from :class:`Keyed`: its bindings get names made of the class and the action,
such as ``viewer.copy``, by which the key map knows them.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual.binding import Binding, BindingType
from textual.keys import Keys, _character_to_key

from edgerag.errors import UsageError

_PACKAGES = ("edgerag.ui.tui.screens", "edgerag.ui.tui.widgets")
EVERYWHERE = "app"  # the scope of the application
# Where text is typed all the time: a key that writes something cannot also do something.
_TYPING = frozenset({EVERYWHERE, "ask", "sourced", "threaded", "question_box"})
# What the terminal or Textual takes for itself.
_RESERVED: Mapping[str, str] = {
    "ctrl+c": "copies the selected text",
    "ctrl+p": "opens the list of commands",
    "ctrl+z": "belongs to the terminal",
    "ctrl+s": "belongs to the terminal",
    "ctrl+m": "is Enter in a terminal",
    "ctrl+i": "is Tab in a terminal",
    "ctrl+h": "is Backspace in a terminal",
    "tab": "moves between the parts of a screen",
    "shift+tab": "moves between the parts of a screen",
}
# Which screen the parts live on. A part that is not here may be on any.
_HOMES: Mapping[str, str] = {
    "question_box": "ask",
    "conversation": "ask",
    "sources_pane": "ask",
    "threads_pane": "ask",
    "thread_list": "ask",
    "sourced": "ask",
    "threaded": "ask",
    "path_box": "add_documents",
    "setting_row": "settings",
    "block_map": "blocks",
    "hits_table": "inspector",
    "folded_text": "inspector",
    "model_table": "models",
    "document_list": "library",
    "pictured": "viewer",
}
_KEY_NAMES = {
    "escape": "Esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "delete": "Del",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}
_MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
# Beside the letters, and signs by their Unicode names.
_NAMED_KEYS = frozenset(
    {key.value.rpartition("+")[2] for key in Keys}
    | {_character_to_key(chr(code)) for code in range(0x21, 0x7F)}
    | set(FUNCTIONAL_KEYS.values())
) - {""}
_SIGNS = {_character_to_key(chr(code)): chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum()}
_ACTION_SIGNS = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class Shortcut:
    """One binding: what it does, and the keys that it comes with."""

    id: str  # "viewer.copy"
    scope: str  # "viewer"
    title: str  # of the scope, for people: "Viewer"
    description: str
    keys: tuple[str, ...]  # by default

    def keys_in(self, keymap: Mapping[str, str]) -> tuple[str, ...]:
        """The keys in force."""
        own = keymap.get(self.id)
        return tuple(own.split(",")) if own else self.keys


class Keyed:
    """To be named before the Textual class that it is mixed into."""

    KEYS_TITLE: ClassVar[str] = ""  # how the help calls this screen or part; "" takes the name of the class

    def __init_subclass__(cls, **options: Any) -> None:
        own = cls.__dict__.get("BINDINGS")
        if own:
            # Before Textual reads them, which its own __init_subclass__ does.
            cls.BINDINGS = named_bindings(scope_of(cls), own)  # type: ignore[attr-defined]
        super().__init_subclass__(**options)


def scope_of(cls: type) -> str:
    """``IngestDialog`` -> ``ingest``"""
    name = cls.__name__.removeprefix("_").removeprefix("Edgerag").removesuffix("Screen").removesuffix("Dialog")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def title_of(cls: type) -> str:
    return getattr(cls, "KEYS_TITLE", "") or scope_of(cls).replace("_", " ").capitalize()


def named_bindings(scope: str, bindings: Iterable[BindingType]) -> list[BindingType]:
    """The bindings with a name each; one that has a name keeps it."""
    named: list[BindingType] = []
    for given in bindings:
        binding = given if isinstance(given, Binding) else Binding(*given)
        action = _ACTION_SIGNS.sub("_", binding.action.replace("-", "minus ")).strip("_")
        named.append(binding if binding.id else replace(binding, id=f"{scope}.{action}"))
    return named


def keyed_classes() -> list[type[Keyed]]:
    """Every class of the UI that has keys, the application first; imports all of them."""
    for package in _PACKAGES:
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            importlib.import_module(f"{package}.{module.name}")
    found = [cls for cls in _below(Keyed) if cls.__dict__.get("BINDINGS") and cls.__module__.startswith("edgerag.")]
    return sorted(found, key=lambda cls: (scope_of(cls) != EVERYWHERE, title_of(cls)))


def _below(cls: type[Keyed]) -> Iterator[type[Keyed]]:
    for child in cls.__subclasses__():
        yield child
        yield from _below(child)


def shortcuts_of(cls: type[Keyed]) -> list[Shortcut]:
    """What the class itself binds, one for each name, in its order."""
    found: dict[str, Shortcut] = {}
    for binding in cls.__dict__.get("BINDINGS", ()):
        keys = tuple(long_key(key.strip()) for key in binding.key.split(","))
        before = found.get(binding.id)
        if before is not None:
            found[binding.id] = replace(before, keys=before.keys + keys)
        else:
            description = binding.tooltip or binding.description
            found[binding.id] = Shortcut(binding.id, scope_of(cls), title_of(cls), description, keys)
    return list(found.values())


def all_shortcuts() -> list[Shortcut]:
    return [shortcut for cls in keyed_classes() for shortcut in shortcuts_of(cls)]


def check_key(wanted: Shortcut, key: str, keymap: Mapping[str, str], shortcuts: Iterable[Shortcut]) -> None:
    """Raises UsageError that says why ``key`` cannot be that of ``wanted``."""
    if not _is_key(key):
        raise UsageError(f"No key is called {key[:40]!r}.", remedy="Names are such as y, ?, f6, ctrl+y, shift+up.")
    name = key_name(key)
    if key in _RESERVED:
        raise UsageError(f"{name} {_RESERVED[key]}.", remedy="Choose another key.")
    if wanted.scope in _TYPING and _writes(key):
        raise UsageError(f"{name} alone is typed into the question.", remedy="Choose one with Ctrl, or a function key.")
    for other in shortcuts:
        if other.id != wanted.id and key in other.keys_in(keymap) and _meet(wanted.scope, other.scope):
            what = other.description or other.id
            raise UsageError(
                f"{name} is taken: {other.title}, {what[0].lower()}{what[1:]}.",
                remedy="Choose another key, or change that one first.",
            )


def _is_key(key: str) -> bool:
    """Whether a terminal can send it, as Textual names keys."""
    *modifiers, last = key.split("+")
    if not set(modifiers) <= _MODIFIERS:
        return False
    if len(last) == 1:
        return last.isalnum()
    if last in _NAMED_KEYS:
        return True
    return bool(_sign(last))


def _sign(name: str) -> str:
    """``question_mark`` -> ``?``; "" for one that is no name of a sign."""
    if len(name) == 1:
        return ""
    try:
        sign = _SIGNS.get(name) or unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return ""
    return sign if len(sign) == 1 and not sign.isspace() and _character_to_key(sign) == name else ""


def _meet(one: str, other: str) -> bool:
    """Whether keys of both scopes can be pressed at the same moment."""
    if one == other or EVERYWHERE in (one, other):
        return True
    home_of_one, home_of_other = _HOMES.get(one), _HOMES.get(other)
    if home_of_one and home_of_other:
        return False  # two parts of a screen: only one has the keys
    return other == home_of_one or one == home_of_other


def _writes(key: str) -> bool:
    return "+" not in key and (key_name(key).isprintable() and len(key_name(key)) == 1 and key_name(key) not in "↑↓←→")


def long_key(key: str) -> str:
    """``?`` -> ``question_mark``, as Textual names it."""
    return _character_to_key(key) if len(key) == 1 else key


def key_name(key: str) -> str:
    """``ctrl+question_mark`` -> ``Ctrl+?``; with another key held a letter is written as on the keyboard: ``Ctrl+T``"""
    *modifiers, last = key.split("+")
    shown = _KEY_NAMES.get(last) or _sign(last) or (last.capitalize() if len(last) > 1 or modifiers else last)
    return "+".join([*(modifier.capitalize() for modifier in modifiers), shown])
