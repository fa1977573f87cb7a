"""Whether a model fits: the decision, what it changes, and advice with numbers that are true."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from gguf_files import gguf_bytes, write

from edgerag.engine.fit import Fit, fit, usable
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.llama import ContextSettings
from edgerag.engine.need import memory_need
from edgerag.errors import ModelTooLarge

GB = 1_000_000_000
ASKED = ContextSettings(context_tokens=8192, batch_tokens=512, threads=1)


@pytest.fixture
def header(tmp_path: Path) -> Header:
    """A llama of 7 billion weights in 4 bits: 4.0 GB, and 1.07 GB for 8192 tokens."""
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": 32,
        "llama.embedding_length": 4096,
        "llama.feed_forward_length": 14336,
        "llama.attention.head_count": 32,
        "llama.attention.head_count_kv": 8,
    }
    read = read_header(write(tmp_path / "seven.gguf", gguf_bytes(metadata)))
    return dataclasses.replace(read, size_bytes=4_041_966_176, parameter_count=7_180_000_000, vocabulary_size=49152)


def with_free(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    monkeypatch.setattr("edgerag.machine.memory.available_bytes", lambda: free_bytes)


def test_what_fits_is_left_as_it_is(header: Header, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 8 * GB)
    found = fit(header, ASKED, when_tight="shrink")
    assert found == Fit(ASKED, memory_need(header, ASKED), usable(8 * GB), note="")


def test_a_context_shrinks_to_the_largest_that_fits(header: Header, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 5 * GB)
    found = fit(header, ASKED, when_tight="shrink")
    assert found.need.total_bytes <= usable(5 * GB)
    larger = dataclasses.replace(ASKED, context_tokens=found.settings.context_tokens + 256)
    assert memory_need(header, larger).total_bytes > usable(5 * GB)
    assert found.note == (
        f"The context is {found.settings.context_tokens} tokens instead of 8192: more does not fit in the "
        "5,000 MB of memory that are free."
    )


def test_a_context_never_shrinks_to_nothing(header: Header, monkeypatch: pytest.MonkeyPatch) -> None:
    least = memory_need(header, dataclasses.replace(ASKED, context_tokens=1024)).total_bytes
    enough = next(free for free in range(4 * GB, 6 * GB, 10_000_000) if usable(free) >= least)
    with_free(monkeypatch, enough)
    assert fit(header, ASKED, when_tight="shrink").settings.context_tokens == 1024
    with_free(monkeypatch, enough - 20_000_000)
    with pytest.raises(ModelTooLarge, match=r"seven\.gguf needs"):
        fit(header, ASKED, when_tight="shrink")


def test_a_context_that_must_not_shrink_is_refused_with_the_one_that_would_fit(
    header: Header, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_free(monkeypatch, 5 * GB)
    with pytest.raises(ModelTooLarge, match=r"weights 4,042 MB, 8192 tokens of context 1,074 MB") as caught:
        fit(header, ASKED, when_tight="refuse")
    advised = re.search(r"generation\.context_tokens to (\d+)", caught.value.remedy)
    assert advised
    assert int(advised[1]) == fit(header, ASKED, when_tight="shrink").settings.context_tokens
    assert "killed" not in caught.value.remedy  # the weights themselves would fit


def test_a_cache_type_is_advised_only_where_it_can_be_chosen_and_helps(
    header: Header, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advice(**choices: object) -> str:
        with pytest.raises(ModelTooLarge) as caught:
            fit(header, ASKED, when_tight="refuse", **choices)  # type: ignore[arg-type]
        return caught.value.remedy

    with_free(monkeypatch, 5 * GB)
    assert "q8_0" not in advice()
    assert "keep the context as q8_0: 4,803 MB in all" not in advice(cache_types=("q8_0",))  # still too much
    with_free(monkeypatch, 5_100_000_000)
    assert re.search(r"keep the context as q8_0: 4,\d{3} MB in all", advice(cache_types=("q8_0", "q4_0")))


def test_weights_too_large_are_told_what_loading_would_mean_and_which_file_would_do(
    header: Header, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_free(monkeypatch, 3_700_000_000)
    with pytest.raises(ModelTooLarge) as caught:
        fit(header, ASKED, when_tight="shrink")
    assert "read its weights from the disk again" in caught.value.remedy
    assert "this model in Q2_K would have about 2,872 MB" in caught.value.remedy
    with_free(monkeypatch, 2 * GB)
    with pytest.raises(ModelTooLarge, match=r"one of 1,\d{3} MB at most; see `edgerag models recommend`"):
        fit(header, ASKED, when_tight="shrink")


def test_hardly_any_memory_is_said_without_nonsense(header: Header, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 10_000_000)
    with pytest.raises(ModelTooLarge, match=r"10 MB are free") as caught:
        fit(header, ASKED, when_tight="shrink")
    assert not re.search(r"-\d", caught.value.remedy)


def test_a_part_of_the_memory_is_never_given_to_a_model() -> None:
    assert usable(0) == usable(60_000_000) == 0
    assert usable(GB) == GB - 64_000_000 - 30_000_000


def test_a_model_without_a_cache_does_not_count_one(header: Header, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 5 * GB)
    found = fit(header, ASKED, when_tight="refuse", keeps_cache=False)
    assert found.need.cache_bytes == 0
