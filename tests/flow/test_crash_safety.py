"""Invariant 2: whatever stops the writer, the last committed library is whole and the next run goes on.

A child process counts the calls that matter (commits, fsync, rename, unlink, pieces written, hnswlib's
save) through patches of its own and kills itself with SIGKILL at the n-th, for every n until it gets
through; each time the library is checked, the work is finished, and searches must give what an
undisturbed run gives. The same with every write refused beyond a size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

# Runs in a process of its own: it forks, and limits itself.
WORKER = '''
import hashlib, json, os, resource, signal, sqlite3, sys, zlib
from pathlib import Path
import hnswlib
import numpy as np
from edgerag.errors import EdgeragError, StorageFull
from edgerag.index import library as library_module
from edgerag.index.hnsw import build, write
from edgerag.index.segments import SealSettings
from edgerag.types import Chunk, EmbedderIdentity, ParsedDocument

IDENTITY = EmbedderIdentity("by-rule", "ab" * 32, 16, ("*",))
SMALL = SealSettings(block_bytes=4096, graph_rows=10, max_rows=1000)


def embed(texts):
    rows = [np.random.default_rng(list(hashlib.sha256(text.encode()).digest())).normal(size=16) for text in texts]
    rows = np.array(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def put(library, name, words):
    text = "\\n".join(words)
    chunks, start = [], 0
    for ordinal, word in enumerate(words):
        chunks.append(Chunk(ordinal, start, start + len(word), word, (), None, None, ordinal + 1, ordinal + 1, 1))
        start += len(word) + 1
    parsed = ParsedDocument(text=text, title=name, media_type="text/plain")
    digest = hashlib.sha256(text.encode()).hexdigest()
    library.put_document(parsed, chunks, path=name, root="/", content_sha256=digest, size_bytes=1, mtime_ns=1)


def remove(library, name):
    document = library.document_by_path(name)
    if document is not None:
        library.remove_documents([document.id])


def embed_pending(library, limit=6):
    while pending := library.pending_chunks(limit):
        library.put_vectors([chunk.id for chunk in pending], embed([chunk.chunk.embedding_text for chunk in pending]))


WORDS = {name: [f"{name} word{i}" for i in range(12)] for name in "abcd"}
CHANGED = [*WORDS["a"][:6], "a changed", *WORDS["a"][7:]]
STEPS = [
    lambda library: put(library, "a", WORDS["a"]),
    lambda library: put(library, "b", WORDS["b"]),
    embed_pending,
    lambda library: library.seal(),
    lambda library: put(library, "c", WORDS["c"]),
    lambda library: put(library, "a", CHANGED),
    lambda library: remove(library, "b"),
    embed_pending,
    lambda library: library.seal(),
    lambda library: put(library, "d", WORDS["d"]),
    embed_pending,
    lambda library: remove(library, "c"),
    lambda library: library.seal(),
]
# What must be there once so many steps are done, whatever came after.
EXPECTED = {1: {"a": WORDS["a"]}, 2: {"b": WORDS["b"]}, 5: {"c": WORDS["c"]}, 6: {"a": CHANGED}, 7: {"b": None},
            10: {"d": WORDS["d"]}, 12: {"c": None}}


def run(folder, done):
    """Every step is safe to be repeated; ``done`` counts those that returned."""
    count = int(done.read_text()) if done.exists() else 0
    with library_module.open_library(folder, mode="write", budget_bytes=10**8, identity=IDENTITY,
                                     seal_settings=SMALL) as library:
        for number in range(count, len(STEPS)):
            STEPS[number](library)
            done.write_text(str(number + 1))


def answers(folder):
    with library_module.open_library(folder, mode="read", budget_bytes=10**8, seal_settings=SMALL) as library:
        found = []
        for query in embed([f"query {i}" for i in range(8)]):
            hits = library.search_vectors(query, limit=20, ef_search=200)
            chunks = library.chunks([hit.chunk_id for hit in hits])
            found.append([(c.path, c.chunk.text, round(h.score, 5)) for c, h in zip(chunks, hits, strict=True)])
        for word in ("word3", "changed", "a", "d word7"):
            hits = library.search_keywords(word, limit=40)
            chunks = library.chunks([hit.chunk_id for hit in hits])
            found.append([(c.path, c.chunk.text, round(h.score, 5)) for c, h in zip(chunks, hits, strict=True)])
        return found


def check(folder, done, *, exact):
    """Opens it as a user would next; everything that returned must be there. Sentences of what is wrong."""
    if not folder.exists() or (not done.exists() and not (folder / "library.sqlite").exists()):
        return []
    wrong = []
    count = int(done.read_text()) if done.exists() else 0
    try:
        library = library_module.open_library(folder, mode="read", budget_bytes=10**8, seal_settings=SMALL)
    except EdgeragError as error:
        return [] if count == 0 and type(error).__name__ == "LibraryMissing" else [f"cannot be opened: {error}"]
    with library:
        wrong += [finding.message for finding in library.verify() if finding.severity != "ok"]
        wanted = {}
        for step in range(1, count + 1):
            wanted |= EXPECTED.get(step, {})
        coming = {}
        if not exact:
            coming = EXPECTED.get(count + 1, {})  # the step under way may or may not have been committed
        for name, words in wanted.items():
            document = library.document_by_path(name)
            text = library.parsed_document(document.id).text.split("\\n") if document else None
            if text != words and not (name in coming and text == coming[name]):
                wrong.append(f"{name} is {text} after {count} steps")
        query = embed(["x"])[0]
        hits = library.search_vectors(query, limit=10**6, ef_search=10)
        chunks, pending = library.chunk_count(), library.pending_count()
        if len(hits) != chunks - pending:
            wrong.append(f"{len(hits)} vectors for {chunks} chunks with {pending} pending")
        if pending and count in (3, 8, 11) and exact:
            wrong.append(f"{pending} chunks pending after they were embedded")
    return wrong


# A killed process loses nothing that it gave to the kernel: syncing would only make the test slow.
os.fsync = lambda descriptor: None
connect = sqlite3.connect


class Unsynced(sqlite3.Connection):
    def execute(self, statement, *args):
        return super().execute(statement.replace("synchronous = FULL", "synchronous = OFF"), *args)


sqlite3.connect = lambda *args, **options: connect(*args, factory=Unsynced, **options)


class Killer:
    def __init__(self, at):
        self.at, self.count = at, 0

    def step(self):
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function):
        def wrapped(*args, **options):
            self.step()
            result = function(*args, **options)
            self.step()
            return result
        return wrapped

    def install(self):
        killer = self

        class Connection(Unsynced):
            def execute(self, statement, *args):
                if statement.startswith(("COMMIT", "PRAGMA wal_checkpoint", "PRAGMA journal_mode")):
                    return killer.around(super().execute)(statement, *args)
                return super().execute(statement, *args)

            def executemany(self, *args):
                killer.step()
                return super().executemany(*args)

            def executescript(self, *args):
                return killer.around(super().executescript)(*args)

            def close(self):
                return killer.around(super().close)()

        sqlite3.connect = lambda *args, **options: connect(*args, factory=Connection, **options)
        for name in ("fsync", "replace", "unlink", "mkdir", "ftruncate"):
            setattr(os, name, self.around(getattr(os, name)))
        write.zlib = type("zlib", (), {"crc32": staticmethod(self.around(zlib.crc32))})
        real = hnswlib.Index

        class Index(real):
            def save_index(self, path):
                killer.step()
                super().save_index(path)
                with open(path, "r+b") as file:  # half of it written
                    whole = file.read()
                    file.truncate(len(whole) // 2)
                    killer.step()
                    file.seek(0)
                    file.write(whole)
                killer.step()
        build.hnswlib.Index = Index


def in_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except EdgeragError as error:
            print(type(error).__name__, error.message, file=sys.stderr)
            os._exit(5 if isinstance(error, StorageFull) else 4)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def killed_at(base, at):
    folder, done = base / f"{at}" / "lib", base / f"{at}" / "done"
    folder.parent.mkdir()

    def work():
        Killer(at).install()
        run(folder, done)

    code = in_child(work)
    wrong = check(folder, done, exact=False)
    if code == -signal.SIGKILL:
        # Once more at the same count, now from the middle; then to the end.
        in_child(work)
        wrong += check(folder, done, exact=False)
    finished = in_child(lambda: run(folder, done))
    if finished != 0:
        wrong.append(f"the next run ended with {finished}")
    wrong += check(folder, done, exact=True)
    leftovers = [path.name for path in (folder / "segments").iterdir() if not path.name.endswith(".hnsw")]
    if leftovers:
        wrong.append(f"left behind: {leftovers}")
    return code, wrong, answers(folder)


def limited_to(base, limit):
    folder, done = base / f"limit{limit}" / "lib", base / f"limit{limit}" / "done"
    folder.parent.mkdir()

    def work():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        run(folder, done)

    code = in_child(work)
    wrong = check(folder, done, exact=False)
    if code not in (0, 5):
        wrong.append(f"ended with {code} instead of StorageFull")
    if in_child(lambda: run(folder, done)) != 0:
        wrong.append("the next run failed")
    wrong += check(folder, done, exact=True)
    return code, wrong, answers(folder)


base = Path(sys.argv[2])
if sys.argv[1] == "kill":
    first, step = map(int, sys.argv[3:])
    at = first
    while True:
        code, wrong, found = killed_at(base, at)
        print(json.dumps([at, code, wrong, found]), flush=True)
        if code == 0:
            break
        at += step
else:
    for limit in map(int, sys.argv[3:]):
        code, wrong, found = limited_to(base, limit)
        print(json.dumps([limit, code, wrong, found]), flush=True)
'''


def work(tmp_path: Path, *arguments: str) -> list[list[Any]]:
    script = tmp_path / "worker.py"
    script.write_text(WORKER, encoding="utf-8")
    environ = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(script), arguments[0], str(tmp_path), *arguments[1:]]
    result = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("first", [1, 2, 3])
def test_killed_anywhere_nothing_committed_is_lost(tmp_path: Path, first: int) -> None:
    *killed, undisturbed = work(tmp_path, "kill", str(first), "3")
    assert undisturbed[1] == 0
    assert len(killed) > 40, "there are that many places to be killed at"
    assert any(undisturbed[3])
    for at, code, wrong, found in [*killed, undisturbed]:
        assert (at, code, wrong) == (at, 0 if at == undisturbed[0] else -9, [])
        assert found == undisturbed[3], f"killed at {at}"


def test_on_a_full_disk_nothing_committed_is_lost(tmp_path: Path) -> None:
    limits = [0, 1, 4096, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 130_000, 160_000, 200_000, 250_000, 300_000]
    results = work(tmp_path, "limit", *map(str, limits), "1000000000")
    undisturbed = results[-1]
    assert undisturbed[1] == 0
    assert sum(code == 5 for _, code, _, _ in results) >= 8, "most of them were too little"
    for limit, code, wrong, found in results:
        assert (limit, code, wrong) == (limit, code, [])
        assert found == undisturbed[3], f"limited to {limit}"
