"""Tuning while nobody waits: a process of its own at the lowest priority, gone as soon as somebody asks.

Nothing is lost when it is ended: each measurement is on the disk when it is made, and the next start goes on from
there. It holds a model in memory while it runs, so a pause ends it and does not merely stop it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from edgerag.engine.tuning.child import command, end
from edgerag.engine.tuning.record import Tunings
from edgerag.engine.tuning.tune import DEFAULT_SECONDS, needs_tuning, tune
from edgerag.errors import ModelError, StorageFull
from edgerag.types import ModelFile

_LOWEST_PRIORITY = 19


class BackgroundTuning:
    """Tunes one model, for ``seconds`` in all, between :meth:`start` and :meth:`pause`. Any thread may call it."""

    def __init__(
        self, model: ModelFile, folder: Path, *, context_tokens: int, seconds: float = DEFAULT_SECONDS
    ) -> None:
        """``folder``: where tunings are kept. ``context_tokens``: the setting of generation."""
        self._context_tokens = context_tokens
        self._model = model
        self._folder = folder
        self._left_s = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._stopped = False

    @property
    def is_running(self) -> bool:
        with self._lock:
            return self._process is not None and self._process.poll() is None

    def start(self) -> bool:
        """Begins, or goes on. False when nothing is left to do: all is measured, the time is used up, it was stopped,
        or no process can be made."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return True
            self._forget()
            if self._stopped or self._left_s <= 0 or not needs_tuning(self._model, Tunings(self._folder)):
                return False
            model = {**dataclasses.asdict(self._model), "path": str(self._model.path)}
            task = {"model": model, "folder": str(self._folder), "seconds": self._left_s}
            task["context_tokens"] = self._context_tokens
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                    command("background", task),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "GGML_NO_BACKTRACE": "1"},
                )
            except OSError:
                return False
            self._began = time.monotonic()
            return True

    def pause(self) -> None:
        """Ends the process, without waiting for its end; :meth:`start` goes on later."""
        with self._lock:
            process = self._forget()
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            threading.Thread(target=end, args=(process,), name="tuning-end", daemon=True).start()

    def stop(self) -> None:
        """Ends it for good, and waits for that (a second at most)."""
        with self._lock:
            self._stopped = True
            process = self._forget()
        if process is not None:
            end(process)

    def _forget(self) -> subprocess.Popen[bytes] | None:
        """Counts the time of the process that ran; gives it if it still does."""
        process, self._process = self._process, None
        if process is None:
            return None
        self._left_s -= time.monotonic() - self._began
        return process if process.poll() is None else None


def work(task: dict[str, Any]) -> dict[str, Any]:
    """In the child process."""
    os.nice(_LOWEST_PRIORITY)
    wanted = threading.Event()
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: wanted.set())
    model = ModelFile(
        **{**task["model"], "path": Path(task["model"]["path"]), "languages": tuple(task["model"]["languages"])}
    )
    # Nobody is told: what cannot be tuned runs as planned, and `edgerag models tune` says why.
    with contextlib.suppress(ModelError, StorageFull):
        tune(
            model,
            Tunings(Path(task["folder"])),
            seconds=task["seconds"],
            context_tokens=task["context_tokens"],
            cancelled=lambda: wanted.is_set() or os.getppid() != parent,
        )
    return {}
