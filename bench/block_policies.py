"""Which block should go when room is needed? Counts misses of several rules over simulated searches.

    python bench/block_policies.py

Blocks have a heat like Zipf's law, as the blocks of a graph ordered by neighbourhood do: a few are on nearly every
walk, many on few. In the scenario "steady" that is all. In "scan", one search in 200 passes through every block once
(a comparison of all rows, a verification, a merge). In "shift", the subject changes every 2,000 searches: the heat
moves to other blocks. "mixed" has both. A miss is a read in a block that is not held; the block comes in whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCKS, HELD, SEARCHES, BLOCKS_PER_WALK = 60, 20, 12_000, 6
HALF_LIVES = (32, 64, 128, 256, 512, 1024, 4096)
SCENARIOS = ("steady", "scan", "shift", "mixed")


def walks(scenario: str, *, seed: int, searches: int = SEARCHES) -> list[NDArray[np.int64]]:
    """(reads per block) of each search."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, BLOCKS + 1)
    shares /= shares.sum()
    order = random.permutation(BLOCKS)
    made = []
    for search in range(searches):
        if scenario in ("shift", "mixed") and search % 2000 == 1999:
            order = random.permutation(BLOCKS)
        reads = np.zeros(BLOCKS, dtype=np.int64)
        if scenario in ("scan", "mixed") and search % 200 == 199:
            reads[:] = 1
        else:
            chosen = random.choice(BLOCKS, size=BLOCKS_PER_WALK, replace=False, p=shares)
            reads[order[chosen]] = 1 + random.poisson(100 * shares[chosen])
        made.append(reads)
    return made


def misses(made: list[NDArray[np.int64]], *, half_life: float, by_use: bool = False, halving: int = 0) -> int:
    """Reads of blocks not held.

    ``by_use``: least recently used. ``halving``: all counts are halved every so many searches, at once. Else
    each read loses half its weight in ``half_life`` searches; infinity is plain frequency.
    """
    counts = np.zeros(BLOCKS)
    used = np.zeros(BLOCKS, dtype=np.int64)
    held: set[int] = set()
    missed = 0
    fade = 0.5 ** (1 / half_life)
    for search, reads in enumerate(made):
        counts *= 0.5 if halving and search % halving == halving - 1 else 1.0 if halving else fade
        for block in np.flatnonzero(reads).tolist():
            counts[block] += reads[block]
            used[block] = search
            if block in held:
                continue
            missed += 1
            if len(held) == HELD:
                worth = used if by_use else counts
                held.remove(min(held, key=lambda each: (worth[each], used[each], each)))
            held.add(block)
    return missed


def compare(*, seeds: int = 3, searches: int = SEARCHES) -> dict[str, dict[str, float]]:
    """Scenario -> rule -> misses per search, mean over seeds."""
    figures: dict[str, dict[str, float]] = {}
    for scenario in SCENARIOS:
        rules: dict[str, dict[str, Any]] = {
            "lru": {"half_life": 1.0, "by_use": True},
            "lfu": {"half_life": float("inf")},
            "lfu halved every 1000": {"half_life": 1.0, "halving": 1000},
        }
        rules |= {f"half-life {each}": {"half_life": float(each)} for each in HALF_LIVES}
        runs = [walks(scenario, seed=seed, searches=searches) for seed in range(seeds)]
        figures[scenario] = {
            name: round(sum(misses(run, **rule) for run in runs) / (seeds * searches), 4)
            for name, rule in rules.items()
        }
    return figures


def main() -> None:
    from record import record

    figures = compare()
    for scenario, rules in figures.items():
        print(scenario, *(f"{name}: {value:.3f}" for name, value in rules.items()), sep="\n  ")
    parameters = {"blocks": BLOCKS, "held": HELD, "searches": SEARCHES, "blocks_per_walk": BLOCKS_PER_WALK}
    print(record("block_policies", figures, parameters=parameters))


if __name__ == "__main__":
    main()
