"""A key file that is made when all else is: of a command that could not be done none is left, and none is taken away
that anything was encrypted with."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from edgerag.encryption.keys import KeyFile, new_key_file
from edgerag.errors import UsageError
from edgerag.locations import is_there
from edgerag.machine.disk import storage_error
from edgerag.machine.new_file import put_new


class NewKeyFile:
    """``opener`` is what will be in it."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError where something is there, StorageFull where no file can be made."""
        self.path = path
        self.opener: KeyFile = new_key_file()
        self._made: os.stat_result | None = None
        if is_there(path):
            raise self._taken()
        try:
            with tempfile.TemporaryFile(dir=path.parent, prefix=f".{path.name[:100]}-") as trial:
                trial.write(self.opener.content)
                trial.flush()
                os.fsync(trial.fileno())
        except OSError as error:
            raise storage_error(error, path) from error

    def make(self) -> None:
        """It is on the disk when this returns. Raises as the constructor does."""
        try:
            put_new(self.path, self.opener.content)
            self._made = self.path.stat()
        except FileExistsError:
            raise self._taken() from None
        except OSError as error:
            raise storage_error(error, self.path) from error

    def take_back(self) -> None:
        """Deletes it, if it was made and is still that file. Raises OSError."""
        made, self._made = self._made, None
        if made is not None and is_there(self.path) and os.path.samestat(made, self.path.stat()):
            self.path.unlink()

    def _taken(self) -> UsageError:
        return UsageError(f"{self.path} is there already.", remedy="Name a new file.")
