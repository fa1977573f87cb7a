"""OCR with Tesseract, where it is on the machine: an image in, its text and how sure Tesseract is of it out.

The parser process may not start programs, so this runs beside it: each image goes to a process of its own, without
network, which can write no file, with bounds on memory and time (ocr_child.py). Tesseract takes an input that is no
image for a list of files to read; only what begins like an image is ever given to it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from edgerag.errors import UsageError
from edgerag.hold import Hold
from edgerag.ingest.parse.source import OCR_DPI, Recognised
from edgerag.machine.standstill import wait_standing_still
from edgerag.types import OcrMode

IMAGE_STARTS = (b"P5\n", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*", b"RIFF")
_TIFF_STARTS = (b"II*\x00", b"MM\x00*")  # the one kind that may have several pages
_PROGRAM = "tesseract"
_ORIENTATION = "osd"  # its model for how a page is turned; no language
# Each language more makes it slower and lets it mistake one for another.
_MOST_DEFAULT_LANGUAGES = 3
_LIST_SECONDS = 20.0
_POLL_S = 0.2  # how soon a cancelled wait ends
_LEAST_CONFIDENCE = 40.0  # of 100: what it reads into drawings and photographs lies below
_WORD_LEVEL = "5"
_TSV_COLUMNS = 12
_MOST_OUTPUT_BYTES = 20_000_000
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[3])
_START = (
    "import sys; root = sys.argv.pop(1); root in sys.path or sys.path.insert(0, root);"
    "from edgerag.ingest.parse.ocr_child import main; main()"
)
# What Tesseract needs to find its models and its libraries; nothing else is passed on.
_ENVIRONMENT = ("PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "HOME")


def is_recognisable(media_type: str) -> bool:
    """Whether OCR may read some of a document of this type."""
    return media_type == "application/pdf" or media_type.startswith("image/")


class Recogniser:
    """Reads one image at a time."""

    def __init__(
        self, *, program: str, languages: str, mode: OcrMode, deadline_s: float, memory_bytes: int, turns: bool
    ) -> None:
        """``turns``: whether it can tell how a page is turned."""
        self.mode: OcrMode = mode
        self.languages = languages
        self._program = program
        self._deadline_s = deadline_s
        self._memory_bytes = memory_bytes
        self.turns = turns
        self._segmentation = "1" if turns else "3"

    @property
    def manner(self) -> str:
        """Mode and languages, as the library keeps them of a document that was read by it."""
        return f"{self.mode} {self.languages}"

    def read(
        self, image: bytes, page: int, *, stopped: Callable[[], bool] = lambda: False, hold: Hold | None = None
    ) -> Recognised | None:
        """What stands on an image, or on that page of one that has several; None when ``stopped()`` turned true
        meanwhile. While it is on ``hold`` Tesseract stands still. Never raises for what it shows."""
        hold = hold or Hold()
        if not image.startswith(IMAGE_STARTS):
            return Recognised(page, "", 0.0, "It is no image.")
        try:
            process = self._start(("-c", f"tessedit_page_number={page - 1}") if image.startswith(_TIFF_STARTS) else ())
        except OSError as error:
            return Recognised(page, "", 0.0, f"Tesseract cannot be started: {error.strerror}.")
        deadline = hold.clock() + self._deadline_s
        # communicate() forgets what it has not sent when it is called again after a timeout (seen in Python 3.11).
        feeder = threading.Thread(target=_feed, args=(process.stdin, image), name="ocr-image", daemon=True)
        process.stdin = None
        feeder.start()
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    output, complaint = process.communicate(timeout=_POLL_S)
                    break
                if hold.is_on:
                    wait_standing_still(hold, process.pid, stopped)
                if stopped():
                    return None
                if hold.clock() > deadline:
                    return Recognised(page, "", 0.0, f"Tesseract was stopped after {self._deadline_s:g} seconds.")
        finally:
            _end(process)
            feeder.join()
        if process.returncode:
            return Recognised(page, "", 0.0, _ended(process.returncode, complaint))
        return read_tsv(output[:_MOST_OUTPUT_BYTES].decode("utf-8", "replace"), page)

    def _start(self, options: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own interpreter, no shell
            [
                *(sys.executable, "-P", "-X", "utf8", "-c", _START, _PACKAGE_ROOT),
                *(str(os.getpid()), str(self._memory_bytes), f"{self._deadline_s:g}"),
                *(self._program, "stdin", "stdout", "-l", self.languages, "--psm", self._segmentation),
                *("--dpi", str(OCR_DPI), "-c", "tessedit_create_tsv=1", *options),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,  # Ctrl-C in the terminal is not for it
        )


def find_recogniser(mode: OcrMode, languages: str, *, deadline_s: float, memory_bytes: int) -> Recogniser | None:
    """The recogniser that the settings ask for; None when OCR is off, or not to be had on this machine.

    Raises UsageError when it must be had ("force") and Tesseract is not there, or when a language is named that it
    does not know.
    """
    if mode == "off":
        return None
    program = shutil.which(_PROGRAM)
    installed = _languages(program) if program is not None else ()
    if program is None or not installed:
        if mode == "force":
            raise UsageError(
                "OCR is asked for, but there is no Tesseract with a language on this machine.",
                remedy="Install Tesseract and the data of a language, or use --ocr auto.",
            )
        return None
    known = [language for language in installed if language != _ORIENTATION]
    for language in filter(None, languages.split("+")):
        if language not in known:
            raise UsageError(
                f"Tesseract has no language {language!r} (ingest.ocr_languages).",
                remedy=f"Installed: {', '.join(known)}.",
            )
    return Recogniser(
        program=program,
        languages=languages.strip("+") or _default_languages(known),
        mode=mode,
        deadline_s=deadline_s,
        memory_bytes=memory_bytes,
        turns=_ORIENTATION in installed,
    )


def _languages(program: str) -> tuple[str, ...]:
    """What is installed; nothing when it cannot be asked."""
    try:
        done = subprocess.run(  # noqa: S603 - found in PATH, no shell
            [program, "--list-langs"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIST_SECONDS,
            env=_environment(),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return tuple(line.strip() for line in lines if line.strip() and " " not in line.strip())  # the first is a sentence


def _default_languages(installed: list[str]) -> str:
    plain = [language for language in installed if "/" not in language]  # the others are whole scripts
    if len(plain) <= _MOST_DEFAULT_LANGUAGES:
        return "+".join(sorted(plain, key=lambda language: language != "eng")) or installed[0]
    return "eng" if "eng" in plain else plain[0]


def _environment() -> Mapping[str, str]:
    # One thread: what is read beside it, and the embedder, want the processor too.
    return {"OMP_THREAD_LIMIT": "1"} | {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}


def _feed(pipe: IO[bytes], image: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), pipe:  # it may end without having read all
        pipe.write(image)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    for pipe in (process.stdout, process.stderr):  # open where it ended just when nobody wanted to wait any more
        if pipe is not None:
            pipe.close()


def _ended(code: int, complaint: bytes) -> str:
    if code < 0:
        return f"Tesseract crashed or was stopped (signal {-code})."
    last = complaint.decode("utf-8", "replace").strip().splitlines()[-1:]
    return f"Tesseract gave up: {last[0][:120].rstrip('.') if last else f'exit code {code}'}."


def read_tsv(table: str, page: int) -> Recognised:
    """The words of Tesseract's TSV output, in lines and paragraphs. Rows that are none are left out."""
    text: list[str] = []
    sure = characters = 0.0
    before: list[str] = []
    for row in table.splitlines():
        cells = row.split("\t")
        if len(cells) != _TSV_COLUMNS or cells[0] != _WORD_LEVEL or not cells[11].strip():
            continue
        word, place = cells[11].strip(), cells[2:5]  # block, paragraph and line
        try:
            confidence = float(cells[10])
        except ValueError:
            continue
        sure += max(0.0, confidence) * len(word)
        characters += len(word)
        if text:
            same_line, same_paragraph = place == before, place[:2] == before[:2]
            text.append(_between(text[-1], word) if same_line else "\n" if same_paragraph else "\n\n")
        text.append(word)
        before = place
    confidence = sure / characters if characters else 0.0
    if confidence < _LEAST_CONFIDENCE:
        return Recognised(page, "", confidence)
    return Recognised(page, "".join(text), confidence)


def _between(before: str, word: str) -> str:
    """Tesseract takes signs of Chinese and Japanese for words of their own: no blank stands between them."""
    wide = all(unicodedata.east_asian_width(character) in "WF" for character in (before[-1], word[0]))
    hangul = "\uac00" <= word[0] <= "\ud7a3"
    return "" if wide and not hangul else " "
