"""Files in files, files that move, and texts that stand in several files: whole runs over real folders."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes import HashingEmbedder
from flow.test_ingest import Bench
from unit.ingest import craft
from unit.ingest.fake_tesseract import Install, install
from unit.ingest.mail_craft import PLAIN, attachment, parts
from unit.ingest.pdf_craft import build, picture, text

from edgerag.config import IngestSettings
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library
from edgerag.index.segments import SealSettings
from edgerag.index.store import Store
from edgerag.ingest.parse.process import ParserProcess
from edgerag.types import Filter

__all__ = ["install"]


def long_text(subject: str) -> str:
    return f"The {subject} is described at some length, so that the passage stands for itself. " * 6


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    embedder = HashingEmbedder()
    (tmp_path / "docs").mkdir()
    with open_library(
        tmp_path / "library",
        mode="write",
        residency=Residency(64_000_000),
        identity=embedder.identity,
        seal_settings=SealSettings(),
    ) as library:
        yield Bench(tmp_path / "docs", library, embedder)


def packed(files: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def with_a_link(files: Mapping[str, str | bytes]) -> bytes:
    """An archive that is a document itself, because something has to be said of it."""
    out = io.BytesIO(packed(files))
    with zipfile.ZipFile(out, "a") as archive:
        entry = zipfile.ZipInfo("link.txt")
        entry.create_system, entry.external_attr = 3, 0o120777 << 16
        archive.writestr(entry, "one.txt")
    return out.getvalue()


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The files that a parser is asked for meanwhile."""
    asked: list[str] = []
    real = ParserProcess.read

    def read(self: ParserProcess, path: str, **options: object) -> object:
        asked.append(path)
        return real(self, path, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParserProcess, "read", read)
        yield asked


class TestArchives:
    def test_every_file_in_an_archive_is_a_document_of_its_own(self, bench: Bench) -> None:
        inner = packed({"deep.md": "# Lynx\n\nThe lynx hunts at dusk."})
        bench.write(
            "box.zip", packed({"a/one.txt": "The badger digs.", "two.md": "# Otter\n\nIt swims.", "in.zip": inner})
        )
        done = bench.run()
        assert bench.outcomes(done) == {
            "box.zip": "ingested",
            "box.zip!/a/one.txt": "ingested",
            "box.zip!/two.md": "ingested",
            "box.zip!/in.zip": "ingested",
            "box.zip!/in.zip!/deep.md": "ingested",
        }
        assert next(report.reason for report in done.reports if report.path.endswith("box.zip")) == "It holds 3 files."
        assert bench.found("lynx") == ["deep.md"]
        assert bench.found_by_vector("badger")[0] == "one.txt"

    def test_an_archive_that_did_not_change_is_not_opened(self, bench: Bench) -> None:
        bench.write("box.zip", packed({"one.txt": "The badger digs.", "bad.docx": b"PK\x03\x04 no more"}))
        first = bench.outcomes(bench.run())
        assert first["box.zip!/bad.docx"] == "failed"
        again = bench.run()
        assert bench.outcomes(again) == {
            "box.zip": "unchanged",
            "box.zip!/one.txt": "unchanged",
            "box.zip!/bad.docx": "failed",
        }
        assert bench.embedder.embedded == []

    def test_only_what_changed_in_it_is_read_again(self, bench: Bench) -> None:
        bench.write(
            "box.zip", packed({"one.txt": "The badger digs.", "two.txt": "The otter swims.", "old.txt": "Gone."})
        )
        bench.run()
        bench.write(
            "box.zip", packed({"one.txt": "The badger digs.", "two.txt": "The otter dives deep.", "new.txt": "New."})
        )
        done = bench.run()
        assert bench.outcomes(done) == {
            "box.zip": "ingested",
            "box.zip!/one.txt": "unchanged",
            "box.zip!/two.txt": "ingested",
            "box.zip!/new.txt": "ingested",
            "box.zip!/old.txt": "removed",
        }
        assert len(bench.embedder.embedded) == 2
        assert bench.found("gone") == []
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}

    def test_an_archive_that_is_gone_takes_its_documents_along(self, bench: Bench) -> None:
        bench.write("empty.txt", "")
        path = bench.write("box.zip", packed({"one.txt": "The badger digs.", "bad.docx": b"PK\x03\x04 no more"}))
        bench.run()
        path.unlink()
        done = bench.run()
        assert bench.outcomes(done) == {"box.zip!/one.txt": "removed", "empty.txt": "skipped"}
        assert bench.library.documents() == []
        assert bench.library.failures() == []
        assert bench.library.containers() == {}

    def test_what_is_no_archive_any_more_loses_its_members(self, bench: Bench) -> None:
        bench.write("box.zip", packed({"one.txt": "The badger digs."}))
        bench.run()
        bench.write("box.zip", "Now it is a text about walruses.")
        done = bench.run()
        assert bench.outcomes(done) == {"box.zip": "ingested", "box.zip!/one.txt": "removed"}
        assert bench.found("badger") == []
        bench.write("box.zip", packed({"one.txt": "The badger digs."}))
        assert bench.outcomes(bench.run()) == {"box.zip": "removed", "box.zip!/one.txt": "ingested"} or bench.found(
            "badger"
        ) == ["one.txt"]
        assert bench.found("walruses") == []

    @pytest.mark.parametrize("removed", ["box.zip!/one.txt", "box.zip!/in.zip!/deep.txt"])
    def test_what_was_removed_from_the_library_comes_back(self, bench: Bench, removed: str) -> None:
        inner = packed({"deep.txt": "The lynx hunts."})
        bench.write("box.zip", packed({"one.txt": "The badger digs.", "in.zip": inner}))
        bench.run()
        document = bench.library.document_by_path(str(bench.folder / removed))
        assert document is not None
        bench.library.remove_documents([document.id])
        outcomes = bench.outcomes(bench.run())
        assert outcomes[removed] == "ingested"
        assert "removed" not in outcomes.values()
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}

    def test_a_limit_that_is_raised_lets_in_what_was_too_large(self, bench: Bench) -> None:
        bench.write("box.zip", packed({"big.txt": long_text("badger"), "small.txt": "The otter swims."}))
        small = IngestSettings(max_file_size=350)
        assert bench.outcomes(bench.run(settings=small))["box.zip!/big.txt"] == "skipped"
        assert bench.outcomes(bench.run(settings=small))["box.zip!/big.txt"] == "skipped"
        assert bench.outcomes(bench.run())["box.zip!/big.txt"] == "ingested"
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}

    def test_an_archive_is_a_place_to_search_in(self, bench: Bench) -> None:
        bench.write("box.zip", packed({"one.txt": "The badger digs."}))
        bench.write("box.zip.txt", "The badger sleeps.")
        bench.run()
        where = Filter(paths=(str(bench.folder / "box.zip"),))
        hits = bench.library.search_keywords("badger", limit=5, where=where)
        assert [Path(chunk.path).name for chunk in bench.library.chunks([hit.chunk_id for hit in hits])] == ["one.txt"]

    def test_a_run_that_was_stopped_inside_an_archive_goes_on_there(self, bench: Bench) -> None:
        bench.write("box.zip", packed({f"{n}.txt": long_text(f"thing {n}") for n in range(9)}))
        stored = 0

        def cancelled() -> bool:
            return len(bench.library.documents()) >= 4

        for _ in bench.start(cancelled=cancelled):
            pass
        stored = len(bench.library.documents())
        assert 4 <= stored < 9
        outcomes = bench.outcomes(bench.run())
        assert len(bench.library.documents()) == 9
        assert sum(outcome == "unchanged" for outcome in outcomes.values()) == stored

    def test_a_folder_whose_name_ends_like_an_archives_is_a_folder(self, bench: Bench) -> None:
        path = bench.write("wow!/one.txt", "The badger digs.")
        bench.run()
        assert bench.outcomes(bench.run()) == {"wow!/one.txt": "unchanged"}
        path.unlink()
        assert bench.outcomes(bench.run(prune=True)) == {"wow!/one.txt": "removed"}

    def test_an_archive_with_a_protected_file_is_opened_again_when_there_is_a_password(self, bench: Bench) -> None:
        locked = build([text(72, 700, "The heron stands in shallow water.")], user_password="foo")
        bench.write("box.zip", packed({"one.txt": "The badger digs.", "locked.pdf": locked}))
        bench.write("alone.pdf", locked)
        bench.run()
        with opened_files() as read:
            again = bench.run()
        assert read == []
        assert bench.outcomes(again) == {
            "alone.pdf": "failed",
            "box.zip": "unchanged",
            "box.zip!/one.txt": "unchanged",
            "box.zip!/locked.pdf": "failed",
        }
        done = bench.run(passwords=("foo",))
        assert bench.outcomes(done)["box.zip!/locked.pdf"] == bench.outcomes(done)["alone.pdf"] == "ingested"
        assert sorted(bench.found("heron")) == ["alone.pdf", "locked.pdf"]
        assert bench.library.failures() == []
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}

    @pytest.mark.parametrize("kind", ["mail", "mail in an archive", "archive with a warning", "PDF"])
    @pytest.mark.parametrize("way", ["folder", "named", "moved"])
    def test_a_document_with_a_protected_file_is_opened_again_when_there_is_a_password(
        self, bench: Bench, kind: str, way: str
    ) -> None:
        locked = build([text(72, 700, "The heron stands in shallow water.")], user_password="foo")
        mail = parts("mixed", PLAIN, attachment('filename="locked.pdf"', locked))
        match kind:
            case "mail":
                name, content, inner = "a.eml", mail, "a.eml!/locked.pdf"
            case "mail in an archive":
                name, content, inner = "a.zip", packed({"a.eml": mail}), "a.zip!/a.eml!/locked.pdf"
            case "PDF":
                attached = build([text(72, 700, "See what is attached.")], attached=[("locked.pdf", locked)])
                name, content, inner = "a.pdf", attached, "a.pdf!/locked.pdf"
            case _:
                name, content, inner = "a.zip", with_a_link({"locked.pdf": locked}), "a.zip!/locked.pdf"
        path = bench.write(name, content)
        assert bench.outcomes(bench.run())[inner] == "failed"
        if way == "moved":
            (bench.folder / "new").mkdir()
            path, inner = path.rename(bench.folder / "new" / name), f"new/{inner}"
            assert bench.outcomes(bench.run())[inner] == "failed"
            assert [failure.path for failure in bench.library.failures()] == [str(bench.folder / inner)]
        done = bench.run(*([path] if way == "named" else []), passwords=("foo",))
        assert bench.outcomes(done)[inner] == "ingested"
        assert bench.found("heron") == ["locked.pdf"]
        assert bench.library.failures() == []
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}

    def test_a_limit_that_is_raised_lets_in_what_was_too_large_in_a_mail(self, bench: Bench) -> None:
        box = packed({"big.txt": long_text("badger") * 50})
        small_one = attachment('filename="small.txt"', b"The otter swims.")
        path = bench.write("a.eml", parts("mixed", PLAIN, attachment('filename="box.zip"', box), small_one))
        small = IngestSettings(max_file_size=path.stat().st_size + 100)
        assert bench.outcomes(bench.run(settings=small))["a.eml!/box.zip!/big.txt"] == "skipped"
        assert bench.outcomes(bench.run())["a.eml!/box.zip!/big.txt"] == "ingested"
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}

    def test_a_scan_is_read_again_when_there_is_what_reads_it(self, bench: Bench, install: Install) -> None:
        bench.write("scan.pdf", build([picture(595, 842)]))
        off = IngestSettings(ocr="off")
        assert bench.outcomes(bench.run(settings=off)) == {"scan.pdf": "failed"}
        with opened_files() as read:
            assert bench.outcomes(bench.run(settings=off)) == {"scan.pdf": "failed"}
        assert read == []
        install()
        assert bench.outcomes(bench.run()) == {"scan.pdf": "ingested"}

    def test_two_files_of_one_name_are_both_there(self, bench: Bench) -> None:
        out = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
            warnings.simplefilter("ignore")
            for words in ("The badger digs.", "The otter swims.", "The lynx hunts."):
                archive.writestr("a/one.txt", words)
        bench.write("box.zip", out.getvalue())
        bench.run()
        names = [bench.found(word) for word in ("badger", "otter", "lynx")]
        assert names == [["one (2).txt"], ["one (3).txt"], ["one.txt"]]
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}

    @pytest.mark.parametrize("kind", ["tar", "zip"])
    def test_links_in_an_archive_are_named(self, bench: Bench, kind: str) -> None:
        out = io.BytesIO()
        if kind == "tar":
            with tarfile.open(fileobj=out, mode="w") as archive:
                info = tarfile.TarInfo("one.txt")
                info.size = 5
                archive.addfile(info, io.BytesIO(b"words"))
                for name, of in (("soft.txt", tarfile.SYMTYPE), ("hard.txt", tarfile.LNKTYPE)):
                    link = tarfile.TarInfo(name)
                    link.type, link.linkname = of, "one.txt"
                    archive.addfile(link)
        else:
            with zipfile.ZipFile(out, "w") as packing:
                packing.writestr("one.txt", "words")
                for name in ("soft.txt", "hard.txt"):
                    entry = zipfile.ZipInfo(name)
                    entry.create_system, entry.external_attr = 3, 0o120777 << 16
                    packing.writestr(entry, "one.txt")
        bench.write(f"box.{kind}", out.getvalue())
        for _ in range(2):
            (report,) = (report for report in bench.run().reports if report.path.endswith(f"box.{kind}"))
            assert report.warnings == ("2 links in it are not followed: soft.txt, hard.txt.",)
        assert bench.found("words") == ["one.txt"]

    def test_copies_of_an_archive_are_embedded_once(self, bench: Bench) -> None:
        box = packed({f"{n}.txt": long_text(f"thing {n}") for n in range(5)})
        for name in ("a/box.zip", "b/box.zip", "copy of box.zip"):
            bench.write(name, box)
        bench.run(settings=IngestSettings(batch_chunks=2))
        once = len(bench.embedder.embedded)
        assert once == len(set(bench.embedder.embedded)) == bench.library.chunk_count() // 3
        bench.write("c/box.zip", box)
        bench.run()
        assert bench.embedder.embedded == []
        assert bench.library.pending_count() == 0

    def test_a_bomb_of_archives_ends(self, bench: Bench) -> None:
        data = packed({"x.txt": "x" * 1000})
        for _ in range(6):
            data = packed({f"{n}.zip": data for n in range(3)})
        bench.write("bomb.zip", data)
        done = bench.run()
        reasons = {report.reason for report in done.reports if report.outcome == "skipped"}
        assert any("archives, one in the other" in reason for reason in reasons)
        assert len(done.reports) < 200

    def test_a_tar_is_an_archive_too(self, bench: Bench) -> None:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            for name in ("one.txt", "two.txt"):
                data = f"The {name} file.".encode()
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        bench.write("box.tar.gz", out.getvalue())
        assert set(bench.outcomes(bench.run())) == {"box.tar.gz", "box.tar.gz!/one.txt", "box.tar.gz!/two.txt"}


class TestMoved:
    def test_a_moved_file_is_moved_and_nothing_is_embedded(self, bench: Bench) -> None:
        path = bench.write("a.txt", long_text("badger"))
        bench.run()
        (before,) = bench.library.documents()
        (bench.folder / "sub").mkdir()
        shutil.move(path, bench.folder / "sub" / "a.txt")
        done = bench.run()
        assert bench.outcomes(done) == {"sub/a.txt": "unchanged"}
        assert done.reports[0].reason == f"It was {path}."
        assert bench.embedder.embedded == []
        (after,) = bench.library.documents()
        assert (after.id, after.path) == (before.id, str(bench.folder / "sub" / "a.txt"))
        assert bench.found("badger") == ["a.txt"]
        assert bench.found_by_vector("badger") == ["a.txt"]

    def test_a_renamed_file_has_its_new_name_as_title(self, bench: Bench) -> None:
        path = bench.write("a.txt", long_text("badger"))
        bench.run()
        path.rename(bench.folder / "b.txt")
        assert bench.outcomes(bench.run()) == {"b.txt": "ingested"}
        assert [document.title for document in bench.library.documents()] == ["b.txt"]

    def test_a_moved_folder_of_files_with_one_time_is_told_by_names(self, bench: Bench) -> None:
        for name in ("one", "two"):
            path = bench.write(f"old/{name}.txt", long_text(name))
            os.utime(path, ns=(10**18, 10**18))
        bench.run()
        (bench.folder / "old").rename(bench.folder / "new")
        assert bench.outcomes(bench.run()) == {"new/one.txt": "unchanged", "new/two.txt": "unchanged"}
        assert bench.embedder.embedded == []
        assert bench.found("one") == ["one.txt"]

    def test_a_moved_folder_is_a_few_transactions(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(150):
            bench.write(f"old/{number}.txt", f"The thing number {number}.")
        bench.write("old/box.zip", packed({"one.txt": long_text("badger"), "two.txt": long_text("otter")}))
        bench.run()
        (bench.folder / "old").rename(bench.folder / "new")
        transactions = []
        real = Store.writing
        monkeypatch.setattr(Store, "writing", lambda store: (transactions.append(1), real(store))[1])
        outcomes = bench.outcomes(bench.run())
        assert len(outcomes) == 153 and set(outcomes.values()) <= {"unchanged", "ingested"}
        assert bench.embedder.embedded == []
        assert len(transactions) < 10
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}

    def test_touched_files_are_told_together(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(100):
            bench.write(f"{number}.txt", f"The thing number {number}.")
        bench.run()
        for path in bench.folder.iterdir():
            os.utime(path, ns=(10**18, 10**18))
        transactions = []
        real = Store.writing
        monkeypatch.setattr(Store, "writing", lambda store: (transactions.append(1), real(store))[1])
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}
        assert len(transactions) < 10
        with opened_files() as read:
            bench.run()
        assert read == []

    def test_a_moved_archive_keeps_its_documents(self, bench: Bench) -> None:
        path = bench.write("box.zip", packed({"one.txt": long_text("badger"), "two.txt": long_text("otter")}))
        bench.run()
        path.rename(bench.folder / "crate.zip")
        done = bench.run()
        assert bench.outcomes(done) == {
            "crate.zip": "ingested",
            "crate.zip!/one.txt": "unchanged",
            "crate.zip!/two.txt": "unchanged",
        }
        assert bench.embedder.embedded == []
        assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}

    def test_an_archive_moved_over_one_that_was_partly_removed(self, bench: Bench) -> None:
        old = bench.write("box.zip", packed({"one.txt": long_text("badger")}))
        bench.write("crate.zip", packed({"one.txt": long_text("otter"), "two.txt": "The lynx hunts."}))
        bench.run()
        removed = bench.library.document_by_path(str(bench.folder / "crate.zip!/two.txt"))
        assert removed is not None
        bench.library.remove_documents([removed.id])
        old.replace(bench.folder / "crate.zip")
        bench.run()
        assert [Path(document.path).parent.name for document in bench.library.documents()] == ["crate.zip!"]
        assert bench.found("badger") == ["one.txt"]
        assert bench.found("otter") == []

    def test_a_failure_in_a_moved_archive_is_told_once(self, bench: Bench) -> None:
        path = bench.write("box.zip", packed({"one.txt": long_text("badger"), "bad.docx": b"PK\x03\x04 no more"}))
        bench.run()
        path.rename(bench.folder / "crate.zip")
        bench.run()
        assert [Path(failure.path).parent.name for failure in bench.library.failures()] == ["crate.zip!"]

    def test_another_file_of_the_same_size_and_time_is_not_taken_for_it(self, bench: Bench) -> None:
        path = bench.write("a.txt", "The badger digs.")
        stat = path.stat()
        bench.run()
        path.unlink()
        other = bench.write("sub/a.txt", "The walrus dives")
        os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert bench.outcomes(bench.run()) == {"sub/a.txt": "ingested"}
        assert bench.found("walrus") == ["a.txt"]
        assert bench.found("badger") == []


class TestTwins:
    @pytest.mark.parametrize("later", [False, True])
    def test_a_text_in_two_files_is_embedded_once_and_found_in_both(self, bench: Bench, later: bool) -> None:
        bench.write("a/same.txt", long_text("badger"))
        if later:
            bench.run()
        bench.write("b/same.txt", long_text("badger"))
        bench.run()
        assert len(bench.embedder.embedded) == (0 if later else 1)
        assert len(bench.library.documents()) == 2
        assert bench.library.pending_count() == 0
        assert sorted(bench.found_by_vector("badger")) == ["same.txt", "same.txt"]
        hits = bench.library.search_vectors(bench.embedder.embed_query("badger"), limit=2, ef_search=50)
        assert hits[0].score == pytest.approx(hits[1].score, abs=1e-3)

    def test_a_hit_names_the_other_files_with_the_same_content(self, bench: Bench) -> None:
        names = ("a/same.txt", "b/copy.txt", os.fsdecode(b"c/\xff\x22odd.txt"))
        for name in names:
            bench.write(name, long_text("badger"))
        bench.write("d/other.txt", long_text("otter"))
        bench.run()
        hits = bench.library.search_keywords("badger", limit=5)
        chunks = bench.library.chunks([hit.chunk_id for hit in hits])
        paths = sorted(str(bench.folder / name) for name in names)
        assert sorted(chunk.path for chunk in chunks) == paths
        for chunk in chunks:
            assert chunk.also_in == tuple(path for path in paths if path != chunk.path)

    def test_one_goes_and_the_other_stays(self, bench: Bench) -> None:
        path = bench.write("a/same.txt", long_text("badger"))
        bench.write("b/same.txt", long_text("badger"))
        bench.run()
        path.unlink()
        bench.run()
        assert bench.found_by_vector("badger") == ["same.txt"]
        assert {finding.severity for finding in bench.library.verify()} == {"ok"}


def test_a_mail_is_a_document_and_so_is_what_is_attached(bench: Bench) -> None:
    document = craft.docx(craft.paragraph("The marten climbs at night."))
    out = io.BytesIO()
    from email.message import EmailMessage

    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.org", "b@example.org", "Forest report"
    message.set_content("The heron stands in shallow water.")
    message.add_attachment(document, maintype="application", subtype="octet-stream", filename="report.docx")
    out.write(bytes(message))
    bench.write("mail.eml", out.getvalue())
    assert bench.outcomes(bench.run()) == {"mail.eml": "ingested", "mail.eml!/report.docx": "ingested"}
    assert bench.found("heron") == ["mail.eml"]
    assert bench.found("marten") == ["report.docx"]
    assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}
    os.utime(bench.folder / "mail.eml")
    assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}
    assert set(bench.outcomes(bench.run()).values()) == {"unchanged"}
