"""Adding, watching, listing and removing documents; the check; the keys."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from driving import Driver, running
from scripted_session import ScriptedSession
from textual.widgets import Input

from edgerag.errors import LibraryBusy, StorageFull
from edgerag.types import FileReport
from edgerag.ui.tui.screens.confirm import ConfirmDialog
from edgerag.ui.tui.screens.ingest import AddDocumentsDialog, IngestDialog
from edgerag.ui.tui.widgets.ingest_bar import IngestBar


class Gate:
    """Holds the ingest before one of its files, until it is opened."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, index: int) -> None:
        if index == self.at:
            self.reached.set()
            self.opened.wait(60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "manuals" / "pumps").mkdir(parents=True)
    (tmp_path / "manuals" / "index.md").write_text("# Index\n")
    return tmp_path / "manuals"


async def add(driver: Driver, path: str) -> None:
    await driver.press("f2")
    driver.app.screen.query_one(Input).value = path
    await driver.press("enter")


def commands(driver: Driver) -> set[str]:
    """What the palette offers."""
    return {command.title for command in driver.app.get_system_commands(driver.app.screen)}


async def test_what_an_ingest_found_wrong_with_the_index_is_shown(folder: Path) -> None:
    session = ScriptedSession()
    session.index_notes = ("A part of the index was left as it is.",)
    async with running(session) as driver:
        await add(driver, str(folder))
        await driver.see("Done, but some files failed", "A part of the index was left as it is.")


async def test_progress_then_a_summary_with_the_reasons_and_new_counts(folder: Path) -> None:
    session = ScriptedSession()
    gate = session.before_file = Gate(at=2)
    async with running(session) as driver:
        await add(driver, str(folder))
        await driver.see("Reading documents", "2/3 files", "12/12 chunks", "45 chunks/s", "79 s left", "93%")
        gate.opened.set()
        await driver.see("Done, but some files failed", "100%")
        for words in (
            "1 ingested, 1 skipped, 1 failed · 12 chunks embedded in 4 s",
            "failed /new/scan.pdf: It holds no text: a scan without a text layer.",
            "skipped /new/logo.png: No reader for image/png.",
        ):
            assert words in driver.text
        await driver.press("escape")
        await driver.see("default: 4 documents")


async def test_escape_cancels_and_says_that_what_was_read_is_kept(folder: Path) -> None:
    session = ScriptedSession()
    gate = session.before_file = Gate(at=1)
    async with running(session) as driver:
        await add(driver, str(folder))
        await driver.until(gate.reached.is_set)
        await driver.press("escape")
        assert "Stopping" in driver.text
        gate.opened.set()
        await driver.see("What was read is kept")
        await driver.press("escape")
        await driver.see("default: 4 documents")


async def test_p_pauses_and_goes_on_and_nothing_is_lost(folder: Path) -> None:
    session = ScriptedSession()
    gate = session.before_file = Gate(at=2)
    async with running(session) as driver:
        await add(driver, str(folder))
        await driver.until(gate.reached.is_set)
        assert "Pause reading documents" in commands(driver)
        await driver.see("p pause", "left")
        await driver.press("p")
        await driver.see("Paused", "p go on", "2/3 files · 12/12 chunks · paused")
        assert "left" not in driver.text and "chunks/s" not in driver.text
        assert "Go on reading documents" in commands(driver)
        gate.opened.set()
        await driver.press("enter")
        await driver.see("Paused", "2/3 files · 12/12 chunks · paused")  # below the conversation
        await driver.ask("How often is the diaphragm replaced?")
        assert driver.app.ingest_view.running and "Paused" in driver.text
        await driver.press("f2", "p")
        await driver.see("Done, but some files failed", "1 ingested, 1 skipped, 1 failed")
        assert not commands(driver) & {"Pause reading documents", "Go on reading documents"}
        await driver.press("p")  # nothing is read any more
        assert not driver.app.ingest_view.paused


async def test_a_paused_ingest_is_stopped_at_once_and_goes_on_by_r(folder: Path) -> None:
    session = ScriptedSession()
    gate = session.before_file = Gate(at=1)
    async with running(session) as driver:
        await add(driver, str(folder))
        await driver.until(gate.reached.is_set)
        await driver.press("p")
        gate.opened.set()
        await driver.see("Paused")
        await driver.press("escape")
        await driver.see("Stopped. What was read is kept; r goes on")
        session.reports = [replace(report, outcome="ingested", reason="") for report in session.reports]
        await driver.press("r")
        await driver.see("Done", "3 ingested")


async def test_quitting_while_reading_is_paused_asks_first_and_leaves(folder: Path) -> None:
    session = ScriptedSession()
    gate = session.before_file = Gate(at=1)
    async with running(session) as driver:
        await add(driver, str(folder))
        await driver.until(gate.reached.is_set)
        await driver.press("p")
        gate.opened.set()
        await driver.press("ctrl+q")
        assert isinstance(driver.app.screen, ConfirmDialog)
        await driver.press("n")
        await driver.see("Paused")
        await driver.press("ctrl+q", "y")
    assert len(session.library) == 4, "what waited was told to stop"


async def test_asking_goes_on_while_documents_are_read(folder: Path) -> None:
    session = ScriptedSession()
    gate = session.before_file = Gate(at=2)
    async with running(session) as driver:
        await add(driver, str(folder))
        await driver.until(gate.reached.is_set)
        await driver.press("enter")
        assert driver.app.screen is driver.ask_screen
        await driver.see("Reading", "2/3 files")
        await driver.ask("How often is the diaphragm replaced?")
        assert "every 2,000 hours" in driver.text
        await driver.press("f2")
        assert isinstance(driver.app.screen, IngestDialog), "F2 comes back to the ingest that runs"
        await driver.press("enter")
        gate.opened.set()
        await driver.until(lambda: "Documents read: 1 ingested" in driver.notifications)
        assert not driver.ask_screen.query_one(IngestBar).display
        await driver.press("f2")
        await driver.see("It holds no text")
        await driver.press("escape", "f2")
        assert isinstance(driver.app.screen, AddDocumentsDialog)


async def test_quitting_while_documents_are_read_asks_first(folder: Path) -> None:
    session = ScriptedSession()
    gate = session.before_file = Gate(at=1)
    async with running(session) as driver:
        await add(driver, str(folder))
        await driver.until(gate.reached.is_set)
        await driver.press("ctrl+q")
        assert isinstance(driver.app.screen, ConfirmDialog)
        await driver.press("n")
        assert driver.app.is_running and isinstance(driver.app.screen, IngestDialog)
        await driver.press("ctrl+q", "y")
        assert "Keeping what is read" in str(driver.app._exit_renderables), "in the terminal, while that takes its time"
        gate.opened.set()
    assert len(session.library) == 4, "the thread was told to stop after the file at hand"


async def test_many_failures_can_be_scrolled(folder: Path) -> None:
    session = ScriptedSession()
    session.reports = [FileReport(f"/new/{number}.pdf", "failed", "Broken.", 0) for number in range(80)]
    async with running(session, size=(80, 24)) as driver:
        await add(driver, str(folder))
        await driver.see("80 failed", "/new/0.pdf: Broken.")
        await driver.press(*["pagedown"] * 20)
        await driver.see("/new/79.pdf: Broken.")


@pytest.mark.parametrize(
    "error", [LibraryBusy("Process 4711 is writing to it.", remedy="Wait for it."), StorageFull("The disk is full.")]
)
async def test_an_ingest_that_fails_says_why(folder: Path, error: Exception) -> None:
    session = ScriptedSession()
    session.failures["ingest"] = error
    async with running(session) as driver:
        await add(driver, str(folder))
        await driver.see("Documents could not be read", str(error).split(".")[0])


async def test_what_failed_and_what_a_stop_has_left_is_read_again_by_one_key(folder: Path) -> None:
    session = ScriptedSession()
    gate = session.before_file = Gate(at=2)
    async with running(session) as driver:
        await add(driver, str(folder))
        await driver.until(gate.reached.is_set)
        await driver.press("escape")
        gate.opened.set()
        await driver.see("Stopped. What was read is kept; r goes on")
        await driver.press("r")
        await driver.see("Done, but some files failed", "r try again")
        session.reports = [replace(report, outcome="ingested", reason="") for report in session.reports]
        await driver.press("r")
        await driver.until(lambda: not driver.app.ingest_view.troubles and not driver.app.ingest_view.running)
        assert "try again" not in driver.text
        await driver.press("r")  # there is nothing to do again
        assert not driver.app.ingest_view.running


async def test_a_missing_path_is_named_and_nothing_starts(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)  # a path that fits into a line of the screen
    async with running() as driver:
        await add(driver, "[bold]nowhere")
        await driver.see("There is no file or folder", "[bold]nowhere")
        await driver.press("escape")
        assert driver.app.screen is driver.ask_screen


async def test_tab_completes_and_the_arrows_choose(folder: Path) -> None:
    async with running() as driver:
        await driver.press("f2")
        field = driver.app.screen.query_one(Input)
        field.value = str(folder.parent) + "/man"
        await driver.pilot.pause()
        await driver.press("tab")
        assert field.value == f"{folder}/"
        await driver.see("pumps/", "index.md")
        await driver.press("down", "down", "tab")
        assert field.value == f"{folder}/index.md"


async def test_the_library_lists_and_removes_what_was_marked() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.press("f3")
        await driver.see("▾ /docs", "kestrel-p40-manual.md", "kestrel-p40-datasheet.pdf", "备用电源.md", "ready")
        await driver.press("space", "space", "delete")
        await driver.see("Remove these 2 documents")
        await driver.press("n")
        assert session.removed == []
        await driver.press("delete")
        await driver.see("Remove these 2 documents")
        await driver.press("y")
        await driver.until(lambda: len(session.removed) == 2)
        await driver.until(lambda: "kestrel-p40-manual.md" not in driver.text)
        await driver.see("1 document")
        assert session.removed == ["/docs/kestrel-p40-manual.md", "/docs/kestrel-p40-datasheet.pdf"]


async def test_removing_while_another_process_writes_is_told() -> None:
    session = ScriptedSession()
    session.failures["remove"] = LibraryBusy("Process 4711 is writing to it.", remedy="Wait for it.")
    async with running(session) as driver:
        await driver.press("f3")
        await driver.see("manual.md")
        await driver.press("d")
        await driver.see("Remove this document")
        await driver.press("y")
        await driver.see("Process 4711 is writing to it.", "Wait for it.")


async def test_the_check_shows_every_finding_with_its_remedy() -> None:
    session = ScriptedSession(model="")
    async with running(session) as driver:
        await driver.press("f4")
        await driver.see("x86_64 with AVX2", "! warning", "Close other programs", "✗ error", "edgerag models pull")
        await driver.see("the first words come late", "edgerag models tune", "twice as fast")
        session.failures["diagnose"] = RuntimeError("no /proc")
        await driver.press("r")
        await driver.see("RuntimeError: no /proc")


@pytest.mark.parametrize("size", [(120, 60), (60, 20)])
async def test_the_key_page_lists_keys_of_every_screen(size: tuple[int, int]) -> None:
    async with running(size=size) as driver:
        await driver.press("f1")
        seen = driver.text
        for _ in range(12):
            await driver.press("pagedown")
            seen += driver.text
        for words in ("F2", "Add documents", "New line", "Open the first cited source", "Next source", "Remove", "Tab"):
            assert words in seen
        await driver.press("escape")
        assert driver.app.screen is driver.ask_screen


async def test_documents_are_searched_by_path_and_title_and_only_those_shown_are_removed() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.press("f3")
        await driver.see("kestrel-p40-manual.md", "备用电源.md")
        await driver.press("slash", *"SHEET kest", "enter")
        await driver.see("1 of 3 documents", "kestrel-p40-datasheet.pdf")
        assert "manual.md" not in driver.text
        await driver.press("delete")
        await driver.see("Remove this document")
        await driver.press("y")
        await driver.until(lambda: session.removed == ["/docs/kestrel-p40-datasheet.pdf"])
        await driver.see("0 of 2 documents")
        await driver.press("escape")
        await driver.see("kestrel-p40-manual.md")
        await driver.press("escape")
        await driver.see("Type a question below")


async def test_a_hundred_thousand_documents_are_a_list_of_what_is_looked_at() -> None:
    session = ScriptedSession()
    first = session.documents()[0]
    many = [replace(first, id=n, path=f"/docs/text-{n:06}.md", title=f"Text {n}") for n in range(1, 100_001)]
    session.documents = lambda: list(many)  # type: ignore[method-assign]
    async with running(session) as driver:
        await driver.press("f3")
        await driver.see("text-000001.md")
        nodes = len(list(driver.app.screen.walk_children()))
        await driver.press("end")
        await driver.see("text-100000.md")
        assert nodes < 40, "a widget for each row would be felt"
        await driver.press("slash", *"99999")
        await driver.see("text-099999.md", "1 of 100,000 documents")
