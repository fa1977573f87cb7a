"""Documents become a tree: which folders there are, what stands in them, what is in sight when some are folded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.types import Document
from edgerag.ui.tui.document_tree import (
    SEVERAL_LANGUAGES,
    DocumentTree,
    Folder,
    list_of,
    own_name,
    tree_of,
)

SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def document(
    path: str,
    root: str = "/docs",
    *,
    number: int = 1,
    media_type: str = "text/plain",
    pages: int = 0,
    chunks: int = 1,
    pending: int = 0,
    warnings: tuple[str, ...] = (),
    language: str = "unknown",
) -> Document:
    return Document(
        id=number,
        path=path,
        root=root,
        title="",
        media_type=media_type,
        content_sha256="",
        size_bytes=1,
        mtime_ns=0,
        page_count=pages,
        chunk_count=chunks,
        pending_count=pending,
        warnings=warnings,
        language=language,
    )


def numbered(*places: str | tuple[str, str]) -> list[Document]:
    """Of paths below ``/docs``, or of pairs of path and root."""
    return [
        document(*((place,) if isinstance(place, str) else place), number=number)
        for number, place in enumerate(places, 1)
    ]


def drawn(tree: DocumentTree, folded: Sequence[str] = ()) -> list[str]:
    """The rows as a person sees them: folders end in a slash."""
    lines = []
    for place in tree.rows(folded):
        node = tree.nodes[place]
        name = f"{node.name}/" if isinstance(node, Folder) else own_name(node)
        lines.append("  " * tree.depth(place) + name)
    return lines


def test_folders_come_before_documents_and_chains_of_folders_are_one_row() -> None:
    tree = tree_of(
        numbered("/docs/intro.md", "/docs/manuals/2024/pumps/a.md", "/docs/manuals/2024/pumps/b.md", "/docs/Notes/c.md")
    )
    assert drawn(tree) == [
        "/docs/",
        "  manuals/2024/pumps/",
        "    a.md",
        "    b.md",
        "  Notes/",
        "    c.md",
        "  intro.md",
    ]


def test_a_chain_begins_at_the_highest_folder() -> None:
    assert drawn(tree_of(numbered("/docs/a/b/x.md"))) == ["/docs/a/b/", "  x.md"]
    assert drawn(tree_of(numbered(("/a/x.md", "/")))) == ["/a/", "  x.md"]


def test_folders_that_were_named_stand_beside_each_other_and_one_within_another_below_it() -> None:
    tree = tree_of(
        numbered(
            ("/home/a-b/x.md", "/home/a-b"),
            ("/home/a/c/y.md", "/home/a/c"),
            ("/home/a/z.md", "/home/a/"),
            ("/home/a/c/w.md", "/home/a"),
        )
    )
    assert drawn(tree) == ["/home/a/", "  c/", "    y.md", "    w.md", "  z.md", "/home/a-b/", "  x.md"]


def test_files_that_were_named_stand_in_their_folder() -> None:
    tree = tree_of(numbered(("/x/one.md", "/x/one.md"), ("/x/two.md", "/x/two.md"), ("/y/one.md", "/y/one.md")))
    assert drawn(tree) == ["/x/", "  one.md", "  two.md", "/y/", "  one.md"]
    assert drawn(tree_of(numbered(("/one.md", "/one.md")))) == ["//", "  one.md"]


def test_archives_are_folders_that_no_chain_takes_in() -> None:
    tree = tree_of(
        numbered(
            "/docs/old/a.zip!/src/deep/x.md",
            "/docs/old/a.zip!/src/deep/inner.zip!/y.md",
            "/docs/old/a.zip!//odd//z.md",
            ("/elsewhere/b.zip!/w.md", "/elsewhere/b.zip"),
        )
    )
    assert drawn(tree) == [
        "/docs/old/",
        "  a.zip/",
        "    odd/",
        "      z.md",
        "    src/deep/",
        "      inner.zip/",
        "        y.md",
        "      x.md",
        "/elsewhere/",
        "  b.zip/",
        "    w.md",
    ]


def test_a_mail_stands_with_what_is_in_it() -> None:
    tree = tree_of(numbered("/docs/letter.eml", "/docs/letter.eml!/plan.pdf", "/docs/other.eml"))
    assert drawn(tree) == ["/docs/", "  letter.eml/", "    letter.eml", "    plan.pdf", "  other.eml"]


def test_a_folder_whose_name_ends_like_an_archive_is_a_folder() -> None:
    tree = tree_of(numbered("/docs/wow!/x.md", "/docs/y.md", ("/v1.0!/z.md", "/v1.0!")))
    assert drawn(tree) == ["/docs/", "  wow!/", "    x.md", "  y.md", "/v1.0!/", "  z.md"]


def test_documents_whose_path_says_nothing_stand_in_no_folder() -> None:
    tree = tree_of(numbered(("document #7", ""), ("/moved/x.md", "/docs"), ("/lost/y.md", "")))
    assert drawn(tree) == ["/lost/", "  y.md", "/moved/", "  x.md", "document #7"]


def test_a_folder_has_the_sums_of_what_is_below_it() -> None:
    tree = tree_of(
        [
            document("/docs/a/x.pdf", number=1, pages=3, chunks=5, language="de"),
            document("/docs/a/t.xlsx", number=2, pages=400, chunks=2, media_type=SHEETS, warnings=("One.", "Two.")),
            document("/docs/b/y.pdf", number=3, pages=4, chunks=7, pending=6, language="ja", warnings=("Three.",)),
        ]
    )
    top, a, b = [node for node in tree.nodes if isinstance(node, Folder)]
    assert (a.document_count, a.page_count, a.chunk_count, a.pending_count, a.problem_count) == (2, 3, 7, 0, 2)
    assert (b.document_count, b.page_count, b.chunk_count, b.pending_count, b.problem_count) == (1, 4, 7, 6, 1)
    assert (top.document_count, top.page_count, top.chunk_count, top.pending_count, top.problem_count) == (
        3,
        7,
        14,
        6,
        3,
    )
    assert (a.language, b.language, top.language) == ("de", "ja", SEVERAL_LANGUAGES)


def test_a_path_may_be_deeper_than_a_stack() -> None:
    deep = [f"/docs/{'d/' * depth}x.md" for depth in range(1, 1500)]
    tree = tree_of(numbered(*deep))
    assert len(tree.nodes) == 2 * len(deep)
    assert tree.depth(len(deep) - 1) == len(deep) - 1


def test_a_list_is_the_documents_as_they_are_given() -> None:
    documents = numbered("/docs/b.md", "/docs/a/x.md")
    assert list_of(documents).rows(["/docs"]) == [0, 1]
    assert drawn(list_of(documents)) == ["b.md", "x.md"]


@pytest.mark.parametrize("marked", [[], [2], [1, 2, 3], [3, 99]])
def test_marks_are_counted_below_a_folder(marked: list[int]) -> None:
    tree = tree_of(numbered("/docs/a/x.md", "/docs/a/y.md", "/docs/b/z.md"))
    marks = tree.marks(marked)
    for place in range(len(tree.nodes)):
        assert tree.marked_count(place, marks) == sum(each.id in marked for each in tree.documents(place))


_NAMES = st.sampled_from(["a", "b", "a.zip", "m.eml", "wow!", "v1.0!", "説明書", "\x1b[31m", "!", "a b"])
_PATHS = st.lists(
    st.tuples(_NAMES, st.sampled_from(["/", "/", "!/", "//"])).map("".join), min_size=0, max_size=5
).flatmap(lambda parts: _NAMES.map(lambda name: "/" + "".join(parts) + name))


@st.composite
def _documents(draw: st.DrawFn) -> list[Document]:
    """Of paths that look like any, below roots that they are below, are, or have nothing to do with."""
    documents = []
    for number in range(1, draw(st.integers(0, 12)) + 1):
        path = draw(_PATHS)
        cut = draw(st.integers(0, len(path)))
        root = draw(st.sampled_from([path[:cut].rstrip("/"), path, path.partition("!/")[0], "", "/", "/a", "/a/"]))
        documents.append(document(path, root, number=number, chunks=number))
    return documents


@given(_documents(), st.data())
def test_each_document_is_in_one_place_and_folding_hides_what_is_below_and_nothing_else(
    documents: list[Document], data: st.DataObject
) -> None:
    tree = tree_of(documents)
    found = [node for node in tree.nodes if isinstance(node, Document)]
    assert sorted(each.id for each in found) == [each.id for each in documents]
    assert tree.rows(()) == list(range(len(tree.nodes)))
    assert all(tree.nodes[tree.places[key]] is node for key, node in zip(tree.places, tree.nodes, strict=True))
    assert len(tree.places) == len(tree.nodes), "no two folders have one key"
    below = {place: set[int]() for place in range(len(tree.nodes))}
    for place in range(len(tree.nodes)):
        around = tree.parents[place]
        assert tree.depth(place) == 0 or around < place
        while around >= 0:
            below[around].add(place)
            around = tree.parents[around]
    for place, node in enumerate(tree.nodes):
        if isinstance(node, Folder):
            assert below[place] == set(range(place + 1, node.end)) != set()
            inside = list(tree.documents(place))
            assert node.document_count == len(inside) > 0
            assert node.chunk_count == sum(each.chunk_count for each in inside)
        else:
            assert not below[place]
    keys = sorted(tree.folder_keys())
    folded = data.draw(st.sets(st.sampled_from(keys))) if keys else set()
    hidden = {each for key in folded for each in below[tree.places[key]]}
    rows = tree.rows([*folded, "gone"])
    assert rows == [place for place in range(len(tree.nodes)) if place not in hidden]
    for place in range(len(tree.nodes)):
        row = rows[tree.in_sight(place, rows)]
        assert row == place if place not in hidden else place in below[row]


@given(_documents())
def test_folders_have_the_same_keys_in_any_order_of_the_documents(documents: list[Document]) -> None:
    before, after = tree_of(documents), tree_of(list(reversed(documents)))
    assert before.folder_keys() == after.folder_keys()
