"""llama.cpp's library: loaded on first use, its backends once per process, its log kept in memory.

The last error lines go into our own messages; nothing reaches the terminal.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections import deque
from pathlib import Path
from typing import Any

from edgerag.engine.files import printable
from edgerag.errors import EngineUnavailable
from edgerag.machine.kernel_files import read_text

_ERROR_LEVEL, _CONTINUES = 4, 5  # of ggml_log_level; 5 goes on with the line before
_VARIANT = re.compile(r"/libggml-cpu-([a-z0-9_.-]+?)\.(?:so|dylib)\b")
_REINSTALL = "Install it again: make prepare (portable build), or pip install --force-reinstall llama-cpp-python"


class Library:
    """llama.cpp, loaded with its backends and silenced."""

    def __init__(self) -> None:
        # Threads that wait for each other sleep instead of spinning: on cores that other programs use
        # too, that decodes up to 25 times faster (docs/decisions/022). Read when OpenMP is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            import llama_cpp.llama_cpp as api
        except ImportError as error:
            raise EngineUnavailable(f"llama-cpp-python is not usable: {error}.", remedy=_REINSTALL) from error
        except (OSError, RuntimeError, AttributeError) as error:
            # What its loader raises for a library that is missing, broken, or of another version.
            raise EngineUnavailable(f"The llama.cpp library cannot be loaded: {error}", remedy=_REINSTALL) from error
        self.api: Any = api
        self._lines: deque[tuple[int, int, str]] = deque(maxlen=200)
        self._callback = api.llama_log_callback(self._log)  # kept: C holds a pointer to it
        api.llama_log_set(self._callback, None)
        # Symbols of ggml are looked up through libllama's own handle: that is the instance libllama
        # itself uses, whichever copies of libggml lie beside it (MEASURED.md).
        ggml = api._lib
        count = ggml.ggml_backend_reg_count
        count.restype = ctypes.c_size_t
        if count() == 0:
            load_all = ggml.ggml_backend_load_all_from_path
            load_all.argtypes, load_all.restype = [ctypes.c_char_p], None
            for folder in _backend_folders(Path(api.__file__).parent):
                load_all(str(folder).encode())
                if count():
                    break
        if count() == 0:
            raise EngineUnavailable("llama.cpp has no backend that runs on this processor.", remedy=_REINSTALL)
        api.llama_backend_init()

    def _log(self, level: int, text: bytes, _: object) -> None:
        thread = threading.get_ident()
        line = text.decode("utf-8", "replace")
        if level == _CONTINUES and self._lines and self._lines[-1][0] == thread:
            _, level, before = self._lines.pop()
            line = before + line
        self._lines.append((thread, level, line))

    def mark(self) -> None:
        """Forgets what this thread logged so far."""
        kept = [entry for entry in list(self._lines) if entry[0] != threading.get_ident()]
        self._lines.clear()
        self._lines.extend(kept)

    def lacked_memory(self) -> bool:
        """Whether this thread's last trouble was memory, or a thread, that could not be had (EAGAIN)."""
        text = self.complaint().casefold()
        return any(sign in text for sign in ("allocate", "out of memory", "resource temporarily unavailable"))

    def complaint(self) -> str:
        """The last error lines that this thread caused, or ""."""
        thread = threading.get_ident()
        lines = [t.strip() for who, level, t in list(self._lines) if who == thread and level == _ERROR_LEVEL]
        return printable("; ".join(dict.fromkeys(line for line in lines if line))[-400:])


def _backend_folders(package: Path) -> list[Path]:
    """Where a build with loadable backends may have put them; the first that exists comes first."""
    candidates = (package.parent / "bin", package / "lib", package / "bin")
    return [folder for folder in candidates if any(folder.glob("*ggml-cpu*"))]


_loading = threading.Lock()
_loaded: list[Library] = []  # at most one; a failure is not remembered


def library() -> Library:
    with _loading:
        if not _loaded:
            _loaded.append(Library())
        return _loaded[0]


def engine_version() -> str:
    library()
    from llama_cpp import __version__

    return str(__version__)


def describe_engine() -> str:
    """One line about the engine: version and what it uses of the processor. Raises EngineUnavailable."""
    loaded = library()
    facts = [part.partition("=") for part in decoded(loaded.api.llama_print_system_info()).split("|")]
    features = [name.split(":")[-1].strip() for name, _, value in facts if value.strip() not in ("", "0")]
    return f"llama-cpp-python {engine_version()}, {_build()}: {', '.join(features) or 'no processor features'}"


def _build() -> str:
    """Which code computes: the variant that ggml chose for this processor, or the one there is. Of all variants that it
    looked at, only the chosen one stays mapped."""
    variants = dict.fromkeys(_VARIANT.findall(read_text(Path("/proc/self/maps")) or ""))
    return f"variant {' and '.join(variants)}" if variants else "no variants: one build of llama.cpp"


def encoded(text: str) -> bytes:
    """UTF-8. A lone surrogate has none, and llama.cpp ends the process for invalid UTF-8."""
    return text.encode("utf-8", "replace")


def decoded(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
