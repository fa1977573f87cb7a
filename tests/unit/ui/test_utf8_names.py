"""Whatever the locale, names of files and words of questions are what they are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ASCII = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
TEXTS = {
    "Prüfbericht größe.txt".encode(): "Die Pumpe läuft mit 58 dB(A).",
    "日本.txt".encode(): "日本語の文書。",
    b"caf\xe9.txt": "The valve leaks.",
    b"caf\xe8.txt": "The hose leaks.",
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in TEXTS.items():
        with open(os.path.join(os.fsencode(folder), name), "wb") as stream:  # noqa: PTH118, PTH123 - bytes
            stream.write(text.encode())
    return folder


def edgerag(home: Path, *arguments: str | Path | bytes, locale: Mapping[str, str] = ASCII) -> tuple[int, str, str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHONIO"))
    }
    environment.pop("PYTHONUTF8", None)
    done = subprocess.run(
        [sys.executable, "-m", "edgerag", *arguments],
        env={**environment, "EDGERAG_HOME": str(home), **locale},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_the_same_files_are_the_same_in_every_locale(home: Path, docs: Path) -> None:
    code, _, said = edgerag(home, "ingest", docs, "--quiet")
    assert code == 0 and said.startswith("4 ingested"), said
    for locale in (ASCII, {"LC_ALL": "C.UTF-8"}, ASCII):
        code, _, said = edgerag(home, "ingest", docs, "--quiet", locale=locale)
        assert code == 0 and "0 ingested, 4 unchanged, 0 removed, 0 skipped, 0 failed" in said, said


def test_letters_of_a_question_and_of_a_path_arrive(home: Path, docs: Path) -> None:
    edgerag(home, "ingest", docs, "--quiet")
    code, out, said = edgerag(
        home, "ask", "--no-llm", "Was läuft mit 58 dB(A)?", "--in", docs / "Prüfbericht größe.txt"
    )
    assert code == 0, said
    assert "“Die Pumpe läuft mit 58 dB(A).”" in out
    assert "Prüfbericht größe.txt" in out
    code, out, said = edgerag(home, "search", "日本語")
    assert "日本.txt" in out, said


def test_two_names_of_odd_bytes_do_not_look_like_one(home: Path, docs: Path) -> None:
    edgerag(home, "ingest", docs, "--quiet")
    _, out, _ = edgerag(home, "status", "--files")
    assert "caf\\xe9.txt" in out
    assert "caf\\xe8.txt" in out


def test_a_failure_names_the_file_with_all_its_letters(home: Path, docs: Path) -> None:
    code, _, said = edgerag(home, "ingest", docs / "größer.txt")
    assert code == 2
    assert "größer.txt" in said


def test_it_is_started_anew_once(home: Path) -> None:
    """Also where an option of Python's own forbids the mode."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "edgerag", "status"],
        env={**os.environ, "EDGERAG_HOME": str(home), **ASCII},
        capture_output=True,
        check=False,
        timeout=100,
    )
    assert b"Traceback" not in done.stderr
