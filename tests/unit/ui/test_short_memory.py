"""Too little memory is said in a sentence, in whichever of its ways Python notices it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from edgerag.session import Session
from edgerag.ui.cli import main


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("x.so: failed to map segment from shared object"),
        SystemError("error return without exception set"),
    ],
)
@pytest.mark.usefixtures("home")
def test_it_is_a_sentence_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def starve(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Session, "search", starve)
    assert main(["search", "words"]) == 7
    said = capsys.readouterr().err
    assert "too little free memory" in said and "memory.budget" in said and "Traceback" not in said


@pytest.mark.usefixtures("home")
def test_a_fault_of_the_program_is_none_of_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.ENOENT, "No such file")

    monkeypatch.setattr(Session, "search", broken)
    with pytest.raises(OSError, match="No such file"):
        main(["search", "words"])
