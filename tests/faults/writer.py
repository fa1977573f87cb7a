"""What the writer does in these tests: every kind of commit, on small vectors made by rule.

Run as a program it works on a folder and prints a line after each committed step; what fails is printed as
a user would see it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from edgerag.errors import EdgeragError, StorageFull
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, Touched, open_library
from edgerag.index.segments import SealSettings
from edgerag.types import Chunk, EmbedderIdentity, ParsedDocument, StoredChunk

if TYPE_CHECKING:
    from edgerag.types import Vectors

IDENTITY = EmbedderIdentity("by-rule", "ab" * 32, 16, ("*",))
# Blocks of one page, graphs from ten rows on, and two segments where one would do.
SMALL = SealSettings(block_bytes=4096, graph_rows=10, max_rows=40)
_BUDGET_BYTES = 10**8


@dataclass(frozen=True, slots=True)
class Step:
    """One thing the writer does. Each can be done again; after one with a single commit there is nothing between."""

    name: str
    run: Callable[[Library], object]
    commits: Literal["one", "many"] = "one"


@cache
def _direction(text: str) -> Vectors:
    seed = list(hashlib.sha256(text.encode()).digest())
    row = np.random.default_rng(seed).normal(size=IDENTITY.dimension).astype(np.float32)
    return row / np.linalg.norm(row)


def embed(texts: Sequence[str]) -> Vectors:
    """(len(texts), 16) unit rows, the same for the same text."""
    return np.array([_direction(text) for text in texts], dtype=np.float32).reshape(-1, IDENTITY.dimension)


def open_small(folder: Path, mode: Literal["read", "write"]) -> Library:
    return open_library(
        folder,
        mode=mode,
        residency=Residency(_BUDGET_BYTES),
        identity=IDENTITY if mode == "write" else None,
        seal_settings=SMALL,
    )


def put(library: Library, path: str, lines: Sequence[str]) -> None:
    chunks, start = [], 0
    for ordinal, line in enumerate(lines):
        chunks.append(Chunk(ordinal, start, start + len(line), line, (), None, None, ordinal + 1, ordinal + 1, 2))
        start += len(line) + 1
    text = "\n".join(lines)
    digest = hashlib.sha256(text.encode()).hexdigest()
    parsed = ParsedDocument(text=text, title=f"Title of {path}", media_type="text/plain")
    library.put_document(parsed, chunks, path=path, root="/docs", content_sha256=digest, size_bytes=1, mtime_ns=1)


def remove(library: Library, path: str) -> None:
    document = library.document_by_path(path)
    if document is not None:
        library.remove_documents([document.id])


def touch(library: Library, path: str) -> None:
    document = library.document_by_path(path)
    if document is not None:
        library.touch_documents([Touched(document.id, 2, 2)])


def tag(library: Library, path: str, name: str) -> None:
    document = library.document_by_path(path)
    if document is not None:
        library.tag_documents([document.id], [name])


def untag(library: Library, path: str, name: str) -> None:
    document = library.document_by_path(path)
    if document is not None:
        library.untag_documents([document.id], [name])


def embed_pending(library: Library) -> None:
    _put_vectors(library, library.pending_chunks(10**6))


def embed_to(library: Library, path: str, count: int) -> None:
    """Sees to it that so many chunks of a document have a vector."""
    document = library.document_by_path(path)
    if document is not None:
        missing = max(0, count - (document.chunk_count - document.pending_count))
        _put_vectors(library, [chunk for chunk in library.pending_chunks(10**6) if chunk.path == path][:missing])


def _put_vectors(library: Library, chunks: Sequence[StoredChunk]) -> None:
    if chunks:  # none when it was committed just before the process was stopped
        library.put_vectors([chunk.id for chunk in chunks], embed([chunk.chunk.embedding_text for chunk in chunks]))


def fail_to_read(library: Library) -> None:
    library.record_failure("/docs/bad", reason="unreadable", size_bytes=3, mtime_ns=3)


def lines(name: str, count: int) -> list[str]:
    return [f"{name} word{i}" for i in range(count)]


CHANGED = [*lines("a", 12)[:6], "a changed", *lines("a", 12)[7:]]

STEPS: list[Step] = [
    Step("put a", lambda library: put(library, "/docs/a", lines("a", 12))),
    Step("put b", lambda library: put(library, "/docs/b", lines("b", 12))),
    Step("embed a", lambda library: embed_to(library, "/docs/a", 12)),
    Step("embed b", lambda library: embed_to(library, "/docs/b", 12)),
    Step("seal the first segment, with a graph", Library.seal, "many"),
    Step("note a failure", fail_to_read),
    Step("put c", lambda library: put(library, "/docs/c", lines("c", 9))),
    Step("change a", lambda library: put(library, "/docs/a", CHANGED)),
    Step("remove b", lambda library: remove(library, "/docs/b")),
    Step("embed c and the change", embed_pending),
    Step("seal and merge what is half dead", Library.seal, "many"),
    Step("touch a", lambda library: touch(library, "/docs/a")),
    Step("tag a", lambda library: tag(library, "/docs/a", "kept")),
    Step("put d", lambda library: put(library, "/docs/d", lines("d", 5))),
    Step("embed d", embed_pending),
    Step("remove c", lambda library: remove(library, "/docs/c")),
    Step("seal and merge what is left", Library.seal, "many"),
    Step("put e", lambda library: put(library, "/docs/e", lines("e", 36))),
    Step("embed e, 1", lambda library: embed_to(library, "/docs/e", 12)),
    Step("embed e, 2", lambda library: embed_to(library, "/docs/e", 24)),
    Step("embed e, 3", lambda library: embed_to(library, "/docs/e", 36)),
    Step("seal two segments at once", Library.seal, "many"),
    Step("forget the failure", lambda library: library.clear_failure("/docs/bad")),
    Step("remove d", lambda library: remove(library, "/docs/d")),
    Step("tag e", lambda library: tag(library, "/docs/e", "new")),
    Step("untag a", lambda library: untag(library, "/docs/a", "kept")),
    Step("put f", lambda library: put(library, "/docs/f", lines("f", 3))),
    Step("embed f", embed_pending),
    Step("compact", Library.compact, "many"),
    Step("seal with nothing to do", Library.seal),
]


def run(folder: Path, *, start: int, report: Callable[[int], None], retries: int = 0) -> None:
    """Opens the library and does the steps from ``start`` on; ``report`` gets the number of steps done, 0 when open.

    What fails for want of room is tried again ``retries`` times, as a user would after making some.
    """

    def tried(action: Callable[[], Any]) -> Any:
        nonlocal retries
        while True:
            try:
                return action()
            except StorageFull:
                if not retries:
                    raise
                retries -= 1

    with tried(lambda: open_small(folder, "write")) as library:
        report(start)
        for number in range(start, len(STEPS)):
            tried(partial(STEPS[number].run, library))
            report(number + 1)


def main() -> int:
    def report(done: int) -> None:
        sys.stdout.write(f"{done} {STEPS[done - 1].name if done else 'open'}\n")
        sys.stdout.flush()

    try:
        run(Path(sys.argv[1]), start=int(sys.argv[2]) if len(sys.argv) > 2 else 0, report=report)
    except EdgeragError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
