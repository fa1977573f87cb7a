"""A prompt that is partly restored is the prompt that was computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgerag.engine.catalog import Catalog
from edgerag.engine.encode import ChatEncoder
from edgerag.engine.gguf import read_header
from edgerag.engine.kvcache import SEQUENCES, PromptCache
from edgerag.engine.llama import Context, ContextSettings, Model
from edgerag.engine.states.store import StateStore
from edgerag.errors import Cancelled
from edgerag.types import EncodedChat, Message, Passage, PassageSpan

SETTINGS = ContextSettings(context_tokens=1024, batch_tokens=256, threads=1, sequences=SEQUENCES)
# Longer than the smallest batch: of a shorter one, passages before it would be computed along with it.
LONG_QUESTION = "What is it, and what else is to be known about it before anybody begins? " * 6
NOISE = 0.003  # see assert_close; measured: 0.0011 at most, and 0.01 for another passage
TEXTS = {
    "pump": "The pump of the second circuit is driven by a three-phase motor of 4 kW. Its bearings are greased twice a "
    "year; the grease is named on the plate. Before the pump is opened the circuit is to be emptied.\n\n",
    "valve": "The safety valve opens at 3.2 bar and closes at 2.9 bar. It is tested every spring by turning the red "
    "cap to the left until water comes. A valve that drips afterwards is to be replaced, not tightened.\n\n",
    "filter": "The filter behind the tank holds back grains larger than 50 micrometres. When the pressure before it is "
    "0.4 bar above that behind it, the cartridge is full. Cartridges are kept in the grey cupboard.\n\n",
}


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def model(catalog: Catalog) -> Iterator[Model]:
    opened = Model(catalog.find("chat", "smollm2-135m-instruct").path)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def encoder(model: Model) -> ChatEncoder:
    return ChatEncoder(model, name="test", template=read_header(model.path).chat_template)


@pytest.fixture
def context(model: Model, request: pytest.FixtureRequest) -> Iterator[Context]:
    """With flash attention, as the program runs models; tests of what is bit-equal ask for both."""
    opened = Context(model, dataclasses.replace(SETTINGS, flash_attention=getattr(request, "param", True)))
    yield opened
    opened.close()


with_and_without_flash = pytest.mark.parametrize("context", [True, False], ids=["flash", "plain"], indirect=True)
# That nothing changes without is seen of the first passage; the rest is a sweep.
with_flash_and_once_without = pytest.mark.parametrize(
    "context", [True, pytest.param(False, marks=pytest.mark.long)], ids=["flash", "plain"], indirect=True
)


def store_in(folder: Path) -> StateStore:
    return StateStore(folder, ram_bytes=100_000_000, disk_bytes=100_000_000, left_free_bytes=0)


@pytest.fixture
def cache_of(context: Context, tmp_path: Path) -> Iterator[Callable[..., PromptCache]]:
    made = []

    def make(**options: Any) -> PromptCache:
        made.append(PromptCache(context, store=store_in(tmp_path), scope="0123456789abcdef", **options))
        context.clear()
        return made[-1]

    yield make
    for cache in made:
        cache.close()


def chat_of(encoder: ChatEncoder, *names: str, question: str = LONG_QUESTION) -> EncodedChat:
    passages = [
        Passage(f"[{number}] {name}\n", f"[1] {name}\n", TEXTS[name], f"doc-{name}-chunk-0-v1")
        for number, name in enumerate(names, start=1)
    ]
    return encoder.encode(
        [Message("system", ("Answer from the sources.",)), Message("user", (*passages, f"Question: {question}"))]
    )


def kept_tokens(span: PassageSpan) -> int:
    """What a state of it holds: its header at home, and its text."""
    return span.home_header_tokens + span.end - span.start


COMPUTED: dict[tuple[bool, tuple[int, ...]], np.ndarray] = {}


def computed(context: Context, chat: EncodedChat) -> np.ndarray:
    """The logits after the prompt, with nothing used again: the same in each context that is empty, so once for all."""
    key = context.settings.flash_attention, tuple(chat.tokens)
    if key not in COMPUTED:
        cache = PromptCache(context)
        context.clear()
        cache.fill(chat.tokens, splice=False, cancelled=never)
        COMPUTED[key] = context.logits()
    context.clear()
    return COMPUTED[key]


def assert_close(logits: np.ndarray, expected: np.ndarray) -> None:
    """Equal but for the order in which llama.cpp adds up: cells that lie elsewhere in its memory move the logits by up
    to 1, as a batch of another size does. Another passage moves them further (below)."""
    assert distance(logits, expected) < NOISE


def distance(logits: np.ndarray, expected: np.ndarray) -> float:
    """1 - correlation."""
    return 1.0 - float(np.corrcoef(logits, expected)[0, 1])


def test_the_measure_of_closeness_sees_another_passage(context: Context, encoder: ChatEncoder) -> None:
    expected = computed(context, chat_of(encoder, "valve", "pump"))
    assert distance(computed(context, chat_of(encoder, "filter", "pump")), expected) > NOISE


# ---------------------------------------------------------------- exact


@with_and_without_flash
def test_a_passage_that_was_first_before_is_restored_and_changes_nothing(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache]
) -> None:
    before = chat_of(encoder, "pump", "valve")
    after = chat_of(encoder, "pump", "filter", question="How often are the bearings greased?")
    cache_of().fill(before.tokens, before.passages, splice=False, cancelled=never)
    cache = cache_of()
    expected = computed(context, after)
    context.clear()
    prefill = cache.fill(after.tokens, after.passages, splice=False, cancelled=never)
    length = kept_tokens(after.passages[0])
    assert prefill.restored_tokens == length
    assert prefill.approximate_tokens == 0
    assert prefill.computed_tokens == len(after.tokens) - length
    np.testing.assert_array_equal(context.logits(), expected)


def test_exact_restores_no_passage_behind_another(encoder: ChatEncoder, cache_of: Callable[..., PromptCache]) -> None:
    for name in TEXTS:
        chat = chat_of(encoder, name)
        cache_of().fill(chat.tokens, chat.passages, splice=False, cancelled=never)
    chat = chat_of(encoder, "valve", "pump", "filter")
    prefill = cache_of().fill(chat.tokens, chat.passages, splice=False, cancelled=never)
    assert prefill.restored_tokens == kept_tokens(chat.passages[0])


def test_a_conversation_that_goes_on_computes_only_what_is_new(
    encoder: ChatEncoder, cache_of: Callable[..., PromptCache]
) -> None:
    cache = cache_of()
    first = chat_of(encoder, "pump", "valve")
    cache.fill(first.tokens, first.passages, splice=False, cancelled=never)
    longer = (*first.tokens, *first.tokens[-80:])
    prefill = cache.fill(longer, first.passages, splice=False, cancelled=never)
    assert prefill.kept_tokens == len(first.tokens)
    assert prefill.computed_tokens == 80


@with_flash_and_once_without
def test_a_state_of_other_words_is_not_used(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of an edited chunk may be the same by mistake: its tokens are not."""
    chat = chat_of(encoder, "pump")
    cache_of().fill(chat.tokens, chat.passages, splice=False, cancelled=never)
    monkeypatch.setitem(TEXTS, "pump", TEXTS["pump"].replace("4 kW", "5 kW"))
    edited = chat_of(encoder, "pump")
    expected = computed(context, edited)
    context.clear()
    prefill = cache_of().fill(edited.tokens, edited.passages, splice=False, cancelled=never)
    assert prefill.restored_tokens == 0
    np.testing.assert_array_equal(context.logits(), expected)


def test_a_damaged_state_is_computed_again_and_told_once(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache], tmp_path: Path
) -> None:
    chat = chat_of(encoder, "pump", "valve")
    cache = cache_of()
    cache.fill(chat.tokens, chat.passages, splice=False, cancelled=never)
    cache.close()
    (file,) = tmp_path.rglob("*.kv")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    expected = computed(context, chat)
    again = cache_of()
    prefill = again.fill(chat.tokens, chat.passages, splice=False, cancelled=never)
    assert prefill.restored_tokens == 0
    assert len(prefill.notes) == 1
    np.testing.assert_array_equal(context.logits(), expected)
    more = again.fill(chat_of(encoder, "valve").tokens, splice=False, cancelled=never)
    assert more.notes == ()


def test_a_state_that_the_model_refuses_is_computed(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = chat_of(encoder, "pump", "valve", "filter")
    expected = computed(context, chat)
    for splice in (False, True):
        filled = cache_of()
        filled.fill(chat.tokens, chat.passages, splice=splice, cancelled=never)
        filled.close()
        monkeypatch.setattr(context, "restore", lambda data, sequence: False)
        prefill = cache_of().fill(chat.tokens, chat.passages, splice=splice, cancelled=never)
        monkeypatch.undo()
        assert "computed anew" in prefill.notes[0]
        assert prefill.restored_tokens == 0
        if not splice:
            np.testing.assert_array_equal(context.logits(), expected)


# ---------------------------------------------------------------- spliced


@with_flash_and_once_without
def test_spliced_passages_are_restored_where_they_stand(
    encoder: ChatEncoder, cache_of: Callable[..., PromptCache]
) -> None:
    chat = chat_of(encoder, "valve", "pump", "filter")
    first = cache_of()
    made = first.fill(chat.tokens, chat.passages, splice=True, cancelled=never)
    first.close()
    text_tokens = [span.end - span.start for span in chat.passages]
    assert made.approximate_tokens == sum(text_tokens[1:])
    again = cache_of().fill(chat.tokens, chat.passages, splice=True, cancelled=never)
    assert again.restored_tokens == kept_tokens(chat.passages[0])
    assert again.approximate_tokens == sum(text_tokens[1:])
    assert again.computed_tokens == len(chat.tokens) - kept_tokens(chat.passages[0]) - sum(text_tokens[1:])


@pytest.mark.parametrize("splice", [False, True])
def test_how_much_has_to_be_computed_is_known_before(
    encoder: ChatEncoder, cache_of: Callable[..., PromptCache], splice: bool
) -> None:
    cache = cache_of(link_tokens=8)
    assert cache.seconds_per_token is None
    for names in (("valve", "pump"), ("valve", "pump"), ("pump", "filter"), ("filter",), ("valve", "pump", "filter")):
        chat = chat_of(encoder, *names)
        expected = cache.uncomputed(chat.tokens, chat.passages, splice=splice)
        computed = cache.fill(chat.tokens, chat.passages, splice=splice, cancelled=never).computed_tokens
        # A passage that is computed at home first takes the tokens before it too.
        assert expected == pytest.approx(computed, abs=20)
        cache.saved()
    assert cache.seconds_per_token is not None


def test_link_tokens_are_computed_in_place(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache]
) -> None:
    chat = chat_of(encoder, "valve", "pump", "filter")
    exact = computed(context, chat)
    moved = sum(span.end - span.start for span in chat.passages[1:])
    distances = []
    for link_tokens in (0, 16, 10_000):
        prefill = cache_of(link_tokens=link_tokens).fill(chat.tokens, chat.passages, splice=True, cancelled=never)
        assert prefill.approximate_tokens == (moved - 2 * link_tokens if link_tokens < 20 else 2)
        distances.append(distance(context.logits(), exact))
    assert len(set(distances)) == 3


def test_the_last_passage_may_be_computed_in_place(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache]
) -> None:
    chat = chat_of(encoder, "valve", "pump", "filter")
    prefill = cache_of(recompute="last").fill(chat.tokens, chat.passages, splice=True, cancelled=never)
    assert prefill.approximate_tokens == chat.passages[1].end - chat.passages[1].start
    assert prefill.approximate_spans == ((chat.passages[1].start, chat.passages[1].end),)


@pytest.mark.long
@with_and_without_flash
@pytest.mark.parametrize("link_tokens", [0, 8, 10_000])
def test_the_answer_does_not_depend_on_what_was_saved(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache], link_tokens: int
) -> None:
    chat = chat_of(encoder, "valve", "pump", "filter")
    first = cache_of(link_tokens=link_tokens)
    first.fill(chat.tokens, chat.passages, splice=True, cancelled=never)
    fresh = context.logits()
    first.close()
    again = cache_of(link_tokens=link_tokens)
    again.fill(chat.tokens, chat.passages, splice=True, cancelled=never)
    assert_close(context.logits(), fresh)


@with_flash_and_once_without
def test_splicing_comes_near_to_computing(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache]
) -> None:
    chat = chat_of(encoder, "valve", "pump", "filter", question="At how many bar does the safety valve open?")
    exact = computed(context, chat)
    cache_of(link_tokens=8).fill(chat.tokens, chat.passages, splice=True, cancelled=never)
    spliced = context.logits()
    cosine = float(exact @ spliced / np.linalg.norm(exact) / np.linalg.norm(spliced))
    assert cosine > 0.9
    shifted_wrong = computed(context, chat_of(encoder, "filter", question="Name a fruit."))
    assert cosine > float(exact @ shifted_wrong / np.linalg.norm(exact) / np.linalg.norm(shifted_wrong))


def test_what_is_approximate_is_computed_when_exact_is_wanted(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache]
) -> None:
    chat = chat_of(encoder, "valve", "pump", "filter")
    expected = computed(context, chat)
    cache = cache_of()
    cache.fill(chat.tokens, chat.passages, splice=True, cancelled=never)
    prefill = cache.fill(chat.tokens, chat.passages, splice=False, cancelled=never)
    assert prefill.approximate_tokens == 0
    assert prefill.kept_tokens <= chat.passages[1].start
    assert_close(context.logits(), expected)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.permutations(sorted(TEXTS)).map(lambda names: names[:2]), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_whatever_came_before_the_prompt_is_the_prompt(
    context: Context,
    encoder: ChatEncoder,
    cache_of: Callable[..., PromptCache],
    orders: list[list[str]],
    splice: list[bool],
) -> None:
    cache = cache_of()
    for order, spliced in zip(orders, splice, strict=False):
        chat = chat_of(encoder, *order)
        prefill = cache.fill(chat.tokens, chat.passages, splice=spliced, cancelled=never)
        assert cache.tokens == chat.tokens
        assert context.held() == len(chat.tokens)
        assert prefill.kept_tokens + prefill.restored_tokens + prefill.computed_tokens <= len(chat.tokens) + sum(
            len(span.home) + span.end - span.start for span in chat.passages
        )
    last = chat_of(encoder, "pump", "valve")
    cache.fill(last.tokens, last.passages, splice=False, cancelled=never)
    logits = context.logits()
    assert_close(logits, computed(context, last))


@pytest.mark.parametrize("splice", [True, pytest.param(False, marks=pytest.mark.long)])
def test_every_token_of_a_prompt_is_counted_once(
    encoder: ChatEncoder, cache_of: Callable[..., PromptCache], splice: bool
) -> None:
    orders = (["valve", "pump", "filter"], ["pump", "valve"], ["pump", "filter", "valve"])
    cache = cache_of()
    for order in orders:  # the first time states are made, beside the prompt
        chat = chat_of(encoder, *order)
        cache.fill(chat.tokens, chat.passages, splice=splice, cancelled=never)
    cache.saved()
    for order in orders:
        chat = chat_of(encoder, *order)
        made = cache.fill(chat.tokens, chat.passages, splice=splice, cancelled=never)
        total = made.kept_tokens + made.restored_tokens + made.approximate_tokens + made.computed_tokens
        assert total == len(chat.tokens)


@pytest.mark.parametrize(
    ("names", "recompute"),
    [
        ((), "none"),
        ((), "last"),
        (("pump",), "last"),
        (("pump", "valve"), "none"),
        pytest.param(("pump",), "none", marks=pytest.mark.long),
        pytest.param(("pump", "valve"), "last", marks=pytest.mark.long),
    ],
)
def test_a_prompt_may_have_any_number_of_passages(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache], names: tuple[str, ...], recompute: str
) -> None:
    chat = chat_of(encoder, *names)
    cache = cache_of(recompute=recompute)
    for _ in range(2):  # the second time all is there but the last token
        cache.fill(chat.tokens, chat.passages, splice=True, cancelled=never)
        assert cache.tokens == chat.tokens
        assert context.held() == len(chat.tokens)


def test_what_was_dropped_after_the_question_began_is_not_kept(
    encoder: ChatEncoder, context: Context, tmp_path: Path
) -> None:
    """Its document was removed while the answer was being made."""
    store = store_in(tmp_path)
    cache = PromptCache(context, store=store, scope="0123456789abcdef")
    chat = chat_of(encoder, "pump", "valve")
    store.begin()
    store.drop(labels=["doc-pump"])
    cache.fill(chat.tokens, chat.passages, splice=False, cancelled=never)
    cache.close()
    assert list(tmp_path.rglob("*.kv")) == []


# ---------------------------------------------------------------- cancelling


@pytest.mark.parametrize(
    ("splice", "after"),
    [
        (False, 0),
        (False, 4),
        (True, 2),
        (True, 4),
        pytest.param(True, 0, marks=pytest.mark.long),
        pytest.param(False, 2, marks=pytest.mark.long),
    ],
)
def test_a_cancel_anywhere_leaves_a_cache_that_can_be_used(
    context: Context, encoder: ChatEncoder, cache_of: Callable[..., PromptCache], splice: bool, after: int
) -> None:
    chat = chat_of(encoder, "valve", "pump", "filter")
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    cache = cache_of()
    try:
        cache.fill(chat.tokens, chat.passages, splice=splice, cancelled=cancelled)
    except Cancelled:
        assert len(cache.tokens) < len(chat.tokens)
        assert context.held() == len(cache.tokens)
    cache.fill(chat.tokens, chat.passages, splice=False, cancelled=never)
    logits = context.logits()
    assert_close(logits, computed(context, chat))
