"""The documents of a library as a tree: folders and archives, the documents below them, and which rows are in sight.

A tree is made once for a list of documents, in one pass over them. Its nodes stand in the order in which they are
shown, each folder before what is below it: all that is below a folder is one run of nodes, and folding leaves runs out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from edgerag.types import MEMBER_MARK, UNKNOWN_LANGUAGE, Document, page_unit
from edgerag.ui.place import path_parts

SEVERAL_LANGUAGES = "mixed"
NodeKey = int | str  # the id of a document, the key of a folder


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, an archive or a mail, with the sums of all documents below it."""

    key: str  # the same as long as the folder is
    name: str  # its own; its path where it is in no other; of folders with one folder in each "manuals/2024/pumps"
    depth: int  # 0: it is in no other
    end: int  # place behind the last node below it
    document_count: int
    page_count: int
    chunk_count: int
    pending_count: int  # chunks that have no vector yet
    problem_count: int  # warnings
    language: str  # the one of those below that have one, or SEVERAL_LANGUAGES


Node = Folder | Document


@dataclass(frozen=True, slots=True)
class DocumentTree:
    """Nodes in their order. A place is the position of one among them."""

    nodes: Sequence[Node] = ()
    parents: Sequence[int] = ()  # the place of the folder that each is in; -1: in none
    places: Mapping[NodeKey, int] = field(default_factory=dict)
    document_count: int = 0

    def depth(self, place: int) -> int:
        parent = self.parents[place]
        return 0 if parent < 0 else self._folder(parent).depth + 1

    def rows(self, folded: Iterable[str]) -> list[int]:
        """The places that are in sight, in order, while the folders of these keys are folded; others are ignored."""
        in_sight: list[int] = []
        at = 0
        for place in sorted(self.places[key] for key in folded if key in self.places):
            if place >= at:  # otherwise it is below one that is folded
                in_sight.extend(range(at, place + 1))
                at = self._folder(place).end
        in_sight.extend(range(at, len(self.nodes)))
        return in_sight

    def documents(self, place: int) -> Iterator[Document]:
        """The document of that place, or all that are below the folder of that place."""
        node = self.nodes[place]
        below = islice(self.nodes, place, node.end if isinstance(node, Folder) else place + 1)
        return (each for each in below if isinstance(each, Document))

    def folder_keys(self) -> set[str]:
        return {node.key for node in self.nodes if isinstance(node, Folder)}

    def marks(self, ids: Iterable[int]) -> list[int]:
        """The places of the documents of these ids, in order: see ``marked_count``."""
        return sorted(self.places[each] for each in ids if each in self.places)

    def marked_count(self, place: int, marks: Sequence[int]) -> int:
        """How many of ``marks`` are the node of that place or below it."""
        node = self.nodes[place]
        end = node.end if isinstance(node, Folder) else place + 1
        return bisect_left(marks, end) - bisect_left(marks, place)

    def in_sight(self, place: int, rows: Sequence[int]) -> int:
        """The row of the node of that place, or of the folder in sight that it is folded away in."""
        while True:
            row = bisect_left(rows, place)
            if row < len(rows) and rows[row] == place:
                return row
            place = self.parents[place]  # what is not in sight is in a folder

    def _folder(self, place: int) -> Folder:
        node = self.nodes[place]
        assert isinstance(node, Folder)
        return node


def key_of(node: Node) -> NodeKey:
    return node.key if isinstance(node, Folder) else node.id


def own_name(document: Document) -> str:
    """The last part of its path, inside an archive too."""
    return document.path.rpartition("/")[2] or document.path


def pages_of(document: Document) -> int:
    """0 for a document whose numbers are of rows, which are no pages."""
    return 0 if page_unit(document.media_type) == "row" else document.page_count


def list_of(documents: Sequence[Document]) -> DocumentTree:
    """The documents alone, as they are given."""
    places: dict[NodeKey, int] = {document.id: place for place, document in enumerate(documents)}
    return DocumentTree(tuple(documents), (-1,) * len(documents), places, len(documents))


def tree_of(documents: Sequence[Document]) -> DocumentTree:
    """Folders by name, then the documents of a folder in the order that they are given in. The highest are the folders
    that were named on ingest, or that hold a file that was, as far as they are in none of the others. A mail that is a
    document itself stands in the folder of what is in it."""
    top = _Open("", "")
    # Documents of one folder, and of one that was named on ingest, are in the same place: it is looked for once.
    sites = [(document.root, document.path.rpartition("/")[0]) for document in documents]
    one_of = dict(zip(sites, documents, strict=True))
    tops = _tops({_named_folder(document) for document in one_of.values()})
    homes = {}
    for site, document in one_of.items():
        home = top
        for part in _way(document, tops):
            home = home.inner(part)
        homes[site] = home
    for site, document in zip(sites, documents, strict=True):
        home = homes[site]
        its_own = home.folders.get(own_name(document) + MEMBER_MARK) if home.folders else None
        (its_own or home).documents.append(document)
    return _listed(top, len(documents))


class _Open:
    """A folder while the tree is made."""

    __slots__ = ("chunks", "count", "documents", "folders", "key", "language", "name", "pages", "pending", "problems")

    def __init__(self, key: str, name: str) -> None:
        self.key = key
        self.name = name  # that of an archive ends in MEMBER_MARK
        self.folders: dict[str, _Open] = {}
        self.documents: list[Document] = []
        self.count = self.pages = self.chunks = self.pending = self.problems = 0
        self.language = UNKNOWN_LANGUAGE

    def inner(self, name: str) -> _Open:
        found = self.folders.get(name)
        if found is None:
            found = self.folders[name] = _Open(f"{self.key}/{name}" if self.key else name, name)
        return found

    @property
    def is_archive(self) -> bool:
        return self.name.endswith(MEMBER_MARK)

    def only_folder(self) -> _Open | None:
        """The one that it is shown in one row with: a folder with nothing but a folder in it."""
        if len(self.folders) != 1 or self.documents or self.is_archive:
            return None
        inner = next(iter(self.folders.values()))
        return None if inner.is_archive else inner

    def sum_up(self) -> None:
        """The sums of its own documents are added to what its folders have added."""
        for each in self.documents:
            self.pages += pages_of(each)
            self.chunks += each.chunk_count
            self.pending += each.pending_count
            self.problems += len(each.warnings)
            self.language = _joint(self.language, each.language)
        self.count += len(self.documents)

    def add_to(self, outer: _Open) -> None:
        outer.count += self.count
        outer.pages += self.pages
        outer.chunks += self.chunks
        outer.pending += self.pending
        outer.problems += self.problems
        outer.language = _joint(outer.language, self.language)

    def closed(self, name: str, depth: int, end: int) -> Folder:
        return Folder(
            self.key,
            name,
            depth,
            end,
            document_count=self.count,
            page_count=self.pages,
            chunk_count=self.chunks,
            pending_count=self.pending,
            problem_count=self.problems,
            language=self.language,
        )


def _listed(top: _Open, document_count: int) -> DocumentTree:
    """Without recursion: paths may be deeper than Python's stack."""
    nodes: list[Node | None] = []
    parents: list[int] = []
    # A folder to open (its place is None) or to close, what it is in, its name, its depth and the place of its parent.
    work: list[tuple[_Open, _Open, str, int, int, int | None]] = []

    def open_folders_of(outer: _Open, depth: int, parent: int) -> None:
        for inner in sorted(outer.folders.values(), key=_by_name, reverse=True):
            name, deepest = inner.name.removesuffix(MEMBER_MARK), inner
            while (below := deepest.only_folder()) is not None:
                name, deepest = f"{name.rstrip('/')}/{below.name}", below
            work.append((deepest, outer, name, depth, parent, None))

    open_folders_of(top, 0, -1)
    while work:
        folder, outer, name, depth, parent, place = work.pop()
        if place is None:
            place = len(nodes)
            nodes.append(None)  # until what is below it is known
            parents.append(parent)
            work.append((folder, outer, name, depth, parent, place))
            open_folders_of(folder, depth + 1, place)
            continue
        nodes.extend(folder.documents)
        parents.extend([place] * len(folder.documents))
        folder.sum_up()
        folder.add_to(outer)
        nodes[place] = folder.closed(name, depth, len(nodes))
    nodes.extend(top.documents)
    parents.extend([-1] * len(top.documents))
    listed = [node for node in nodes if node is not None]
    places = {node.id if isinstance(node, Document) else node.key: place for place, node in enumerate(listed)}
    return DocumentTree(listed, parents, places, document_count)


def _by_name(folder: _Open) -> tuple[str, str]:
    return (folder.name.casefold(), folder.name)


def _joint(one: str, other: str) -> str:
    if one == other or other == UNKNOWN_LANGUAGE:
        return one
    return other if one == UNKNOWN_LANGUAGE else SEVERAL_LANGUAGES


# ------------------------------------------------------------ paths


def _named_folder(document: Document) -> str:
    """The folder that was named on ingest, or the one of the file that was; "" where a path says nothing."""
    path, root = document.path, document.root
    if root and path.startswith(_inside(root)):
        return root.rstrip("/") or "/"
    if not root or not (path == root or path.startswith(root + MEMBER_MARK)):
        root = path_parts(path)[0]  # the document is not below what was named: the library was mended, or moved
    return _folder_of(root)


def _folder_of(file: str) -> str:
    folder, slash, _ = file.rpartition("/")
    return folder or slash


def _inside(folder: str) -> str:
    return folder.rstrip("/") + "/"


def _tops(folders: Collection[str]) -> Mapping[str, str]:
    """For each folder the highest of them that it is in, or itself."""
    tops: dict[str, str] = {}
    last = ""
    for folder in sorted(folders, key=lambda path: (path.rstrip("/").split("/"), path)):
        if not last or not folder.startswith(_inside(last)):
            last = folder
        tops[folder] = last
    return tops


def _way(document: Document, tops: Mapping[str, str]) -> Iterator[str]:
    """The names of the folders that it is in from the highest on, which is a whole path; those of archives end in
    MEMBER_MARK."""
    named = _named_folder(document)
    top = tops[named]
    if top:
        yield top
    yield from _names(named[len(top) :])
    path, root = document.path, document.root
    if root and (path == root or path.startswith(root + MEMBER_MARK)):
        parts = [root, *path[len(root) + len(MEMBER_MARK) :].split(MEMBER_MARK)] if path != root else [root]
        parts[0] = root.rpartition("/")[2]
    else:
        parts = path_parts(path[len(named) :])
    for part in parts[:-1]:
        folders = _names(part)
        yield from folders[:-1]
        if folders:
            yield folders[-1] + MEMBER_MARK
    yield from _names(parts[-1].rpartition("/")[0])


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]
