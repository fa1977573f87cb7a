"""What rules, missing disks and other people's needs do to an ingest; only the embedder is a stand-in."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import HashingEmbedder

from edgerag.config import ChunkSettings, IngestSettings
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.ingest import discover as discover_module
from edgerag.ingest import pace
from edgerag.ingest.pipeline import ingest
from edgerag.types import IngestDone, IngestEvent, IngestProgress


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "badger.md").write_text("The badger sleeps by day.")
    (folder / "sub" / "walrus.md").write_text("The walrus dives for clams.")
    with zipfile.ZipFile(folder / "sub" / "pack.zip", "w") as archive:
        archive.writestr("otter.md", "The otter cracks mussels.")
        archive.writestr("deep/heron.md", "The heron stands in shallow water.")
    return folder


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with open_library(
        tmp_path / "library", mode="write", residency=Residency(64_000_000), identity=HashingEmbedder().identity
    ) as opened:
        yield opened


def events(library: Library, *paths: Path, changed: list[Path] | None = None, **settings: object) -> list[IngestEvent]:
    return list(
        ingest(
            paths,
            library=library,
            embedder=HashingEmbedder,
            settings=IngestSettings(**settings),  # type: ignore[arg-type]
            chunks=ChunkSettings(),
            changed=None if changed is None else [str(path) for path in changed],
            cancelled=lambda: False,
        )
    )


def run(library: Library, *paths: Path, changed: list[Path] | None = None, **settings: object) -> IngestDone:
    done = events(library, *paths, changed=changed, **settings)[-1]
    assert isinstance(done, IngestDone)
    return done


def held(library: Library, docs: Path) -> list[str]:
    return [os.path.relpath(document.path, docs) for document in library.documents()]


ALL = ["badger.md", "sub/pack.zip!/deep/heron.md", "sub/pack.zip!/otter.md", "sub/walrus.md"]


def test_what_became_ignored_is_removed_and_comes_back(library: Library, docs: Path) -> None:
    assert run(library, docs).count("ingested") == 5
    assert held(library, docs) == ALL
    (docs / ".gitignore").write_text("pack.zip\n")
    removed = [report for report in run(library, docs).reports if report.outcome == "removed"]
    assert {report.reason for report in removed} == {f"It is ignored by {docs / '.gitignore'}."}
    assert held(library, docs) == ["badger.md", "sub/walrus.md"]
    assert not library.search_keywords("otter", limit=3)
    (docs / ".gitignore").unlink()
    run(library, docs)
    assert held(library, docs) == ALL


def test_refused_files_that_became_ignored_are_forgotten(library: Library, docs: Path) -> None:
    (docs / "broken.docx").write_bytes(b"PK\x03\x04 no more")
    run(library, docs)
    assert len(library.failures()) == 1
    (docs / ".edgeragignore").write_text("*.docx\n")
    assert run(library, docs).count("failed") == 0
    assert library.failures() == []


def test_a_folder_that_was_named_itself_is_kept_when_one_above_ignores_it(library: Library, docs: Path) -> None:
    (docs / ".gitignore").write_text("sub/\n")
    run(library, docs / "sub")
    run(library, docs)
    assert held(library, docs) == ALL
    shutil.rmtree(docs / "sub")
    run(library, docs)
    assert held(library, docs) == ["badger.md"]


def test_only_what_changed_is_looked_at(library: Library, docs: Path) -> None:
    run(library, docs)
    for path in (docs / "badger.md", docs / "sub" / "walrus.md"):
        path.write_text("The weasel sneaks through the hedge.")
    done = run(library, docs, changed=[docs / "badger.md"])
    assert [(Path(report.path).name, report.outcome) for report in done.reports] == [("badger.md", "ingested")]
    assert {document.root for document in library.documents()} == {str(docs)}
    shutil.rmtree(docs / "sub")
    assert run(library, docs, changed=[docs / "sub"]).count("removed") == 3
    assert held(library, docs) == ["badger.md"]


def test_a_disk_that_goes_while_it_is_looked_at_deletes_nothing(
    library: Library, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(library, docs)
    real = discover_module._walk

    def walk(*arguments: object) -> None:
        docs.rename(tmp_path / "unplugged")
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(discover_module, "_walk", walk)
    done = run(library, docs)
    assert done.count("removed") == 0 and done.count("failed") == 1
    assert held(library, docs) == ALL


class Busy:
    """Others need the machine for the first looks."""

    def __init__(self, *_: object) -> None:
        self.looks = 0

    def busy_share(self) -> float:
        self.looks += 1
        return 0.9 if self.looks < 3 else 0.0

    def battery_is_low(self) -> bool:
        return False


def test_it_says_that_it_waits_for_others_and_then_goes_on(
    library: Library, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "Demand", Busy)
    monkeypatch.setattr(pace, "_LOOK_EVERY_S", 0.05)
    happened = events(library, docs, polite=True)
    assert any(isinstance(event, IngestProgress) and event.current == pace.BUSY for event in happened)
    assert held(library, docs) == ALL and library.pending_count() == 0
    assert not any(getattr(event, "current", "").startswith("waiting") for event in events(library, docs))
