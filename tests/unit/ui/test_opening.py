"""The terminal UI starts only where it can be seen."""

from __future__ import annotations

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
