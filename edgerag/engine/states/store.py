"""Saved states of the KV cache, in memory and on disk: what was computed once need not be computed again.

Memory holds what this process computed, the disk what any process did; a state from there is mapped and not copied.

Promises: a state is given out only where name, scope and tokens all agree, and only whole. Nothing that lies in the
folder, and no disk that is full or refuses, raises: a state that cannot be had is computed again, one that cannot be
written is kept in memory, and :meth:`StateStore.troubles` has one sentence for it. Several threads and several
processes may share a folder.

A deprecated state (its chunk was edited) is kept for readers that were given its key before, and goes first when room
is needed. It is given out like any other: its key holds its tokens, and nobody who starts now asks for it. Dropping
is at once: files are unlinked, memory let go, and other processes let go of theirs at their next call. (A reader that
has a state in its hands keeps it until it is done. Unlinking does not wipe the disk's blocks.)
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgerag.engine.states.disk import DiskTier, is_over
from edgerag.engine.states.format import Facts
from edgerag.engine.states.key import StateKey
from edgerag.engine.states.notice import DropNotice
from edgerag.engine.states.ram import RamTier
from edgerag.engine.states.troubles import Troubles

# So much of the disk stays free for the library's own commits, which matter more.
LEFT_FREE_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class State:
    """A state as it was put."""

    data: memoryview  # read-only; of memory or of a mapped file, good for as long as it is held
    token_count: int
    cost_s: float  # seconds that computing it took
    tier: Literal["ram", "disk"]


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, as drops count it: see :meth:`StateStore.moment`."""

    number: bytes  # of the last drop that any process announced
    own_drops: int


@dataclass(frozen=True, slots=True)
class StatesStatus:
    """What the store holds, and what this process had of it."""

    folder: str
    ram_states: int
    ram_bytes: int
    ram_limit_bytes: int
    disk_states: int
    disk_deprecated: int  # of disk_states
    disk_bytes: int
    disk_limit_bytes: int
    ram_hits: int
    disk_hits: int
    misses: int
    ram_evictions: int
    disk_evictions: int
    last_trouble: str  # empty when there was none


class StateStore:
    def __init__(
        self,
        folder: Path,
        *,
        ram_bytes: int,
        disk_bytes: int,
        left_free_bytes: int = LEFT_FREE_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Makes nothing yet: the folder comes with the first state. Zero bytes turn a tier off."""
        if min(ram_bytes, disk_bytes, left_free_bytes) < 0:
            raise ValueError("a limit below zero")
        self._folder = folder
        self._clock = clock
        self._troubles = Troubles()
        self._ram = RamTier(ram_bytes)
        self._disk = DiskTier(folder, limit_bytes=disk_bytes, left_free_bytes=left_free_bytes, troubles=self._troubles)
        self._notice = DropNotice(folder / "drops")
        self._lock = threading.Lock()  # over memory and counts; never held while a state is read or written
        self._moment = Moment(self._notice.read(), 0)
        self._begun: Moment | None = None
        self._closed = False
        self._ram_hits = self._disk_hits = self._misses = self._ram_evictions = 0

    # ------------------------------------------------------------ states

    def get(self, key: StateKey) -> State | None:
        """The state of exactly that key, or None."""
        now_s = self._clock()
        with self._lock:
            if self._closed:
                return None
            self._now()
            held = self._ram.find(key)
            if held is not None and is_over(held.facts, held.deprecated_s, now_s):
                self._ram.discard(key.name)
                held = None
            if held is not None:
                self._ram.use(held)
                self._ram_hits += 1
        if held is not None:
            self._disk.touch(key, now_s=now_s)
            return State(held.data[:], held.facts.token_count, held.facts.cost_s, "ram")
        found = self._disk.read(key, now_s=now_s)
        with self._lock:
            if found is None:
                self._misses += 1
                return None
            self._disk_hits += 1
        facts, data = found
        return State(data, facts.token_count, facts.cost_s, "disk")

    def has(self, key: StateKey) -> bool:
        """Whether there seems to be a state of that key: nothing of it is read, and it may be found damaged yet."""
        with self._lock:
            if self._closed:
                return False
            held = self._ram.find(key) is not None
        return held or self._disk.has(key)

    def put(
        self,
        key: StateKey,
        data: bytes | bytearray | memoryview,
        *,
        token_count: int,
        cost_s: float,
        labels: frozenset[str] = frozenset(),
        ttl_s: float | None = None,
        since: Moment | None = None,
    ) -> None:
        """Keeps a state in place of all others of its name, in memory and on disk.

        With ``since`` it is not kept if anything was dropped after that moment: it may be of a document that is gone.
        A state that saves less per byte than those that fill a tier is not kept there. ``labels`` serve to drop it.
        Raises ValueError for numbers or labels that can be none.
        """
        if ttl_s is not None and not ttl_s > 0:
            raise ValueError(f"a state that lives for {ttl_s} s")
        now_s = self._clock()
        payload = memoryview(data).cast("B")
        facts = Facts(
            key=key,
            token_count=token_count,
            cost_s=cost_s,
            created_ns=int(now_s * 1e9),
            expires_ns=None if ttl_s is None else int((now_s + ttl_s) * 1e9),
            labels=labels,
        )
        with self._lock:
            moment = self._now()
            if self._closed or (since is not None and since != moment):
                return
        if self._ram.fits(payload.nbytes):
            kept = memoryview(data if isinstance(data, bytes) else bytes(payload))
            with self._lock:
                if self._closed or moment != self._now():
                    return
                self._ram_evictions += self._ram.put(facts, kept)
        else:
            with self._lock:
                self._ram.discard(key.name)
        if self._disk.write(facts, payload, now_s=now_s, wanted=lambda: moment == self.moment()):
            with contextlib.suppress(OSError):  # a drop tries again, and says so
                self._notice.prepare()

    def moment(self) -> Moment:
        """To be taken before the documents are read whose states will be put: see ``since`` of :meth:`put`."""
        with self._lock:
            return self._now()

    def begin(self) -> None:
        """A question begins, and documents are read for it: what is dropped from now on is not kept for it."""
        self._begun = self.moment()

    def begun(self) -> Moment:
        """The moment of the last :meth:`begin`; now, if there was none."""
        return self._begun or self.moment()

    def _now(self) -> Moment:
        """The moment, after letting go of everything in memory if another process dropped something."""
        number = self._notice.read()
        if number != self._moment.number:
            self._ram.discard_where(lambda _: True)
            self._moment = Moment(number, self._moment.own_drops)
        return self._moment

    # ------------------------------------------------------------ the end of states

    def deprecate(self, names: Iterable[str]) -> None:
        """Marks states as those of a text that was edited; one that is so already keeps its time."""
        chosen = frozenset(names)
        if not chosen:
            return
        now_s = self._clock()
        with self._lock:
            self._ram.deprecate(chosen, now_s=now_s)
        self._disk.deprecate(chosen, now_s=now_s)

    def drop(self, names: Iterable[str] = (), *, labels: Iterable[str] = ()) -> bool:
        """Removes states by name, and those that have one of the labels, here and for other processes.

        False if one is still on the disk, because the disk refused; that is one of the :meth:`troubles`.
        """
        chosen, labelled = frozenset(names), frozenset(labels)
        if not chosen and not labelled:
            return True
        with self._lock:
            self._announce_drop()
            self._ram.discard_where(lambda state: state.facts.key.name in chosen or bool(state.facts.labels & labelled))
        return self._disk.drop(chosen, labelled, now_s=self._clock())

    def drop_all(self) -> bool:
        """Removes every state, here and for other processes. False as of :meth:`drop`."""
        with self._lock:
            self._announce_drop()
            self._ram.discard_where(lambda _: True)
        return self._disk.drop_all(now_s=self._clock())

    def _announce_drop(self) -> None:
        before = after = self._moment.number
        try:
            before, after = self._notice.change()
        except FileNotFoundError:
            pass  # no folder, so nobody has put a state
        except OSError as error:
            self._troubles.note(
                "unremovable",
                f"{self._folder} cannot be written: {error.strerror or error}. Another running edgerag may keep states"
                " of removed documents in memory until it ends.",
            )
        if before != self._moment.number:
            self._ram.discard_where(lambda _: True)
        self._moment = Moment(after, self._moment.own_drops + 1)

    def sweep(self) -> int:
        """Removes what expired, what is deprecated for more than 72 hours, what dead writers left, and what is
        over the limit; the number of states. For quiet moments: it reads every header that it has not seen."""
        now_s = self._clock()
        with self._lock:
            removed = self._ram.discard_where(lambda state: is_over(state.facts, state.deprecated_s, now_s))
        return removed + self._disk.sweep(now_s=now_s)

    # ------------------------------------------------------------ itself

    def troubles(self) -> tuple[str, ...]:
        """What went wrong since the last call, in sentences for the user, each kind of trouble once."""
        return self._troubles.take()

    def status(self) -> StatesStatus:
        states, deprecated, used_bytes = self._disk.usage()
        with self._lock:
            return StatesStatus(
                folder=str(self._folder),
                ram_states=len(self._ram),
                ram_bytes=self._ram.used_bytes,
                ram_limit_bytes=self._ram.limit_bytes,
                disk_states=states,
                disk_deprecated=deprecated,
                disk_bytes=used_bytes,
                disk_limit_bytes=self._disk.limit_bytes,
                ram_hits=self._ram_hits,
                disk_hits=self._disk_hits,
                misses=self._misses,
                ram_evictions=self._ram_evictions,
                disk_evictions=self._disk.evictions,
                last_trouble=self._troubles.last,
            )

    def close(self) -> None:
        """Lets go of the memory. Afterwards nothing is found and nothing is kept; closing twice is nothing."""
        with self._lock:
            self._closed = True
            self._ram.discard_where(lambda _: True)
