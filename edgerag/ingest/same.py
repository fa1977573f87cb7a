"""Whether what cannot be read now is what the library has the text of: then nothing is lost, whatever is missing.

A file whose checksum is the known one says what it said, also where its password is not at hand today, or the OCR that
read it. So does a member of an archive that is the same as a whole. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgerag.ingest.ahead import WasRead
from edgerag.ingest.parse.wire import Failed, FileState
from edgerag.types import Document


def lies_in(document: Document, around_sha256: str, *, size_bytes: int) -> bool:
    """Whether it was read from the archive or mail that has this checksum and size. Libraries of before version 10
    have no checksum of it: there the size tells."""
    if not around_sha256:
        return False
    return (document.around_sha256 or around_sha256) == around_sha256 and document.size_bytes == size_bytes


def state_before(
    result: WasRead, failed: Failed, document: Document | None, held: Sequence[Document], *, is_whole: bool
) -> FileState | None:
    """The state in which a file, or a member of one, that cannot be read now was read in an earlier run, if that is
    its present one; else None.

    ``document`` is what it says itself, ``held`` what lies in it. ``is_whole``: all that lay in the file on the disk
    was looked at then.
    """
    if held and not is_whole:
        return None
    around = result.around_sha256 if result.member else failed.sha256
    size_bytes = result.candidate.size_bytes
    if failed.sha256 and document is not None:
        same = document.content_sha256 == failed.sha256
    else:
        inside = [document] if document is not None else held
        same = bool(inside) and all(lies_in(each, around, size_bytes=size_bytes) for each in inside)
    if not same:
        return None
    own = failed.sha256 or (document.content_sha256 if document is not None else "")
    content_bytes = 0 if document is None else document.content_bytes
    return FileState(own, size_bytes, result.candidate.mtime_ns, content_bytes)
