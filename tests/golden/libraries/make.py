"""Made library-vNN.tar.xz and library-vNN.json: each with the program of the last commit that had that version.

    python tests/golden/libraries/make.py COMMIT

Takes the program out of the commit, makes a small library with it as a user would (files of several languages, an
archive, a damaged file, a copy of a file, tags, a removed document, a run that was stopped before its vectors were
sealed and one before they were made), asks that program what it finds in it, and stores both here. Runs once for each
version, before the next one: that the old file still opens is the point. See README.md.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[2]
# Paths are part of a library: these, whoever makes it.
DOCS = Path("/golden-docs")
DIMENSION = 32  # of the vectors, so that the file is small
_AS_OF_S = 1_700_000_000
QUERIES = (
    "torque of the lid screws",
    "Drehmoment der Deckelschrauben",
    "pression de la chaudière",
    "давление в котле",
    "ポンプの圧力",
    "heron",
    "otter",
    "lynx",
)
TEXTS = {
    "manual/pump.md": "# Pump\n\nThe torque of the lid screws is 12 Nm.\n\n## Service\n\nGrease the shaft every"
    " year.\n",
    "manual/copy-of-pump.md": "# Pump\n\nThe torque of the lid screws is 12 Nm.\n\n## Service\n\nGrease the shaft every"
    " year.\n",
    "manual/pumpe.md": "# Pumpe\n\nDas Drehmoment der Deckelschrauben beträgt 12 Nm. Häuser und Straßen sind groß.\n",
    "notes/chaudiere.txt": "La pression de la chaudière ne dépasse pas trois bars.\n",
    "notes/kotel.txt": "Давление в котле не должно превышать трёх бар. Проверяйте его каждый день.\n",
    "notes/ponpu.txt": "ポンプの圧力は三気圧を超えてはならない。毎日確認すること。\n",
    "notes/birds.html": "<html><head><title>Birds</title></head><body><h1>Birds</h1><p>The heron stands in the"
    " water and waits for fish.</p></body></html>\n",
    "notes/gone.txt": "This one is removed again before long.\n",
}
LATE, WAITING = "The otter sleeps on its back and holds a stone.\n", "The lynx is seen at dusk, and seldom.\n"


class Stopped(Exception):
    """A run that its user stopped."""


def main() -> None:
    if sys.argv[1:2] == ["inside"]:
        inside(Path(sys.argv[2]))
        return
    (revision,) = sys.argv[1:]
    if DOCS.exists():
        sys.exit(f"{DOCS} is there already. Move it away: a folder of that name is made here and deleted at the end.")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        environment, commit = program_of(revision, scratch / "program")
        home = scratch / "home"
        home.mkdir()
        try:
            write_documents()
            command = [sys.executable, __file__, "inside", str(home)]
            subprocess.run(command, env=environment | {"EDGERAG_HOME": str(home)}, cwd=scratch, check=True)
        finally:
            shutil.rmtree(DOCS, ignore_errors=True)
        store(home / "indexes" / "default", home / "expected.json", commit)


def program_of(revision: str, folder: Path) -> tuple[dict[str, str], str]:
    """The environment in which the program of that commit runs out of ``folder``, and the commit."""
    command = ["git", "archive", revision, "edgerag", "tests"]
    archive = subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    path = os.pathsep.join([str(folder), str(folder / "tests")])
    commit = subprocess.run(["git", "rev-parse", revision], cwd=CHECKOUT, check=True, capture_output=True, text=True)
    return os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}, commit.stdout.strip()[:12]


def write_documents() -> None:
    for name, text in TEXTS.items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (DOCS / "notes" / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing that a reader knows\n")
    with zipfile.ZipFile(DOCS / "box.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("letter.txt"), "The badger wrote a letter about the bridge.\n")
    for path in DOCS.rglob("*"):
        os.utime(path, (_AS_OF_S, _AS_OF_S))


def inside(home: Path) -> None:
    """Runs in the program of that commit."""
    from fakes import HashingEmbedder, ScriptedGenerator

    from edgerag.config import Settings
    from edgerag.index.library import Library
    from edgerag.locations import Locations
    from edgerag.session import Session

    embedder = HashingEmbedder(dimension=DIMENSION)

    def session() -> Any:
        return Session(Settings(), Locations(home), embedder=lambda: embedder, generator=ScriptedGenerator)

    def ingest(paths: list[Path], *tags: str) -> None:
        with session() as one:
            given = {"tags": tags} if "tags" in inspect.signature(one.ingest).parameters else {}
            for _ in one.ingest(paths, **given):
                pass

    ingest([DOCS / "manual"], "manuals", "golden")
    ingest([DOCS / "notes", DOCS / "box.zip"])
    with session() as one:
        one.remove([str(DOCS / "notes" / "gone.txt")])
    stopped(ingest, DOCS / "late.txt", LATE, Library, "seal")
    stopped(ingest, DOCS / "waiting.txt", WAITING, HashingEmbedder, "embed_passages")
    with session() as one, one._browsing.use() as library:
        expected = {
            "documents": {document.path: facts(library, document) for document in library.documents()},
            "failures": sorted(failure.path for failure in library.failures()),
            "pending": library.pending_count(),
            "searches": [answers(library, embedder, query) for query in QUERIES],
        }
    (home / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1, sort_keys=True) + "\n")


def stopped(ingest: Callable[..., None], path: Path, text: str, owner: Any, name: str) -> None:
    """An ingest of one more file that ends where ``owner.name`` would begin."""

    def stop(*_: Any, **__: Any) -> None:
        raise Stopped

    path.write_text(text, encoding="utf-8")
    os.utime(path, (_AS_OF_S, _AS_OF_S))
    before = getattr(owner, name)
    setattr(owner, name, stop)
    try:
        ingest([path])
        raise AssertionError(f"{name} was not called")
    except Stopped:
        pass
    finally:
        setattr(owner, name, before)


def facts(library: Any, document: Any) -> dict[str, Any]:
    parsed = library.parsed_document(document.id)
    return {
        "title": document.title,
        "media_type": document.media_type,
        "text_sha256": hashlib.sha256(parsed.text.encode()).hexdigest(),
        "headings": [heading.title for heading in parsed.headings],
        "tags": list(getattr(document, "tags", ())),
    }


def answers(library: Any, embedder: Any, query: str) -> dict[str, Any]:
    """What both legs find; passages by path and text, since numbers mean nothing to a user."""
    vectors = library.search_vectors(embedder.embed_query(query), limit=20, ef_search=64)
    words = library.search_keywords(query, limit=20)
    stored = {each.id: each for each in library.chunks([hit.chunk_id for hit in [*words, *vectors]])}

    def place(chunk_id: int) -> list[Any]:
        one = stored[chunk_id].chunk
        return [stored[chunk_id].path, one.start, one.end, one.line_first, one.text]

    return {
        "query": query,
        "words": [place(hit.chunk_id) for hit in words],
        "vectors": [[*place(hit.chunk_id), round(hit.score, 4)] for hit in vectors],
    }


def store(folder: Path, expected: Path, commit: str) -> None:
    database = sqlite3.connect(folder / "library.sqlite")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    database.close()
    record = {"version": version, "commit": commit} | json.loads(expected.read_text(encoding="utf-8"))
    name = f"library-v{version:02}"
    (HERE / f"{name}.json").write_text(json.dumps(record, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    with tarfile.open(HERE / f"{name}.tar.xz", "w:xz", preset=9) as tar:
        for path in sorted(folder.rglob("*")):
            part = path.relative_to(folder)
            if (
                path.is_file()
                and path.stat().st_size
                and part.parts[0] in ("library.sqlite", "library.sums", "segments")
            ):
                tar.add(path, str(part), filter=plain)
    sys.stdout.write(f"{name}: {(HERE / f'{name}.tar.xz').stat().st_size:,} bytes\n")


def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime, entry.mode = _AS_OF_S, 0o600
    return entry


if __name__ == "__main__":
    main()
