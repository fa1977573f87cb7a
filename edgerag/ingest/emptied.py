"""Folders in which nothing is left: was it deleted, or is a disk not there?

Nobody can tell from an empty folder. Where a whole disk may be missing, documents are kept until the user says that
they are to go (``--prune``): in a folder that was named, and in one below it on which another file system is mounted,
or was when it was last looked at.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, MutableMapping

from edgerag.ingest.discover import Discovery
from edgerag.machine.mounts import mount_points


def mounted_below(discovery: Discovery) -> frozenset[str]:
    """The folders below the named ones on which a file system is mounted now, as they were found."""
    points = mount_points()
    folders = frozenset(discovery.folders)
    found = set()
    for root in discovery.roots:
        real_root = os.path.realpath(root).rstrip("/")  # below it no link was followed
        for point in points:
            if point.startswith(real_root + "/"):
                found.add(root.rstrip("/") + point.removeprefix(real_root))
    return frozenset(found & folders)


def emptied_mounts(discovery: Discovery, mounts: Iterable[str], *, looked_at_whole: bool) -> list[str]:
    """Those of ``mounts`` in which there is nothing. Where single paths were looked at, those that are not mounted."""
    if looked_at_whole:
        return [place for place in mounts if discovery.covers(place) and not discovery.has_files_in(place)]
    mounted = mount_points()
    return [place for place in mounts if os.path.realpath(place) not in mounted and _is_bare(place)]


def keep_of_emptied(
    places: Iterable[str], gone: MutableMapping[str, None], documents: Collection[str]
) -> dict[str, str]:
    """Takes out of ``gone`` what lay in those folders; for each that had ``documents``, a sentence that says so."""
    kept: Counter[str] = Counter()
    for place in places:
        for path in [path for path in gone if path.startswith(place.rstrip("/") + "/")]:
            del gone[path]
            kept[place] += path in documents
    return {
        place: f"There is no file in {place} any more. {_kept(count)} in the library, in case a"
        " disk is not mounted; --prune removes what is gone."
        for place, count in kept.items()
    }


def _kept(count: int) -> str:
    return "The document from there stays" if count == 1 else f"The {count:,} documents from there stay"


def _is_bare(folder: str) -> bool:
    """Whether it is an empty folder, or gone; what cannot be looked into may hold anything."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
