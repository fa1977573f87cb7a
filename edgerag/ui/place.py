"""How the place of a chunk is said to a person."""

from __future__ import annotations

from pathlib import Path, PurePath

from edgerag.types import MEMBER_MARK, StoredChunk, page_unit

MEMBER_ARROW = " › "


def place(stored: StoredChunk) -> str:
    """``page 3``, ``slides 3-4``, ``rows 12-18``, ``line 7`` or ``lines 7-19``."""
    chunk = stored.chunk
    if chunk.page_first is not None and chunk.page_last is not None:
        return _span(page_unit(stored.media_type), chunk.page_first, chunk.page_last)
    return _span("line", chunk.line_first, chunk.line_last)


def full_place(stored: StoredChunk) -> str:
    """The place with its sheet, without which a row is not found: ``sheet Costs, rows 12-18``; and whether all of it
    is seen there."""
    sheet = _sheet(stored)
    where = f"sheet {sheet}, {place(stored)}" if sheet else place(stored)
    return f"{where}, with hidden text" if stored.chunk.hidden else where


def in_library(stored: StoredChunk) -> str:
    """``work: `` where several libraries are asked; "" where one is."""
    return f"{stored.library}: " if stored.library else ""


def headings_below(stored: StoredChunk) -> tuple[str, ...]:
    """The heading path without what ``full_place`` says."""
    path = stored.chunk.heading_path
    return path[1:] if _sheet(stored) else path


def count_of_pages(count: int, media_type: str) -> str:
    """``12 pages``, ``1 slide``, ``4 rows``; "" for a document without any."""
    unit = page_unit(media_type)
    return f"{count} {unit}" + ("" if count == 1 else "s") if count else ""


def member_name(path: str) -> str:
    """The file's own name; of one in an archive or a mail with the way to it: ``archive.zip › path/in/it``."""
    outer, *inside = path_parts(path)
    return MEMBER_ARROW.join((PurePath(outer).name, *inside))


def shown_path(path: str) -> str:
    """A path with arrows where it goes into an archive or a mail."""
    return MEMBER_ARROW.join(path_parts(path))


def path_parts(path: str) -> list[str]:
    """The file on the disk, and the names inside. A folder whose name ends in an exclamation mark holds files too: it
    has no extension."""
    parts = path.split(MEMBER_MARK)
    while len(parts) > 1 and "." not in parts[0].rpartition("/")[2]:
        parts[:2] = [MEMBER_MARK.join(parts[:2])]
    return parts


def short_path(path: str) -> str:
    """The path from the working folder where that is shorter."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):  # it lies elsewhere, or the working folder is gone
        return path


def _sheet(stored: StoredChunk) -> str:
    path = stored.chunk.heading_path
    return path[0] if path and page_unit(stored.media_type) == "row" else ""


def _span(unit: str, first: int, last: int) -> str:
    return f"{unit} {first}" if first == last else f"{unit}s {first}-{last}"
