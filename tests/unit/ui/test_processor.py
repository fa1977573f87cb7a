"""Who builds graphs is asked first whether this processor can."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgerag import native_builds
from edgerag.native_builds import NativeLibrary
from edgerag.ui import processor
from edgerag.ui.cli import build_parser


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "asks"),
    [([], True), (["ingest", "x"], True), (["library", "compact"], True), (["ask", "x"], False), (["doctor"], False)],
)
def test_only_those_who_build_pay_for_the_question(
    monkeypatch: pytest.MonkeyPatch, words: list[str], asks: bool
) -> None:
    asked: list[NativeLibrary] = []
    monkeypatch.setattr(native_builds, "check_builds", lambda _models, libraries: asked.extend(libraries))
    processor.check(build_parser().parse_args(words))
    assert asked == (["hnswlib"] if asks else [])


def test_what_worked_is_remembered_where_the_models_are(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    seen: list[Path] = []
    monkeypatch.setattr(native_builds, "check_builds", lambda models, _libraries: seen.append(models))
    processor.check(build_parser().parse_args(["ingest", "x"]))
    assert seen == [home / "models"]
