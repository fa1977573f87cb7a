"""The embedder of an ingest changes over when passages are many, and goes back when that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from edgerag.engine.bulk import MANY_PASSAGES, BulkEmbedder
from edgerag.engine.embedder import LlamaEmbedder
from edgerag.engine.passages import Tokens, Workers
from edgerag.engine.tuning.embed_trial import TRIED_PASSAGES, PassagePlan
from edgerag.errors import EngineUnavailable, ModelError, UsageError

if TYPE_CHECKING:
    from edgerag.types import Vectors

LLAMA, TORCH = PassagePlan("llama.cpp", 2, 1), PassagePlan("torch", 1, 1, "f32")


class Marked:
    """A backend whose vectors are told from llama.cpp's at sight."""

    def __init__(self, *, works_for: int = 1_000_000) -> None:
        self._left = works_for

    def compute(self, texts: Sequence[Tokens]) -> Vectors:
        if self._left < len(texts):
            raise ModelError("There is no memory left.")
        self._left -= len(texts)
        vectors = np.zeros((len(texts), 384), dtype=np.float32)
        vectors[:, 0] = 5
        return vectors


def is_marked(vectors: Vectors) -> bool:
    return bool((vectors[:, 0] == 1).all())


class Chooser:
    def __init__(self, plan: PassagePlan) -> None:
        self.plan = plan
        self.asked_with: list[list[str]] = []

    def __call__(self, passages: Sequence[str]) -> PassagePlan:
        self.asked_with.append(list(passages))
        return self.plan


def test_few_passages_are_embedded_as_ever_and_nothing_is_decided(embedder: LlamaEmbedder) -> None:
    choose = Chooser(TORCH)
    bulk = BulkEmbedder(embedder, decide=choose, open_workers=lambda _: Workers([Marked()], batch_tokens=0))
    texts = ["pump", "lid", "screw"]
    np.testing.assert_allclose(bulk.embed_passages(texts), embedder.embed_passages(texts), atol=1e-6)
    assert not choose.asked_with
    bulk.close()


def test_many_passages_change_over_once_with_passages_of_their_own_to_try(embedder: LlamaEmbedder) -> None:
    choose = Chooser(TORCH)
    bulk = BulkEmbedder(embedder, decide=choose, open_workers=lambda _: Workers([Marked()], batch_tokens=0))
    changed_at = None
    for start in range(0, MANY_PASSAGES + 150, 50):
        texts = [f"number {number}" for number in range(start, start + 50)]
        if is_marked(bulk.embed_passages(texts)) and changed_at is None:
            changed_at = start
    assert changed_at == MANY_PASSAGES
    assert len(choose.asked_with) == 1 and len(choose.asked_with[0]) == TRIED_PASSAGES
    assert not is_marked(bulk.embed_query("pump")[None, :]), "a question is llama.cpp's"
    bulk.close()
    np.testing.assert_allclose(np.linalg.norm(embedder.embed_passages(["pump"] * 9), axis=1), 1, atol=1e-5)


def test_a_backend_that_cannot_be_opened_or_fails_later_leaves_llama_cpp(embedder: LlamaEmbedder) -> None:
    def refuse(_: PassagePlan) -> Workers:
        raise EngineUnavailable("torch is not usable: it is broken.")

    bulk = BulkEmbedder(embedder, decide=Chooser(TORCH), open_workers=refuse, at_once=True)
    assert not is_marked(bulk.embed_passages(["pump"]))
    assert "broken" in bulk.trouble

    failing = BulkEmbedder(
        embedder,
        decide=Chooser(TORCH),
        open_workers=lambda _: Workers([Marked(works_for=2)], batch_tokens=0),
        at_once=True,
    )
    assert is_marked(failing.embed_passages(["pump", "lid"]))
    assert not is_marked(failing.embed_passages(["pump", "lid"])) and "no memory left" in failing.trouble
    assert not is_marked(failing.embed_passages(["screw"])), "it stays so"


def test_an_empty_passage_is_refused_whoever_computes(embedder: LlamaEmbedder) -> None:
    bulk = BulkEmbedder(
        embedder, decide=Chooser(TORCH), open_workers=lambda _: Workers([Marked()], batch_tokens=0), at_once=True
    )
    with pytest.raises(UsageError, match="empty"):
        bulk.embed_passages(["pump", " "])
    bulk.close()


def test_llama_cpp_in_another_shape_gives_the_same_vectors(embedder: LlamaEmbedder) -> None:
    texts = [f"{'long ' * (number % 7)} sentence number {number}" for number in range(24)]
    found = []
    for workers in (1, 2):
        plan = PassagePlan("llama.cpp", workers, 1)
        bulk = BulkEmbedder(
            embedder, decide=Chooser(plan), open_workers=lambda _: pytest.fail("no other"), at_once=True
        )
        found.append(bulk.embed_passages(texts))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
