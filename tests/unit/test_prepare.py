"""What tools/prepare.py leaves out of llama.cpp where the compiler is older than the processors it is to serve."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).parents[2]
VARIANTS = """\
        if (CMAKE_SYSTEM_NAME MATCHES "Linux")
            ggml_add_cpu_backend_variant(armv8.0_1)
            ggml_add_cpu_backend_variant(armv8.6_2    DOTPROD FP16_VECTOR_ARITHMETIC SVE MATMUL_INT8 SVE2)
            ggml_add_cpu_backend_variant(armv9.2_1    DOTPROD FP16_VECTOR_ARITHMETIC SVE MATMUL_INT8 SME)
            ggml_add_cpu_backend_variant(armv9.2_2    DOTPROD FP16_VECTOR_ARITHMETIC SVE MATMUL_INT8 SVE2 SME)
        endif()
        set(SME_IS_NAMED_ELSEWHERE 1)
"""


@pytest.fixture(scope="module")
def prepare() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prepare", CHECKOUT / "tools" / "prepare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_variants_for_sme_alone_are_left_out(prepare: ModuleType) -> None:
    kept = prepare.without_sme(VARIANTS)
    assert [line for line in VARIANTS.splitlines() if line not in kept.splitlines()] == VARIANTS.splitlines()[3:5]
    assert prepare.without_sme(kept) == kept


def test_a_compiler_is_asked_what_it_knows(
    prepare: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('sme' in sys.argv[1])\n", encoding="utf-8")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    assert not prepare.compiles(prepare.SME)
    assert prepare.compiles("-march=armv8-a")


def test_without_a_compiler_that_is_what_is_said(
    prepare: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(prepare.Missing, match=r"A C\+\+ compiler is missing"):
        prepare.compiles(prepare.SME)
