"""Members of archives and mails: names that are labels and never paths, each once, and how much of them is read.

A member's name goes into citations and is asked for again on the next run: the same container gives the same names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from edgerag.errors import DocumentDamaged, DocumentTooLarge, DocumentUnsupported
from edgerag.ingest.parse.source import clean_title

# Real archives of documents stay far below; each member costs a request.
MOST_MEMBERS = 10_000
_LONGEST_STEM = 120  # characters of one name in a path
_LONGEST_EXTENSION = 12
_LONGEST_LABEL = 600
# Below so many bytes no ratio is doubted; above them nobody's documents pack so well.
_DOUBTED_BYTES = 100_000_000
_MOST_RATIO = 500


Entry = TypeVar("Entry")

_MOST_NAMED = 5  # members in a warning


@dataclass(slots=True)
class Findings:
    """What of an archive its user should know: what was left out of it, and what is wrong with it."""

    damage: str = ""  # a sentence
    links: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        said = [self.damage] if self.damage else []
        if self.links:
            said.append(f"{_count(self.links, 'link')} in it {_is(self.links)} not followed: {_shown(self.links)}.")
        if self.hidden:
            said.append(
                f"{_count(self.hidden, 'hidden file')} in it {_is(self.hidden)} left out: {_shown(self.hidden)}."
            )
        if self.locked:
            count = _count(self.locked, "file")
            said.append(f"{count} in it {_is(self.locked)} protected by a password: {_shown(self.locked)}.")
        return said


def _count(names: Sequence[str], what: str) -> str:
    return f"A {what}" if len(names) == 1 else f"{len(names):,} {what}s"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _shown(names: Sequence[str]) -> str:
    shown = [label(name) or "(one without a name)" for name in names[:_MOST_NAMED]]
    more = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more


class Names:
    """Gives each name once; the second of a name becomes "name (2).txt"."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeats: Counter[str] = Counter()

    def unique(self, name: str) -> str:
        result = name
        while result in self._taken:
            self._repeats[name] += 1
            folder, slash, last = name.rpartition("/")
            stem, extension = _split_extension(last)
            result = f"{folder}{slash}{stem} ({self._repeats[name] + 1}){extension}"
        self._taken.add(result)
        return result


def label(path: str) -> str:
    """A path inside an archive, made harmless: forward slashes, no root, no drive, no ".."; "" if nothing is left."""
    path = path.replace("\\", "/")
    if path[1:2] == ":" and path[0].isascii() and path[0].isalpha():
        path = path[2:]
    components = [clean for component in path.split("/") if (clean := _clean(component)) not in ("", ".", "..")]
    while len(components) > 1 and sum(len(component) + 1 for component in components) > _LONGEST_LABEL:
        del components[0]
    return "/".join(components)


def named(entries: Iterable[tuple[str, Entry]], found: Findings) -> dict[str, Entry]:
    """The files of an archive under the names they are cited by, in order, without hidden ones, which are ``found``.

    Of several with the same name the last has it, as when the archive is unpacked; those before it, which it replaced
    or not, are there as "name (2)" and so on.
    """
    listed = list(entries)
    last = {name: number for number, (name, _) in enumerate(listed)}
    names = Names()
    called: dict[int, str] = {}
    for number in [*sorted(last.values()), *(n for n, (name, _) in enumerate(listed) if last[name] != n)]:
        name = label(listed[number][0])
        if name and not _is_hidden(name):
            called[number] = names.unique(name)
        elif name and not _is_furniture(name):
            found.hidden.append(name)
    return {called[number]: listed[number][1] for number in sorted(called)}


def file_name(name: str, *, fallback: str) -> str:
    """The name of an attachment, without the folders that some programs leave in it."""
    return label(label(name).rpartition("/")[2]) or fallback


def too_many(count: int, what: str) -> DocumentUnsupported:
    return DocumentUnsupported(
        f"There are {count:,} {what} in it; at most {MOST_MEMBERS:,} are read.",
        remedy="Unpack it and ingest the folder.",
    )


def too_large(limit: int) -> DocumentTooLarge:
    return DocumentTooLarge(
        f"Unpacked it is larger than the limit of {limit:,} bytes.",
        remedy="Raise ingest.max_file_size to read it.",
    )


def missing(name: str) -> DocumentDamaged:
    return DocumentDamaged(f"There is no {name!r} in the file around it.")


def refuse_bomb(packed_bytes: int, unpacked_bytes: int) -> None:
    """Raises DocumentUnsupported for what unpacks to more than documents do."""
    if unpacked_bytes > _DOUBTED_BYTES and unpacked_bytes > packed_bytes * _MOST_RATIO:
        raise DocumentUnsupported(
            f"{packed_bytes / 1e6:.1f} MB in it unpack to {unpacked_bytes / 1e6:,.0f} MB or more, as in a zip bomb.",
            remedy="If you trust it, unpack it and ingest the folder.",
        )


def _is_hidden(name: str) -> bool:
    # What no one means to hand over: dot files and the resource forks that macOS adds.
    return any(component.startswith(".") or component == "__MACOSX" for component in name.split("/"))


def _is_furniture(name: str) -> bool:
    """What macOS adds to every archive; nobody asks for it."""
    return "__MACOSX" in name.split("/") or name.rpartition("/")[2] == ".DS_Store"


def _clean(component: str) -> str:
    stem, extension = _split_extension(component)
    return (clean_title(stem)[:_LONGEST_STEM].rstrip() + clean_title(extension)).strip()


def _split_extension(name: str) -> tuple[str, str]:
    stem, dot, extension = name.rpartition(".")
    return (stem, dot + extension) if stem and len(extension) <= _LONGEST_EXTENSION else (name, "")
