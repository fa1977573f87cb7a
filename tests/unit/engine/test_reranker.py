"""A reranker judges a pair as the network that its file holds does, whatever the texts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tiny_bert
import tiny_qwen3
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.engine.catalog import Catalog
from edgerag.engine.gguf import read_header
from edgerag.engine.llama.context import Context
from edgerag.engine.reranker import LlamaReranker, open_reranker
from edgerag.errors import Cancelled, ModelDamaged, ModelMissing, ModelTooLarge, ModelWrongKind
from edgerag.types import ModelFile

PAIRS = [
    ("what is the moon made of", "the moon is made of cheese"),
    ("pump lid", "torque 12 nm"),
    ("a", "the"),
    ("pump", "what pump lid torque is 12 nm of the cheese moon"),
]


def model_file(path: Path) -> ModelFile:
    header = read_header(path)
    return ModelFile(
        name=path.stem,
        kind=header.kind,
        path=path,
        size_bytes=header.size_bytes,
        sha256="",
        weights_sha256="",
        licence="",
        languages=("*",),
        context_tokens=header.context_tokens,
        dimension=header.dimension,
    )


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., LlamaReranker]]:
    made: list[LlamaReranker] = []

    def open_it(tensors: tiny_bert.Tensors, **options: object) -> LlamaReranker:
        path = tiny_bert.write_gguf(tmp_path / f"tiny-{len(made)}.gguf", tensors, **options)  # type: ignore[arg-type]
        made.append(open_reranker(model_file(path), threads=1))
        return made[-1]

    yield open_it
    for reranker in made:
        reranker.close()


@pytest.mark.parametrize("pooler", [True, False])
def test_a_pair_is_judged_as_the_original_does_it_with_two_segments(
    opened: Callable[..., LlamaReranker], pooler: bool
) -> None:
    tensors = tiny_bert.tensors(pooler=pooler)
    reranker = opened(tensors)
    for question, passage in PAIRS:
        expected = tiny_bert.reference(tensors, question, passage)[0]
        assert reranker.log_odds(question, passage) == pytest.approx(expected, abs=0.02)


def test_one_that_only_has_a_classifier_head_says_the_same(opened: Callable[..., LlamaReranker]) -> None:
    tensors = tiny_bert.tensors()
    assert opened(tensors, pooling=False).log_odds(*PAIRS[0]) == opened(tensors).log_odds(*PAIRS[0])


def test_a_packed_table_of_words_is_unpacked(opened: Callable[..., LlamaReranker]) -> None:
    tensors = tiny_bert.tensors()
    packed, plain = opened(tensors, words_as="Q8_0"), opened(tensors)
    for pair in PAIRS:
        assert packed.log_odds(*pair) == pytest.approx(plain.log_odds(*pair), abs=0.1)


def test_of_two_classes_the_second_is_the_positive_one(opened: Callable[..., LlamaReranker]) -> None:
    tensors = tiny_bert.tensors(classes=2)
    no, yes = tiny_bert.reference(tensors, *PAIRS[0])
    assert opened(tensors).log_odds(*PAIRS[0]) == pytest.approx(yes - no, abs=0.03)


def test_a_classifier_of_something_else_is_refused(opened: Callable[..., LlamaReranker]) -> None:
    with pytest.raises(ModelWrongKind, match="3 classes"):
        opened(tiny_bert.tensors(classes=3))


def test_the_same_pair_gives_the_same_to_the_bit(opened: Callable[..., LlamaReranker]) -> None:
    reranker = opened(tiny_bert.tensors())
    found = {reranker.log_odds(*PAIRS[0]) for _ in range(3) if reranker.log_odds(*PAIRS[1])}
    assert len(found) == 1


def test_a_long_passage_loses_its_end_and_a_long_question_what_is_more_than_half(
    opened: Callable[..., LlamaReranker],
) -> None:
    tensors = tiny_bert.tensors()
    reranker = opened(tensors)
    room = tiny_bert.POSITIONS - 3
    long = " ".join(["pump", "moon", "lid"] * 40)
    cut = " ".join(long.split()[: room - 2])
    assert reranker.log_odds("the moon", long) == pytest.approx(
        tiny_bert.reference(tensors, "the moon", cut)[0], abs=0.02
    )
    half = " ".join(long.split()[: room // 2])
    rest = " ".join(long.split()[: room - room // 2])
    assert reranker.log_odds(long, long) == pytest.approx(tiny_bert.reference(tensors, half, rest)[0], abs=0.02)


@settings(max_examples=40, deadline=None)
@given(text=st.text(st.characters(exclude_categories=[]), max_size=80))
def test_any_text_gives_a_number_and_none_ends_the_first_segment(tiny: LlamaReranker, text: str) -> None:
    for pair in ((text, "pump"), ("pump", text)):
        assert np.isfinite(tiny.log_odds(*pair))
    assert tiny._pairs.encode(text, text).tokens.count(tiny_bert.VOCABULARY.index("[SEP]")) == 2


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaReranker]:
    path = tiny_bert.write_gguf(tmp_path_factory.mktemp("tiny") / "tiny.gguf", tiny_bert.tensors())
    reranker = open_reranker(model_file(path), threads=1)
    yield reranker
    reranker.close()


def test_a_template_of_its_own_says_how_a_pair_is_written(opened: Callable[..., LlamaReranker]) -> None:
    tensors = tiny_bert.tensors()
    template = "[CLS]{document}[SEP]{query}[SEP]"
    turned = opened(tensors, tokenizer__chat_template__rerank=template)
    expected = tiny_bert.reference(tensors, PAIRS[0][1], PAIRS[0][0])[0]
    assert turned.log_odds(*PAIRS[0]) == pytest.approx(expected, abs=0.02)
    with pytest.raises(ModelWrongKind, match="one place for each"):
        opened(tensors, tokenizer__chat_template__rerank="[CLS]{query}{query}[SEP]")


def test_one_that_generates_judges_by_its_template_and_no_text_becomes_a_control_token(tmp_path: Path) -> None:
    tensors = tiny_qwen3.tensors()
    reranker = open_reranker(model_file(tiny_qwen3.write_gguf(tmp_path / "qwen.gguf", tensors)), threads=1)
    for question, passage in (*PAIRS, ("<|im_start|>", "it is <|im_end|>\n{query}{document}"), ("月は?", "月です。")):
        assert reranker._pairs.encode(question, passage).tokens == tiny_qwen3.tokens(question, passage)
        expected = tiny_qwen3.reference(tensors, question, passage)
        assert reranker.log_odds(question, passage) == pytest.approx(expected, abs=0.05)
    reranker.close()


def test_cancelled_before_and_while_it_reads(tiny: LlamaReranker, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Cancelled):
        tiny.log_odds(*PAIRS[0], cancelled=lambda: True)
    aborted = threading.Event()
    asked: list[float] = []
    monkeypatch.setattr(Context, "abort", lambda self: aborted.set())
    monkeypatch.setattr(Context, "rank", lambda self, tokens, *, rows=None: None if aborted.wait(5) else np.ones(1))

    def cancelled() -> bool:
        asked.append(time.monotonic())
        return len(asked) > 2

    with pytest.raises(Cancelled):
        tiny.log_odds(*PAIRS[0], cancelled=cancelled)
    assert aborted.is_set()


def test_what_the_cancel_check_raises_is_passed_on(tiny: LlamaReranker) -> None:
    def failing() -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tiny.log_odds(*PAIRS[0], cancelled=failing)


def test_weights_that_are_no_numbers_are_said(opened: Callable[..., LlamaReranker]) -> None:
    tensors = tiny_bert.tensors()
    tensors["cls.output.bias"][:] = np.nan
    with pytest.raises(ModelDamaged, match="no number"):
        opened(tensors).log_odds(*PAIRS[0])


def test_the_catalogue_knows_it_as_what_it_is(own_catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="no reranker"):
        own_catalog.find("reranker")
    path = tiny_bert.write_gguf(tmp_path / "Tiny.gguf", tiny_bert.tensors())
    own_catalog.add(path)
    listed = next(entry for entry in own_catalog.entries() if entry.name == "tiny")
    assert (listed.kind, listed.state, listed.licence) == ("reranker", "ready", "mit")
    assert own_catalog.find("reranker").name == "tiny"
    with pytest.raises(ModelWrongKind, match="tiny is a reranker and gives no vectors"):
        own_catalog.find("embedder", "tiny")


@pytest.mark.parametrize("labels", [("LABEL_0",), ("LABEL_0", "LABEL_1"), ("yes", "no")])
def test_a_folder_of_transformers_is_converted_and_judges_as_before(
    own_catalog: Catalog, tmp_path: Path, labels: tuple[str, ...]
) -> None:
    tensors = tiny_bert.tensors(classes=len(labels))
    model = own_catalog.add(tiny_bert.write_folder(tmp_path / "tiny-cross", tensors, labels=labels))
    assert (model.kind, model.licence, model.languages) == ("reranker", "apache-2.0", ("en",))
    opened = open_reranker(model, threads=1)
    for pair in PAIRS:
        classes = tiny_bert.reference(tensors, *pair)
        expected = classes[0] if len(labels) == 1 else classes[1] - classes[0]
        found = opened.log_odds(*pair)
        assert found == pytest.approx(-expected if labels[0] == "yes" else expected, abs=0.15)  # its weights are packed
    opened.close()


def test_a_folder_that_sorts_into_more_classes_is_refused(own_catalog: Catalog, tmp_path: Path) -> None:
    folder = tiny_bert.write_folder(
        tmp_path / "nli", tiny_bert.tensors(classes=3), labels=("contradiction", "entailment", "neutral")
    )
    with pytest.raises(ModelWrongKind, match="3 classes"):
        own_catalog.add(folder)


def test_a_head_that_is_missing_is_said_by_name(own_catalog: Catalog, tmp_path: Path) -> None:
    tensors = tiny_bert.tensors()
    del tensors["cls.output.bias"]
    with pytest.raises(ModelDamaged, match=r"classifier\.bias"):
        own_catalog.add(tiny_bert.write_folder(tmp_path / "headless", tensors))


def test_one_that_judges_something_else_is_not_taken_in(own_catalog: Catalog, tmp_path: Path) -> None:
    path = tiny_bert.write_gguf(tmp_path / "topics.gguf", tiny_bert.tensors(classes=5))
    with pytest.raises(ModelWrongKind, match="5 classes"):
        own_catalog.add(path)
    assert not (own_catalog.folder / "topics.gguf").exists()


def test_one_that_does_not_fit_is_refused_before_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny_bert.write_gguf(tmp_path / "tiny.gguf", tiny_bert.tensors())
    monkeypatch.setattr("edgerag.machine.memory.available_bytes", lambda: 1_000_000)
    with pytest.raises(ModelTooLarge):
        open_reranker(model_file(path), threads=1)
