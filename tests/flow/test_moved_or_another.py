"""A new file with size and time of one that is gone: never does one file's text stand under another's name."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from unit.index import golden_libraries as golden

from edgerag.ingest.pipeline import _Run
from edgerag.session import Session

WHOLE_SECONDS, TO_THE_NANOSECOND = 1_700_000_000 * 10**9, 1_700_000_000 * 10**9 + 123_456_789


def write(path: Path, text: str, mtime_ns: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(mtime_ns, mtime_ns))


def texts(session: Session) -> dict[str, str]:
    documents = session.documents()
    return {Path(each.path).name: session.parsed_document(each.id).text for each in documents}


class Stopped(Exception):
    """The run ended here."""


@pytest.mark.parametrize("new", ["other.txt", "below/first.txt"])
def test_another_file_of_the_same_size_and_time_is_not_taken_for_one_that_moved(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: str
) -> None:
    docs = tmp_path / "docs"
    write(docs / "first.txt", "The heron waits.", WHOLE_SECONDS)
    with golden.session(home) as session:
        list(session.ingest([docs]))
        (docs / "first.txt").unlink()
        write(docs / new, "The otter swims.", WHOLE_SECONDS)

        def stop(*_: object) -> None:
            raise Stopped

        with monkeypatch.context() as patch:  # stopped before it is read
            patch.setattr(_Run, "_read_and_embed", stop)
            with pytest.raises(Stopped):
                list(session.ingest([docs]))
        assert "The heron waits." not in [text for name, text in texts(session).items() if name == Path(new).name]
        list(session.ingest([docs]))
        assert texts(session) == {Path(new).name: "The otter swims."}


@pytest.mark.parametrize("mtime_ns", [WHOLE_SECONDS, TO_THE_NANOSECOND])
def test_a_file_that_moved_is_moved(home: Path, tmp_path: Path, mtime_ns: int) -> None:
    docs = tmp_path / "docs"
    write(docs / "first.txt", "The heron waits.", mtime_ns)
    with golden.session(home) as session:
        list(session.ingest([docs]))
        (docs / "below").mkdir()
        (docs / "first.txt").rename(docs / "below" / "first.txt")
        *_, done = session.ingest([docs])
        assert [report.moved_from for report in done.reports] == [str(docs / "first.txt")]
        assert done.chunks_embedded == 0


def packed(path: Path, text: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("inner.txt"), text)
    os.utime(path, ns=(WHOLE_SECONDS, WHOLE_SECONDS))


def test_another_archive_of_the_same_size_and_time_is_not_taken_for_one_that_moved(home: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    packed(docs / "first.zip", "The heron waits.")
    with golden.session(home) as session:
        list(session.ingest([docs]))
        (docs / "first.zip").unlink()
        packed(docs / "other.zip", "The otter swims.")
        *_, done = session.ingest([docs])
        assert not any(report.moved_from for report in done.reports)
        assert texts(session) == {"inner.txt": "The otter swims."}
        (docs / "below").mkdir()
        (docs / "other.zip").rename(docs / "below" / "other.zip")
        *_, done = session.ingest([docs])
        assert str(docs / "other.zip!" / "inner.txt") in [report.moved_from for report in done.reports]
