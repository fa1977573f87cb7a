"""Tesseract as its parent sees it: found, asked, stopped. A script that speaks its language stands in for it."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
from unit.ingest.fake_tesseract import Install, install

from edgerag.errors import UsageError
from edgerag.ingest.parse.ocr import Recogniser, find_recogniser, read_tsv
from edgerag.types import OcrMode

__all__ = ["install"]
IMAGE = b"P5\n1 1\n255\n\x00"


def found(mode: OcrMode = "auto", languages: str = "", deadline_s: float = 30) -> Recogniser | None:
    return find_recogniser(mode, languages, deadline_s=deadline_s, memory_bytes=2_000_000_000)


def test_a_cancelled_page_ends_at_once(install: Install) -> None:
    install("import time; time.sleep(600)")
    recogniser = found(deadline_s=600)
    assert recogniser is not None
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    assert recogniser.read(IMAGE, 1, stopped=stop.is_set) is None


def test_one_that_ends_just_when_it_is_cancelled_leaves_no_file_open(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("import time; time.sleep(1)")
    recogniser = found()
    assert recogniser is not None
    begun: list[subprocess.Popen[bytes]] = []
    start = recogniser._start
    monkeypatch.setattr(recogniser, "_start", lambda options: begun.append(start(options)) or begun[0])

    def stopped() -> bool:
        os.waitid(os.P_PID, begun[0].pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked yet
        return True

    assert recogniser.read(IMAGE, 1, stopped=stopped) is None
    for pipe in (begun[0].stdout, begun[0].stderr):
        assert pipe is not None and pipe.closed


def test_a_large_image_arrives_whole_however_slowly_it_is_read(install: Install) -> None:
    install(
        """
line(1, 1, str(len(image)))
"""
    )
    program = Path(os.environ["PATH"]) / "tesseract"
    program.write_text(program.read_text().replace("image = sys", "import time; time.sleep(1); image = sys"))
    recogniser = found()
    assert recogniser is not None
    read = recogniser.read(IMAGE + bytes(9_000_000), 1)
    assert read is not None and read.text == str(9_000_000 + len(IMAGE))


def test_one_that_does_not_read_its_image_fails_in_words(install: Install) -> None:
    install()
    program = Path(os.environ["PATH"]) / "tesseract"
    program.write_text(program.read_text().replace("image = sys", "sys.exit('no memory'); image = sys"))
    recogniser = found()
    assert recogniser is not None
    read = recogniser.read(IMAGE + bytes(9_000_000), 1)
    assert read is not None and read.trouble == "Tesseract gave up: no memory."


def test_what_is_no_image_is_never_given_to_it(install: Install) -> None:
    install("raise SystemExit('it was started')")
    recogniser = found()
    assert recogniser is not None
    read_ = recogniser.read(b"/etc/passwd\n", 1)  # Tesseract would take it for a list of images
    assert read_ is not None and read_.trouble == "It is no image."


def test_languages(install: Install) -> None:
    def chosen(named: str = "", *, of: tuple[str, ...]) -> str:
        install(languages=of)
        recogniser = found("auto", named)
        assert recogniser is not None
        return recogniser.languages

    assert chosen(of=("deu", "eng", "osd")) == "eng+deu"
    assert chosen(of=("afr", "amh", "ara", "eng", "zul", "script/Latin")) == "eng"
    assert chosen(of=("fra",)) == "fra"
    assert chosen("deu+fra", of=("deu", "eng", "fra")) == "deu+fra"
    with pytest.raises(UsageError, match=r"no language 'jpn'.*deu, eng"):
        chosen("jpn", of=("deu", "eng", "osd"))


def test_force_without_tesseract_is_refused(install: Install) -> None:
    with pytest.raises(UsageError, match="no Tesseract"):
        found("force")
    install(languages=())
    with pytest.raises(UsageError, match="no Tesseract"):
        found("force")
    assert found("auto") is None and found("off") is None


def test_signs_that_are_words_stand_without_blanks() -> None:
    rows = [
        f"5\t1\t1\t1\t1\t{n}\t0\t0\t9\t9\t90\t{word}" for n, word in enumerate(["東", "京", "に", "ABC", "行", "く"], 1)
    ]
    assert read_tsv("\n".join(["nonsense", *rows, "5\t1"]), 1).text == "東京に ABC 行く"
