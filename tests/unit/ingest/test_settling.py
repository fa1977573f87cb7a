from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgerag.ingest.settling import Patience, Settling

PATIENCE = Patience(quiet=1.0, gather=3.0, longest=30.0, retry=2.0)


def take(settling: Settling, now: float, *, may: bool = True) -> set[str]:
    return settling.take(now, quiet=lambda _: PATIENCE.quiet, may=lambda _: may)


def test_a_change_is_taken_when_it_rests() -> None:
    settling = Settling(PATIENCE)
    settling.note("a", 10.0)
    assert take(settling, 10.5) == set()
    settling.note("a", 10.8)  # it still grows
    assert take(settling, 11.5) == set()
    assert take(settling, 11.9) == {"a"}
    assert take(settling, 20.0) == set()


def test_changes_wait_for_each_other_but_not_for_long() -> None:
    settling = Settling(PATIENCE)
    settling.note("a", 0.0)
    for tenth in range(60):
        settling.note("log", tenth / 10)
        if tenth < 30:
            assert take(settling, tenth / 10) == set()
    assert take(settling, 6.0) == {"a"}


def test_what_never_rests_is_taken_now_and_then() -> None:
    settling = Settling(PATIENCE)
    taken = 0
    for second in range(2, 102):
        settling.note("log", second / 1)
        taken += len(take(settling, second + 0.1))
    assert taken == 3


def test_what_could_not_be_read_comes_again() -> None:
    settling = Settling(PATIENCE)
    settling.note("a", 0.0)
    assert take(settling, 5.0) == {"a"}
    settling.put_back({"a"}, 5.0)
    settling.note("b", 5.5)
    assert take(settling, 6.9) == set()
    assert take(settling, 7.1) == {"a", "b"}


def test_what_may_not_be_taken_stays() -> None:
    settling = Settling(PATIENCE)
    settling.note("stick/a", 0.0)
    assert take(settling, 5.0, may=False) == set()
    assert take(settling, 6.0) == {"stick/a"}
    settling.note("stick/a", 7.0)
    settling.note("b", 7.0)
    settling.forget(lambda path: path.startswith("stick"))
    assert take(settling, 9.0) == {"b"}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 2)), max_size=60))
def test_no_change_is_lost_and_none_is_taken_in_the_middle(events: list[tuple[str, float]]) -> None:
    settling = Settling(PATIENCE)
    now, last, open_changes = 0.0, dict.fromkeys("abc", -100.0), set[str]()
    for path, pause in events:
        now += pause
        for taken in take(settling, now):
            assert now - last[taken] >= PATIENCE.quiet or now >= PATIENCE.longest
            open_changes.discard(taken)
        settling.note(path, now)
        last[path] = now
        open_changes.add(path)
    assert take(settling, now + PATIENCE.longest) == open_changes
