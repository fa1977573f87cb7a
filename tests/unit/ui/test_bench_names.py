"""A bench takes minutes: what it cannot write or find is said before it measures anything."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edgerag.errors import EdgeragError, ModelError, UsageError
from edgerag.ui import bench_command


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: Any) -> None:
        raise AssertionError("it measured")

    monkeypatch.setattr(bench_command, "_figures", measured)


def find(kind: str, name: str) -> None:
    raise ModelError(f"There is no model {name!r}.")


def refused(**options: str) -> EdgeragError:
    arguments = argparse.Namespace(**{"action": "ask", "against": "", "html": "", "chat": None, **options})
    session: Any = SimpleNamespace(catalog=SimpleNamespace(find=find))
    with pytest.raises(EdgeragError) as caught:
        bench_command.run_bench(session, arguments)
    return caught.value


@pytest.mark.parametrize("name", ["", "none/page.html"])
def test_a_page_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    error = refused(html=str(tmp_path / name))
    assert isinstance(error, UsageError)
    assert str(tmp_path) in error.message


def test_a_model_that_is_not_there() -> None:
    assert refused(chat="nosuch").message == "There is no model 'nosuch'."


def test_a_run_to_compare_with_that_is_not_there(tmp_path: Path) -> None:
    assert isinstance(refused(against=str(tmp_path / "none.json")), UsageError)
