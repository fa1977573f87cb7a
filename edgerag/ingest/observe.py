"""What the kernel tells of a set of folders, by the watchfiles library, gathered in a thread.

Folders are watched one by one and not recursively: only those that the rules let through count against the kernel's
limit, and no symbolic link leads out of the tree. It tells nothing of file systems of other machines, and may lose
changes (a full queue): whoever uses it looks at the whole now and then.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from watchfiles import watch

# Within this time changes come together; the thread notices a wish to stop as soon.
_GATHER_MS = 100
_STEP_MS = 50
_START_S = 30.0  # 100,000 folders take some seconds


class Observer:
    """Watches from its construction to :meth:`stop`. ``failure`` is why it watches no more, a sentence, or ""."""

    def __init__(self, folders: Collection[str]) -> None:
        self.failure = ""
        self._stop = threading.Event()
        self._watching = threading.Event()
        self._lock = threading.Lock()
        self._changed: set[str] = set()
        self._thread = threading.Thread(target=self._run, args=(sorted(folders),), name="watch", daemon=True)
        self._thread.start()
        self._watching.wait(_START_S)

    def take(self) -> set[str]:
        """The paths that changed since the last call; of a name that is not valid UTF-8 the folder."""
        with self._lock:
            taken, self._changed = self._changed, set()
        return taken

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self, folders: list[str]) -> None:
        try:
            for changes in watch(
                *folders,
                watch_filter=None,
                debounce=_GATHER_MS,
                step=_STEP_MS,
                rust_timeout=_GATHER_MS,
                yield_on_timeout=True,
                stop_event=self._stop,
                raise_interrupt=False,
                force_polling=False,
                recursive=False,
                ignore_permission_denied=True,
            ):
                self._watching.set()
                if changes:
                    with self._lock:
                        self._changed.update(path for _, path in changes)
        except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: what watchfiles makes of the kernel's
            self.failure = str(error)
        finally:
            self._watching.set()
