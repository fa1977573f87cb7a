"""The embedder gives the vectors of sentence-transformers, whatever the text."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.engine.catalog import Catalog
from edgerag.engine.embedder import LlamaEmbedder, open_embedder
from edgerag.errors import ModelTooLarge, ModelWrongKind, UsageError

GOLDEN = Path(__file__).parents[2] / "golden" / "minilm-vectors.json"
REFERENCE = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("sentence", REFERENCE["sentences"], ids=lambda sentence: ascii(sentence["text"][:20]))
def test_vectors_and_token_counts_are_those_of_sentence_transformers(
    embedder: LlamaEmbedder, sentence: dict[str, Any]
) -> None:
    expected = np.frombuffer(base64.b64decode(sentence["vector"]), "<f2").astype(np.float32)
    vector = embedder.embed_query(sentence["text"])
    assert float(vector @ expected) / float(np.linalg.norm(expected)) >= 0.999
    assert embedder.count_tokens(sentence["text"]) == sentence["token_count"]


def test_identity_is_that_of_the_original_weights(embedder: LlamaEmbedder) -> None:
    assert embedder.identity.weights_sha256 == REFERENCE["weights_sha256"]
    assert embedder.identity.dimension == 384
    assert embedder.identity.languages == ("en",)
    assert embedder.max_tokens == REFERENCE["max_seq_length"] - 2  # without [CLS] and [SEP]


@pytest.mark.parametrize("threads", [1, 2])
def test_between_many_passages_others_are_let_past_and_few_are_computed_at_once(catalog: Catalog, threads: int) -> None:
    calls: list[str] = []
    alone = open_embedder(catalog.find("embedder"), threads=threads)
    try:
        alone.let_past(lambda: calls.append(""))
        alone.embed_passages(["pump", "lid", "screw"])
        assert not calls, "a question compares three texts: it waits for nobody"
        alone.embed_passages(["pump", "lid", "screw", "gasket", "valve", "hose"])
        assert len(calls) >= 6
    finally:
        alone.close()


def test_passages_come_in_order_as_unit_rows(embedder: LlamaEmbedder) -> None:
    texts = ["pump", "a torque of 12 Nm", "word " * 1000]
    vectors = embedder.embed_passages(texts)
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(embedder.embed_query(text), vector, atol=1e-6)


def test_no_passages_give_no_rows(embedder: LlamaEmbedder) -> None:
    assert embedder.embed_passages([]).shape == (0, 384)


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_an_empty_text_is_refused(embedder: LlamaEmbedder, text: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        embedder.embed_query(text)
    with pytest.raises(UsageError, match="empty"):
        embedder.embed_passages(["fine", text])


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=[]), min_size=1, max_size=60))
def test_any_text_gives_a_vector_even_one_with_lone_surrogates(embedder: LlamaEmbedder, text: str) -> None:
    if text.strip():
        assert np.isfinite(embedder.embed_query(text)).all()


def test_names_of_control_tokens_in_a_text_are_text(embedder: LlamaEmbedder) -> None:
    assert embedder.count_tokens("[SEP]") == 3  # "[", "sep", "]"


def test_threads_may_share_it(embedder: LlamaEmbedder) -> None:
    texts = [f"sentence number {n}" for n in range(12)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(embedder.embed_query, texts))
    np.testing.assert_allclose(np.stack(together), embedder.embed_passages(texts), atol=1e-6)


def test_a_question_does_not_wait_for_a_passage(embedder: LlamaEmbedder) -> None:
    before = embedder.embed_query("When does the badger sleep?")
    with embedder._workers[0]._lock, ThreadPoolExecutor(1) as pool:  # as while it computes one
        meanwhile = pool.submit(embedder.embed_query, "When does the badger sleep?").result(timeout=60)
    assert float(before @ meanwhile) > 0.9999


def test_a_chat_model_is_refused_before_it_is_loaded(catalog: Catalog) -> None:
    with pytest.raises(ModelWrongKind, match=r"smollm2.* is a chat model"):
        open_embedder(catalog.find("chat", "smollm2-135m-instruct"), threads=1)


def test_one_too_large_for_memory_is_refused_with_sizes(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgerag.machine.memory.available_bytes", lambda: 40_000_000)
    with pytest.raises(ModelTooLarge, match=r"weights 46 MB.*40 MB are free"):
        open_embedder(catalog.find("embedder", "all-minilm-l6-v2"), threads=1)
