"""Where things live.

One folder, the *home*, holds everything the program keeps: ``models/``, ``indexes/``, ``threads.sqlite``,
``traces.sqlite`` and ``config.toml``. It is the first of: ``$EDGERAG_HOME``; the source checkout that the program runs
from; ``$XDG_DATA_HOME/edgerag`` (``~/.local/share/edgerag``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgerag.errors import UsageError
from edgerag.library_name import NAMES_ARE, check_library_name

_PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Locations:
    home: Path

    @property
    def models(self) -> Path:
        return self.home / "models"

    @property
    def indexes(self) -> Path:
        return self.home / "indexes"

    @property
    def config_file(self) -> Path:
        return self.home / "config.toml"

    @property
    def threads_file(self) -> Path:
        return self.home / "threads.sqlite"

    @property
    def traces_file(self) -> Path:
        return self.home / "traces.sqlite"

    @property
    def manifest_file(self) -> Path:
        """The list of models that ``models pull`` knows: the home's own, else the shipped one."""
        own = self.models / "manifest.toml"
        return own if own.is_file() else _PACKAGE / "manifest.toml"

    def library_folder(self, name: str) -> Path:
        """The folder of the library called ``name``; a name with a slash is a path of its own.

        Raises UsageError for a name that could leave the indexes folder.
        """
        if os.sep in name:
            return user_path(name)
        try:
            check_library_name(name)
        except ValueError as error:
            raise UsageError(f"{name!r} is not a library name.", remedy=f"Use {NAMES_ARE}.") from error
        return self.indexes / name


def safe_library_name(name: str) -> str:
    """``name`` where it is one inside the indexes folder. Raises UsageError; for what a file says, which may be any."""
    try:
        check_library_name(name)
    except ValueError as error:
        raise UsageError(
            f"The file names its library {name[:80]!r}, which is no name.", remedy="Give one: --name NAME."
        ) from error
    return name


def locate(environ: Mapping[str, str]) -> Locations:
    """The locations for this process; creates nothing."""
    if home := environ.get("EDGERAG_HOME"):
        return Locations(Path(home).expanduser().resolve())
    checkout = _PACKAGE.parent
    if (checkout / "models" / "manifest.toml").is_file() and (checkout / "pyproject.toml").is_file():
        return Locations(checkout)
    data_home = environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Locations(Path(data_home) / "edgerag")


def user_cache(environ: Mapping[str, str]) -> Path:
    """Where what can be made again is kept; creates nothing."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "edgerag"


def user_path(text: str) -> Path:
    """The absolute path of what a user typed: ``~`` expanded, ``..`` taken away by name.

    Nothing is looked up, so links stay as they were named. Raises UsageError for what can be no path.
    """
    if not text:
        raise UsageError("A path is empty.", remedy="Name a file or a folder; '.' is the working folder.")
    try:
        return Path(os.path.abspath(Path(text).expanduser()))  # noqa: PTH100 - resolve() would follow links
    except RuntimeError as error:  # ~somebody who is not known here
        raise UsageError(f"{text!r}: there is no such user.") from error
    except FileNotFoundError as error:
        raise UsageError(f"{text!r} cannot be found from here: the working folder no longer exists.") from error


def is_there(path: Path) -> bool:
    """Whether something lies at ``path``, a broken link included; what cannot be looked up is not there."""
    try:
        os.lstat(path)
    except (OSError, ValueError):  # too long, a NUL in it, a folder above that is closed to us
        return False
    return True
