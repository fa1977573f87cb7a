"""A script that stands in for Tesseract in the tests."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Install = Callable[..., None]

# Says how it was called in the text that it "recognises": the size of the image, the arguments, what it may do.
FAKE = """#!{python}
import os, resource, sys
if "--list-langs" in sys.argv:
    print('List of available languages in "/usr/share/tessdata/" (3):')
    print("\\n".join({languages!r}))
    sys.exit()
image = sys.stdin.buffer.read()
print("level\\tpage_num\\tblock_num\\tpar_num\\tline_num\\tword_num\\tleft\\ttop\\twidth\\theight\\tconf\\ttext")
def line(paragraph, number, *words):
    print(f"4\\t1\\t1\\t{{paragraph}}\\t{{number}}\\t0\\t0\\t0\\t9\\t9\\t-1\\t")
    for n, word in enumerate(words, 1):
        print(f"5\\t1\\t1\\t{{paragraph}}\\t{{number}}\\t{{n}}\\t0\\t0\\t9\\t9\\t{confidence}\\t{{word}}")
{body}
"""
BODY = """
line(1, 1, "Read", "by", "OCR:", *(image[:20].split()[:3] if image[:2] == b"P5" else ["a", "picture"]))
line(1, 2, *sys.argv[1:])
line(2, 1, "A", "second", "paragraph.")
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a Tesseract on the machine."""

    def made(body: str = BODY, *, languages: tuple[str, ...] = ("eng", "osd"), confidence: float = 87.5) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / "tesseract"
        program.write_text(
            FAKE.format(python=sys.executable, languages=languages, body=body, confidence=confidence), encoding="utf-8"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(folder))

    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return made
