"""What the processor says of itself is no more than the kernel says of the machine."""

from __future__ import annotations

import platform
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.machine import cpuid

HWCAP, HWCAP2, PAGE_BYTES = 16, 26, 6


def vector(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<2Q", *pair) for pair in [*pairs, (0, 0)])


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="is about x86_64 on Linux")
def test_this_process_may_use_no_more_than_the_machine_has() -> None:
    usable = cpuid.usable_flags()
    if usable is None:
        pytest.skip("this C library hands out no CPUID")
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    machine = set(next(line for line in lines if line.startswith("flags")).partition(":")[2].split())
    assert usable <= machine
    assert "cx16" in usable  # every processor of 64 bits that runs a Linux of today


def test_an_arm_core_is_read_from_the_auxiliary_vector(tmp_path: Path) -> None:
    (tmp_path / "auxv").write_bytes(vector((PAGE_BYTES, 4096), (HWCAP, 1 << 1 | 1 << 20), (HWCAP2, 1 << 13)))
    assert cpuid.arm_flags(tmp_path / "auxv") == {"asimd", "asimddp", "i8mm"}
    (tmp_path / "auxv").write_bytes(vector((HWCAP, 1 << 1))[:-5])  # cut short
    assert cpuid.arm_flags(tmp_path / "auxv") == {"asimd"}


def test_where_nothing_tells_nothing_is_claimed(tmp_path: Path) -> None:
    assert cpuid.arm_flags(tmp_path / "none") is None
    assert cpuid.arm_flags(tmp_path) is None


@given(st.binary(max_size=200))
def test_noise_names_only_what_is_known(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "noise"
    file.write_bytes(data)
    assert (cpuid.arm_flags(file) or frozenset()) <= cpuid.known_flags()
