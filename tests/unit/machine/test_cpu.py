from __future__ import annotations

import platform
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.machine import fixtures

from edgerag.machine.cpu import read_processor

LAPTOP = """processor\t: 0
model name\t: Example Core 5
flags\t\t: fpu sse4_2 avx f16c fma avx2 avx_vnni

processor\t: 1
model name\t: Example Core 5
flags\t\t: fpu sse4_2 avx f16c fma avx2 avx_vnni
"""
SERVER_FLAGS = "sse4_2 avx2 avx512f avx512bw avx512vl avx512vbmi avx512_vnni avx512_bf16 amx_bf16 amx_tile amx_int8"
BOARD = """processor\t: 0
BogoMIPS\t: 108.00
Features\t: fp asimd evtstrm crc32 cpuid asimddp
Model\t\t: Example Board 5 Rev 1.0
"""


def arm(implementer: str, *parts: str, features: str = "fp asimd") -> dict[str, str]:
    core = "Features\t: {0}\nCPU implementer\t: {1}\nCPU part\t: {2}\n"
    return {"proc/cpuinfo": "\n".join(core.format(features, implementer, part) for part in parts)}


def test_a_laptop(tmp_path: Path) -> None:
    processor = read_processor(fixtures.put(tmp_path, {"proc/cpuinfo": LAPTOP}))
    assert processor.model == "Example Core 5"
    assert processor.features == ("SSE4.2", "AVX", "F16C", "FMA", "AVX2", "AVX-VNNI")


def test_a_server(tmp_path: Path) -> None:
    processor = read_processor(fixtures.put(tmp_path, {"proc/cpuinfo": f"flags : {SERVER_FLAGS}"}))
    assert processor.features[2:] == (
        *("AVX-512F", "AVX-512BW", "AVX-512VL", "AVX-512VBMI", "AVX-512VNNI", "AVX-512BF16"),
        *("AMX", "AMX-INT8", "AMX-BF16"),
    )


def test_an_arm_board(tmp_path: Path) -> None:
    processor = read_processor(fixtures.put(tmp_path, {"proc/cpuinfo": BOARD}))
    assert processor.model == "Example Board 5 Rev 1.0"
    assert processor.features == ("NEON", "dotprod")


def test_a_board_is_named_with_its_cores(tmp_path: Path) -> None:
    assert read_processor(fixtures.raspberry_pi_5(tmp_path)).model == "Raspberry Pi 5 Model B Rev 1.0 (Cortex-A76)"


def test_big_and_little_cores_are_named(tmp_path: Path) -> None:
    assert read_processor(fixtures.big_little_board(tmp_path)).model == "Cortex-A55 + Cortex-A76"


@pytest.mark.parametrize(
    ("implementer", "part", "name"),
    [
        ("0x41", "0xd08", "Cortex-A72"),
        ("0x41", "0xd44", "Cortex-X1"),
        ("0x41", "0xd0c", "Neoverse-N1"),
        ("0x41", "0xd40", "Neoverse-V1"),
        ("0x61", "0x023", "Apple M1 Firestorm"),
        ("0x41", "0xfff", "implementer 0x41 part 0xfff"),
    ],
)
def test_arm_cores_by_their_numbers(tmp_path: Path, implementer: str, part: str, name: str) -> None:
    assert read_processor(fixtures.put(tmp_path, arm(implementer, part))).model == name


def test_features_of_an_arm_server(tmp_path: Path) -> None:
    files = arm("0x41", "0xd40", features="fp asimd asimddp sve i8mm bf16 sve2")
    features = read_processor(fixtures.put(tmp_path, files)).features
    assert features == ("NEON", "dotprod", "i8mm", "bf16", "SVE", "SVE2")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(garbage=st.binary(max_size=200))
def test_garbage_is_a_processor_without_features(tmp_path: Path, garbage: bytes) -> None:
    fixtures.put(tmp_path, {"proc/cpuinfo": ""})
    prefix = b"CPU implementer : zz\nCPU part : -\n"
    (tmp_path / "proc/cpuinfo").write_bytes(prefix + garbage)
    assert read_processor(tmp_path).model


def test_a_system_without_proc(tmp_path: Path) -> None:
    assert read_processor(tmp_path / "absent").features == ()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="is about what wheels for x86_64 need")
@pytest.mark.parametrize(
    ("flags", "lacking"),
    [
        ("fpu pni cx16 lahf_lm", ("POPCNT", "SSSE3", "SSE4.1", "SSE4.2")),
        ("fpu pni cx16 lahf_lm ssse3 sse4_1", ("POPCNT", "SSE4.2")),
        ("fpu pni cx16 lahf_lm ssse3 sse4_1 sse4_2 popcnt", ()),
        ("", ()),  # nothing tells
    ],
)
def test_what_packages_need_and_a_processor_lacks(tmp_path: Path, flags: str, lacking: tuple[str, ...]) -> None:
    assert read_processor(fixtures.put(tmp_path, {"proc/cpuinfo": f"flags : {flags}"})).lacking == lacking


def test_this_machine_lacks_nothing() -> None:
    assert read_processor().lacking == ()
