"""How the documents of the library are looked at, kept from one look to the next while the program runs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class LibraryView:
    """Changed by the screen of the library alone."""

    as_tree: bool = True  # else one list of all documents
    folded: set[str] = field(default_factory=set)  # keys of folders
