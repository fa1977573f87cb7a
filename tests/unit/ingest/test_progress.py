from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgerag.ingest.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_time_left_is_told_from_chunks_and_unread_files() -> None:
    clock = Clock()
    progress = Progress(files_total=10, clock=clock)
    progress.bytes_to_read = 10_000
    assert progress.event("").seconds_left is None
    for _ in range(5):
        progress.file_read(1_000, 20)
    assert progress.event("").seconds_left is None, "nothing was embedded yet"
    clock.now += 4
    progress.batch_embedded(40, pending=60, seconds=4)
    event = progress.event("x")
    assert (event.chunks_done, event.chunks_total, event.chunks_per_second) == (40, 100, 10.0)
    assert event.seconds_left == (60 + 5_000 * 100 / 5_000) / 10


def test_the_rate_follows_the_last_seconds() -> None:
    clock = Clock()
    progress = Progress(files_total=1, clock=clock)
    progress.chunks_pending = 1000
    for _ in range(10):
        clock.now += 1
        progress.batch_embedded(100, pending=500, seconds=1)
    for _ in range(30):
        clock.now += 1
        progress.batch_embedded(10, pending=200, seconds=1)
    assert progress.event("").chunks_per_second == 10.0


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("file"), st.integers(0, 10**6), st.integers(0, 500)),
            st.tuples(st.just("batch"), st.integers(1, 64), st.integers(0, 10**4)),
        ),
        max_size=40,
    ),
    st.integers(0, 10**7),
)
def test_it_never_promises_nonsense(steps: list[tuple[str, int, int]], size: int) -> None:
    clock = Clock()
    progress = Progress(files_total=len(steps), clock=clock)
    progress.bytes_to_read = size
    for kind, first, second in steps:
        clock.now += 0.1
        if kind == "file":
            progress.file_read(first, second)
            progress.files_done += 1
        else:
            progress.batch_embedded(first, pending=second, seconds=0.1)
        event = progress.event("")
        assert 0 <= event.files_done <= event.files_total
        assert 0 <= event.chunks_done <= event.chunks_total
        assert event.chunks_per_second >= 0
        assert event.seconds_left is None or event.seconds_left >= 0
        if progress.chunks_pending:
            assert event.seconds_left != 0, "not done while something is pending"
