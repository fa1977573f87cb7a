"""The user's keys, kept in ``keys.toml`` in the home folder: a line for each binding that is not as it comes.

    [keys]
    "viewer.copy" = "y"

A name that no binding has, or keys that cannot be, are passed over and told: a file of another version must not lock
anybody out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgerag.config import read_config_file
from edgerag.errors import UsageError
from edgerag.settings.keep import forget_value, keep_value
from edgerag.ui.tui.keys import Shortcut, all_shortcuts, check_key, key_name, long_key

_TABLE = "keys"


@dataclass(frozen=True, slots=True)
class Keymap:
    """``keys``: name of a binding -> its keys, with commas between them. ``troubles``: sentences."""

    keys: Mapping[str, str]
    troubles: tuple[str, ...] = ()


class KeymapFile:
    """Methods read and write the file, each time anew: it is small, and may be edited elsewhere meanwhile."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def load(self) -> Keymap:
        """What can be used of it; never raises."""
        try:
            table = read_config_file(self.file).get(_TABLE, {})
        except UsageError as error:
            return Keymap({}, (str(error),))
        if not isinstance(table, Mapping):
            return Keymap({}, (f"{self.file} has no table of keys.",))
        if not table:
            return Keymap({})  # without a look at the screens, which costs a start
        shortcuts = all_shortcuts()
        by_id = {shortcut.id: shortcut for shortcut in shortcuts}
        keys: dict[str, str] = {}
        troubles = []
        for name, value in table.items():
            if name not in by_id:
                troubles.append(f"{self.file.name}: nothing is called {name!r}.")
            elif not isinstance(value, str) or not value.strip():
                troubles.append(f"{self.file.name}: {name} needs the name of a key, not {value!r}.")
            else:
                keys[name] = ",".join(long_key(key.strip()) for key in value.split(","))
        for name in list(keys):
            try:
                for key in keys[name].split(","):
                    check_key(by_id[name], key, keys, shortcuts)
            except UsageError as error:
                troubles.append(f"{self.file.name}: {name} stays as it was. {error}")
                del keys[name]
        return Keymap(keys, tuple(troubles))

    def change(self, wanted: Shortcut, key: str, shortcuts: Sequence[Shortcut]) -> Keymap:
        """Raises UsageError for a key that is taken or cannot be, StorageFull."""
        check_key(wanted, key, self.load().keys, shortcuts)
        if (key,) == wanted.keys:
            forget_value(self.file, _TABLE, wanted.id)
        else:
            keep_value(self.file, _TABLE, wanted.id, key)
        return self.load()

    def reset(self, wanted: Shortcut, shortcuts: Sequence[Shortcut]) -> Keymap:
        """The keys that it comes with. Raises UsageError when another has one of them now, StorageFull."""
        keymap = {name: keys for name, keys in self.load().keys.items() if name != wanted.id}
        for other in shortcuts:
            # What comes with the program may overlap on purpose; what the user has put there may not.
            if other.id in keymap and set(other.keys_in(keymap)) & set(wanted.keys):
                for key in wanted.keys:
                    check_key(wanted, key, keymap, [other])
        forget_value(self.file, _TABLE, wanted.id)
        return self.load()

    def reset_all(self) -> Keymap:
        """Raises UsageError for a file that is damaged, StorageFull."""
        table = read_config_file(self.file).get(_TABLE, {})
        for name in [*table] if isinstance(table, Mapping) else [""]:  # which says what is wrong with the file
            forget_value(self.file, _TABLE, name)
        return self.load()


def key_names(keys: Sequence[str]) -> str:
    return " ".join(key_name(key) for key in keys)
