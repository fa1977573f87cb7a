"""Hits become a ranking that can be judged: which of what is expected is met at each rank. Pure.

Ranked is what is asked for. Where documents are expected, that is documents: each stands where its best chunk does.
Where pages or texts are, it is pages or chunks. What was met before takes no second rank.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from edgerag.types import MEMBER_MARK, Chunk, StoredChunk

# What is met for the first time at each rank, as indices of targets; empty for what is not relevant.
Ranking = tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """Something expected, with the documents of the library that it may stand in; ``paths`` is empty for any."""

    paths: frozenset[str]
    page: int | None
    text: str  # as :func:`even` gives it; "" is any
    grade: float


def ranking(found: Sequence[StoredChunk], targets: Sequence[Target]) -> Ranking:
    """What of ``targets`` the chunks (best first) meet, rank by rank."""
    ranks: list[frozenset[int]] = []
    met: set[int] = set()
    seen: set[object] = set()
    for chunk in found:
        own = targets_met(chunk, targets)
        unit = _unit(chunk, targets)
        if own:
            if own <= met:
                continue
            ranks.append(frozenset(own - met))
            met |= own
        elif unit in seen:
            continue
        else:
            ranks.append(frozenset())
        seen.add(unit)
    return tuple(ranks)


def targets_met(stored: StoredChunk, targets: Sequence[Target]) -> frozenset[int]:
    """The indices of the targets that a chunk meets."""
    paths = {stored.path, *stored.also_in}
    text = even(stored.chunk.text) if any(target.text for target in targets) else ""
    return frozenset(
        number
        for number, target in enumerate(targets)
        if (not target.paths or target.paths & paths) and _on_page(stored.chunk, target.page) and target.text in text
    )


def fits(path: str, name: str) -> bool:
    """Whether ``path`` is that of the file ``name``: all of the path, or whole parts of its end."""
    wanted = PurePath(name).parts
    # A member is named by its own name too: report.pdf is in mails.zip!/report.pdf.
    parts = PurePath(path.replace(MEMBER_MARK, "/")).parts
    return path == name or (bool(wanted) and parts[-len(wanted) :] == wanted) or path.endswith(f"/{name}")


def even(text: str) -> str:
    """``text`` as two spellings of it are compared: without case, with one space for any white space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _on_page(chunk: Chunk, page: int | None) -> bool:
    if page is None:
        return True
    return chunk.page_first is not None and chunk.page_first <= page <= (chunk.page_last or chunk.page_first)


def _unit(stored: StoredChunk, targets: Sequence[Target]) -> object:
    """What a chunk that meets nothing counts as."""
    if any(target.text for target in targets):
        return stored.id
    if any(target.page is not None for target in targets):
        return (stored.path, stored.chunk.page_first)
    return stored.path
