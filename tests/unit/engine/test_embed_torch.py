"""Torch gives the vectors of llama.cpp from the same file, so that both can stand in one library.

Needs torch, which CI installs for it (the CPU build of the extra ``sentence-transformers``).
"""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from edgerag.engine.bulk import BulkEmbedder
from edgerag.engine.catalog import Catalog
from edgerag.engine.embed_torch import Arithmetic, TorchBert, torch_version, why_not
from edgerag.engine.embedder import LlamaEmbedder
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.tuning.embed_trial import PassagePlan, open_torch, run_of, torch_workers
from edgerag.errors import ModelError, ModelWrongKind

REFERENCE = json.loads((Path(__file__).parents[2] / "golden" / "minilm-vectors.json").read_text(encoding="utf-8"))
SENTENCES = [sentence["text"] for sentence in REFERENCE["sentences"]]
needs_torch = pytest.mark.skipif(not torch_version(), reason="torch is not installed")


@pytest.fixture(scope="module")
def header(catalog: Catalog) -> Header:
    return read_header(catalog.find("embedder", "all-minilm-l6-v2").path)


@needs_torch
@pytest.mark.parametrize("arithmetic", ["bf16", "f32"])
@pytest.mark.parametrize(("workers", "threads"), [(1, 2), (2, 1)])
def test_vectors_are_those_of_llama_cpp_and_of_sentence_transformers(
    embedder: LlamaEmbedder, header: Header, arithmetic: Arithmetic, workers: int, threads: int
) -> None:
    run = run_of(PassagePlan("torch", workers, threads, arithmetic), embedder, header)
    vectors = run(SENTENCES)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.min(np.sum(vectors * embedder.embed_passages(SENTENCES), axis=1)) >= 0.999
    expected = np.stack([np.frombuffer(base64.b64decode(s["vector"]), "<f2") for s in REFERENCE["sentences"]])
    expected = expected.astype(np.float32)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.min(np.sum(vectors * expected, axis=1)) >= 0.999


@needs_torch
def test_a_text_has_the_same_vector_in_any_company(embedder: LlamaEmbedder, header: Header) -> None:
    run = run_of(PassagePlan("torch", 1, 2, "bf16"), embedder, header)
    texts = ["pump", "a torque of 12 Nm for the screws of the lid", "word " * 1000]
    alone = np.concatenate([run([text]) for text in texts])
    for company in (SENTENCES, ["x"] * 40):
        together = run([*company, *texts])[len(company) :]
        assert np.min(np.sum(alone * together, axis=1)) >= 0.9999


@needs_torch
def test_many_passages_are_computed_by_torch_under_the_same_identity(embedder: LlamaEmbedder, header: Header) -> None:
    plan = PassagePlan("torch", 2, 1, "bf16")
    opened: list[PassagePlan] = []

    def open_workers(chosen: PassagePlan):  # type: ignore[no-untyped-def]
        opened.append(chosen)
        return torch_workers(chosen, open_torch(chosen, header))

    bulk = BulkEmbedder(embedder, decide=lambda _: plan, open_workers=open_workers, at_once=True)
    vectors = bulk.embed_passages(SENTENCES)
    bulk.close()
    assert opened == [plan] and not bulk.trouble and bulk.identity == embedder.identity
    assert np.min(np.sum(vectors * embedder.embed_passages(SENTENCES), axis=1)) >= 0.999


@needs_torch
def test_a_text_without_a_token_and_no_text_at_all(header: Header) -> None:
    bert = TorchBert(header, arithmetic="f32")
    assert bert.compute([]).shape == (0, 384)
    assert not bert.compute([[], [101, 102]])[0].any()


@needs_torch
def test_a_token_outside_the_vocabulary_is_an_error_of_the_model(header: Header) -> None:
    with pytest.raises(ModelError, match="torch failed to embed"):
        TorchBert(header, arithmetic="f32").compute([[10_000_000]])


def test_what_torch_cannot_compute_is_left_to_llama_cpp(header: Header) -> None:
    assert not why_not(header)
    other = {**header.metadata, "general.architecture": "nomic-bert"}
    assert "nomic-bert" in why_not(dataclasses.replace(header, metadata=other))
    assert "pooling" in why_not(dataclasses.replace(header, metadata={**header.metadata, "bert.pooling_type": 3}))
    name = "blk.5.ffn_down.weight"
    fewer = {key: place for key, place in header.tensors.items() if key != name}
    assert name in why_not(dataclasses.replace(header, tensors=fewer))
    small = dataclasses.replace(header.tensors[name], type_name="Q8_0")
    assert "Q8_0" in why_not(dataclasses.replace(header, tensors={**header.tensors, name: small}))
    with pytest.raises(ModelWrongKind, match="cannot be computed by torch"):
        TorchBert(dataclasses.replace(header, metadata=other), arithmetic="f32")
