"""Libraries, conversations and traces as earlier versions of the program left them: see tests/golden/libraries."""

from __future__ import annotations

import hashlib
import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

from fakes import HashingEmbedder, ScriptedGenerator

from edgerag.config import Settings
from edgerag.index.library import Library
from edgerag.locations import Locations
from edgerag.session import Session

FOLDER = Path(__file__).parents[2] / "golden" / "libraries"
NEVER_LEFT_A_COMMIT = {4}
DIMENSION = 32
VERSIONS = sorted(int(path.name[9:11]) for path in FOLDER.glob("library-v*.tar.xz"))


def unpack(home: Path, version: int) -> Path:
    """The folder of the library of that version, as the default one of ``home``."""
    folder = home / "indexes" / "default"
    folder.mkdir(parents=True, mode=0o700)
    with tarfile.open(FOLDER / f"library-v{version:02}.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder


def unpack_private(home: Path, kind: str, version: int) -> Path:
    path = home / f"{kind}.sqlite"
    path.write_bytes(lzma.decompress((FOLDER / f"{kind}-v{version}.sqlite.xz").read_bytes()))
    return path


def expected(version: int) -> dict[str, Any]:
    return read(f"library-v{version:02}.json")


def read(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return value


def session(home: Path) -> Session:
    embedder = HashingEmbedder(dimension=DIMENSION)
    return Session(Settings(), Locations(home), embedder=lambda: embedder, generator=ScriptedGenerator)


def found(library: Library) -> dict[str, Any]:
    """As make.py asked the program of that time."""
    return {
        "documents": {document.path: _facts(library, document) for document in library.documents()},
        "failures": sorted(failure.path for failure in library.failures()),
        "pending": library.pending_count(),
    }


def _facts(library: Library, document: Any) -> dict[str, Any]:
    parsed = library.parsed_document(document.id)
    return {
        "title": document.title,
        "media_type": document.media_type,
        "text_sha256": hashlib.sha256(parsed.text.encode()).hexdigest(),
        "headings": [heading.title for heading in parsed.headings],
        "tags": list(document.tags),
    }


def answers(library: Library, query: str) -> tuple[list[list[Any]], list[list[Any]]]:
    """(passages that have the words, passages by vector with their cosine)"""
    vector = HashingEmbedder(dimension=DIMENSION).embed_query(query)
    words = library.search_keywords(query, limit=20)
    near = library.search_vectors(vector, limit=20, ef_search=64)
    stored = {each.id: each for each in library.chunks([hit.chunk_id for hit in [*words, *near]])}

    def place(chunk_id: int) -> list[Any]:
        one = stored[chunk_id].chunk
        return [stored[chunk_id].path, one.start, one.end, one.line_first, one.text]

    return [place(hit.chunk_id) for hit in words], [[*place(hit.chunk_id), hit.score] for hit in near]
