"""How far an ingest is, told truthfully: what is done, what is known to be left, and how long that takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from edgerag.types import IngestProgress

# The rate is that of the last seconds: it follows the machine without jumping at every batch.
_WINDOW_S = 20.0
# No time is promised before this many chunks were embedded, nor with fewer files read.
_CHUNKS_BEFORE_TELLING = 16
_FILES_BEFORE_TELLING = 3


class Progress:
    """Counts files and chunks. ``clock`` gives seconds and never goes back."""

    def __init__(self, *, files_total: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._started = clock()
        self.files_total = files_total
        self.files_done = 0
        self.chunks_done = 0
        self.chunks_pending = 0  # stored and not embedded yet, those of an earlier run included
        self.bytes_to_read = 0  # of the files not parsed yet
        self._bytes_read = 0
        self._files_read = 0
        self._chunks_read = 0
        self._batches: deque[tuple[float, int, float]] = deque()  # (end, chunks, seconds spent embedding)

    def seconds(self) -> float:
        return self._clock() - self._started

    def file_read(self, size_bytes: int, chunks_to_embed: int) -> None:
        """A file was parsed: what it taught about chunks per byte."""
        self.bytes_to_read = max(0, self.bytes_to_read - size_bytes)
        self._bytes_read += size_bytes
        self._files_read += 1
        self._chunks_read += chunks_to_embed
        self.chunks_pending += chunks_to_embed

    def chunks_known(self, count: int) -> None:
        """Chunks got their vectors from others with the same text."""
        self.chunks_done += count

    def batch_embedded(self, chunks: int, *, pending: int, seconds: float) -> None:
        """A batch was embedded and committed; ``pending`` is what the library says is left."""
        self.chunks_done += chunks
        self.chunks_pending = pending
        now = self._clock()
        self._batches.append((now, chunks, seconds))
        while len(self._batches) > 1 and self._batches[0][0] < now - _WINDOW_S:
            self._batches.popleft()

    def event(self, current: str) -> IngestProgress:
        return IngestProgress(
            files_done=self.files_done,
            files_total=self.files_total,
            chunks_done=self.chunks_done,
            chunks_total=self.chunks_done + self.chunks_pending,
            chunks_per_second=self._rate(),
            seconds_left=self._seconds_left(),
            current=current,
        )

    def _rate(self) -> float:
        seconds = sum(spent for _, _, spent in self._batches)
        return sum(chunks for _, chunks, _ in self._batches) / seconds if seconds > 0 else 0.0

    def _seconds_left(self) -> float | None:
        rate = self._rate()
        if rate <= 0 or self.chunks_done < min(_CHUNKS_BEFORE_TELLING, self.chunks_done + self.chunks_pending):
            return None
        expected = 0.0
        if self.bytes_to_read:
            if self._files_read < _FILES_BEFORE_TELLING or not self._bytes_read:
                return None
            expected = self.bytes_to_read * self._chunks_read / self._bytes_read
        return (self.chunks_pending + expected) / rate
