"""Lists and numbers as the kernel writes them, and what is made of anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.machine.kernel_files import format_cpus, parse_cpus, parse_number, read_cpus, read_number, read_text


@given(st.frozensets(st.integers(0, 2000), max_size=60))
def test_what_is_written_is_read_back(cpus: frozenset[int]) -> None:
    assert parse_cpus(format_cpus(cpus) if cpus else "") == cpus


def test_runs_are_shown_short() -> None:
    assert format_cpus([8, 0, 1, 2, 10, 11]) == "0-2,8,10-11"
    assert format_cpus([]) == "none"


@pytest.mark.parametrize("text", ["3-1", "a", "0-", "-1", "0-99999999999", "0-65536", "1;2", "²", "0x3"])
def test_no_list_is_not_known(text: str) -> None:
    assert parse_cpus(text) is None


@given(st.text())
def test_any_text_is_a_list_or_none(text: str) -> None:
    cpus = parse_cpus(text)
    assert cpus is None or all(0 <= cpu < 65_536 for cpu in cpus)


@given(st.text())
def test_any_text_is_a_number_or_none(text: str) -> None:
    parse_number(text)


def test_numbers() -> None:
    assert (parse_number("-1\n"), parse_number("max"), parse_number("²"), parse_number("9" * 5000)) == (
        -1,
        None,
        None,
        None,
    )


def test_a_file_that_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\x00\xfe")
    for file in (tmp_path, tmp_path / "absent", tmp_path / "bytes", tmp_path / "a\0b"):
        assert read_number(file) is None
        assert read_cpus(file) is None
    assert read_text(tmp_path / "absent") is None
