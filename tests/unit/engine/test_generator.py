"""The chat model: same prompt, same answer, however it came about; and it can be stopped."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgerag.engine.catalog import Catalog
from edgerag.engine.generator import WEIGHED_TOKENS, LlamaGenerator, _scope, open_generator, plain_settings
from edgerag.engine.states.store import StateStore
from edgerag.errors import Cancelled, ModelTooLarge, ModelWrongKind, UsageError
from edgerag.types import Generated, Judgement, Message, Passage, Sampling

GREEDY = Sampling(temperature=0, top_p=1, repeat_penalty=1.1, seed=0)
WARM = Sampling(temperature=0.9, top_p=0.95, repeat_penalty=1.1, seed=7)
PROSE = Path(__file__).read_text(encoding="utf-8")  # a text of some length


def never() -> bool:
    return False


def prompt(generator: LlamaGenerator, *parts: str) -> tuple[int, ...]:
    return generator.encode_chat([Message("system", ("Answer in one sentence.",)), Message("user", parts)]).tokens


def answer(generator: LlamaGenerator, tokens: tuple[int, ...], sampling: Sampling = GREEDY, room: int = 24) -> str:
    return "".join(s.text for s in generator.generate(tokens, max_tokens=room, sampling=sampling, cancelled=never))


def test_it_answers(generator: LlamaGenerator) -> None:
    tokens = prompt(generator, "What is the capital of France?")
    first, *steps = generator.generate(tokens, max_tokens=40, sampling=GREEDY, cancelled=never)
    assert first.prefill is not None
    assert first.prefill.kept_tokens + first.prefill.computed_tokens == len(tokens)
    assert "Paris" in "".join(step.text for step in steps)
    assert [step.stop for step in steps[:-1]] == [None] * (len(steps) - 1)
    assert steps[-1].stop == "end"
    assert [step.token_count for step in steps[:-1]] == list(range(1, len(steps)))


def test_each_token_says_what_sampling_decoding_and_its_text_took(generator: LlamaGenerator) -> None:
    tokens = prompt(generator, "Count from one to ten.")
    _, *steps = generator.generate(tokens, max_tokens=12, sampling=GREEDY, cancelled=never)
    timings = [step.timing for step in steps[:-1]]
    assert all(timing is not None and timing.sampling_ns > 0 and timing.detokenise_ns > 0 for timing in timings)
    decoding = [timing.decode_ns for timing in timings if timing is not None]
    assert decoding[0] == 0  # its logits are those of the prompt
    assert sum(decoding) > 0
    assert steps[-1].timing is None  # it ends the answer, and is no token


def test_the_batches_of_a_prompt_are_all_that_was_computed(generator: LlamaGenerator) -> None:
    generator.forget()
    tokens = prompt(generator, PROSE[:2000])
    first, *_ = generator.generate(tokens, max_tokens=1, sampling=GREEDY, cancelled=never)
    assert first.prefill is not None
    batches = first.prefill.batches
    assert sum(batch.tokens for batch in batches) == first.prefill.computed_tokens == len(tokens)
    ends = [batch.start_s + batch.seconds for batch in batches]
    assert all(after.start_s >= end for end, after in zip(ends, batches[1:], strict=False))
    assert ends[-1] <= first.prefill.seconds


def test_how_long_a_prompt_will_take_follows_from_what_is_computed_already(generator: LlamaGenerator) -> None:
    short = generator.encode_chat([Message("user", ("What is the capital of France?",))])
    long = generator.encode_chat([Message("user", ("Say why. " * 100,))])
    answer(generator, long.tokens, room=1)
    expected = generator.reading_s(long), generator.reading_s(short)
    assert expected[0] is not None and expected[1] is not None
    assert 0 < expected[0] < expected[1], "but one token it is there"


def test_it_stops_at_max_tokens(generator: LlamaGenerator) -> None:
    tokens = prompt(generator, "Count from one to a hundred.")
    steps = list(generator.generate(tokens, max_tokens=5, sampling=GREEDY, cancelled=never))
    assert steps[-1] == Generated(text=steps[-1].text, token_count=5, stop="length")


def test_reusing_a_prefix_gives_the_answer_of_a_fresh_context(generator: LlamaGenerator, catalog: Catalog) -> None:
    first = prompt(generator, "What is the capital of France?")
    second = prompt(generator, "What is the capital of Italy?")
    answer(generator, first)
    reused = answer(generator, second)
    fresh = open_generator(
        catalog.find("chat", "smollm2-135m-instruct"), plain_settings(context_tokens=1024, threads=1)
    )
    try:
        assert reused == answer(fresh, second)
    finally:
        fresh.close()


def test_the_same_prompt_again_gives_the_same_answer(generator: LlamaGenerator) -> None:
    tokens = prompt(generator, "Name a fruit.")
    assert answer(generator, tokens) == answer(generator, tokens) == answer(generator, tokens)


def test_the_same_seed_gives_the_same_answer_and_another_seed_another(generator: LlamaGenerator) -> None:
    tokens = prompt(generator, "Tell me a story about the sea.")
    said = answer(generator, tokens, WARM)
    assert answer(generator, tokens, WARM) == said
    others = {answer(generator, tokens, Sampling(0.9, 0.95, 1.1, seed)) for seed in (1, 2, 3)}
    assert others - {said}


def test_a_cancel_during_prefill_ends_it_and_the_context_stays_usable(generator: LlamaGenerator) -> None:
    question = prompt(generator, "What is the capital of France?")
    expected = answer(generator, question)
    long = prompt(generator, PROSE * 9)[:600]  # more than one batch
    asked: list[str] = []

    def second_thought() -> bool:  # no at first, then yes from the thread that watches
        asked.append(threading.current_thread().name)
        return "cancel-watch" in asked

    steps = list(generator.generate(long, max_tokens=5, sampling=GREEDY, cancelled=second_thought))
    assert steps == [Generated(text="", token_count=0, stop="cancelled")]
    assert answer(generator, question) == expected
    assert answer(generator, long, room=3) == answer(generator, long, room=3)


def test_a_cancel_during_the_answer_ends_it(generator: LlamaGenerator) -> None:
    stop = threading.Event()
    steps = []
    tokens = prompt(generator, "Count from one to a hundred.")
    for step in generator.generate(tokens, max_tokens=200, sampling=GREEDY, cancelled=stop.is_set):
        steps.append(step)
        if step.token_count == 3:
            stop.set()
    assert steps[-1].stop == "cancelled"
    assert steps[-1].token_count == 3


def test_leaving_an_answer_half_read_leaves_the_model_usable(generator: LlamaGenerator) -> None:
    tokens = prompt(generator, "What is the capital of France?")
    whole = answer(generator, tokens)
    steps: Iterator[Generated] = generator.generate(tokens, max_tokens=24, sampling=GREEDY, cancelled=never)
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    assert answer(generator, tokens) == whole


def test_a_failing_cancel_check_is_passed_on(generator: LlamaGenerator) -> None:
    def broken() -> bool:
        raise RuntimeError("the window is gone")

    with pytest.raises(RuntimeError, match="the window is gone"):
        list(generator.generate(prompt(generator, "Hello"), max_tokens=5, sampling=GREEDY, cancelled=broken))


def test_characters_of_several_tokens_come_whole(generator: LlamaGenerator) -> None:
    """A run of rockets makes the model go on with rockets; each is three tokens."""
    tokens = tuple(generator._model.tokenize("🚀" * 30))
    _, *steps = generator.generate(tokens, max_tokens=12, sampling=Sampling(0, 1, 1, 0), cancelled=never)
    assert [step.text for step in steps[:6]] == ["", "", "🚀", "", "", "🚀"]


def test_an_answer_cut_inside_a_character_ends_with_the_replacement_character(generator: LlamaGenerator) -> None:
    tokens = tuple(generator._model.tokenize("🚀" * 30))
    _, *steps = generator.generate(tokens, max_tokens=5, sampling=Sampling(0, 1, 1, 0), cancelled=never)
    assert [step.text for step in steps] == ["", "", "🚀", "", "", "\ufffd"]
    assert steps[-1].stop == "length"


def test_a_prompt_that_leaves_no_room_is_refused_with_the_numbers(generator: LlamaGenerator) -> None:
    with pytest.raises(UsageError, match=r"1000 tokens.*answer of 25.*context of 1024"):
        generator.generate((1,) * 1000, max_tokens=25, sampling=GREEDY, cancelled=never)
    with pytest.raises(UsageError, match="0 tokens"):
        generator.generate((), max_tokens=25, sampling=GREEDY, cancelled=never)


def test_the_context_may_be_filled_to_its_last_token(generator: LlamaGenerator) -> None:
    tokens = prompt(generator, PROSE * 9)[:1020]
    steps = list(generator.generate(tokens, max_tokens=4, sampling=GREEDY, cancelled=never))
    assert steps[-1].stop in ("length", "end")


def test_an_embedder_is_refused_before_it_is_loaded(catalog: Catalog) -> None:
    with pytest.raises(ModelWrongKind, match=r"all-minilm.* is an embedder"):
        open_generator(catalog.find("embedder", "all-minilm-l6-v2"), plain_settings(context_tokens=512, threads=1))


def test_one_too_large_for_memory_is_refused_with_sizes(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    model = catalog.find("chat", "smollm2-135m-instruct")
    monkeypatch.setattr("edgerag.machine.memory.available_bytes", lambda: 300_000_000)
    with pytest.raises(
        ModelTooLarge, match=r"weights 145 MB, 8192 tokens of context 189 MB.*300 MB are free"
    ) as caught:
        open_generator(model, plain_settings(context_tokens=100_000, threads=1))  # shrunk to what it was trained for
    assert "generation.context_tokens" in caught.value.remedy


def test_the_context_is_never_longer_than_trained_for(catalog: Catalog) -> None:
    opened = open_generator(
        catalog.find("chat", "smollm2-135m-instruct"), plain_settings(context_tokens=10_000, threads=1)
    )
    try:
        assert opened.context_tokens == 8192
    finally:
        opened.close()


def test_states_are_kept_apart_by_all_that_they_depend_on(catalog: Catalog) -> None:
    model = catalog.find("chat", "smollm2-135m-instruct")
    plain = plain_settings(context_tokens=512, threads=1)
    others = [
        _scope(dataclasses.replace(model, sha256="0" * 64), plain),
        _scope(model, dataclasses.replace(plain, passages="spliced")),
        _scope(model, dataclasses.replace(plain, repack=False)),
        _scope(model, dataclasses.replace(plain, context=dataclasses.replace(plain.context, cache_type="q8_0"))),
        _scope(model, dataclasses.replace(plain, context=dataclasses.replace(plain.context, flash_attention=False))),
    ]
    assert len({_scope(model, plain), *others}) == 6
    longer = dataclasses.replace(plain, context=dataclasses.replace(plain.context, context_tokens=4096, threads=2))
    assert _scope(model, longer) == _scope(model, plain)


def test_drafts_change_no_answer_where_llama_cpp_adds_up_alike(catalog: Catalog) -> None:
    """Up to 512 tokens: beyond, one token alone is added up in another order than several (docs/decisions/028)."""
    settings = plain_settings(context_tokens=512, threads=1)
    texts = []
    for speculation in ("off", "lookup"):
        opened = open_generator(
            catalog.find("chat", "smollm2-135m-instruct"),
            dataclasses.replace(settings, speculation=speculation),  # type: ignore[arg-type]
        )
        try:
            asked = [
                prompt(opened, f"Copy this text word for word: {PROSE[:600]}"),
                prompt(opened, "Tell me of the sea."),
            ]
            texts.append([answer(opened, tokens, Sampling(0, 1, 1, 0), room=48) for tokens in asked])
        finally:
            opened.close()
    assert texts[0] == texts[1]


def weigh(generator: LlamaGenerator, tokens: tuple[int, ...], *words: str) -> float:
    return generator.weigh(tokens, words=words[:1], others=words[1:], cancelled=never).log_odds


def test_what_it_would_say_is_weighed_without_saying_it(generator: LlamaGenerator) -> None:
    tokens = prompt(generator, "What is the capital of France?")
    said = answer(generator, tokens)
    odds = weigh(generator, tokens, said.split()[0], "Bananas")
    assert odds > 3
    assert weigh(generator, tokens, "Bananas", said.split()[0]) == pytest.approx(-odds)
    other = prompt(generator, "What do monkeys eat?")
    assert weigh(generator, other, said.split()[0], "Bananas") != odds
    assert weigh(generator, tokens, said.split()[0], "Bananas") == odds  # whatever the cache held
    assert answer(generator, tokens) == said


def test_words_that_begin_with_the_same_token_cannot_be_weighed(generator: LlamaGenerator) -> None:
    with pytest.raises(ModelWrongKind, match="by one token"):
        weigh(generator, prompt(generator, "Hello"), "yes", "yes")


def test_weighing_is_cancelled_and_refuses_what_does_not_fit(generator: LlamaGenerator) -> None:
    long = prompt(generator, PROSE * 9)[:900]
    with pytest.raises(Cancelled):
        generator.weigh(
            long,
            words=("yes",),
            others=("no",),
            cancelled=lambda: threading.current_thread().name == "cancel-watch",
        )
    with pytest.raises(UsageError, match="does not fit"):
        weigh(generator, prompt(generator, PROSE * 9)[:1024], "yes", "no")


def test_a_passage_that_was_computed_for_another_question_is_restored_exactly(catalog: Catalog, tmp_path: Path) -> None:
    def asked(question: str) -> list[Message]:
        passage = Passage("[1] Pumps\n", "[1] Pumps\n", f"{PROSE[:600]}\n\n", key="doc-1-chunk-0-v1")
        return [Message("system", ("Be short.",)), Message("user", (passage, question))]

    store = StateStore(tmp_path, ram_bytes=100_000_000, disk_bytes=0)
    model = catalog.find("chat", "smollm2-135m-instruct")
    opened = open_generator(model, plain_settings(context_tokens=1024, threads=1), states=store)
    try:

        def judge(question: str) -> Judgement:
            chat = opened.encode_chat(asked(question))
            return opened.weigh(chat.tokens, passages=chat.passages, words=("Yes",), others=("No",), cancelled=never)

        computed = judge("Is it about pumps?")
        judge("Is it about the moon?")
        opened.saved()
        opened.forget()
        restored = judge("Is it about pumps?")
        opened.forget()
        chat = opened.encode_chat(asked("Is it about stars?"))
        first, *_ = opened.generate(chat.tokens, passages=chat.passages, max_tokens=1, sampling=GREEDY, cancelled=never)
        assert first.prefill is not None
        (restore,) = first.prefill.restores
        assert restore.tokens == first.prefill.restored_tokens > 0
        assert restore.size_bytes > 0 and restore.tier == "ram"
        assert (computed.is_whole, restored.is_whole) == (True, False)
        assert restored.log_odds == computed.log_odds
    finally:
        opened.close()


def test_a_text_is_as_likely_as_its_tokens_one_after_the_other(generator: LlamaGenerator) -> None:
    tokens = prompt(generator, "What is the capital of France?")
    text = "The capital of France is Paris."
    expected, reply = 0.0, generator._chat.plain_tokens(text)
    for count, token in enumerate(reply):
        (logits,), _ = generator._logits([*tokens, *reply[:count]], (), never, rows=1)
        row = logits.astype(np.float64)
        expected += row[token] - np.logaddexp.reduce(row)
    found = generator.likelihood(tokens, text, cancelled=never).log_odds
    assert found == pytest.approx(expected, abs=0.5)  # by one batch llama.cpp adds up in another order
    assert generator.likelihood(tokens, "Bananas are yellow.", cancelled=never).log_odds < found - 5
    assert generator.likelihood(tokens, text, cancelled=never).log_odds == found


def test_of_a_long_text_the_beginning_is_judged_and_of_none_nothing(generator: LlamaGenerator) -> None:
    tokens = prompt(generator, "Write something.")
    long = "and so on, " * 100
    first = generator._model.piece  # the text of the first tokens
    cut = b"".join(first(token) for token in generator._chat.plain_tokens(long)[:WEIGHED_TOKENS]).decode()
    found = [generator.likelihood(tokens, text, cancelled=never).log_odds for text in (long, cut, "")]
    assert found[0] == found[1] < 0
    assert found[2] == 0


def test_a_prompt_of_several_batches_keeps_the_rows_together(generator: LlamaGenerator) -> None:
    text = "The end of the test is near."
    for count in (505, 509, 512, 516):  # around the size of a batch
        tokens = prompt(generator, PROSE * 9)[:count]
        assert generator.likelihood(tokens, text, cancelled=never).log_odds < 0
