"""Pages of a document's file as they are seen, drawn by a parser process of their own.

A page is drawn only while the file is the one that was read: its checksum is compared each time. Drawing a page is
parsing a hostile file, so the process has the fence of the ingest (parse/process.py): no network, no file to write, a
bound on memory and time.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable
from pathlib import Path

from edgerag.config import IngestSettings
from edgerag.errors import DocumentChanged, DocumentEncrypted, DocumentGone, DocumentUnsupported
from edgerag.ingest.member_paths import outer_path
from edgerag.ingest.parse.process import ParserProcess
from edgerag.ingest.parse.wire import Failed
from edgerag.types import MEMBER_MARK, PICTURED, Document, PagePicture, PageWanted

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class PagePictures:
    """The pages of one document. One is drawn at a time; ``close`` ends the process."""

    def __init__(self, document: Document, settings: IngestSettings) -> None:
        """Raises DocumentUnsupported for a document without pages that can be drawn."""
        if document.media_type != PICTURED:
            raise DocumentUnsupported("Only pages of a PDF can be shown as pictures.")
        self._sha256 = document.content_sha256
        self._path, self._member = _on_disk(document.path)
        self._lock = threading.Lock()
        self._parser = ParserProcess(
            memory_bytes=settings.parse_memory,
            max_file_bytes=settings.max_file_size,
            deadline_s=settings.parse_deadline_s,
        )

    def draw(self, wanted: PageWanted, *, stopped: Callable[[], bool] = lambda: False) -> PagePicture | None:
        """The page, or None when ``stopped()`` turned true meanwhile.

        Raises DocumentError: DocumentGone where the file is not there any more, DocumentChanged where it is another
        one than was read, DocumentEncrypted, DocumentDamaged, ParserDied.
        """
        with self._lock:
            if stopped():
                return None
            drawn = self._parser.view(self._path, wanted, member=self._member, stopped=stopped)
        if drawn is None:
            return None
        if isinstance(drawn, Failed):
            raise _in_its_place(self._path) or _said(drawn)
        if drawn.sha256 != self._sha256:
            raise DocumentChanged(
                "The file has changed since it was read: its pages may say something else.",
                remedy="Ingest it again to see it as it is.",
            )
        return drawn.picture

    def close(self) -> None:
        """Waits for a page that is being drawn; who asked for it is to be stopped before."""
        with self._lock:
            self._parser.close()


def _on_disk(path: str) -> tuple[str, tuple[str, ...]]:
    """The file, and the way to the document inside it."""
    outer = "" if Path(path).is_file() else outer_path(path, lambda start: Path(start).is_file())
    return (outer, tuple(path[len(outer) + len(MEMBER_MARK) :].split(MEMBER_MARK))) if outer else (path, ())


def _in_its_place(path: str) -> DocumentGone | None:
    """What stands where the file was; None where it is a file, or nothing."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return None
    kind = next((name for test, name in _KINDS if test(mode)), "something else")
    return DocumentGone(f"{Path(path).name} is no file any more but {kind}; this is the text that was read from it.")


def _said(failed: Failed) -> Exception:
    """The error, in words for who looks at a page."""
    match failed.error:
        case DocumentGone():
            return DocumentGone("The file is no longer where it was read.")
        case DocumentEncrypted():
            return DocumentEncrypted("The PDF is protected by a password, which is not kept.")
        case _:
            return failed.error
