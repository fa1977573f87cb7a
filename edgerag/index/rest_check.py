"""A look at the whole database file beside the first question: whether every bit is as the last writer left it.

Rows that an answer shows have checksums of their own. The keyword index and the lists of what is removed or tagged have
none: a flipped bit there shows nothing wrong, but may hide a passage. So the file is compared with its checksums once,
in a thread of its own, while the models are loaded; what does not match is said beside the answer.
"""

from __future__ import annotations

import threading
from pathlib import Path

from edgerag.errors import EdgeragError
from edgerag.index import at_rest
from edgerag.thread_start import start_daemon

# Compared in a sixth of a second or less. A larger one would take disk and processor from the question itself.
MOST_BYTES = 256_000_000
_PATIENCE_S = 0.25  # at the end of an answer; who asks on is told beside the next one


class RestCheck:
    """Of one library, for as long as it is open for reading."""

    def __init__(self, folder: Path, database: Path) -> None:
        self._folder = folder
        self._database = database
        self._note = ""
        self._closed = threading.Event()
        self._begun = False
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Starts it, once. Where no thread starts, it is done before this returns."""
        if not self._begun:
            self._begun = True
            thread = threading.Thread(target=self._look, name="rest-check")
            if start_daemon(thread):
                self._thread = thread
            else:
                self._look()

    def note(self) -> str:
        """A sentence for the user where something does not match; "" where nothing is known, or all is well."""
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)
        return self._note

    def close(self) -> None:
        """The look ends soon."""
        self._closed.set()

    def _look(self) -> None:
        try:
            if self._database.stat().st_size > MOST_BYTES:
                return
            faults = at_rest.damaged_blocks(self._folder, self._database, stopped=self._closed.is_set)
        except (EdgeragError, OSError) as error:
            self._note = f"The library's checksums cannot be compared: {error}"
            return
        if faults:
            self._note = (
                f"{self._database} is damaged ({at_rest.blocks_text(faults)}): passages may be missing here. "
                "Run `edgerag library verify`, then `edgerag library repair`."
            )
