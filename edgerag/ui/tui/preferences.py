"""What a user changes about the program while it runs, and where that is kept."""

from __future__ import annotations

from edgerag.session import Session
from edgerag.settings.effective import Effective, Setting, SettingsSources
from edgerag.settings.keep import forget_setting, keep_setting
from edgerag.ui.tui.keymap_file import KeymapFile

_KEYS_FILE = "keys.toml"  # beside the settings file


class Preferences:
    """The settings of one running program. Methods that write also wait: they belong in a thread."""

    def __init__(self, session: Session, sources: SettingsSources) -> None:
        self.sources = sources
        self.keymap_file = KeymapFile(sources.config_file.with_name(_KEYS_FILE))
        self._session = session

    def change(self, setting: Setting, text: str | None) -> Effective:
        """Keeps what a person typed, or the default for None, and lets the session go on with it.

        Gives the setting as it stands then. Raises UsageError, StorageFull; then nothing is changed.
        """
        if text is None:
            forget_setting(self.sources.config_file, setting)
        else:
            keep_setting(self.sources.config_file, setting, text)
        self._session.adopt(self.sources.load())
        return self.sources.find(setting.name)

    def keep(self, setting: Setting, text: str) -> None:
        """Keeps it for the next start, and waits for nobody: the session goes on as it is. Raises UsageError,
        StorageFull."""
        keep_setting(self.sources.config_file, setting, text)
