"""What was read once stays as long as the file is the same, whatever is missing today: password, OCR, room."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import HashingEmbedder
from flow.test_ingest import Bench
from flow.test_members import opened_files, packed
from unit.ingest.fake_tesseract import Install, install
from unit.ingest.mail_craft import PLAIN, attachment, parts
from unit.ingest.pdf_craft import build, picture, text
from unit.ingest.test_passwords import RIGHT, aes_zip, old_zip

from edgerag.config import IngestSettings
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library
from edgerag.ingest import emptied
from edgerag.ingest.parse.process import ParserProcess
from edgerag.types import IngestDone, OcrMode

__all__ = ["install"]
HERON = "The heron stands in shallow water."
LOCKED_PDF = build([text(72, 700, HERON)], user_password=RIGHT)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    embedder = HashingEmbedder()
    (tmp_path / "docs").mkdir()
    with open_library(
        tmp_path / "library", mode="write", residency=Residency(64_000_000), identity=embedder.identity
    ) as library:
        yield Bench(tmp_path / "docs", library, embedder)


def partly_locked() -> bytes:
    """An archive with an open member and a protected one; it is a document of its own while no password is given."""
    locked = aes_zip()
    path_like = packed({"open.txt": "The badger digs."})
    return merged_zip(locked, path_like)


def merged_zip(first: bytes, second: bytes) -> bytes:
    """The members of ``second`` behind those of ``first``, which stay as they are, byte for byte."""
    out = io.BytesIO(first)
    with zipfile.ZipFile(io.BytesIO(second)) as source, zipfile.ZipFile(out, "a") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    return out.getvalue()


CONTENTS = {
    "aes.zip": aes_zip(),
    "old.zip": old_zip(),
    "partly.zip": partly_locked(),
    "nested.zip": packed({"in.zip": aes_zip(), "open.txt": "The badger digs."}),
    "with_damage.zip": packed({"in.zip": aes_zip(), "bad.docx": b"PK\x03\x04 no more"}),
    "locked.pdf": LOCKED_PDF,
    "inside.zip": packed({"locked.pdf": LOCKED_PDF, "open.txt": "The badger digs."}),
}
CHANGES = ["touched", "moved", "renamed", "moved and touched in turn", "named"]
# All that may happen to an archive that is partly locked, the most of it to each of the others; the rest is a sweep.
SAME = [
    pytest.param(name, what, marks=() if name == "partly.zip" or "turn" in what else pytest.mark.long)
    for name in CONTENTS
    for what in CHANGES
]


class TestWithoutThePassword:
    @pytest.mark.parametrize(("name", "what"), SAME)
    def test_a_file_that_is_the_same_keeps_its_text(self, bench: Bench, name: str, what: str) -> None:
        path = bench.write(name, CONTENTS[name])
        bench.run(passwords=(RIGHT,))
        texts = {document.title: document.content_sha256 for document in bench.library.documents()}
        query = "harbour" if "pdf" not in name and name != "inside.zip" else "heron"
        assert set(bench.found(query))
        if "moved" in what:
            (bench.folder / "sub").mkdir()
            path = path.rename(bench.folder / "sub" / name)
        if what == "renamed":
            path = path.rename(path.with_name(f"new{path.suffix}"))
        if "turn" in what:
            bench.run()
        if "touched" in what:
            os.utime(path, ns=(1, 1))
        done = bench.run(*([path] if what == "named" else []))
        assert set(bench.found(query)), [(r.path, r.outcome, r.reason) for r in done.reports]
        assert "removed" not in bench.outcomes(done).values()
        assert {document.content_sha256 for document in bench.library.documents()} >= set(texts.values()) - {""}
        assert bench.embedder.embedded == []
        last = bench.outcomes(bench.run())
        assert set(last.values()) <= {"unchanged", "failed"} and set(bench.found(query))
        assert [key for key, outcome in last.items() if outcome == "failed"] == [
            key for key in last if key.endswith("bad.docx")
        ]

    def test_a_file_that_changed_loses_what_it_does_not_say_any_more(self, bench: Bench) -> None:
        bench.write("locked.pdf", LOCKED_PDF)
        bench.write("box.zip", merged_zip(aes_zip(), packed({"open.txt": "The badger digs."})))
        bench.run(passwords=(RIGHT,))
        bench.write("locked.pdf", build([text(72, 700, "The otter swims.")], user_password=RIGHT))
        bench.write("box.zip", merged_zip(aes_zip(), packed({"open.txt": "The badger sleeps."})))
        done = bench.run()
        assert bench.found("heron") == [] == bench.found("harbour")
        reasons = {Path(report.path).name: report.reason for report in done.reports if report.outcome == "failed"}
        assert all("was removed from the library" in reason for reason in reasons.values()) and len(reasons) == 2

    def test_a_library_of_before_the_checksums_keeps_it_too(self, bench: Bench) -> None:
        path = bench.write("aes.zip", aes_zip())
        bench.run(passwords=(RIGHT,))
        with bench.library._store.writing() as db:
            db.execute("UPDATE documents SET around_sha256 = ''")
        os.utime(path, ns=(1, 1))
        bench.run()
        assert bench.found("harbour")
        assert all(document.around_sha256 for document in bench.library.documents())

    def test_a_scan_that_was_read_needs_no_ocr_to_stay(self, bench: Bench, install: Install) -> None:
        install()
        path = bench.write("scan.pdf", build([picture(595, 842)]))
        bench.write("letter.png", b"\x89PNG\r\n\x1a\n" + bytes(100))
        bench.run()
        off = IngestSettings(ocr="off")
        path.rename(bench.folder / "renamed.pdf")
        os.utime(bench.folder / "letter.png", ns=(1, 1))
        done = bench.run(settings=off)
        assert bench.outcomes(done) == {"renamed.pdf": "unchanged", "letter.png": "unchanged"}
        assert len(bench.found("OCR")) == 2

    def test_what_failed_in_a_locked_archive_is_still_told_of(self, bench: Bench) -> None:
        inner = aes_zip()
        path = bench.write("box.zip", packed({"in.zip": inner, "open.txt": "The badger digs."}))
        bench.run(passwords=(RIGHT,))
        failed = f"{path}!/in.zip!/bad.docx"
        bench.library.record_failure(failed, reason="It is damaged.", size_bytes=1, mtime_ns=1)
        os.utime(path, ns=(1, 1))
        outcomes = bench.outcomes(bench.run())
        assert outcomes["box.zip!/in.zip!/bad.docx"] == "failed" and bench.found("harbour")


class TestOcrAgain:
    def modes(self, bench: Bench) -> dict[str, str]:
        return {Path(document.path).name: document.ocr for document in bench.library.documents()}

    def test_force_reads_again_what_was_read_without_and_once(self, bench: Bench, install: Install) -> None:
        bench.write("a.pdf", build([text(72, 700, "A page of text.")]))
        bench.write("box.zip", packed({"in.pdf": build([text(72, 700, "Another page of text.")]), "note.txt": "Note."}))
        bench.run()
        assert self.modes(bench) == {"a.pdf": "", "in.pdf": "", "note.txt": ""}
        install()
        force = IngestSettings(ocr="force")
        done = bench.run(settings=force, ocr_again=True)
        outcomes = {"a.pdf": "ingested", "box.zip": "ingested", "box.zip!/in.pdf": "ingested"}
        assert bench.outcomes(done) == outcomes | {"box.zip!/note.txt": "unchanged"}
        assert sorted(bench.found("recognised OCR")) == ["a.pdf", "in.pdf"]
        assert self.modes(bench) == {"a.pdf": "force eng", "in.pdf": "force eng", "note.txt": ""}
        for again in ({"settings": force, "ocr_again": True}, {"settings": force}, {}):
            done = bench.run(**again)  # type: ignore[arg-type]
            assert set(bench.outcomes(done).values()) == {"unchanged"}, "no flip-flop"
        assert self.modes(bench)["a.pdf"] == "force eng"

    def test_settings_of_the_file_force_it_too(self, bench: Bench, install: Install) -> None:
        install()
        bench.write("a.pdf", build([text(72, 700, "A page of text.")]))
        bench.run()
        assert self.modes(bench) == {"a.pdf": "auto eng"}
        assert bench.outcomes(bench.run(settings=IngestSettings(ocr="force"))) == {"a.pdf": "ingested"}

    @pytest.mark.parametrize("mode", ["auto", "force"])
    def test_other_languages_that_are_asked_for_are_used(self, bench: Bench, install: Install, mode: OcrMode) -> None:
        install(languages=("deu", "eng", "osd"))
        bench.write("scan.pdf", build([picture(595, 842)]))
        bench.run(settings=IngestSettings(ocr=mode, ocr_languages="eng"))
        german = IngestSettings(ocr=mode, ocr_languages="deu")
        assert bench.outcomes(bench.run(settings=german)) == {"scan.pdf": "unchanged"}, "it was not asked for"
        assert bench.outcomes(bench.run(settings=german, ocr_again=True)) == {"scan.pdf": "ingested"}
        assert self.modes(bench) == {"scan.pdf": f"{mode} deu"}
        assert bench.outcomes(bench.run(settings=german, ocr_again=True)) == {"scan.pdf": "unchanged"}
        assert bench.outcomes(bench.run()) == {"scan.pdf": "unchanged"}

    def test_auto_that_is_asked_for_takes_force_back_and_off_takes_nothing(
        self, bench: Bench, install: Install
    ) -> None:
        install()
        bench.write("a.pdf", build([text(72, 700, "A page of text.")]))
        bench.run(settings=IngestSettings(ocr="force"))
        assert bench.outcomes(bench.run(settings=IngestSettings(ocr="off"), ocr_again=True)) == {"a.pdf": "unchanged"}
        assert bench.found("page text") == []
        assert bench.outcomes(bench.run(ocr_again=True)) == {"a.pdf": "ingested"}
        assert bench.found("page text") == ["a.pdf"]

    def test_what_force_cannot_read_stays_as_it_was_read(self, bench: Bench, install: Install) -> None:
        install()
        bench.write("scan.pdf", build([picture(595, 842)]))
        bench.run()
        install("sys.exit(1)")
        force = IngestSettings(ocr="force")
        (report,) = bench.run(settings=force, ocr_again=True).reports
        assert report.outcome == "unchanged" and report.reason.startswith("What was read before stays: ")
        assert bench.found("OCR") == ["scan.pdf"]
        (report,) = bench.run(settings=force).reports
        assert (report.outcome, report.reason) == ("unchanged", ""), "it is not tried each time"


class TestRaisedLimits:
    BIG = "The walrus dives. " * 3_000

    @pytest.mark.parametrize("name", ["a.eml", "a.pdf", "a.zip", "mail in an archive.zip", "gz in an archive.zip"])
    def test_what_was_too_large_is_read_when_the_limit_is_raised(self, bench: Bench, name: str) -> None:
        small = gzip.compress(self.BIG.encode())
        mail = parts("mixed", PLAIN, attachment('filename="big.txt.gz"', small))
        contents = {
            "a.eml": mail,
            "a.pdf": build([text(72, 700, "See what is attached.")], attached=[("big.txt.gz", small)]),
            "a.zip": packed({"big.txt": self.BIG}),
            "mail in an archive.zip": packed({"a.eml": mail}),
            "gz in an archive.zip": packed({"big.txt.gz": small, "note.txt": "The otter swims."}),
        }
        bench.write(name, contents[name])
        low = IngestSettings(max_file_size=20_000)
        first = bench.outcomes(bench.run(settings=low))
        (big,) = [path for path, outcome in first.items() if outcome == "skipped"]
        with opened_files() as read:
            again = bench.outcomes(bench.run(settings=low))
        assert read == [] and again[big] == "skipped", "it is told of, and not opened while the limit is the same"
        assert bench.outcomes(bench.run(settings=IngestSettings(max_file_size=20_001)))[big] == "skipped"
        assert bench.outcomes(bench.run())[big] == "ingested"
        assert set(bench.found("walrus")) == {"big.txt"}
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}
        assert bench.outcomes(bench.run(settings=low))[big] == "unchanged", "a lower limit takes nothing away"

    def test_a_mail_of_an_older_library_is_looked_at_again(self, bench: Bench) -> None:
        small = gzip.compress(self.BIG.encode())
        bench.write("a.eml", parts("mixed", PLAIN, attachment('filename="big.txt.gz"', small)))
        bench.run(settings=IngestSettings(max_file_size=20_000))
        bench.library.forget_containers([str(bench.folder / "a.eml")])  # as an older program left it
        bench.run()
        assert set(bench.found("walrus")) == {"big.txt"}


class TestUnmountedFolders:
    @pytest.fixture(autouse=True)
    def points(self, monkeypatch: pytest.MonkeyPatch) -> set[str]:
        points: set[str] = set()
        monkeypatch.setattr(emptied, "mount_points", lambda: frozenset(points))
        return points

    @pytest.mark.parametrize("left", ["an empty folder", "nothing"])
    def test_documents_of_a_disk_below_the_folder_stay_while_it_is_not_there(
        self, bench: Bench, points: set[str], left: str
    ) -> None:
        disk = bench.folder / "disk"
        bench.write("here.md", "The badger sleeps.")
        file = bench.write("disk/sub/there.md", "The walrus dives.")
        points.add(os.path.realpath(disk))
        bench.run()
        points.clear()
        file.unlink()
        file.parent.rmdir()
        if left == "nothing":
            disk.rmdir()
        for more in ({}, {}, {"changed": {str(disk), str(file)}}, {"changed": {str(bench.folder)}}):
            done = bench.run(**more)
            assert "removed" not in bench.outcomes(done).values()
            assert [note for note in done.notes if f"no file in {disk} any more" in note and "--prune" in note]
            assert bench.found("walrus") == ["there.md"]
        disk.mkdir(exist_ok=True)  # the disk is back
        points.add(os.path.realpath(disk))
        bench.write("disk/sub/there.md", "The walrus dives.")
        assert bench.run().notes == ()
        file.unlink()
        bench.write("disk/other.md", "The otter swims.")
        assert bench.outcomes(bench.run())["disk/sub/there.md"] == "removed", "on a disk that is there, files may go"

    def test_prune_says_that_they_are_to_go(self, bench: Bench, points: set[str]) -> None:
        bench.write("here.md", "The badger sleeps.")
        file = bench.write("disk/there.md", "The walrus dives.")
        points.add(os.path.realpath(bench.folder / "disk"))
        bench.run()
        points.clear()
        file.unlink()
        assert bench.outcomes(bench.run(prune=True))["disk/there.md"] == "removed"
        assert bench.library.mounts() == []

    def test_a_folder_over_which_an_empty_disk_was_mounted_keeps_its_documents(
        self, bench: Bench, points: set[str]
    ) -> None:
        bench.write("here.md", "The badger sleeps.")
        file = bench.write("disk/there.md", "The walrus dives.")
        bench.run()
        file.unlink()
        points.add(os.path.realpath(bench.folder / "disk"))
        assert "removed" not in bench.outcomes(bench.run()).values()
        assert bench.found("walrus") == ["there.md"]

    def test_an_ordinary_folder_may_be_emptied(self, bench: Bench) -> None:
        bench.write("here.md", "The badger sleeps.")
        bench.write("sub/there.md", "The walrus dives.").unlink()
        bench.write("sub/gone.md", "The walrus dives.")
        bench.run()
        (bench.folder / "sub" / "gone.md").unlink()
        done = bench.run()
        assert bench.outcomes(done) == {"here.md": "unchanged", "sub/gone.md": "removed"} and done.notes == ()

    def test_documents_that_moved_off_the_disk_move(self, bench: Bench, points: set[str]) -> None:
        file = bench.write("disk/there.md", "The walrus dives.")
        points.add(os.path.realpath(bench.folder / "disk"))
        bench.run()
        file.rename(bench.folder / "there.md")
        assert bench.outcomes(bench.run()) == {"there.md": "unchanged"}


def test_the_report_names_the_languages_that_an_older_program_did_not_know(bench: Bench) -> None:
    bench.write("a.txt", "Der Dachs schläft am Tag und gräbt in der Nacht seine Höhle unter den alten Buchen. " * 4)
    bench.write("b.txt", "The walrus dives for clams in the cold water of the bay and rests on the ice. " * 4)
    bench.run()
    with bench.library._store.writing() as db:
        db.execute("UPDATE documents SET language = 'unknown', analysis = 1")
    done = bench.run()
    assert {Path(report.path).name: report.language for report in done.reports} == {"a.txt": "de", "b.txt": "en"}


def test_a_file_that_goes_while_others_are_read_is_no_failure_and_loses_nothing(bench: Bench) -> None:
    bench.write("box.zip", packed({"one.txt": "The otter swims."}))
    path = bench.write("a.txt", "The badger digs.")
    bench.run()
    bench.write("a.txt", "The badger sleeps.")
    bench.write("box.zip", packed({"one.txt": "The otter dives."}))
    events = bench.start()
    next(events)  # they were found
    path.unlink()
    (bench.folder / "box.zip").rename(bench.folder / "moved")
    done = list(events)[-1]
    assert isinstance(done, IngestDone)
    assert bench.outcomes(done) == {"a.txt": "skipped", "box.zip": "skipped"}
    assert {report.reason for report in done.reports} == {"It was gone when it was to be read."}
    assert bench.found("badger") == ["a.txt"] and bench.library.failures() == []
    assert bench.outcomes(bench.run()) == {
        "a.txt": "removed",
        "moved": "ingested",
        "moved!/one.txt": "ingested",
        "box.zip!/one.txt": "removed",
    }


def test_an_archive_that_goes_while_it_is_read_is_read_when_it_is_back(bench: Bench) -> None:
    path = bench.write("box.zip", packed({"one.txt": "The otter swims.", "two.txt": "The badger digs."}))
    real = ParserProcess.read

    def read(self: ParserProcess, asked: str, **options: object) -> object:
        if options["member"] == ("two.txt",):
            path.rename(bench.folder.parent / "away")
        return real(self, asked, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParserProcess, "read", read)
        done = bench.run()
    assert bench.outcomes(done)["box.zip!/two.txt"] == "skipped"
    (bench.folder.parent / "away").rename(path)
    assert bench.outcomes(bench.run())["box.zip!/two.txt"] == "ingested"
    assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}
