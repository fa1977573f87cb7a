"""Keeps the mapped index inside ``memory.budget``: knows what is resident, block by block, and lets the coldest go.

What counts is this process's resident pages (machine/pages.py). What the kernel's page cache holds of the files
is shared, can be reclaimed at any time, is not freed by a release, and is reported apart.

A search announces the blocks it will walk through (:meth:`Residency.admit`). While all that was admitted fits the
budget, nothing is measured: pages outside admitted blocks are never touched, so the sum of the admitted blocks
is the most that can be resident. Where even the narrowest walk does not quite fit, walks are made in slices, and each
slice is measured (:meth:`Residency.settle`); where by far it does not, without the mapping. Decisions 013 and 016 have
the figures.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgerag.index.hnsw.blockmap import WHOLE, BlockMap
from edgerag.machine import pages
from edgerag.machine.pages import WINDOW_BYTES
from edgerag.machine.pressure import Level, Pressure, read_pressure

__all__ = ["WINDOW_BYTES", "BlockMap", "Heat", "Release", "Residency"]

# Released down to this share of the budget: what is left is the room for the next slice.
_TARGET_SHARE = 3 / 4
# Below this share of what a walk needs, slices release and read again what every few steps need: reading each row from
# the file, which makes nothing resident, is faster then.
_SLICED_SHARE = 9 / 10
# Pressure changes in seconds; reading it takes half a millisecond.
_LOOK_S = 1.0
# What was given back is not taken again before pressure has been away for so long, or it would come back.
_CALM_S = 30.0
_RELIEF_S = 10.0  # while pressure lasts, relieved again after so long
# Under pressure what was used this recently stays.
_IDLE_S = 10.0
# The part of the budget that may be used while memory is short.
_SHARES = {Level.CALM: 1.0, Level.SOFT: 3 / 4, Level.HARD: 1 / 2}


@dataclass(frozen=True, slots=True)
class Release:
    """What a release did. The first can be large and the second 0: then bytes moved, and none were freed."""

    released_bytes: int  # no longer resident in this process
    freed_bytes: int  # no longer in the page cache either: free memory


@dataclass(frozen=True, slots=True)
class Heat:
    """(block count,) arrays: how hot the blocks of a map are."""

    resident_bytes: NDArray[np.int64]  # mapped in this process
    cached_bytes: NDArray[np.int64]  # in the page cache, for this process or not
    hits: NDArray[np.int64]  # rows read, since the map was opened
    idle_s: NDArray[np.float64]  # since the last search that read there; since opening if none did


class Residency:
    """The resident bytes of all mapped segments under one budget. One for a session; shared by its threads."""

    def __init__(
        self,
        budget_bytes: int,
        *,
        pagemap: Path = Path("/proc/self/pagemap"),
        pressure: Callable[[], Pressure] = read_pressure,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``pressure`` is asked at most once a second; ``clock`` counts seconds."""
        self.budget_bytes = budget_bytes
        self._table = pages.PageTable(pagemap)
        self.limitation = self._table.limitation  # why nothing is enforced here; empty when it is
        self._pressure = pressure
        self._clock = clock
        self._lock = threading.RLock()
        self._maps: list[BlockMap] = []
        self._walk = WHOLE
        self._hot_bytes = 0  # of the walk, over all maps
        self._short = False
        self._searches = 0
        self._next_look = clock() + _LOOK_S
        self._calm_at = 0.0  # pressure counts as passed from then on
        self._next_relief = 0.0
        self._strays = False  # blocks were released that a walk going on may have read again
        self.level = Level.CALM
        self.reason = ""  # of the level, for people
        self.released_bytes = 0  # left this process, in all
        self.freed_bytes = 0  # left the page cache too, in all

    def add(self, blocks: BlockMap, demand: Mapping[str, int] | None = None) -> None:
        """``demand``: the ways to walk this file and their hot bytes; without it, all of the file is hot."""
        with self._lock:
            blocks.begin(demand or blocks.demand, searches=self._searches, now=self._clock())
            self._maps.append(blocks)
            self._choose()

    def remove(self, blocks: BlockMap) -> None:
        """To be called before the file is unmapped."""
        with self._lock:
            self._maps.remove(blocks)
            self._choose()

    def walk(self) -> str:
        """The widest walk whose hot bytes, summed over all maps, fit the budget; the narrowest if none does.

        It depends on the maps and the budget alone, not on pressure or order: the same library gets the
        same answers. A map that does not name this walk counts with its own narrowest, and is walked so.
        """
        return self._walk

    @property
    def hot_bytes(self) -> int:
        """What the walk needs resident to run at full speed."""
        return self._hot_bytes

    @property
    def allowed_bytes(self) -> int:
        """The budget, or the part of it that may be used while memory is short."""
        return int(self.budget_bytes * _SHARES[self.level])

    @property
    def is_short(self) -> bool:
        """Whether walks are to be made in slices: what they need does not fit, and the budget can be kept."""
        return self._short

    @property
    def is_far_short(self) -> bool:
        """Whether walks are rather to be made without the mapping, row by row."""
        return self._short and self.allowed_bytes < _SLICED_SHARE * self._hot_bytes

    def _choose(self) -> None:
        names = {name for blocks in self._maps for name in blocks.demand}
        totals = {}
        for name in names:
            per_file: dict[tuple[int, int], int] = {}
            for blocks in self._maps:
                per_file[blocks.file] = max(per_file.get(blocks.file, 0), blocks.demand_of(name))
            totals[name] = sum(per_file.values())
        widest_first = sorted(totals, key=lambda name: (-totals[name], name))
        fitting = [name for name in widest_first if totals[name] <= self.budget_bytes]
        self._walk = next(iter(fitting or widest_first[-1:]), WHOLE)
        self._hot_bytes = totals.get(self._walk, 0)
        self._set_level(self.level)

    def _set_level(self, level: Level) -> None:
        self.level = level
        self._short = not self.limitation and self._hot_bytes > self.allowed_bytes

    def admit(self, blocks: BlockMap, numbers: tuple[int, ...] | range) -> int | None:
        """To be called before a walk through these blocks: makes room, and brings in what is missing.

        None: the walk may go where it likes in these blocks. A number: it is to be made in slices, the
        first of which may bring in so many bytes; :meth:`settle` gives the number for the next.
        ``numbers`` is best the same object each time: then this costs about a microsecond.
        """
        now = self._clock()
        with self._lock:
            self._searches += 1
            blocks.searched_at = now
            if now >= self._next_look:
                self.look()
            if (numbers is blocks.ready and not self._short) or self.limitation:
                return None
            wanted = list(numbers)
            blocks.reachable[wanted] = True
            missing = [number for number in wanted if not blocks.admitted[number]]
            if not self._short and (not missing or self._make_room(blocks, frozenset(wanted), missing)):
                self._bring(blocks, missing)
                blocks.ready = numbers
                return None
            if sum(int(each.sizes[list(each.pinned)].sum()) for each in self._maps) <= self.allowed_bytes // 2:
                self._bring(blocks, [number for number in missing if number in blocks.pinned])
            self._strays = True  # what the slices read is not admitted
            return self.settle()

    def _make_room(self, blocks: BlockMap, wanted: frozenset[int], missing: list[int]) -> bool:
        """Releases the coldest blocks, none of ``wanted``, until the missing ones fit; False if they cannot."""
        # An admitted block counts in full; of others counts what a walk has read after their release.
        held = {
            id(each): np.maximum(each.sizes * each.admitted, each.per_block(self._present(each))) for each in self._maps
        }
        held[id(blocks)][missing] = blocks.sizes[missing]
        excess = sum(int(sizes.sum()) for sizes in held.values()) - self.allowed_bytes
        for each, number in self._coldest(held):
            if excess <= 0:
                break
            if each is not blocks or number not in wanted:
                self._release(each, number, int(held[id(each)][number]))
                excess -= int(held[id(each)][number])
        return excess <= 0

    def _bring(self, blocks: BlockMap, numbers: Sequence[int]) -> None:
        for number in numbers:
            # Under pressure what is read comes in, and nothing more.
            blocks.bring(number, eagerly=self.level is Level.CALM)
            blocks.admitted[number] = True

    def settle(self) -> int:
        """Measures; if the budget is used up, releases the coldest down to a target. For use between slices.

        Returns the bytes that the next slice may bring in. With several walks at once the budget can
        be exceeded by one such room for each but the first.
        """
        with self._lock:
            if self.limitation or not (self._short or self._strays):
                return max(int(self.budget_bytes * (1 - _TARGET_SHARE)), WINDOW_BYTES)
            target = int(self.allowed_bytes * _TARGET_SHARE)
            # Not after every slice: only once half of the room is used up.
            resident_bytes = self._trim((self.allowed_bytes + target) // 2, target)
            return max(self.allowed_bytes - resident_bytes, WINDOW_BYTES)

    def _trim(self, most: int, target: int) -> int:
        """Measures; releases the coldest down to ``target`` if more than ``most`` is resident. Returns what is left."""
        for partly in (True, False):
            total, held = self._measure()
            if total <= most:
                break
            for each, number in self._coldest(held):
                if total <= target:
                    break
                size = int(held[id(each)][number])
                going = min(size, total - target) if partly else size
                self._release(each, number, going, share=going / size)
                total -= going
        else:
            total, held = self._measure()
        return total

    def _measure(self) -> tuple[int, dict[int, NDArray[np.int64]]]:
        """Resident bytes of all maps, and of their blocks; notes what is absent of each window."""
        held = {}
        for blocks in self._maps:
            stretches = self._present(blocks)
            blocks.note_absent(stretches)
            held[id(blocks)] = blocks.per_block(stretches)
        return sum(int(sizes.sum()) for sizes in held.values()), held

    def _coldest(self, held: Mapping[int, NDArray[np.int64]]) -> list[tuple[BlockMap, int]]:
        """Blocks that hold something and may go, least heat per byte first; of equal ones, the longest unused."""
        order = []
        for index, blocks in enumerate(self._maps):
            density = blocks.heat(self._searches) / np.maximum(blocks.sizes, 1)
            order += [
                (float(density[number]), float(blocks.last_use[number]), index, number)
                for number in np.flatnonzero(held[id(blocks)]).tolist()
                if number not in blocks.pinned
            ]
        return [(self._maps[index], number) for _, _, index, number in sorted(order)]

    def _release(self, blocks: BlockMap, number: int, size: int, *, share: float = 1.0) -> None:
        blocks.release(number, share=share)
        self.released_bytes += size
        self._strays = True  # a walk going on in another thread may read it again

    def look(self) -> None:
        """Looks at memory pressure if a second has passed since the last time, and relieves it.

        Called by every admission; a program that is idle but shows itself calls it each second.
        """
        with self._lock:
            now = self._clock()
            if now < self._next_look or self.limitation:
                return
            self._next_look = now + _LOOK_S
            if self._strays and not self._short:
                self._trim(self.allowed_bytes, self.allowed_bytes)
                _, held = self._measure()
                self._strays = any(held[id(each)][~each.admitted].any() for each in self._maps)
            pressure = self._pressure()
            if pressure.level is not Level.CALM:
                self._calm_at = now + _CALM_S
            if pressure.level > self.level or (pressure.level is not Level.CALM and now >= self._next_relief):
                self.reason = pressure.reason
                self.relieve(max(pressure.level, self.level))
            elif self.level is not Level.CALM and now >= self._calm_at:
                self.reason = ""
                self._set_level(Level.CALM)

    def relieve(self, level: Level) -> Release:
        """Gives back what memory pressure of this level asks for, and keeps to less until it has passed.

        Soft: blocks not used for ten seconds, and the coldest down to the allowed share, leave this process.
        Hard: less is allowed, and the page cache of every block that is not in use is dropped as well.
        Answers are the same at each level; walks may have to be made in slices.
        """
        with self._lock:
            self._set_level(level)
            if self.limitation or level is Level.CALM:
                return Release(0, 0)
            now = self._clock()
            self._next_relief, self._calm_at = now + _RELIEF_S, now + _CALM_S
            released = self.released_bytes
            _, held = self._measure()
            for each, number in self._coldest(held):
                if now - each.last_use[number] >= _IDLE_S:
                    self._release(each, number, int(held[id(each)][number]))
            self._trim(self.allowed_bytes, self.allowed_bytes)
            freed = self._drop_caches() if level is Level.HARD else 0
            self.freed_bytes += freed
            return Release(self.released_bytes - released, freed)

    def _drop_caches(self) -> int:
        """Drops the page cache of all blocks that are not resident; returns the bytes that are free now.

        MADV_DONTNEED and then posix_fadvise, not MADV_PAGEOUT: as fast, and it works on files of other
        users too, where PAGEOUT reports success and does nothing (decision 016).
        """
        freed = 0
        for blocks in self._maps:
            if blocks.descriptor < 0:
                continue
            idle = np.flatnonzero(blocks.per_block(blocks.present(self._table, everything=True)) == 0)
            before = int(self._cached(blocks).sum())
            for number in idle.tolist():
                pages.drop_cache(blocks.descriptor, int(blocks.starts[number]), int(blocks.sizes[number]))
            freed += max(0, before - int(self._cached(blocks).sum()))
        return freed

    def heat(self, blocks: BlockMap) -> Heat:
        """How hot each block of the file is, through all its maps: a program may look through one and search through
        another. Takes up to 25 ms per gigabyte; a screen may ask each second."""
        with self._lock:
            self.look()
            maps = [each for each in self._maps if each.file == blocks.file]
            for each in maps:
                each.heat(self._searches)  # brings last_use up to date
            hits = np.sum([each.hits for each in maps], axis=0)
            idle = np.maximum(0.0, self._clock() - np.max([each.last_use for each in maps], axis=0))
            resident = np.sum([self.block_resident_bytes(each) for each in maps], axis=0)
        # Outside the lock, because mincore takes up to 20 ms per gigabyte that is cached and not mapped.
        return Heat(resident, self._cached(blocks), hits, idle)

    def resident_bytes(self) -> int:
        """Pages of the mapped files that are in this process; 0 where it cannot be measured."""
        with self._lock:
            return sum(map(self._map_resident_bytes, self._maps))

    def file_resident_bytes(self, blocks: BlockMap) -> int:
        """As :meth:`resident_bytes`, of one file, through all its maps."""
        with self._lock:
            return sum(self._map_resident_bytes(each) for each in self._maps if each.file == blocks.file)

    def _map_resident_bytes(self, blocks: BlockMap) -> int:
        stretches = blocks.present(self._table, everything=True)
        return int((stretches[:, 1] - stretches[:, 0]).sum())

    def block_resident_bytes(self, blocks: BlockMap) -> NDArray[np.int64]:
        """(block count,) resident bytes of each block of a file."""
        with self._lock:
            return blocks.per_block(blocks.present(self._table, everything=True))

    def page_cache_bytes(self) -> int:
        """What the kernel holds of the blocks, in this process or not; 0 where it cannot be told."""
        with self._lock:
            return sum(int(self._cached(blocks).sum()) for blocks in self._maps)

    def _cached(self, blocks: BlockMap) -> NDArray[np.int64]:
        """(block count,). Where the kernel does not tell this user, what is resident: that is cached for sure."""
        if blocks.descriptor >= 0 and not pages.is_cache_told(blocks.descriptor):
            return self.block_resident_bytes(blocks)
        return blocks.per_block(pages.cached(blocks.address, blocks.size_bytes))

    def _present(self, blocks: BlockMap) -> NDArray[np.int64]:
        return blocks.present(self._table)
