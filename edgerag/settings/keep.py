"""Writes one setting into the settings file and leaves everything else in it as it was: comments, order, unknown keys.

The new file takes the place of the old one at once, or not at all.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgerag.config import Share, checked_value
from edgerag.errors import UsageError
from edgerag.machine.disk import storage_error, sync_folder
from edgerag.private_database import make_private_folders
from edgerag.settings.effective import Setting, value_text

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def parsed_value(setting: Setting, text: str) -> Any:
    """What ``text`` sets the setting to, as the program holds it; None unsets one that can be unset. Raises UsageError
    that says what is wrong with it."""
    if setting.can_be_unset and not text.strip():
        return None
    try:
        text.encode()  # raises a ValueError: a lone surrogate, of an argument that is no UTF-8, has no place in TOML
        return checked_value(setting.section, setting.key, text)
    except UnicodeEncodeError as error:
        raise UsageError(f"{setting.name}: {text!r} is not valid UTF-8, which the settings file is.") from error
    except ValueError as error:
        raise UsageError(f"{setting.name}: {error}.", remedy=f"It can be: {setting.allowed}.") from error


def keep_setting(config_file: Path, setting: Setting, text: str) -> None:
    """Writes what a person typed. Raises UsageError for what it cannot be, or a file that is no TOML; StorageFull."""
    value = parsed_value(setting, text)
    if value is None:
        forget_setting(config_file, setting)
        return
    if setting.is_size:  # as it is typed: "256 MB" says more than a row of digits
        value = text.strip() if not isinstance(value, Share) else str(value)
    keep_value(config_file, setting.section, setting.key, list(value) if isinstance(value, tuple) else value)


def forget_setting(config_file: Path, setting: Setting) -> bool:
    """The default holds again; False where the file did not have it. Raises as ``keep_setting``."""
    return forget_value(config_file, setting.section, setting.key)


def keep_value(file: Path, table: str, key: str, value: Any) -> None:
    """``value`` is what TOML can hold. Raises UsageError for a file that is no TOML, StorageFull."""
    import tomlkit

    document = _read(file)
    part = _table(document, table, file)
    if part is None:
        document[table] = part = tomlkit.table()
    part[key] = value
    _replace(file, tomlkit.dumps(document))


def forget_value(file: Path, table: str, key: str) -> bool:
    """Whether the file had it. Raises as ``keep_value``."""
    import tomlkit

    document = _read(file)
    part = _table(document, table, file)
    if part is None or key not in part:
        return False
    del part[key]
    _replace(file, tomlkit.dumps(document))
    return True


def overridden_note(setting: Setting, origin: str, where: str, value: Any) -> str:
    """Why what was just written is not felt: something stands above the file."""
    above = f"the variable {where}" if origin == "environment" else "the command line"
    return f"Kept, but {above} says {value_text(setting, value)!r}, and that stands above the file."


def _table(document: TOMLDocument, name: str, file: Path) -> Any:
    """The table of that name; None where there is none. Raises UsageError for what is none."""
    part: Any = document.get(name)
    if part is not None and not hasattr(part, "items"):
        raise UsageError(
            f"{file} holds {name!r} as a value, where its settings should stand.",
            remedy="Correct it in an editor, then try again.",
        )
    return part


def _read(file: Path) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:  # its line ends stay
            return tomlkit.parse(stream.read())
    except FileNotFoundError:
        return tomlkit.document()
    except (OSError, UnicodeDecodeError, TOMLKitError) as error:
        raise UsageError(
            f"{file} cannot be read: {error}.", remedy="Correct it in an editor, then try again."
        ) from error


def _replace(file: Path, text: str) -> None:
    target = file.resolve()  # a link stays one
    try:
        make_private_folders(target.parent)
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            with contextlib.suppress(FileNotFoundError):
                Path(name).chmod(target.stat().st_mode & 0o777)
            Path(name).replace(target)
            sync_folder(target.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise storage_error(error, file) from error
