"""The parts of ``bench ingest`` that need no measured process."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path

import pytest

from edgerag.engine.catalog import Catalog
from edgerag.errors import EdgeragError, UsageError
from edgerag.measure.ingest import QUICK, bench_ingest, drawn
from edgerag.measure.talk import Talk
from edgerag.ui.bench_command import ingest_text

FIGURES = {
    "embedder": "mini",
    "backend": "torch bf16, 2 x 1 threads",
    "passages_per_s": 110.4,
    "llama_passages_per_s": 60.2,
    "baseline_passages_per_s": None,
    "ratio": None,
    "llama_ratio": None,
    "overhead_share": 0.0379,
    "files_per_s_unchanged": 24_000.4,
    "peak_rss_bytes": 508_000_000,
    "failed": 0,
    "files": 112,
    "notes": ["There is no baseline: sentence-transformers is not installed."],
}


def test_the_same_passages_are_drawn_each_time() -> None:
    passages = [str(number) for number in range(500)]
    assert drawn(passages, 128) == drawn(passages, 128) and len(set(drawn(passages, 128))) == 128
    assert sorted(drawn(passages[:5], 128)) == passages[:5]


def test_for_people_what_was_not_measured_is_left_out_and_said() -> None:
    text = ingest_text(FIGURES)
    assert "110/s" in text and "3.8%" in text and "24,000/s" in text and "508.0 MB" in text
    assert "times as fast" not in text and "no baseline" in text and "failed" not in text
    compared = {**FIGURES, "baseline_passages_per_s": 31.0, "ratio": 3.561, "llama_ratio": 1.94, "failed": 2}
    text = ingest_text(compared)
    assert "3.56" in text and "1.94" in text and "2 of 112 files failed" in text


def test_a_measured_process_that_fails_says_at_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGERAG_HOME", str(tmp_path))
    with Talk("edgerag.measure.ingest_child") as child:
        with pytest.raises(EdgeragError, match=r"'load'.*no embedder"):
            child.ask("load", "llama.cpp")
        with pytest.raises(EdgeragError, match="ended with code"):
            child.ask("nothing of that name")


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed")
def test_a_reference_of_other_weights_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    model = dataclasses.replace(catalog.find("embedder", "all-minilm-l6-v2"), weights_sha256="0" * 64)
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(UsageError, match="other weights"):
        bench_ingest(tmp_path, model=model, effort=QUICK, reference=tmp_path)
