"""What a machine is told it can run."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest
from gguf_files import gguf_bytes, write

from edgerag.engine.catalog import Catalog
from edgerag.engine.fit import usable
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.recommend import (
    QUANTISATIONS,
    SHAPES,
    WANTED_TOKENS_PER_S,
    Expectation,
    MachineSpeed,
    expect,
    largest,
    read_per_token,
    recommend,
)

LAPTOP = MachineSpeed(threads=4, bytes_per_s=40e9, operations_per_s=400e9, free_bytes=12_000_000_000)
PI = MachineSpeed(threads=4, bytes_per_s=9e9, operations_per_s=60e9, free_bytes=6_500_000_000)


def by_name(expectations: list[Expectation]) -> dict[tuple[str, str], Expectation]:
    return {(expectation.name, expectation.weights): expectation for expectation in expectations}


def test_every_size_and_quantisation_gets_a_verdict_that_its_figures_bear_out() -> None:
    for speed in (LAPTOP, PI):
        found = recommend(speed, context_tokens=2048)
        assert len(found) == len(SHAPES) * len(QUANTISATIONS) == len(by_name(found))
        for expectation in found:
            if expectation.verdict == "too large":
                assert expectation.need.total_bytes > usable(speed.free_bytes)
            else:
                assert expectation.need.total_bytes <= usable(speed.free_bytes)
                fast = expectation.decode_tokens_per_s >= WANTED_TOKENS_PER_S
                assert (expectation.verdict == "fast enough") == fast


def test_a_larger_model_is_never_faster_nor_smaller() -> None:
    found = by_name(recommend(LAPTOP, context_tokens=2048))
    for weights in QUANTISATIONS:
        line = [found[shape.name, weights] for shape in SHAPES]
        for small, large in itertools.pairwise(line):
            assert small.decode_tokens_per_s > large.decode_tokens_per_s
            assert small.prefill_tokens_per_s > large.prefill_tokens_per_s
            assert small.need.total_bytes < large.need.total_bytes


def test_a_laptop_runs_7b_in_4_bits_and_a_small_board_does_not() -> None:
    assert by_name(recommend(LAPTOP, context_tokens=2048))["7B", "Q4_K_M"].verdict == "fast enough"
    assert by_name(recommend(PI, context_tokens=2048))["7B", "Q4_K_M"].verdict == "slow"
    assert by_name(recommend(PI, context_tokens=2048))["1B", "Q4_K_M"].verdict == "fast enough"


def speed_of(machine: MachineSpeed, name: str, weights: str) -> float:
    return by_name(recommend(machine, context_tokens=2048))[name, weights].decode_tokens_per_s


def test_where_memory_is_the_slower_part_only_memory_makes_it_faster() -> None:
    bound = dataclasses.replace(LAPTOP, bytes_per_s=10e9)
    wider, busier = (
        dataclasses.replace(bound, bytes_per_s=20e9),
        dataclasses.replace(bound, operations_per_s=2 * bound.operations_per_s),
    )
    assert 1.9 < speed_of(wider, "14B", "Q8_0") / speed_of(bound, "14B", "Q8_0") <= 2
    assert speed_of(busier, "14B", "Q8_0") == speed_of(bound, "14B", "Q8_0")


def test_where_the_cores_are_the_slower_part_only_they_make_it_faster() -> None:
    bound = dataclasses.replace(LAPTOP, bytes_per_s=400e9, operations_per_s=100e9)
    stronger = dataclasses.replace(bound, operations_per_s=200e9)
    assert 1.8 < speed_of(stronger, "14B", "Q4_0") / speed_of(bound, "14B", "Q4_0") <= 2


def test_the_machine_of_the_fit_is_told_what_was_seen_on_it() -> None:
    """Two cores that read 40 GB/s: tokens per second of llama.cpp on random models, the best of many."""
    fitted = MachineSpeed(threads=2, bytes_per_s=40e9, operations_per_s=245e9, free_bytes=20_000_000_000)
    for name, weights, seen, parameters in (("1B", "Q4_0", 31.7, 1.07e9), ("1B", "Q8_0", 22.4, 1.07e9)):
        expected = speed_of(fitted, name, weights)
        shape = next(shape for shape in SHAPES if shape.name == name)
        assert expected * shape.parameters / parameters == pytest.approx(seen, rel=0.15)


def test_a_longer_context_takes_memory_and_time() -> None:
    short, long = (by_name(recommend(LAPTOP, context_tokens=tokens))["8B", "Q4_K_M"] for tokens in (2048, 32768))
    assert long.need.total_bytes > short.need.total_bytes
    assert long.decode_tokens_per_s < short.decode_tokens_per_s


def test_the_largest_that_is_fast_enough_is_named() -> None:
    found = recommend(PI, context_tokens=2048)
    best = largest(found)
    assert best is not None
    assert best.verdict == "fast enough"
    assert all(e.need.weights_bytes <= best.need.weights_bytes for e in found if e.verdict == "fast enough")
    nothing = dataclasses.replace(PI, free_bytes=100_000_000)
    assert largest(recommend(nothing, context_tokens=2048)) is None


def test_arithmetic_that_was_not_measured_claims_no_prefill() -> None:
    unknown = dataclasses.replace(PI, operations_per_s=0.0)
    assert speed_of(unknown, "1B", "Q4_0") >= speed_of(PI, "1B", "Q4_0")
    assert {e.prefill_tokens_per_s for e in recommend(unknown, context_tokens=2048)} == {0.0}


def test_the_real_model_is_told_from_its_own_header(catalog: Catalog) -> None:
    header = read_header(catalog.find("chat", "smollm2-135m-instruct").path)
    found = expect(header, name="it", weights=header.weight_type, speed=LAPTOP, context_tokens=2048)
    assert found.verdict == "fast enough"
    assert read_per_token(header) == header.size_bytes  # its embedding table gives the output too
    assert 1 / found.decode_tokens_per_s > header.size_bytes / LAPTOP.bytes_per_s  # never faster than memory


def mixture(folder: Path, **keys: object) -> Header:
    metadata = {
        "general.architecture": "qwen3moe",
        "qwen3moe.block_count": 1,
        "qwen3moe.embedding_length": 64,
        "qwen3moe.attention.head_count": 4,
        **{f"qwen3moe.{name}": value for name, value in keys.items()},
    }
    tensors = {
        "token_embd.weight": (64, 100),
        "output.weight": (64, 100),
        "blk.0.ffn_down_exps.weight": (64, 32, 8),
        "blk.0.attn_q.weight": (64, 64),
    }
    return read_header(write(folder / "m.gguf", gguf_bytes(metadata, tensors=tensors)))


def test_of_a_mixture_only_the_experts_in_use_are_read(tmp_path: Path) -> None:
    header = mixture(tmp_path, expert_count=8, expert_used_count=2)
    table, experts = 64 * 100 * 4, 64 * 32 * 8 * 4
    assert (header.table_bytes, header.expert_bytes) == (table, experts)
    assert read_per_token(header) == header.size_bytes - table - experts * 6 // 8


@pytest.mark.parametrize("keys", [{}, {"expert_count": 2, "expert_used_count": 9}, {"expert_count": 0}])
def test_a_mixture_of_odd_numbers_is_read_whole(tmp_path: Path, keys: dict[str, object]) -> None:
    header = mixture(tmp_path, **keys)
    assert read_per_token(header) == header.size_bytes - header.table_bytes
