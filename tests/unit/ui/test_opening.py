"""The terminal UI starts only where it can be seen."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from edgerag.errors import UsageError
from edgerag.ui import commands


@pytest.mark.parametrize("redirected", ["stdin", "stdout", "stderr"])
def test_where_it_would_be_drawn_into_a_file_it_does_not_start(
    redirected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, SimpleNamespace(isatty=lambda name=name: name != redirected))
    session: Any = None
    with pytest.raises(UsageError, match="terminal") as raised:
        commands._open_ui(session, session)
    assert raised.value.remedy


@pytest.mark.parametrize("kind", ["dumb", "unknown", ""])
def test_a_terminal_that_shows_lines_only_gets_a_plain_prompt(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    class Asked:
        def unlock_all(self) -> None:
            asked.append("unlocked")

    def answer(_session: object, question: str, where: object, *, json: bool, why: bool) -> int:
        asked.append(question)
        if question == "first":
            raise UsageError("It cannot be.")
        assert (where, json, why) == (None, False, False)
        return 0

    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr(commands, "_answer", answer)
    lines = io.StringIO("first\n  second \n\nthird\n")
    for stream in (lines, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", lines)
    session = Asked()
    assert commands._open_ui(session, session) == 0  # type: ignore[arg-type]
    assert asked == ["unlocked", "first", "second"], "one that fails ends nothing; an empty line does"
    told = capsys.readouterr()
    assert told.out == "" and "\x1b" not in told.err
    assert "lines only" in told.err and "It cannot be." in told.err
