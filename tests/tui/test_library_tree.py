"""The documents of the library in their folders: folded, marked, searched, removed; by keyboard and by mouse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from driving import Driver, running
from scripted_session import ScriptedSession, plain_document
from test_offered import in_palette, offered

from edgerag.types import Document
from edgerag.ui.tui.screens.chunks import ChunksScreen
from edgerag.ui.tui.screens.library import LibraryScreen
from edgerag.ui.tui.widgets.document_list import DocumentList

PUMPS = [f"/docs/manuals/2024/pumps/pump-{letter}.md" for letter in "abc"]
NOTES = ["/docs/notes/日誌.md", "/docs/notes/old.zip!/a\x1b[31mb.md"]
PATHS = [*PUMPS, *NOTES, "/docs/readme.md"]


def session_of(*paths: str) -> ScriptedSession:
    return ScriptedSession(documents={path: plain_document(path, f"Text of {path}.\n\nMore.") for path in paths})


@asynccontextmanager
async def in_library(session: ScriptedSession, size: tuple[int, int] = (120, 30)) -> AsyncIterator[Driver]:
    async with running(session, size=size) as driver:
        await driver.press("f3")
        await driver.until(lambda: isinstance(driver.app.screen, LibraryScreen) and driver.app.screen.count)
        yield driver


def listed(driver: Driver) -> list[str]:
    """The names in the list, indented."""
    column = next(row.index("Document") for row in driver.rows if " Chunks " in row)
    region = driver.app.screen.query_one(DocumentList).region
    return [row[column:].rstrip() for row in driver.rows[region.y : region.bottom] if row.strip()]


def at_cursor(driver: Driver) -> str:
    region = driver.app.screen.query_one(DocumentList)
    return listed(driver)[region.cursor].strip()


def row_of(driver: Driver, name: str) -> int:
    """On the screen."""
    return next(y for y, row in enumerate(driver.rows) if name in row)


TREE = [
    "▾ /docs  6",
    "  ▾ manuals/2024/pumps  3",
    "      pump-a.md",
    "      pump-b.md",
    "      pump-c.md",
    "  ▾ notes  2",
    "    ▾ old.zip  1",
    "        ab.md",
    "      日誌.md",
    "    readme.md",
]


async def test_documents_stand_below_their_folders_and_right_and_left_walk_and_fold() -> None:
    async with in_library(session_of(*PATHS)) as driver:
        assert [row.rstrip() for row in listed(driver)] == TREE
        assert at_cursor(driver) == "pump-a.md"
        await driver.press("left")
        assert at_cursor(driver).startswith("▾ manuals/2024/pumps")
        await driver.press("right")
        assert at_cursor(driver) == "pump-a.md"
        await driver.press("left", "left")
        assert listed(driver) == [TREE[0], "  ▸ manuals/2024/pumps  3", *TREE[5:]]
        await driver.press("left")
        assert at_cursor(driver).startswith("▾ /docs")
        await driver.press("down", "right")
        assert listed(driver) == TREE
        await driver.press("enter", "enter", "enter")
        assert listed(driver)[1] == "  ▸ manuals/2024/pumps  3"


async def test_all_folders_fold_and_unfold_by_one_key() -> None:
    async with in_library(session_of(*PATHS)) as driver:
        await driver.press("f")
        assert listed(driver) == ["▸ /docs  6"]
        await driver.press("right")
        assert listed(driver) == [TREE[0], "  ▸ manuals/2024/pumps  3", "  ▸ notes  2", TREE[-1]]
        await driver.press("f", "f")
        assert listed(driver) == TREE


async def test_enter_on_a_document_reads_it() -> None:
    async with in_library(session_of(*PATHS)) as driver:
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, ChunksScreen))
        await driver.see("pump-a.md")


async def test_a_click_folds_a_folder_and_the_second_of_a_double_click_only_on_its_sign() -> None:
    async with in_library(session_of(*PATHS)) as driver:
        y = row_of(driver, "pumps")
        name, sign = driver.rows[y].index("pumps"), driver.rows[y].index("▾")
        await driver.pilot.click(offset=(name, y))
        assert listed(driver)[1:3] == ["  ▸ manuals/2024/pumps  3", TREE[5]]
        await driver.pilot.click(offset=(name, y), times=2)
        assert listed(driver) == TREE
        await driver.pilot.click(offset=(sign, y), times=2)
        assert listed(driver) == TREE
        await driver.pilot.click(offset=(sign, y))
        assert len(listed(driver)) == len(TREE) - 3


async def test_a_double_click_on_a_document_in_a_folder_reads_it() -> None:
    async with in_library(session_of(*PATHS)) as driver:
        y = row_of(driver, "pump-c.md")
        await driver.pilot.click(offset=(driver.rows[y].index("pump-c"), y), times=2)
        await driver.until(lambda: isinstance(driver.app.screen, ChunksScreen))
        await driver.see("pump-c.md")


async def test_marking_a_folder_marks_all_below_it_and_removes_just_those() -> None:
    session = session_of(*PATHS)
    async with in_library(session) as driver:
        await driver.press("left", "space")
        assert at_cursor(driver).startswith("▾ notes"), "behind all that was marked"
        rows = driver.rows
        assert [name for name in ("pump-a", "pump-b", "pump-c", "pumps") if "●" in rows[row_of(driver, name)]] == [
            "pump-a",
            "pump-b",
            "pump-c",
            "pumps",
        ]
        assert "○" in rows[row_of(driver, "/docs  6")], "some of it is marked"
        assert "●" not in rows[row_of(driver, "readme")]
        await driver.press("up", "space")  # the last of them not
        assert "○" in driver.rows[row_of(driver, "pumps")]
        await driver.press("delete")
        await driver.see("Remove these 2 documents")
        await driver.press("y")
        await driver.until(lambda: session.removed == PUMPS[:2])
        await driver.see("pumps  1")
        assert listed(driver)[0] == "▾ /docs  4"


async def test_the_folder_under_the_cursor_is_removed_after_a_question_that_says_how_many() -> None:
    session = session_of(*PATHS)
    async with in_library(session) as driver:
        await driver.press("left", "left", "delete")
        await driver.see("Remove 3 documents in manuals/2024/pumps from the library?", "pump-a.md")
        await driver.press("n")
        assert session.removed == []
        await driver.press("d")
        await driver.see("Remove 3 documents in manuals/2024/pumps")
        await driver.press("y")
        await driver.until(lambda: session.removed == PUMPS)
        await driver.until(lambda: "pumps" not in "".join(listed(driver)))


async def test_t_changes_between_tree_and_list_and_folds_and_view_stay_for_the_session() -> None:
    async with in_library(session_of(*PATHS)) as driver:
        await driver.press("down", "t")
        await driver.until(lambda: "docs/manuals/2024/pumps/pump-b.md" in listed(driver))
        assert len(listed(driver)) == len(PATHS)
        assert at_cursor(driver) == "docs/manuals/2024/pumps/pump-b.md", "the cursor stays on its document"
        assert not offered(driver) & {"document_list.fold", "document_list.unfold", "document_list.fold_all"}
        await driver.press("escape", "f3")
        await driver.until(lambda: len(listed(driver)) == len(PATHS))
        await driver.press("t")
        await driver.until(lambda: listed(driver) == TREE)
        await driver.press("left", "left", "t")
        await driver.until(lambda: len(listed(driver)) == len(PATHS))
        assert at_cursor(driver) == "docs/manuals/2024/pumps/pump-a.md", "the first of the folder that it was on"
        await driver.press("t", "escape", "f3")
        await driver.until(lambda: "  ▸ manuals/2024/pumps  3" in listed(driver))


async def test_what_is_found_is_in_sight_in_its_folders_and_folds_come_back_after_the_search() -> None:
    async with in_library(session_of(*PATHS)) as driver:
        await driver.press("f", "slash", *"pump-b", "enter")
        await driver.see("1 of 6 documents")
        assert listed(driver) == ["▾ /docs/manuals/2024/pumps  1", "    pump-b.md"]
        await driver.press("up", "enter")
        assert listed(driver) == ["▸ /docs/manuals/2024/pumps  1"]
        await driver.press("escape")
        await driver.until(lambda: listed(driver) == ["▸ /docs  6"])


async def test_the_cursor_stays_on_its_document_while_the_library_changes() -> None:
    session = session_of(*PATHS)
    async with in_library(session) as driver:
        await driver.press("down", "down")
        assert at_cursor(driver) == "pump-c.md"
        session.library = {"/docs/a/new.md": plain_document("New", "New."), **session.library}
        session.numbers["/docs/a/new.md"] = 99
        await driver.press("r")
        await driver.see("new.md")
        assert at_cursor(driver) == "pump-c.md"
        del session.library[PUMPS[2]]
        await driver.press("r")
        await driver.until(lambda: "pump-c" not in "".join(listed(driver)))
        assert "md" in at_cursor(driver), "the nearest document, not a folder"


async def test_figures_and_the_worst_of_a_folder_are_in_its_row() -> None:
    session = session_of(*PATHS)
    plain = session.documents
    told = {PUMPS[0]: {"language": "de", "page_count": 4}, PUMPS[1]: {"language": "ja", "warnings": ("W1.", "W2.")}}

    def documents() -> list[Document]:
        return [replace(each, **told.get(each.path, {"language": "de"})) for each in plain()]

    session.documents = documents  # type: ignore[method-assign]
    async with in_library(session) as driver:
        cells = [driver.rows[row_of(driver, name)].split() for name in ("pumps", "pump-a", "pump-b", "notes")]
        assert cells[0] == ["warning", "4", "3", "mixed", "2", "▾", "manuals/2024/pumps", "3"]
        assert cells[1] == ["ready", "4", "1", "de", "pump-a.md"]
        assert cells[2] == ["warning", "1", "ja", "2", "pump-b.md"]
        assert cells[3] == ["ready", "2", "de", "▾", "notes", "2"]
        await driver.press("left")
        await driver.see("2 warnings in it")
        await driver.pilot.resize_terminal(80, 24)
        await driver.until(lambda: "Problems" not in driver.text)
        assert driver.rows[row_of(driver, "pumps")].split() == cells[0][:3] + cells[0][5:]
        assert len(listed(driver)) == len(TREE)


async def test_folding_is_offered_where_it_does_something() -> None:
    async with in_library(session_of(*PATHS)) as driver:
        assert "document_list.unfold" not in offered(driver), "the cursor is on a document"
        assert offered(driver) >= {"document_list.fold", "document_list.fold_all", "library.tree", "library.mark"}
        assert in_palette(driver) >= {
            "Documents in their folders, or one list of all",
            "Fold all folders, or unfold them",
        }
        assert "Tree / list" in driver.rows[-1]
        await driver.press("home")
        assert offered(driver) >= {"document_list.fold", "document_list.unfold", "library.remove"}
        await driver.press("left")
        assert "document_list.fold" not in offered(driver), "it is folded, and in no other"


async def test_one_chunk_is_a_chunk_and_two_are_chunks() -> None:
    session = session_of(*PATHS)
    plain = session.documents
    pending = {PUMPS[0]: 1, PUMPS[1]: 1}
    session.documents = lambda: [  # type: ignore[method-assign]
        replace(each, pending_count=pending.get(each.path, 0)) for each in plain()
    ]
    async with in_library(session) as driver:
        await driver.see(" 1 chunk not yet searchable")
        await driver.press("left")
        await driver.see(" 2 chunks not yet searchable")


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
async def test_in_many_folders_names_have_room_left(size: tuple[int, int]) -> None:
    paths = [f"/docs/{'d/' * depth}deep.md" for depth in range(1, 12)]
    async with in_library(session_of(*paths), size=size) as driver:
        await driver.press("f", "f", "end")
        assert all(len(row) <= size[0] for row in driver.rows)
        await driver.see("deep")
