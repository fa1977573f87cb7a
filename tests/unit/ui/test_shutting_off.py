"""Which commands may use a network: two, by name."""

from __future__ import annotations

import pytest

from edgerag.ui.cli import build_parser
from edgerag.ui.shutting_off import may_use_a_network


@pytest.mark.parametrize(
    ("words", "may"),
    [
        (["models", "pull"], True),
        (["bundle", "create", "x"], True),
        (["bundle", "verify", "x"], False),
        (["bundle", "install", "x", "--to", "y"], False),
        (["bundle", "key", "x"], False),
        (["models", "list"], False),
        (["ask", "create"], False),
        ([], False),
    ],
)
def test_two_commands_are_exempt(words: list[str], may: bool) -> None:
    assert may_use_a_network(build_parser().parse_args(words)) is may
