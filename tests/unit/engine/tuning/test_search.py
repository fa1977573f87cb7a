"""The search finds what is fast, whatever the mood of the machine, and stops and goes on as it is told."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tuning_fakes import FIRST, Clock, FakeMeasurer, Kept, all_dimensions, search

from edgerag.engine.tuning.choice import Choice
from edgerag.engine.tuning.paired import Speed, answer_seconds
from edgerag.engine.tuning.record import Measurement, Tuning

SLOW = Speed(100.0, 20.0)


def faster(**factors: float) -> object:
    """A machine where each named value makes everything so many times as fast."""

    def speed_of(choice: Choice) -> Speed:
        factor = 1.0
        for name, value in factors.items():
            field, _, wanted = name.partition("__")
            if str(getattr(choice, field)) == wanted:
                factor *= value
        return Speed(SLOW.prefill_tps * factor, SLOW.decode_tps * factor)

    return speed_of


def machine(**factors: float) -> FakeMeasurer:
    return FakeMeasurer(faster(**factors), Clock())  # type: ignore[arg-type]


def lines(tuning: Tuning, what: str) -> dict[str, Measurement]:
    return {measured.value: measured for measured in tuning.measurements if measured.what == what}


def test_takes_what_is_faster_and_leaves_the_rest() -> None:
    found = search(machine(micro_batch_tokens__256=1.5, cache_type__q8_0=0.5, load_mode__read=1.01))
    assert found.choice == dataclasses.replace(FIRST, micro_batch_tokens=256)
    assert found.finished
    assert lines(found, "micro-batch")["256"].verdict == "taken"
    assert lines(found, "KV cache")["q8_0"].verdict == "refused"
    assert "slower" in lines(found, "KV cache")["q8_0"].why
    assert "chance" in lines(found, "loading")["read"].why  # 1 % is no reason


def test_every_line_says_what_was_tried_against_what_and_why() -> None:
    found = search(machine())
    assert found.measurements[0].what == "as it came"
    for measured in found.measurements[1:]:
        assert measured.value
        assert measured.against
        assert measured.why
        assert measured.gain > 0


def test_dimensions_come_in_order_of_their_gain() -> None:
    order = list(dict.fromkeys(measured.what for measured in search(machine()).measurements))
    assert order == [
        "as it came",
        "weights",
        "flash attention",
        "prefill threads",
        "decode threads",
        "micro-batch",
        "KV cache",
        "loading",
        "repacked weights",
        "waiting threads",
        "lookup",
    ]


def test_micro_batches_are_followed_while_they_win() -> None:
    found = search(machine(micro_batch_tokens__256=1.2, micro_batch_tokens__128=1.5))
    assert found.choice.micro_batch_tokens == 128
    assert "1024" not in lines(found, "micro-batch")  # 512 lost already
    lost = search(machine(micro_batch_tokens__256=0.9, micro_batch_tokens__128=2.0))
    assert "128" not in lines(lost, "micro-batch")  # behind a loser nothing better is expected


def test_a_larger_micro_batch_brings_a_larger_batch() -> None:
    assert search(machine(micro_batch_tokens__1024=1.5)).choice.batch_tokens == 1024


@pytest.mark.parametrize(("perplexity", "taken"), [(20.1, True), (20.3, False)])
def test_faster_weights_must_keep_the_quality(perplexity: float, taken: bool) -> None:
    measurer = machine(weights__one_tuned=1.0)
    measurer.speed_of = lambda choice: Speed(200.0, 40.0) if choice.weights else SLOW
    measurer.perplexity_of = lambda choice: perplexity if choice.weights else 20.0
    found = search(measurer)
    assert (found.choice.weights == "one.tuned-Q8_0.gguf") == taken
    line = lines(found, "weights")["Q8_0"]
    assert line.perplexity == perplexity
    assert f"{perplexity / 20 - 1:+.2%}" in line.why


def test_small_losses_of_quality_do_not_add_up() -> None:
    """Weights cost 0.8 %, a quantised cache the same: both together would cost more than 1 %."""
    measurer = machine()
    measurer.speed_of = lambda choice: Speed(
        100.0 * (2 if choice.weights else 1) * (2 if choice.cache_type == "q8_0" else 1), 20.0
    )
    measurer.perplexity_of = lambda choice: 20 * (1.008 ** (bool(choice.weights) + (choice.cache_type == "q8_0")))
    found = search(measurer)
    assert found.choice.weights
    assert found.choice.cache_type == "f16"
    assert "allowed" in lines(found, "KV cache")["q8_0"].why


def test_quality_is_not_looked_at_for_what_is_slower() -> None:
    measurer = machine(cache_type__q8_0=0.5)
    measurer.perplexity_of = lambda choice: pytest.fail(f"{choice} was read through")  # type: ignore[assignment]
    assert search(measurer).finished


@given(seed=st.integers(0, 10_000), moods=st.floats(0, 0.8))
def test_a_busy_machine_does_not_decide(seed: int, moods: float) -> None:
    """Half of the processor taken away for seconds at a time slows both down alike."""
    measurer = machine(flash_attention__False=0.8, micro_batch_tokens__256=1.25)
    measurer.moods, measurer.error, measurer.seed = moods, 0.02, seed
    found = search(measurer)
    assert found.choice == dataclasses.replace(FIRST, micro_batch_tokens=256)


@given(seed=st.integers(0, 10_000))
def test_noise_alone_changes_nothing_that_costs(seed: int) -> None:
    """All settings are alike: whatever is taken for faster by chance, the speed stays as it is."""
    measurer = machine()
    measurer.error, measurer.seed = 0.1, seed
    found = search(measurer)
    taken = [m for m in found.measurements if m.verdict == "taken" and m.what != "all together"]
    assert len(taken) <= 3


FACTORS = st.floats(0.6, 1.8)


@pytest.mark.long
@given(weights=FACTORS, flash=FACTORS, prefill=FACTORS, decode=FACTORS, micro=FACTORS, cache=FACTORS, load=FACTORS)
def test_ends_near_the_best_of_a_full_sweep(
    weights: float, flash: float, prefill: float, decode: float, micro: float, cache: float, load: float
) -> None:
    """Speeds that are products of their settings; micro-batches with one summit."""

    def speed_of(choice: Choice) -> Speed:
        factor = weights if choice.weights else 1.0
        factor *= 1.0 if choice.flash_attention else flash
        factor *= cache if choice.cache_type == "q8_0" else 1.0
        factor *= load if choice.load_mode == "read" else 1.0
        steps = {128: -2, 256: -1, 512: 0, 1024: 1}[choice.micro_batch_tokens]
        reading = factor * micro**steps * (prefill if choice.prefill_threads == 3 else 1.0)
        writing = factor * (decode if choice.decode_threads == 3 else 1.0)
        return Speed(100 * reading, 20 * writing)

    found = search(FakeMeasurer(speed_of, Clock()))
    options = [
        dimension.options for dimension in all_dimensions() if dimension.what not in ("waiting threads", "lookup")
    ]
    best = min(answer_seconds(speed_of(_within(FIRST, chosen))) for chosen in itertools.product(*options))
    # Each step below 3 % is left; there are seven.
    assert answer_seconds(speed_of(found.choice)) <= best * 1.03**7
    if all(not 0.95 < factor < 1.05 for factor in (weights, flash, prefill, decode, micro, 1 / micro, cache, load)):
        assert answer_seconds(speed_of(found.choice)) <= best * 1.001


def _within(choice: Choice, options: tuple[object, ...]) -> Choice:
    for option in options:
        choice = option.within(choice)  # type: ignore[attr-defined]
    return choice


# ---------------------------------------------------------------- time


def test_ends_when_the_time_is_over_and_says_that_it_is_not_finished() -> None:
    measurer = machine()
    found = search(measurer, seconds=9)
    assert not found.finished
    assert 1 < len(found.measurements) < 6
    assert measurer.clock.now <= 10  # a second is one round
    assert 0 < found.seconds <= 10


def test_goes_on_where_it_was_stopped() -> None:
    factors = {"micro_batch_tokens__256": 1.5, "load_mode__read": 1.2, "flash_attention__False": 1.3}
    whole = search(machine(**factors))
    tuning, pieces = None, 0
    while tuning is None or not tuning.finished:
        tuning = search(machine(**factors), tuning, seconds=8)
        pieces += 1
        assert pieces < 30, "it makes no progress"
    assert pieces > 3
    assert tuning.choice == whole.choice
    assert [(m.what, m.value, m.verdict) for m in tuning.measurements] == [
        (m.what, m.value, m.verdict) for m in whole.measurements
    ]
    assert tuning.seconds > whole.seconds / 2


def test_what_is_finished_is_not_measured_again() -> None:
    done = search(machine(micro_batch_tokens__256=1.5))
    measurer = machine(micro_batch_tokens__256=1.5)
    again = search(measurer, done)
    assert measurer.asked == []
    assert measurer.clock.now == 0
    assert (again.choice, again.measurements, again.finished) == (done.choice, done.measurements, True)


@pytest.mark.parametrize("after", range(0, 40, 3))
def test_cancelled_at_any_point_it_keeps_what_was_measured(after: int) -> None:
    measurer = machine(flash_attention__False=1.5)
    kept = Kept()
    found = search(measurer, cancelled=lambda: measurer.clock.now >= after, kept=kept)
    assert kept.tunings[-1] == found
    if not found.finished:
        assert measurer.clock.now <= after + 2
    whole = search(machine(flash_attention__False=1.5), found)
    assert whole.finished
    assert whole.choice.flash_attention is False


def test_each_measurement_is_kept_as_soon_as_it_is_made() -> None:
    kept = Kept()
    found = search(machine(), kept=kept)
    lengths = [len(tuning.measurements) for tuning in kept.tunings]
    assert sorted(set(lengths)) == list(range(1, len(found.measurements) + 1))


def test_a_stopped_search_keeps_a_choice_that_it_measured() -> None:
    found = search(machine(flash_attention__False=2.0), seconds=12)
    assert not found.finished
    assert found.choice.flash_attention is False


# ---------------------------------------------------------------- what cannot be


def test_what_cannot_be_run_is_told_and_the_rest_goes_on() -> None:
    measurer = machine(load_mode__read=1.5)
    measurer.impossible = lambda choice: bool(choice.weights) or choice.cache_type == "q8_0"
    found = search(measurer)
    assert found.finished
    assert lines(found, "weights")["Q8_0"].verdict == "impossible"
    assert lines(found, "weights")["Q8_0"].why == "It cannot be."
    assert found.choice.load_mode == "read"


def test_threads_are_not_judged_while_others_are_busy() -> None:
    """With neighbours on the cores fewer threads look better than they are."""
    measurer = machine(prefill_threads__3=1.4, decode_threads__3=1.4)
    measurer.busy_cores = 1.0
    found = search(measurer)
    assert found.choice == FIRST
    assert not found.finished
    assert lines(found, "prefill threads")["3"].verdict == "postponed"
    assert "1.0 cores" in lines(found, "prefill threads")["3"].why
    quiet = machine(decode_threads__3=1.4)
    later = search(quiet, found)
    assert later.finished
    assert (later.choice.prefill_threads, later.choice.decode_threads) == (4, 3)
    assert [m for m in later.measurements if m.verdict == "postponed"] == []
    assert {m.what for m in later.measurements if m.what == "weights"} == {"weights"}


def test_a_machine_that_is_never_quiet_is_left_as_planned_in_the_end() -> None:
    tuning = None
    for _ in range(60):
        measurer = machine(decode_threads__3=1.4)
        measurer.busy_cores = 1.0
        tuning = search(measurer, tuning)
        if tuning.finished:
            break
    assert tuning is not None
    assert tuning.finished
    assert tuning.choice == FIRST
    assert "again and again" in lines(tuning, "decode threads")["3"].why


def test_steps_that_were_misled_are_taken_back() -> None:
    """Each step seems to win, all together lose: then nothing is changed."""

    def speed_of(choice: Choice) -> Speed:
        changes = sum((not choice.flash_attention, choice.load_mode == "read"))
        return (SLOW, Speed(130.0, 26.0), Speed(150.0, 30.0))[changes]

    measurer = FakeMeasurer(speed_of, Clock())
    normal = measurer.rounds

    def misled(standing: Choice, candidate: Choice, decides: str) -> object:
        for one in normal(standing, candidate, decides):  # type: ignore[arg-type]
            if standing == FIRST and candidate.load_mode == "read":  # the last one, of all together
                one = dataclasses.replace(one, candidate=Speed(80.0, 16.0))
            yield one

    measurer.rounds = misled  # type: ignore[assignment, method-assign]
    found = search(measurer)
    assert found.finished
    assert found.choice == FIRST
    assert "misled" in found.measurements[-1].why
