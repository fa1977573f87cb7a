from __future__ import annotations

from pathlib import Path

from edgerag.machine.cpu import read_processor

LAPTOP = """processor\t: 0
model name\t: Example Core 5
flags\t\t: fpu sse4_2 avx f16c fma avx2 avx_vnni

processor\t: 1
model name\t: Example Core 5
flags\t\t: fpu sse4_2 avx f16c fma avx2 avx_vnni
"""
BOARD = """processor\t: 0
BogoMIPS\t: 108.00
Features\t: fp asimd evtstrm crc32 cpuid asimddp
Model\t\t: Example Board 5 Rev 1.0
"""


def test_a_laptop(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(LAPTOP)
    processor = read_processor(tmp_path / "cpuinfo")
    assert processor.model == "Example Core 5"
    assert processor.features == ("SSE4.2", "AVX", "F16C", "FMA", "AVX2", "AVX-VNNI")


def test_an_arm_board(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(BOARD)
    processor = read_processor(tmp_path / "cpuinfo")
    assert processor.model == "Example Board 5 Rev 1.0"
    assert processor.features == ("NEON", "dotprod")


def test_a_system_without_proc(tmp_path: Path) -> None:
    assert read_processor(tmp_path / "absent").features == ()
